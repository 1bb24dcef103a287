"""The generic GPU as a target: compiles to the intrinsic level and stops there.

Level: tt to intrinsic. Guarantees: asking for anything below the intrinsic level is a `TargetError` that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from mltriton.errors import TargetError
from mltriton.targets.target import AccessChecks, Binary, LoadedKernel, Lowered, Target

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.targets.base import TargetSpec


class GenericTarget:
    """A GPU on paper: no machine code."""

    name = "generic"
    can_run = False
    access_checks = AccessChecks.ON_DEMAND
    unused_options: frozenset[str] = frozenset()
    fingerprint = "generic"

    @property
    def spec(self) -> TargetSpec:
        """PVC's sizes."""
        from mltriton.targets.registry import spec  # A launch from the cache needs none of it.

        return spec(self.name)

    def lower(self, module: Module) -> Lowered:
        """Raise `TargetError`."""
        self._refuse("LLVM IR")

    def restored(self, text: str, binary: Binary) -> Lowered:
        """Raise `TargetError`."""
        self._refuse("LLVM IR")

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """None."""
        return {}

    @property
    def images(self) -> Mapping[str, Callable[[Lowered], bytes]]:
        """None."""
        return {}

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """Raise `TargetError`."""
        self._refuse("machine code")

    def registers(self, assembly: str) -> tuple[int, int]:
        """Raise `TargetError`."""
        self._refuse("assembly")

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Raise `TargetError`."""
        self._refuse("machine code")

    def takes(self, device: str) -> bool:
        """No device is this target's."""
        return False

    def _refuse(self, what: str) -> NoReturn:
        raise TargetError(
            f"the target {self.name} has no {what}",
            hint="It compiles down to the intrinsic level, to be read; compile for cpu to run.",
        )


def create(variant: str) -> Target:
    """The only variant."""
    return GenericTarget()
