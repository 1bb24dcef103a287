"""NVIDIA's GPUs as a target: PTX by LLVM, a cubin by ptxas where it is installed.

Level: tt to binary. The binary is a cubin, or without ptxas PTX, of which the driver makes one when it is loaded.
Guarantees: importing this module imports neither LLVM nor a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mltriton.targets.nvidia.facts import WARP, NvidiaFacts
from mltriton.targets.target import AccessChecks, Binary, LoadedKernel, Lowered, Target, heading

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.targets.nvidia.devices import Device
    from mltriton.targets.nvidia.ptxas import Cubin


class NvidiaTarget(Target):
    """One compute capability; that of the GPU at hand where the variant is ""."""

    access_checks = AccessChecks.IN_DEBUGGING

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.name = f"cuda:{variant}" if variant else "cuda"

    @property
    def fingerprint(self) -> str:
        """The device and the assembler."""
        from mltriton.targets.nvidia.ptxas import version

        return f"{self.device.name} {version()}"

    @cached_property
    def device(self) -> Device:
        """The device as data."""
        from mltriton.targets.nvidia.devices import device, variant_here

        return device(self.variant or variant_here())

    def lower(self, module: Module) -> Lowered:
        """LLVM IR for PTX, and how a program is to run."""
        from mltriton.targets.nvidia.kernel import lower

        return lower(module, self.device)

    def restored(self, text: str, binary: Binary) -> Lowered:
        """With what the binary says of the program."""
        return Lowered(text, NvidiaFacts.of(binary.metadata["facts"]))

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """PTX, and the device's instructions."""
        return {"ptx": self.ptx, "sass": self.assembly}

    @property
    def images(self) -> Mapping[str, Callable[[Lowered], bytes]]:
        """The cubin, where the binary might be PTX."""
        return {"cubin": lambda lowered: self._cubin(lowered).binary}

    def ptx(self, lowered: Lowered) -> str:
        """The PTX module."""
        from mltriton.targets.nvidia.ptx import compile_ptx

        return compile_ptx(lowered.text, self.device)

    def _cubin(self, lowered: Lowered) -> Cubin:
        assert isinstance(lowered.facts, NvidiaFacts), "what this target lowered"
        return self._machine_code(self.ptx(lowered), lowered.facts)

    def _machine_code(self, ptx: str, facts: NvidiaFacts) -> Cubin:
        from mltriton.targets.nvidia.ptxas import assemble

        return assemble(ptx, self.device, facts.shared, multiplies=facts.multiplies)

    def assembly(self, lowered: Lowered) -> str:
        """The device's instructions, under lines that say what they use and what ptxas remarks.

        Raises `TargetError` where ptxas or cuobjdump is not installed.
        """
        from mltriton.targets.nvidia.ptxas import disassemble

        cubin = self._cubin(lowered)
        [info] = cubin.kernels.values()
        remarks = "".join(f"// {remark}\n" for remark in cubin.remarks)
        return f"{heading(info.registers, info.spilled)}{remarks}{disassemble(cubin.binary)}"

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """A cubin, or PTX where ptxas is not installed, and what the launch must know."""
        from mltriton.targets.nvidia.ptxas import find_tool

        facts, ptx = lowered.facts, self.ptx(lowered)
        assert isinstance(facts, NvidiaFacts), "what this target lowered"
        metadata: dict[str, Any] = {"shared": facts.shared, "facts": asdict(facts), "remarks": []}
        if find_tool("ptxas") is None:
            return Binary(ptx.encode(), metadata)
        cubin = self._machine_code(ptx, facts)
        registers = max(info.registers for info in cubin.kernels.values())
        return Binary(cubin.binary, metadata | {"remarks": cubin.remarks, "registers": registers})

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Bring the kernel to the GPU. Raises `DeviceError` where there is none."""
        from mltriton.targets.nvidia import driver
        from mltriton.targets.nvidia.launch import CudaKernel

        driver.device(driver.current_index())
        facts = NvidiaFacts.of(binary.metadata["facts"])
        threads = WARP * facts.num_warps
        return CudaKernel(
            binary.object,
            name,
            threads=threads,
            shared=facts.shared,
            assertions=facts.assertions,
            prints=facts.prints,
            maps=facts.maps,
            attributes=facts.attributes,
            beside=facts.beside,
            takes_turns=facts.takes_turns,
        )

    def takes(self, device: str) -> bool:
        """Arrays of the GPU, and those of main memory, which are copied."""
        return device in ("cuda", "cpu")


def create(variant: str) -> Target:
    """The target of a device."""
    return NvidiaTarget(variant)
