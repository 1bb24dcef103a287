"""Layouts of blocks in shared memory: `#ttg.swizzled_shared`, `#ttg.nvmma_shared` and `#ttg.shared_linear`.

Level: ttg to llvm. Names, text and meaning are upstream's. Lanes that access a column at a time would all meet in the
same banks, so groups of elements of a row change places by exclusive or with the row's number. Source: PTX ISA,
"Swizzling modes" of tensor copies and "Shared Memory Matrix Layout" of wgmma.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.fields import Fields, Shape, bases, boolean, check_ranks, power, require, shape
from mltriton.layouts.fields import integer as read_integer
from mltriton.layouts.growing import Vectors, steps
from mltriton.layouts.linear import LinearLayout

GROUP_BYTES = 16  # that change places together
LINE_BYTES = 128  # of all banks
TILE_ROWS = 8  # of the smallest matrix that wgmma reads
SWIZZLES = (0, 32, 64, 128)
MOST_COPIED = 256  # elements along a dimension of one tensor copy


class SwizzledSharedEncoding(SharedEncoding):
    """`#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>`: the element at row r and column c
    (along `order[0]`) lies at r * columns + ((c / vec) ^ (r / per_phase % max_phase)) * vec + c % vec.
    """

    mnemonic = "ttg.swizzled_shared"
    alias = "shared"
    vec: int
    per_phase: int
    max_phase: int
    order: Shape

    def linear_layout(self, shape: Shape) -> LinearLayout:
        rank = len(self.order)
        shape = shape[len(shape) - rank :]
        fastest = self.order[0]
        found: Vectors = [_unit(rank, fastest, step) for step in steps(1, shape[fastest])]
        for number, dim in enumerate(self.order[1:]):
            for row in steps(1, shape[dim]):
                phase = row // self.per_phase % self.max_phase if number == 0 else 0
                column = self.vec * phase % shape[fastest]
                found.append(_sum(_unit(rank, dim, row), _unit(rank, fastest, column)))
        return _layout(found, shape)

    def turned(self) -> SwizzledSharedEncoding:
        return self.replaced(order=self.order[::-1])

    def fields(self) -> Fields:
        return {"vec": self.vec, "perPhase": self.per_phase, "maxPhase": self.max_phase, "order": self.order}

    @classmethod
    def build(cls, fields: Fields) -> SwizzledSharedEncoding:
        order = shape(fields, "order")
        check_ranks(order)
        return SwizzledSharedEncoding(*(power(fields, name) for name in ("vec", "perPhase", "maxPhase")), order)


class NvmmaSharedEncoding(SharedEncoding):
    """`#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>`: what tensor copies
    leave in shared memory and wgmma reads: pieces of `swizzle` bytes of a row (16 where it is 0), those of all rows
    below each other, then those of the next columns. In 128 bytes of them groups of 16 change places. `transposed`:
    columns are the rows of memory.
    """

    mnemonic = "ttg.nvmma_shared"
    alias = "shared"
    swizzle: int
    transposed: bool
    element_bits: int

    def linear_layout(self, shape: Shape) -> LinearLayout:
        shape = shape[-2:]
        row, column = (1, 0) if self.transposed else (0, 1)
        width = 8 * max(GROUP_BYTES, self.swizzle) // self.element_bits
        if shape[row] < TILE_ROWS or shape[column] < width:
            raise ValueError(f"{self} is for blocks of {TILE_ROWS} rows of {width} elements or more")
        group, per_phase = 8 * GROUP_BYTES // self.element_bits, LINE_BYTES // max(GROUP_BYTES, self.swizzle)
        phases = max(1, self.swizzle // GROUP_BYTES)
        found: Vectors = [_unit(2, column, step) for step in steps(1, width)]
        for step in steps(1, shape[row]):
            moved = group * (step // per_phase % phases) if step < TILE_ROWS else 0
            found.append(_sum(_unit(2, row, step), _unit(2, column, moved)))
        found += [_unit(2, column, step) for step in steps(width, shape[column])]
        return _layout(found, shape)

    def turned(self) -> NvmmaSharedEncoding:
        return self.replaced(transposed=not self.transposed)

    def fields(self) -> Fields:
        return {
            "swizzlingByteWidth": self.swizzle,
            "transposed": self.transposed,
            "elementBitWidth": self.element_bits,
        }

    @classmethod
    def build(cls, fields: Fields) -> NvmmaSharedEncoding:
        swizzle, bits = read_integer(fields, "swizzlingByteWidth"), power(fields, "elementBitWidth")
        require(swizzle in SWIZZLES, f"swizzlingByteWidth must be one of {', '.join(map(str, SWIZZLES))}")
        require(8 <= bits <= 32, "elementBitWidth must be 8, 16 or 32")
        return NvmmaSharedEncoding(swizzle, boolean(fields, "transposed"), bits)


class SharedLinearEncoding(SharedEncoding):
    """`#ttg.shared_linear<{offset = [[0, 1], [1, 0], [2, 1]]}>`: where each bit of the number of an element takes it.
    `rank` is that of the block.
    """

    mnemonic = "ttg.shared_linear"
    alias = "shared"
    rank: int
    offset: tuple[Shape, ...]

    def linear_layout(self, shape: Shape) -> LinearLayout:
        return _layout(list(self.offset), shape[len(shape) - self.rank :])

    def turned(self) -> SharedLinearEncoding:
        return self.replaced(offset=tuple(vector[::-1] for vector in self.offset))

    def fields(self) -> Fields:
        return {"offset": self.offset}

    @classmethod
    def build(cls, fields: Fields) -> SharedLinearEncoding:
        offset = bases(fields, "offset")
        require(len({len(vector) for vector in offset}) == 1, "the bases must have one length, the rank of the block")
        return SharedLinearEncoding(len(offset[0]), offset)


def swizzled(line: int, element_bytes: int, order: Shape) -> SwizzledSharedEncoding:
    """For lines of so many bytes: groups of 16 bytes below each other in 8 lines are in different banks."""
    groups, per_phase = max(1, line // GROUP_BYTES), max(1, LINE_BYTES // line)
    phases = max(1, min(8 // per_phase, groups)) if per_phase < 8 else 1
    return SwizzledSharedEncoding(GROUP_BYTES // element_bytes, per_phase, phases, order)


def copied(shape: Shape, element_bytes: int) -> NvmmaSharedEncoding | None:
    """How a block lies in shared memory that the engine for tensor copies moves, rows along the last dimension: with
    the widest swizzle that rows fill, or as it is (None). Raises `ValueError` with the reason where it cannot be moved.
    """
    *rows, columns = shape
    line = columns * element_bytes
    if line < GROUP_BYTES:
        raise ValueError(f"rows of {line} bytes are shorter than {GROUP_BYTES}")
    if len(rows) == 1 and rows[0] >= TILE_ROWS and element_bytes <= 4:
        swizzle = next(width for width in reversed(SWIZZLES) if width <= line)
        return NvmmaSharedEncoding(swizzle, False, 8 * element_bytes)
    if max(rows, default=1) > MOST_COPIED or (columns > MOST_COPIED and max(rows, default=1) > 1):
        raise ValueError(f"a block {'x'.join(map(str, shape))} of {element_bytes} bytes is too long for one copy")
    if prod(shape) * element_bytes % LINE_BYTES:
        raise ValueError(f"a block of {prod(shape) * element_bytes} bytes is no multiple of {LINE_BYTES}")
    return None


def furthest(encoding: SharedEncoding, shape: Sequence[int]) -> int:
    """The dimension, counted from the last one, along which elements lie furthest apart in memory: a block may be of
    any size along it, but of powers of two along others, since a layout is that of the next power.
    """
    back = encoding.linear_layout(tuple(shape)).inverse()
    reached = [max((vector[0] for vector in back.vectors(name)), default=0) for name in back.inputs]
    return reached.index(max(reached)) - len(reached)


def _layout(offset: Vectors, shape: Shape) -> LinearLayout:
    sizes = {f"dim{dim}": 1 << (size - 1).bit_length() for dim, size in enumerate(shape)}
    return LinearLayout.of({"offset": offset}, sizes)


def _unit(rank: int, dim: int, step: int) -> Shape:
    return tuple(step * (d == dim) for d in range(rank))


def _sum(a: Shape, b: Shape) -> Shape:
    return tuple(x + y for x, y in zip(a, b, strict=True))
