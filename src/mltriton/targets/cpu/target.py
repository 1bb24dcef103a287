"""The CPU as a target: machine code for this machine, or for the instruction set that the variant names.

Level: intrinsic to binary. Guarantees: importing this module and loading a cached kernel import neither LLVM nor a
pass; only the plain `cpu` target and variants that this machine has can be launched.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING

from mltriton.errors import TargetError
from mltriton.records import record
from mltriton.runtime.digests import digest_of
from mltriton.targets.target import AccessChecks, Binary, Facts, LoadedKernel, Lowered, Target

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.targets.cpu.features import CpuFeatures
    from mltriton.targets.llvm.toolchain import Machine

_CPUINFO = "/proc/cpuinfo"
_CPUINFO_CHARACTERS = 1 << 14  # More than it says of one processor.
ASSEMBLY_SECONDS = 600.0  # for kernels with inline assembly, over which LLVM may end its process
_FEATURE_LINES = ("flags", "Features")


@record(frozen=True)
class CpuFacts(Facts):
    """Whether the kernel multiplies matrices."""

    has_products: bool


class CpuTarget(Target):
    """One instruction set. `variant` is "" for this machine's own."""

    access_checks = AccessChecks.IN_DEBUGGING
    unused_options = frozenset({"num_warps", "num_stages"})  # One warp a program, no copies ahead.

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.name = f"cpu:{variant}" if variant else "cpu"

    @cached_property
    def features(self) -> CpuFeatures:
        """What code generation may use."""
        from mltriton.targets.cpu.features import FEATURES, host

        return FEATURES[self.variant] if self.variant else host()

    @property
    def fingerprint(self) -> str:
        """The variant, or a digest of what the operating system says of this processor."""
        return self.variant or _processor()

    def lower(self, module: Module) -> Lowered:
        """LLVM IR."""
        from mltriton.targets.cpu.llvm.emit.kernel import emit_kernel

        return Lowered(emit_kernel(module, self.features), CpuFacts(_has_products(module)))

    def restored(self, text: str, binary: Binary) -> Lowered:
        """With what the binary says of the program."""
        return Lowered(text, CpuFacts(binary.metadata["has_products"]))

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """The assembly."""
        return {"asm": self.assembly}

    def assembly(self, lowered: Lowered) -> str:
        """Assembly text."""
        from mltriton.targets.llvm.toolchain import assembly

        return assembly(lowered.text, self._machine_for(lowered))

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """Linked code, the scratch memory that each thread needs, and what its assertions say.

        `shared` is all memory of a program besides arrays: scratch, and the slots of its arguments and the grid.
        """
        from mltriton.ir.attributes import integer_in
        from mltriton.runtime.native.objects import linked
        from mltriton.targets.assertions import describe
        from mltriton.targets.llvm.toolchain import compile_object

        size = integer_in(module.attributes, "tile.scratch_bytes", 0)
        shared = size + 8 * (_parameters(module) + 3)
        metadata = {"scratch_bytes": size, "shared": shared, "assertions": describe(module), **vars(lowered.facts)}
        seconds = ASSEMBLY_SECONDS if ' asm "' in lowered.text else None
        return Binary(linked(compile_object(lowered.text, self._machine_for(lowered), seconds=seconds)), metadata)

    def object_of(self, text: str) -> bytes:
        """An object file of other functions for this machine."""
        from mltriton.targets.llvm.toolchain import compile_object

        return compile_object(text, self._machine())

    def registers(self, assembly: str) -> tuple[int, int]:
        """Vector registers, and words of the stack."""
        from mltriton.targets.cpu.registers import used

        return used(assembly, is_x86=self.features.is_x86)

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Bring the code into this process. Raises `TargetError` where this machine lacks the instruction set."""
        from mltriton.runtime.native.launcher import NativeKernel

        if self.variant and not self._runs_here():
            raise TargetError(
                f"kernel {name} was compiled for {self.name}, which this machine cannot run",
                hint="Compile for the target cpu to run it here.",
            )
        scratch_bytes, assertions = binary.metadata["scratch_bytes"], binary.metadata["assertions"]
        if not assertions:
            return NativeKernel(binary.object, scratch_bytes)
        from mltriton.targets.cpu.assertions import FAILURE, CheckedKernel

        return CheckedKernel(NativeKernel(binary.object, scratch_bytes, variables=[FAILURE]), assertions)

    def takes(self, device: str) -> bool:
        """Arrays in main memory."""
        return device == "cpu"

    def _machine_for(self, lowered: Lowered) -> Machine:
        """Micro-kernels are written with the addresses that x86 is to have: LLVM would look for others in vain."""
        assert isinstance(lowered.facts, CpuFacts), "what this target lowered"
        return self._machine(reduce_strength=not (lowered.facts.has_products and self.features.is_x86))

    def _machine(self, *, reduce_strength: bool = True) -> Machine:
        from mltriton.targets.llvm.toolchain import Machine

        features = self.features
        return Machine(features.triple, features.cpu, features.attributes, reduce_strength=reduce_strength)

    def _runs_here(self) -> bool:
        from mltriton.targets.cpu.features import FEATURES, host

        here, wanted = host(), FEATURES[self.variant]
        flags = ("has_fma", "f16_conversion", "bf16_dot", "vnni", "avx512")
        has_flags = all(getattr(here, f) or not getattr(wanted, f) for f in flags)
        return here.is_x86 == wanted.is_x86 and has_flags and {*wanted.matrix_tiles} <= {*here.matrix_tiles}


def _parameters(module: Module) -> int:
    """How many parameters the kernel has."""
    from mltriton.dialects import tt

    return len(tt.kernel_of(module).body.block.arguments)


def _has_products(module: Module) -> bool:
    from mltriton.dialects import tile

    return any(isinstance(op, tile.Dot | tile.IndirectDot) for op in module.walk())


@cache
def _processor() -> str:
    """A digest of what this machine's processor can do, as the operating system says, or else LLVM."""
    # The first processor stands for all. (platform.processor() would start a process.)
    try:
        with open(_CPUINFO, encoding="utf-8") as info:
            first = info.read(_CPUINFO_CHARACTERS).partition("\n\n")[0]
    except OSError:
        first = ""
    known = [line for line in first.splitlines() if line.startswith(("model name", "CPU part", *_FEATURE_LINES))]
    if not any(line.startswith(_FEATURE_LINES) for line in known):
        from mltriton.targets.cpu.features import host

        known = [host().triple, host().cpu, host().attributes]
    if "amx_tile" in first:
        from mltriton.targets.cpu.permission import tiles_permitted

        known.append(f"matrix tiles: {tiles_permitted()}")  # asked in each process before it loads a kernel
    return digest_of("\n".join([platform.machine(), *known]).encode())[:16]


def create(variant: str) -> Target:
    """The target of a variant."""
    return CpuTarget(variant)
