"""What decisions about dots ask of who takes them, for types only: `form-nests` and `match-target-size`."""

from __future__ import annotations

from typing import Protocol

from mltriton.ir.operation import Value
from mltriton.ir.types import Type
from mltriton.passes.intrinsic.tile_loops.footprints import Costs, Footprint
from mltriton.targets.base import TargetSpec


class Reader(Protocol):
    """What knows a target and what values are computed from, as things stand."""

    spec: TargetSpec

    def reads(self, value: Value) -> Footprint:
        """What the evaluation of a value reads."""
        ...

    def costs(self) -> Costs:
        """What evaluating values costs."""
        ...


class Nests(Reader, Protocol):
    """What decides on nests: it knows what is stored, and along which dimension memory runs."""

    def contiguous_dim(self, value: Value) -> int:
        """The dimension along which the memory runs from which a block is computed."""
        ...

    def is_stored(self, value: Value, element: Type | None = None) -> bool:
        """Whether a block is in memory, as its own elements or as others."""
        ...
