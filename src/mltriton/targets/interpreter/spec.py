"""What passes ask about the executor: nothing, a program stays as the front end makes it."""

from __future__ import annotations

from functools import cache

from mltriton.targets.base import Storage, TargetSpec


@cache
def spec(variant: str) -> TargetSpec:
    """The only one."""
    return TargetSpec(name="interpreter", storage=Storage.MEMORY, warp_size=1, pipeline=("", "", "", ""))
