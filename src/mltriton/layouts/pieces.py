"""Pieces of one warp's share: how large they are and where their elements lie, on targets whose lanes matter.

Level: warp to intrinsic. `lane_tile` gives the part of a share that instructions take at a time; `piece_encoding` the
encoding of a box of elements inside one warp. Guarantees: a tile holds whole registers of all lanes, so that a piece of
tile size is a choice of the share's registers; the encoding of a box depends on the box and not on the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mltriton.layouts.encodings import DotOperandEncoding, Encoding, Shape, SliceEncoding
from mltriton.layouts.explicit import Bases, LinearEncoding
from mltriton.layouts.hardware import NoLanesError, linear_layout, natural_shape
from mltriton.layouts.xe import DpasEncoding, Subgroup2DBlockEncoding

PIECE_ELEMENTS = 512  # of a piece that no instruction's size decides


def lane_tile(encoding: Encoding, rank: int) -> Shape:
    """The tile in which blocks of an encoding are cut. Raises `NoLanesError`."""
    if isinstance(encoding, SliceEncoding):
        return _without(lane_tile(encoding.parent, rank + 1), encoding.dim)
    if isinstance(encoding, DpasEncoding):
        return (*[1] * (rank - 2), encoding.repeat_count, encoding.execution_size)
    if isinstance(encoding, Subgroup2DBlockEncoding):
        return encoding.tile
    if isinstance(encoding, DotOperandEncoding):
        return (*[1] * (rank - 2), *_operand_tile(encoding))
    return _grown(as_linear(encoding, rank))


def _operand_tile(encoding: DotOperandEncoding) -> Shape:
    """As much as the largest block load brings: 32 rows of 64 bytes, where a warp has that much."""
    parent = encoding.parent
    if not isinstance(parent, DpasEncoding):
        raise NoLanesError("an operand of a dot has lanes where the result is #ttig.dpas")
    columns = 16 * parent.ops_per_channel
    if encoding.op_idx == 0:
        return min(32, parent.tile[-2]), max(columns, parent.depth)
    return 32, min(columns, parent.tile[-1])


def _grown(encoding: LinearEncoding) -> Shape:
    """The smallest box with all lanes, then with further registers in their order."""
    vectors = (*encoding.register, *encoding.lane)
    if any(sum(map(bool, vector)) > 1 for vector in vectors):
        return tuple(_span(vectors, dim) for dim in range(encoding.rank))
    box = [_span(encoding.lane, dim) for dim in range(encoding.rank)]
    for vector in encoding.register:
        for dim, step in enumerate(vector):
            if step == box[dim] and math.prod(box) < PIECE_ELEMENTS:
                box[dim] *= 2
    return tuple(box)


def piece_encoding(encoding: Encoding, box: Shape) -> Encoding:
    """The encoding of a box of elements inside one warp: the share's, with only what lies in the box."""
    rule = _RULES.get(type(encoding))
    return rule(encoding, box) if rule is not None else _linear(as_linear(encoding, len(box)), box)


def as_linear(encoding: Encoding, rank: int) -> LinearEncoding:
    """An encoding with its bases listed. Raises `NoLanesError` where it has none."""
    if isinstance(encoding, LinearEncoding):
        return encoding
    layout = linear_layout(encoding, natural_shape(encoding, rank))
    return LinearEncoding(rank, *(layout.vectors(name) for name in ("register", "lane", "warp")))


def _linear(encoding: LinearEncoding, box: Shape) -> Encoding:
    registers = [vector for vector in encoding.register if all(x < size for x, size in zip(vector, box, strict=True))]
    lanes = [tuple(x if x < size else 0 for x, size in zip(vector, box, strict=True)) for vector in encoding.lane]
    return LinearEncoding(encoding.rank, tuple(registers), tuple(lanes), ())


def _dpas(encoding: DpasEncoding, box: Shape) -> Encoding:
    *batch, rows, columns = box
    cluster = (max(1, rows // encoding.repeat_count), max(1, columns // encoding.execution_size))
    return encoding.replaced(warps_per_cta=(1,) * len(box), rep_cluster=(*batch, *cluster))


def _dot_operand(encoding: DotOperandEncoding, box: Shape) -> Encoding:
    """Only the dimension that the operand shares with the result says anything about the result's layout."""
    parent = encoding.parent
    assert isinstance(parent, DpasEncoding)
    *batch, rows, columns = box
    result = (rows, parent.execution_size) if encoding.op_idx == 0 else (parent.repeat_count, columns)
    return DotOperandEncoding(encoding.op_idx, _dpas(parent, (*batch, *result)), encoding.k_width)


def _block(encoding: Subgroup2DBlockEncoding, box: Shape) -> Encoding:
    (height, width), (*batch, rows, columns) = encoding.block, box
    block = (min(height, rows), min(width, columns))
    blocks = max(1, min(encoding.blocks, columns // block[1]))
    whole = (*[1] * len(batch), block[0], block[1] * blocks)
    size = None if box == whole else box
    return encoding.replaced(warps_per_cta=(1,) * len(box), block=block, blocks=blocks, size_per_warp=size)


def _slice(encoding: SliceEncoding, box: Shape) -> Encoding:
    parent = lane_tile(encoding.parent, len(box) + 1)
    whole = (*box[: encoding.dim], parent[encoding.dim], *box[encoding.dim :])
    return SliceEncoding(encoding.dim, piece_encoding(encoding.parent, whole))


_RULES: dict[type[Encoding], Callable[..., Encoding]] = {
    DpasEncoding: _dpas,
    DotOperandEncoding: _dot_operand,
    Subgroup2DBlockEncoding: _block,
    SliceEncoding: _slice,
}


def _span(vectors: Bases, dim: int) -> int:
    reach = 0
    for vector in vectors:
        reach |= vector[dim]
    return 1 << reach.bit_length()


def _without(shape: Shape, dim: int) -> Shape:
    return (*shape[:dim], *shape[dim + 1 :])
