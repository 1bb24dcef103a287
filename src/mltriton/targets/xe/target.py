"""Intel's Xe GPUs as a target.

Level: tt to intrinsic. Guarantees: asking for anything below the intrinsic level is a `TargetError` that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mltriton.errors import TargetError
from mltriton.targets.target import Binary, LoadedKernel, Target

if TYPE_CHECKING:
    from mltriton.dialects.builtin import Module
    from mltriton.targets.base import TargetSpec


class XeTarget:
    """One device."""

    can_run = False

    def __init__(self, variant: str) -> None:
        self.name = f"xe:{variant}"
        self.fingerprint = variant

    @property
    def spec(self) -> TargetSpec:
        """Sizes and pipeline."""
        from mltriton.targets.registry import spec

        return spec(self.name)

    def lower(self, module: Module) -> str:
        """Raise `TargetError`."""
        self._refuse("LLVM IR")

    def assembly(self, llvm: str) -> str:
        """Raise `TargetError`."""
        self._refuse("assembly")

    def assemble(self, llvm: str, module: Module) -> Binary:
        """Raise `TargetError`."""
        self._refuse("machine code")

    def registers(self, assembly: str) -> tuple[int, int]:
        """Raise `TargetError`."""
        self._refuse("assembly")

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Raise `TargetError`."""
        self._refuse("machine code")

    def takes(self, device: str) -> bool:
        """No array is this target's."""
        return False

    def _refuse(self, what: str) -> NoReturn:
        raise TargetError(
            f"the target {self.name} has no {what} yet",
            hint="It compiles down to the intrinsic level, to be read; compile for cpu to run.",
        )


def create(variant: str) -> Target:
    """The target of a device."""
    return XeTarget(variant)
