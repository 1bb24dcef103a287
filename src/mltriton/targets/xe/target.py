"""Intel's Xe GPUs as a target: SPIR-V for one device, and Intel's compiler's view of it where ocloc is installed.

Level: tt to binary. The binary is a SPIR-V module, which Intel's runtime compiles for the device at hand; without an
Intel GPU its kernels run emulated on the CPU. Guarantees: importing this module imports neither LLVM nor a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mltriton.targets.target import Binary, LoadedKernel, Lowered, Target, heading
from mltriton.targets.xe.facts import XeFacts, XeLowered

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.targets.xe.codegens import Codegen
    from mltriton.targets.xe.devices import Device
    from mltriton.targets.xe.launch_guards import Surface
    from mltriton.targets.xe.llvm.emit.kernel import KernelText
    from mltriton.targets.xe.ocloc import Native


class XeTarget(Target):
    """One device."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.name = f"xe:{variant}"

    @property
    def fingerprint(self) -> str:
        """The device, and whether a form for emulation comes along."""
        from mltriton.targets.xe.driver import emulates

        return f"{self.variant}, emulated" if emulates() else self.variant

    @cached_property
    def device(self) -> Device:
        """The device as data."""
        from mltriton.targets.xe.devices import device

        return device(self.variant)

    @property
    def can_run(self) -> bool:
        """Whether the passes say which lane holds what, without which there is no code."""
        return self.spec.has_lanes

    def lower(self, module: Module, failing: tuple[Surface, ...] = ()) -> XeLowered:
        """LLVM IR for SPIR-V, and how a program is to run, for launches in which some surfaces fail."""
        from mltriton.targets.xe.codegens import codegen_of

        made = codegen_of(module).lower(module, self.device, failing)
        return XeLowered(made.text, _facts(module, self.device, made), made.function)

    def restored(self, text: str, binary: Binary) -> Lowered:
        """With what the binary says of the program."""
        return XeLowered(text, _facts_in(binary), binary.object)

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """SPIR-V, and the device's instructions."""
        return {"spirv": self.listing, "isa": self.assembly}

    @property
    def images(self) -> Mapping[str, Callable[[Lowered], bytes]]:
        """SPIR-V, and the binary of Intel's offline compiler."""
        return {"spirv": self.spirv, "native": lambda lowered: self._native(lowered).binary}

    def spirv(self, lowered: Lowered) -> bytes:
        """The module."""
        known, facts = _checked(lowered), _known(lowered)
        if isinstance(known.source, bytes):
            return known.source
        return _codegen(lowered).spirv(known, facts.num_warps, facts.shared)

    def listing(self, lowered: Lowered) -> str:
        """The module as text."""
        from mltriton.targets.xe.spirv.listing import listing

        return listing(self.spirv(lowered))

    def assembly(self, lowered: Lowered) -> str:
        """The device's instructions as Intel's offline compiler makes them, under a line that says what they use.

        Raises `TargetError` where ocloc is not installed.
        """
        from mltriton.targets.xe.ocloc import disassemble

        native = self._native(lowered)
        [(name, text)] = disassemble(native).items()
        info = native.kernels[name]
        return heading(info.registers, info.spilled) + text

    def _native(self, lowered: Lowered) -> Native:
        """What Intel's offline compiler makes of a kernel, beginning with the registers that it should need."""
        from mltriton.targets.xe.ocloc import compile_without_spills

        facts, code = _known(lowered), _codegen(lowered).code
        registers, fixed = facts.registers, facts.fixed_registers
        return compile_without_spills(
            self.spirv(lowered), self.device, facts.num_warps, code=code, registers=registers, fixed=fixed
        )

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """A SPIR-V module, and the shared memory of a program.

        In `metadata` are what launches must check of matrices, with the program for those that fail, and where kernels
        for Xe are emulated, another module for that.
        """
        from mltriton.ir.printer import print_op
        from mltriton.targets.xe.driver import emulates
        from mltriton.targets.xe.kernel_modules import packed

        codegen, facts = _codegen(lowered), _known(lowered)
        metadata: dict[str, Any] = {"shared": facts.shared, "facts": asdict(facts)}
        if facts.checked:
            metadata["program"] = packed(print_op(module, locations=True).encode())
        if emulates():
            metadata["emulated"] = packed(codegen.emulated(_checked(lowered), self.device))
        return Binary(self.spirv(lowered), metadata)

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Bring the kernel to the device; where there is no Intel GPU, with what only Xe has emulated on the CPU.

        Raises `DeviceError` where there is neither.
        """
        from mltriton.runtime.fingerprint import compiler_fingerprint
        from mltriton.targets.xe import driver
        from mltriton.targets.xe.codegens import BY_NAME
        from mltriton.targets.xe.emulation.simd.launch import EmulatedWarps
        from mltriton.targets.xe.kernel_modules import KernelModules
        from mltriton.targets.xe.launch import XeKernel
        from mltriton.targets.xe.ocloc import build_options
        from mltriton.targets.xe.spirv.emission import Code

        queue, known = driver.queue(), _facts_in(binary)
        codegen, warps = BY_NAME[known.codegen], known.num_warps
        assertions, prints = known.assertions, known.prints
        queue.announce(self.name)
        modules = KernelModules(binary, known, name, self._version, (self.name, compiler_fingerprint()))
        if queue.emulated and codegen.code is Code.SIMD:
            image = partial(modules.of, queue)
            return EmulatedWarps(image, warps, known.shared, modules.guards, assertions=assertions, prints=prints)
        return XeKernel(
            queue,
            modules.of,
            name,
            known.work_items,
            options=build_options(self.device, warps, known.registers, codegen.code, fixed=known.fixed_registers),
            guards=modules.guards,
            assertions=assertions,
            prints=prints,
        )

    def _version(self, program: str, failing: tuple[Surface, ...], emulated: bool) -> bytes:
        """The module of a program at the intrinsic level, for launches in which these surfaces fail."""
        from mltriton.ir.parser import parse_module

        lowered = self.lower(parse_module(program), failing)
        return _codegen(lowered).emulated(lowered, self.device) if emulated else self.spirv(lowered)

    def takes(self, device: str) -> bool:
        """Arrays of the GPU, and those of main memory, which are copied."""
        return device in ("xpu", "cpu")


def registers_of(module: Module, device: Device) -> int:
    """How many registers a warp of a program at the intrinsic level is to have: what choose-registers says.

    Raises `TargetError` for a program with more warps than any mode allows.
    """
    from mltriton.ir.attributes import integer_in
    from mltriton.targets.registry import num_warps_of

    registers = integer_in(module.attributes, "ttig.register_mode", device.grf_modes[0].registers)
    device.check_warps(num_warps_of(module), registers)
    return registers


def _facts(module: Module, device: Device, made: KernelText) -> XeFacts:
    """What is known of a program at the intrinsic level."""
    from mltriton.dialects import tt
    from mltriton.targets.assertions import describe
    from mltriton.targets.registry import num_warps_of, spec_of
    from mltriton.targets.simt.shared import allocations
    from mltriton.targets.xe.codegens import codegen_of
    from mltriton.targets.xe.spirv.emission import Code

    code, warps = codegen_of(module).code, num_warps_of(module)
    return XeFacts(
        codegen=code.value,
        num_warps=warps,
        work_items=warps * (spec_of(module).warp_size if code is Code.SIMT else 1),
        shared=allocations(module).size,
        registers=registers_of(module, device),
        fixed_registers="ttig.grf_mode" in module.attributes,
        prints=any(isinstance(op, tt.Print) for op in module.walk()),
        assertions=describe(module),
        checked=made.checked,
        uses=made.uses,
    )


def _facts_in(binary: Binary) -> XeFacts:
    return XeFacts(**binary.metadata["facts"])


def _checked(lowered: Lowered) -> XeLowered:
    assert isinstance(lowered, XeLowered), "what this target lowered"
    return lowered


def _known(lowered: Lowered) -> XeFacts:
    assert isinstance(lowered.facts, XeFacts), "what this target lowered"
    return lowered.facts


def _codegen(lowered: Lowered) -> Codegen:
    from mltriton.targets.xe.codegens import BY_NAME

    return BY_NAME[_known(lowered).codegen]


def create(variant: str) -> Target:
    """The target of a device."""
    return XeTarget(variant)
