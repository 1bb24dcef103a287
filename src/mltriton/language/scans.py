"""Scans: `tl.associative_scan`, `tl.cumsum`, `tl.cumprod`.

Takes blocks; guarantees that the combining function becomes a region on scalars, and upstream's dtypes (sums of narrow
integers run in 32 bits, those of bf16 in fp32). With `cross_warp=True` (warp-level kernels) a scan goes over the warps
of the program.
"""

from __future__ import annotations

from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import AxisError
from mltriton.language.arithmetic import add, mul, without_bfloat16
from mltriton.language.building import builtin, current, made_builtin
from mltriton.language.combining import Combine, Values, combining_region, sources_of, sum_dtype, wrapped
from mltriton.language.semantic import to_tensor, wrapped_axis
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype
from mltriton.language.warps import AcrossWarps, across_warps

__all__ = ["associative_scan", "cumprod", "cumsum"]


@builtin
def associative_scan(
    input: object, axis: int | None, combine_fn: Any, reverse: bool = False, *, cross_warp: bool = False
) -> Values:
    """Running combination of `input` (a block, or a tuple of blocks) along `axis`, from the last element with
    `reverse`.

    With `cross_warp` (and None for `axis`) over the warps by their ids, element by element: warp w receives what warps
    0 to w combine to.
    """
    across = across_warps(cross_warp, None, "tl.associative_scan")
    if across is not None:
        return _scan_warps(input, axis, combine_fn, reverse, across)
    sources = sources_of(input, "tl.associative_scan")
    dimension = wrapped_axis(axis, len(sources[0].type.shape), "a scan")
    region = combining_region(combine_fn, sources, tt.ScanReturn, "tl.associative_scan")
    handles = (
        current()
        .create(
            tt.Scan,
            [source.handle for source in sources],
            axis=dimension,
            reverse=True if reverse else None,
            regions=[region],
        )
        .results
    )
    return wrapped(handles, [source.type for source in sources], input)


def _scan_warps(input: object, axis: int | None, combine_fn: Any, reverse: bool, across: AcrossWarps) -> Values:
    if axis is not None:
        raise AxisError(
            "a scan across warps goes from warp to warp, along no axis",
            expected="axis=None",
            found=repr(axis),
            hint="Scan along the axis within the warp, or across warps element by element.",
        )
    sources = sources_of(input, "a scan across warps", scalars=True)
    region = combining_region(combine_fn, sources, tt.ScanReturn, "tl.associative_scan")
    return wrapped(across.scan(sources, region, reverse=reverse), [source.type for source in sources], input)


def _running(name: str, meaning: str, combine: Combine):
    """The builtin `tl.cumsum` or `tl.cumprod`."""

    def function(
        input: object,
        axis: int | None = None,
        reverse: bool = False,
        dtype: dtype | None = None,
        *,
        cross_warp: bool = False,
    ) -> tensor:
        return _scanned(input, axis, combine, reverse, dtype, cross_warp)

    says = f"""Running {meaning} along `axis` (None: the first), in `dtype` (default as `tl.sum`, and fp32 for bf16);
    across warps as `tl.associative_scan`.
    """
    return made_builtin(function, name, says)


cumsum, cumprod = _running("cumsum", "sum", add), _running("cumprod", "product", mul)


def _scanned(
    input: object, axis: int | None, combine: Combine, reverse: bool, dtype: dtype | None, cross_warp: bool
) -> tensor:
    value = to_tensor(without_bfloat16(input))
    dimension = 0 if axis is None and not cross_warp else axis
    converted = value.to(dtype or sum_dtype(value.dtype))
    return cast(tensor, associative_scan(converted, dimension, combine, reverse, cross_warp=cross_warp))
