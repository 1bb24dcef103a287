"""Cutting a block between warps: from the block shape, the number of warps and a tiling to a blocked encoding.

Level: leaving tt. Takes shapes in elements; guarantees warpsPerCTA whose product is the number of warps and
sizePerWarp that covers the block. Source: ML-Triton paper, sections 2.1 (square), 2.5 (horizontal) and 3.1 (the three
tilings).
"""

from __future__ import annotations

import math

from mltriton.layouts.encodings import BlockedEncoding, Shape


def row_major(rank: int) -> Shape:
    """The order of a row-major block: last dimension fastest."""
    return tuple(reversed(range(rank)))


def blocked(shape: Shape, warps: Shape) -> BlockedEncoding:
    """The row-major encoding that cuts `shape` evenly over `warps` (at least one element each)."""
    size = tuple(max(1, extent // count) for extent, count in zip(shape, warps, strict=True))
    return BlockedEncoding(size, warps, row_major(len(shape)))


def square(shape: Shape, num_warps: int, smallest: tuple[int, int]) -> BlockedEncoding:
    """Sub-blocks as square as possible, none smaller than `smallest` (rows, columns) while there is a choice; wider
    rather than taller.

    Dimensions before the last two (batches) get warps first.
    """
    batch, left = _batch_warps(shape, num_warps)

    def badness(rows: int) -> tuple[int, float, int]:
        height, width = shape[-2] / rows, shape[-1] / (left // rows)
        too_small = (height < smallest[0]) + (width < smallest[1])
        return too_small, abs(math.log2(height / width)), -rows

    rows = min([rows for rows in range(1, left + 1) if left % rows == 0], key=badness)
    return blocked(shape, (*batch, rows, left // rows))


def horizontal(shape: Shape, num_warps: int, smallest: tuple[int, int]) -> BlockedEncoding:
    """Cut along rows only, as far as rows of `smallest[0]` go round; warps that are left over cut columns."""
    batch, left = _batch_warps(shape, num_warps)
    rows = min(left, max(1, shape[-2] // smallest[0]))
    return blocked(shape, (*batch, rows, left // rows))


def vertical(shape: Shape, num_warps: int, smallest: tuple[int, int]) -> BlockedEncoding:
    """Cut along columns only, as far as columns of `smallest[1]` go round; warps that are left over cut rows."""
    batch, left = _batch_warps(shape, num_warps)
    columns = min(left, max(1, shape[-1] // smallest[1]))
    return blocked(shape, (*batch, left // columns, columns))


def in_groups(shape: Shape, num_warps: int, rows: int, group: int) -> BlockedEncoding | None:
    """Warps of which `group` act together, each on `rows` rows below those of the one before: rows first, then
    columns. None where there are not so many rows or warps.
    """
    down = min(num_warps, shape[-2] // rows)
    if len(shape) != 2 or down % group or shape[0] != down * rows or shape[1] < num_warps // down:
        return None
    across = num_warps // down
    order = (0, 1) if across > 1 else row_major(2)  # What loads have that are shared out is another encoding.
    return BlockedEncoding((rows, shape[1] // across), (down, across), order)


TILINGS = {"square": square, "horizontal": horizontal, "vertical": vertical}
# The dimension that a tiling leaves whole in each warp.
WHOLE = {"horizontal": -1, "vertical": -2}


def at_least(encoding: BlockedEncoding, shape: Shape, smallest: tuple[int, int]) -> BlockedEncoding:
    """The same with no part smaller than `smallest` (rows, columns) where the block has so much: warps that are left
    over hold the same part as others.
    """
    *batch, rows, columns = encoding.size_per_warp
    least = (min(smallest[0], shape[-2]), min(smallest[1], shape[-1]))
    size = (*batch, max(rows, least[0]), max(columns, least[1]))
    return BlockedEncoding(size, encoding.warps_per_cta, encoding.order)


def as_hinted(tiling: str, shape: Shape, num_warps: int, smallest: tuple[int, int]) -> BlockedEncoding | None:
    """The cut that a user's hint asks for, to the letter; None where it would leave a warp less than `smallest` (rows,
    columns) of a block that has them.
    """
    encoding = TILINGS[tiling](shape, num_warps, smallest)
    warps = encoding.warps_per_cta
    if tiling in WHOLE and warps[WHOLE[tiling]] > 1:
        return None
    sides = zip(shape[-2:], warps[-2:], smallest, strict=True)
    return encoding if all(extent // count >= min(extent, least) for extent, count, least in sides) else None


def outer_first(shape: Shape, num_warps: int) -> BlockedEncoding:
    """Cut the first dimension, then the next: whole rows stay in one warp (elementwise blocks and reductions along
    the last dimension).
    """
    return along(shape, num_warps, tuple(range(len(shape))))


def along(shape: Shape, num_warps: int, dims: Shape) -> BlockedEncoding:
    """Cut `dims` in that order; warps left over repeat along the first of them."""
    warps = [1] * len(shape)
    left = num_warps
    for dim in dims:
        warps[dim] = min(left, shape[dim])
        left //= warps[dim]
    if dims:
        warps[dims[0]] *= left
    else:
        warps[0] = left
    return blocked(shape, tuple(warps)) if dims else replicated(shape, num_warps)


def replicated(shape: Shape, num_warps: int) -> BlockedEncoding:
    """Every warp holds the whole block."""
    return BlockedEncoding(shape, (num_warps, *[1] * (len(shape) - 1)), row_major(len(shape)))


def transposed(encoding: BlockedEncoding, order: Shape) -> BlockedEncoding:
    """The encoding of a block whose dimension i is dimension order[i] of a block with `encoding`."""
    where = {source: target for target, source in enumerate(order)}
    return BlockedEncoding(
        tuple(encoding.size_per_warp[dim] for dim in order),
        tuple(encoding.warps_per_cta[dim] for dim in order),
        tuple(where[dim] for dim in encoding.order),
    )


def _batch_warps(shape: Shape, num_warps: int) -> tuple[Shape, int]:
    batch: list[int] = []
    for extent in shape[:-2]:
        batch.append(min(num_warps, extent))
        num_warps //= batch[-1]
    return tuple(batch), num_warps
