"""Where a program instance stands in the launch grid. Takes an axis (0, 1, 2); gives int32 scalars."""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.errors import AxisError
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.semantic import constexpr_int
from mltriton.language.tensor import tensor

__all__ = ["num_programs", "program_id"]


def _axis(axis: object, name: str) -> str:
    number = constexpr_int(axis, f"the axis of tl.{name}")
    if number not in (0, 1, 2):
        raise AxisError(
            f"the axis of tl.{name} is out of range",
            expected="0, 1 or 2",
            found=str(number),
            hint="a grid has up to three dimensions",
            upstream=f"{name} axis must be 0, 1, or 2 but got {number}",
        )
    return "xyz"[number]


@builtin
def program_id(axis: object) -> tensor:
    """The coordinate of this program in the launch grid along `axis`."""
    return tensor(current().emit(tt.GetProgramId, axis=_axis(axis, "program_id")), types.int32)


@builtin
def num_programs(axis: object) -> tensor:
    """The size of the launch grid along `axis`."""
    return tensor(current().emit(tt.GetNumPrograms, axis=_axis(axis, "num_programs")), types.int32)
