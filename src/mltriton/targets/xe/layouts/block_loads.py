"""Which 2D block an access takes: the cheapest of the legal ones, its change of layout included.

Level: ttg. Takes the encoding in which the value is wanted (or is, for a store), the limits of the target's block
accesses and the dimension that is contiguous in memory; gives a `#ttig.subgroup_2d_block` with the same cut between
warps, or None where there is no such block. The cost counts messages and what the conversion costs afterwards
(`region_calls.py`): a larger block is no better where its elements come into the wrong lanes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from mltriton.layouts.encodings import DotOperandEncoding, Encoding, Shape, same_cut
from mltriton.layouts.hardware import linear_layout, warp_layout
from mltriton.records import NamedTuple
from mltriton.targets.base import BlockIO, BlockSize, Choice, Wanted
from mltriton.targets.xe.layouts.encodings import WORD, Subgroup2DBlockEncoding
from mltriton.targets.xe.layouts.region_moves import change_cost

MESSAGE = 8  # instructions that one more message costs: its address and its place in the queue
TRANSPOSED_WORDS = 8  # along the contiguous dimension of a block that is transposed on its way


@cache
def cheapest_block(wanted: Wanted, limits: BlockIO, threads: int) -> Choice | None:
    """The cheapest legal block; of equal ones that with the cheaper conversion, then the largest."""
    per_warp = wanted.encoding.per_warp_shape(wanted.shape)
    best: Choice | None = None
    blocks = sorted(_legal(wanted, per_warp, limits, threads), key=lambda block: (-block.size, block))
    for block in blocks:
        messages = math.prod(per_warp) // block.size
        if best is not None and messages * MESSAGE > best.cost:
            break
        made = _encoding(wanted, per_warp, block, threads)
        if made is None:
            continue
        ends = (wanted.encoding, made) if wanted.stores else (made, wanted.encoding)
        change = change_cost(*ends, per_warp, wanted.element_bytes)
        choice = Choice(made, messages, change, messages * MESSAGE + change)
        if best is None or (choice.cost, change) < (best.cost, best.change):
            best = choice
    return best


def lane_cost(wanted: Wanted, lane_bytes: int) -> int | None:
    """What it costs if each lane accesses what it has of memory in a row, `lane_bytes` at a time; None where it has
    fewer neighbours.
    """
    layout = warp_layout(wanted.encoding, wanted.encoding.per_warp_shape(wanted.shape))
    count = lane_bytes // wanted.element_bytes
    along = [
        tuple(step * (dim == wanted.contiguous) for dim in range(len(wanted.shape))) for step in _powers(1, count - 1)
    ]
    if list(layout.vectors("register")[: len(along)]) != along:
        return None
    return layout.count("register") // count * MESSAGE


class _Block(NamedTuple):
    height: int
    width: int
    blocks: int

    @property
    def size(self) -> int:
        return self.height * self.width * self.blocks


def _legal(wanted: Wanted, per_warp: Shape, limits: BlockIO, threads: int) -> Iterator[_Block]:
    """The blocks that the target has and of which the per-warp shape is a multiple."""
    columns = wanted.contiguous == len(wanted.shape) - 2
    return (_transposed if columns else _plain)(wanted, per_warp[-2:], limits, threads)


def _plain(wanted: Wanted, per_warp: Shape, limits: BlockIO, threads: int) -> Iterator[_Block]:
    each = wanted.element_bytes
    packs = _is_right(wanted.encoding) and each < WORD
    access = "store" if wanted.stores else "load with VNNI" if packs else "load"
    for height in _powers(1, min(per_warp[0], limits.store_rows if wanted.stores else limits.max_rows)):
        for width in _powers(1, min(per_warp[1], limits.max_row_bytes // each)):
            most = 1 if wanted.stores else min(limits.max_blocks, per_warp[1] // width)
            for blocks in _powers(1, min(most, limits.max_row_bytes // (width * each))):
                if height * width >= threads and limits.takes(BlockSize(access, each, width, height, blocks)):
                    yield _Block(height, width, blocks)


def _transposed(wanted: Wanted, per_warp: Shape, limits: BlockIO, threads: int) -> Iterator[_Block]:
    """Lanes along memory's rows, words of its columns in registers. No store transposes."""
    each = wanted.element_bytes
    if wanted.stores or each > WORD:
        return
    # A right operand is to have its words below each other: no wider than the warp.
    wider = () if each == WORD or _is_right(wanted.encoding) else (2 * threads,)
    for width in (threads // 2, threads, *wider):
        for height in _powers(WORD // each, min(per_warp[0], TRANSPOSED_WORDS * WORD // each)):
            size = BlockSize("transposing load", WORD, height * each // WORD, width)
            if per_warp[1] >= width and height * width >= threads and limits.takes(size):
                yield _Block(height, width, 1)


def _is_right(encoding: Encoding) -> bool:
    return isinstance(encoding, DotOperandEncoding) and encoding.op_idx == 1


def _encoding(wanted: Wanted, per_warp: Shape, block: _Block, threads: int) -> Subgroup2DBlockEncoding | None:
    """The encoding of such blocks with the cut of the wanted one; None where warps are numbered in another way."""
    cuts, rank = wanted.encoding.cut(wanted.shape), len(wanted.shape)
    fields = (tuple(cut.warps for cut in cuts), (block.height, block.width), block.blocks)
    right = _is_right(wanted.encoding)
    matrix = (rank - 2, rank - 1) if right else (rank - 1, rank - 2)
    rest = ((*matrix, *reversed(range(rank - 2))), wanted.element_bytes, threads)
    transposed = wanted.contiguous == rank - 2 and wanted.element_bytes < WORD
    packed = WORD // wanted.element_bytes if transposed and not (right and block.width == threads) else 1
    explicit = Subgroup2DBlockEncoding(*fields, *rest, per_warp, packed)
    if not same_cut(explicit, wanted.encoding, wanted.shape):
        return None
    if rank > 2:
        return explicit
    short = explicit.replaced(size_per_warp=None)
    layout = linear_layout(explicit, wanted.shape)
    is_same = short.per_warp_shape(wanted.shape) == per_warp and same_cut(short, explicit, wanted.shape)
    is_same = is_same and linear_layout(short, wanted.shape) == layout
    return short if is_same else explicit


def _powers(first: int, last: int) -> list[int]:
    found: list[int] = []
    while first <= last:
        found.append(first)
        first *= 2
    return found
