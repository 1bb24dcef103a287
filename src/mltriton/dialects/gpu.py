"""`gpu`: the warp's number in its program and the barrier between warps. Level: ttg to intrinsic; in
warp-level kernels from tt on. Names are MLIR's.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import require_type
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import INDEX, Type


class SubgroupId(Operation, name="gpu.subgroup_id", pure=True):
    """`gpu.subgroup_id : index`: the id of this warp in its program, 0 to num_warps - 1."""

    syntax = "attr-dict `:` type(result)"

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [INDEX]

    def verify(self) -> None:
        require_type(self, "the result", self.result.type, INDEX)


class Barrier(Operation, name="gpu.barrier", reads=True, writes=True):
    """All warps of the program wait here; writes to shared memory before it are seen after it."""

    syntax = "attr-dict"

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []
