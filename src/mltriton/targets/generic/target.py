"""The generic GPU as a target: compiles to the intrinsic level and stops there.

Level: tt to intrinsic. Guarantees: asking for anything below the intrinsic level is a `TargetError` that says so.
"""

from __future__ import annotations

from mltriton.targets.target import Target


class GenericTarget(Target):
    """A GPU on paper, with PVC's sizes: no machine code."""

    name = "generic"

    @property
    def can_run(self) -> bool:
        """No."""
        return False


def create(variant: str) -> Target:
    """The only variant."""
    return GenericTarget()
