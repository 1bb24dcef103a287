"""Warp-level kernels: which warp runs, barriers, and results that are combined across warps.

Takes values of one warp each; every function here is an error (`WarpLevelError`) in a kernel that is not marked
`warp_level=True`. `AcrossWarps` is what the reductions and scans of `reductions.py` do with `cross_warp=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, gpu, ttg
from mltriton.errors import AxisError, ConstexprError, WarpLevelError
from mltriton.ir.operation import Region, Value
from mltriton.ir.types import I32
from mltriton.language import types
from mltriton.language.building import builtin, current, current_warps
from mltriton.language.constants import constexpr
from mltriton.language.semantic import constexpr_int, shown
from mltriton.language.tensor import tensor
from mltriton.records import record

__all__ = ["barrier", "num_warps", "warp_id"]


def require_warps(what: str) -> int:
    """The number of warps of the program; `WarpLevelError` in a kernel that is not written for warps."""
    warps = current_warps()
    if warps is None:
        raise WarpLevelError(
            f"{what} is for warp-level kernels",
            hint="Decorate the kernel with @triton.jit(warp_level=True), or launch it with warp_level=True: "
            "then every tensor belongs to one warp.",
        )
    return warps


@builtin
def warp_id() -> tensor:
    """The number of this warp in its program (int32): 0 to `num_warps() - 1`."""
    require_warps("tl.warp_id")
    index = current().emit(gpu.SubgroupId)
    return tensor(current().emit(arith.IndexCast, index, result_types=[I32]), types.int32)


@builtin
def num_warps() -> constexpr:
    """How many warps run each program, a constant."""
    return constexpr(require_warps("tl.num_warps"))


@builtin
def barrier() -> None:
    """All warps of the program wait for each other here; what they stored before it is seen after it."""
    require_warps("tl.barrier")
    current().create(gpu.Barrier, result_types=[])


@record(frozen=True)
class AcrossWarps:
    """Combining across warps; `receivers` are the warps that get the result, () for all."""

    receivers: tuple[int, ...] = ()

    def reduce(self, sources: Sequence[tensor], combine: Region) -> Sequence[Value]:
        """Each source combined over all warps, element by element."""
        handles = [source.handle for source in sources]
        return (
            current().create(ttg.CrossWarpReduce, handles, dst_warps=self.receivers or None, regions=[combine]).results
        )

    def scan(self, sources: Sequence[tensor], combine: Region, *, reverse: bool) -> Sequence[Value]:
        """Each source combined over the warps up to this one."""
        handles = [source.handle for source in sources]
        return (
            current().create(ttg.CrossWarpScan, handles, reverse=True if reverse else None, regions=[combine]).results
        )


def across_warps(cross_warp: object, dst_warps: object, what: str) -> AcrossWarps | None:
    """What the arguments `cross_warp` and `dst_warps` of a reduction ask for; None within the warp."""
    if not isinstance(cross_warp, bool):
        raise ConstexprError(
            f"cross_warp of {what} must be known when compiling", expected="a bool", found=shown(cross_warp)
        )
    if not cross_warp:
        if dst_warps is not None:
            raise WarpLevelError(
                f"dst_warps of {what} says which warps receive a result across warps",
                hint="Add cross_warp=True, or leave out dst_warps.",
            )
        return None
    return AcrossWarps(_receivers(dst_warps, require_warps(f"{what} with cross_warp=True"), what))


def _receivers(dst_warps: object, warps: int, what: str) -> tuple[int, ...]:
    if dst_warps is None:
        return ()
    several = cast("Sequence[object]", dst_warps) if isinstance(dst_warps, tuple | list) else (dst_warps,)
    listed = tuple(several)
    receivers = tuple(constexpr_int(warp, f"dst_warps of {what}") for warp in listed)
    expected = f"one of 0 to {warps - 1}, or a tuple of different ones"
    if not receivers or not all(0 <= warp < warps for warp in receivers):
        hint = f"The program has {warps} warps; leave out dst_warps for all of them."
        message = f"dst_warps of {what} names no warp" if not receivers else f"dst_warps of {what} is out of range"
        raise AxisError(message, expected=expected, found=f"{listed}", hint=hint)
    if len(set(receivers)) != len(receivers):
        raise AxisError(f"dst_warps of {what} names a warp twice", expected=expected, found=f"{listed}")
    return tuple(sorted(receivers))
