"""Tiling hints: the layouts that users ask for, and whether they can hold.

Level: tt. Takes the dots of a function; gives a layout for each hinted one, in the order in which they are to be
roots. Guarantees: every hint holds to the letter for the number of warps that the program gets, or a `TilingError`
names the lines, shapes and warps. With one warp every hint holds. Source: ML-Triton paper, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.errors import TilingError
from mltriton.ir.operation import Value
from mltriton.ir.types import TensorType
from mltriton.layouts import tiling
from mltriton.layouts.encodings import Encoding, Shape, same_cut
from mltriton.targets.base import TargetSpec

# The encodings that follow from one root alone.
Reach = Callable[[tt.Dot, Encoding], Mapping[Value, Encoding]]


def smallest_part(dot: tt.Dot, spec: TargetSpec) -> tuple[int, int]:
    """Rows and columns of the target's dot instruction: less is no work for a warp."""
    size = spec.dot.get(cast(TensorType, dot.a.type).element)
    size = size.acting(1) if size else None
    return (size.rows, size.columns) if size else (1, 1)


def hinted_roots(
    dots: Sequence[tt.Dot], spec: TargetSpec, num_warps: int, reach: Reach
) -> list[tuple[tt.Dot, Encoding]]:
    """The hinted dots with their layouts; a dot from which others are reached comes before them, so that they follow
    from it. Raises `TilingError`.
    """
    asked = {dot: _asked_layout(dot, spec, num_warps) for dot in dots if dot.tiling}
    if len(asked) < 2:
        return list(asked.items())
    followers = {dot: _followers(dot, asked, num_warps, reach) for dot in asked}
    return sorted(asked.items(), key=lambda root: -len(followers[root[0]]))


def _asked_layout(dot: tt.Dot, spec: TargetSpec, num_warps: int) -> Encoding:
    shape, smallest = _shape(dot), smallest_part(dot, spec)
    encoding = tiling.as_hinted(dot.tiling, shape, num_warps, smallest)
    if encoding is None:
        raise _error(
            dot,
            f'{_text(shape)} cannot be cut over {num_warps} warps with tiling="{dot.tiling}"',
            expected=f"at least {_text(smallest)} for each warp, the size of one dot of the target {spec.name}",
            found=_largest_cut(dot.tiling, shape, num_warps, smallest),
            hint="Take a larger block, fewer warps (num_warps), another tiling, or leave the hint out.",
        )
    return encoding


def _largest_cut(name: str, shape: Shape, num_warps: int, smallest: tuple[int, int]) -> str:
    """How many warps the block would be enough for."""
    counts = [1 << power for power in range(num_warps.bit_length())]
    enough = max(count for count in counts if tiling.as_hinted(name, shape, count, smallest))
    return f"a block that is enough for {enough} warp{'s' if enough > 1 else ''}"


def _followers(dot: tt.Dot, asked: Mapping[tt.Dot, Encoding], num_warps: int, reach: Reach) -> list[tt.Dot]:
    """The other hinted dots whose layout follows from that of `dot`: each must be cut as its own hint says."""
    reached = reach(dot, asked[dot])
    found = [other for other in asked if other is not dot and other.result in reached]
    for other in found:
        if not same_cut(reached[other.result], asked[other], _shape(other)):
            raise _contradiction(dot, other, reached[other.result], asked[other], num_warps)
    return found


def _contradiction(root: tt.Dot, dot: tt.Dot, follows: Encoding, asked: Encoding, num_warps: int) -> TilingError:
    shape = _shape(dot)
    elsewhere = ", called from ".join(map(str, [root.loc.in_source or "an unknown line", *root.loc.callers()]))
    return _error(
        dot,
        f'two tiling hints cannot both hold: "{dot.tiling}" here and "{root.tiling}" at {elsewhere}',
        expected=f"{_text(asked.per_warp_shape(shape))} of {_text(shape)} for each of {num_warps} warps, by this hint",
        found=f"{_text(follows.per_warp_shape(shape))}, as follows from the other dot ({_text(_shape(root))})",
        hint="The blocks between the two dots are cut once: hint one of them, the other follows from it.",
    )


def _error(dot: tt.Dot, message: str, *, expected: str, found: str, hint: str) -> TilingError:
    error = TilingError(message, location=dot.loc.in_source, expected=expected, found=found, hint=hint)
    for caller in dot.loc.callers():
        error.called_from(caller)
    return error


def _shape(dot: tt.Dot) -> Shape:
    return cast(TensorType, dot.result.type).shape


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))
