"""Where elements lie in shared memory that lanes write in one layout and read in another.

Level: ttg to warp. Shared memory has 32 banks of 4 bytes; what lanes access at a time should be in different ones.
Takes the linear layouts of a block before and after; gives the layout of shared memory: first the elements that a lane
has side by side in both, then the banks, then rows. Guarantees: neither the lanes that write at a time nor those that
read at a time meet in a bank. Source: Zhou et al., "Linear Layouts", arXiv:2505.23819, section 5.4: rows are spanned by
a complement of both sets of lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mltriton.layouts.fields import Shape
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.shared import GROUP_BYTES, SharedLinearEncoding

BANK_BYTES, BANKS = 4, 32


def between(source: LinearLayout, target: LinearLayout, element_bytes: int) -> SharedLinearEncoding:
    """The layout of shared memory for a block that comes in `source` and goes in `target`."""
    sizes = source.sizes
    vector = _side_by_side(source, target, element_bytes)
    at_once = BANKS * BANK_BYTES // max(BANK_BYTES, element_bytes << len(vector))
    writers, readers = (
        _independent((_flat(v, sizes) for v in layout.vectors("lane")[: _bits(at_once)]), vector)
        for layout in (source, target)
    )
    only_writers, only_readers = _independent(writers, [*vector, *readers]), _independent(readers, [*vector, *writers])
    units = [1 << bit for bit in range(sum(map(_bits, sizes)))]
    rows = _independent(units, [*vector, *writers, *only_readers])
    rows += [w ^ r for w, r in zip(only_writers, only_readers, strict=False)]
    banks = _independent((*writers, *readers), [*vector, *rows])
    return SharedLinearEncoding(len(sizes), tuple(_split(v, sizes) for v in (*vector, *banks, *rows)))


def _side_by_side(source: LinearLayout, target: LinearLayout, element_bytes: int) -> list[int]:
    """What a lane accesses at a time: neighbours that it has in both layouts, else of the first to fill a word."""
    before, after = (
        [_flat(v, source.sizes) for v in layout.vectors("register") if any(v)] for layout in (source, target)
    )
    found = [v for v in before if v in after][: _bits(GROUP_BYTES // element_bytes)]
    short = _bits(max(1, BANK_BYTES // element_bytes)) - len(found)
    return found + [v for v in before if v not in after][: max(0, short)]


def _independent(vectors: Iterable[int], of: Sequence[int]) -> list[int]:
    """The vectors that are no sums of others, of those before them among others."""
    pivots: dict[int, int] = {}

    def is_new(vector: int) -> bool:
        while vector and (pivot := pivots.get(vector.bit_length())) is not None:
            vector ^= pivot
        if vector:
            pivots[vector.bit_length()] = vector
        return vector != 0

    for vector in of:
        is_new(vector)
    return [vector for vector in vectors if is_new(vector)]


def _flat(vector: Shape, sizes: Shape) -> int:
    """An index as one number, the last dimension lowest."""
    result = 0
    for at, size in zip(vector, sizes, strict=True):
        result = result << _bits(size) | at
    return result


def _split(number: int, sizes: Shape) -> Shape:
    """That number as an index."""
    found: list[int] = []
    for size in reversed(sizes):
        found.append(number & (size - 1))
        number >>= _bits(size)
    return tuple(reversed(found))


def _bits(size: int) -> int:
    return size.bit_length() - 1
