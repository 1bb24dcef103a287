"""The linear layout of an encoding: which register of which lane of which warp holds an element of a tensor.

Level: ttg to llvm. `linear_layout(encoding, shape)` has the inputs "register", "lane", "warp" and the outputs "dim0",
"dim1", ...; register counts elements. One rule for each class of encodings. Guarantees: every element of the tensor is
somewhere; what several places hold has bases of zero. Sources: Intel's public unit tests for `#ttig.dpas` and
`#ttig.subgroup_2d_block`; upstream's definition of `#ttg.blocked`, `#ttg.slice` and `#ttg.linear`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import cast

from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, Shape, SliceEncoding
from mltriton.layouts.explicit import LinearEncoding
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.xe import DpasEncoding, Subgroup2DBlockEncoding

Vectors = list[tuple[int, ...]]


class NoLanesError(ValueError):
    """The encoding says which warp owns an element, but not which lane."""


@cache
def linear_layout(encoding: Encoding, shape: Shape) -> LinearLayout:
    """The places of the elements of a tensor of `shape`. Raises `NoLanesError` where lanes are not stated."""
    rule = _RULES.get(type(encoding))
    if rule is None:
        raise NoLanesError(f"{type(encoding).__name__} has no lanes")
    return rule(encoding, shape)


@cache
def warp_layout(encoding: Encoding, shape: Shape) -> LinearLayout:
    """The registers and lanes of one warp that holds the whole of a tensor of `shape`; no two registers of a lane have
    the same element.

    Raises `NoLanesError` where lanes are not stated, ValueError where a warp holds only a part.
    """
    whole = linear_layout(encoding, shape)
    if any(any(vector) for vector in whole.vectors("warp")):
        raise ValueError(f"a warp has only a part of {'x'.join(map(str, shape))} with {encoding}")
    registers = [vector for vector in whole.vectors("register") if any(vector)]
    bases = {"register": registers, "lane": whole.vectors("lane")}
    return LinearLayout.of(bases, dict(zip(whole.outputs, whole.sizes, strict=True)))


class _Growing:
    """A layout under construction: a tile that grows by one input dimension along one output dimension at a time."""

    def __init__(self, registers: Vectors, lanes: Vectors, tile: Shape) -> None:
        self.bases: dict[str, Vectors] = {"register": registers, "lane": lanes, "warp": []}
        self.tile = list(tile)

    def repeat(self, input: str, dim: int, count: int) -> None:
        """`count` tiles along `dim`, numbered by the next bits of `input`."""
        dim %= len(self.tile)
        for _ in range(int(math.log2(count))):
            vector = [0] * len(self.tile)
            vector[dim] = self.tile[dim]
            self.bases[input].append(tuple(vector))
            self.tile[dim] *= 2

    def share(self, input: str, count: int) -> None:
        """The next bits of `input` change nothing."""
        self.bases[input] += [(0,) * len(self.tile)] * int(math.log2(count))

    def fill(self, shape: Shape, dims: tuple[int, ...]) -> LinearLayout:
        """Registers repeat the tile over the tensor along `dims` in order. What lies outside wraps around."""
        for dim in dims:
            self.repeat("register", dim, max(1, shape[dim] // self.tile[dim]))
        wrapped = {
            name: [tuple(x % size for x, size in zip(vector, shape, strict=True)) for vector in vectors]
            for name, vectors in self.bases.items()
        }
        return LinearLayout.of(wrapped, {f"dim{dim}": size for dim, size in enumerate(shape)})


def _steps(first: int, end: int) -> list[int]:
    """first, twice that, ... below `end`."""
    steps: list[int] = []
    while first < end:
        steps.append(first)
        first *= 2
    return steps


def _blocked(encoding: BlockedEncoding, shape: Shape) -> LinearLayout:
    """Elements of a thread, then threads, then warps, each along the fastest dimension first."""
    if encoding.size_per_thread is None or encoding.threads_per_warp is None:
        raise NoLanesError("a blocked encoding without sizePerThread has no lanes")
    layout = _Growing([], [], (1,) * len(shape))
    for input, counts in (
        ("register", encoding.size_per_thread),
        ("lane", encoding.threads_per_warp),
        ("warp", encoding.warps_per_cta),
    ):
        for dim in encoding.order:
            layout.repeat(input, dim, counts[dim])
    return layout.fill(shape, encoding.order)


def _slice(encoding: SliceEncoding, shape: Shape) -> LinearLayout:
    """The parent's layout with its dimension forgotten; registers that repeat others are dropped."""
    dim = encoding.dim
    parent = linear_layout(encoding.parent, (*shape[:dim], _extent(encoding.parent, dim), *shape[dim:]))
    left = parent.without(f"dim{dim}").renamed({f"dim{d + 1}": f"dim{d}" for d in range(dim, len(shape))})
    bases = {name: list(left.vectors(name)) for name in left.inputs}
    bases["register"] = [vector for vector in bases["register"] if any(vector)]
    return LinearLayout.of(bases, dict(zip(left.outputs, left.sizes, strict=True)))


def natural_shape(encoding: Encoding, rank: int) -> Shape:
    """The smallest tensor that shows all of an encoding's own structure."""
    return tuple(_extent(encoding, dim) for dim in range(rank))


def _extent(encoding: Encoding, dim: int) -> int:
    """A size of a dimension that shows all of an encoding's own structure along it."""
    if isinstance(encoding, BlockedEncoding):
        return encoding.size_per_warp[dim] * encoding.warps_per_cta[dim]
    if isinstance(encoding, LinearEncoding):
        return encoding.span(dim)
    if isinstance(encoding, DpasEncoding):
        return encoding.tile[dim] * encoding.warps_per_cta[dim]
    if isinstance(encoding, Subgroup2DBlockEncoding):
        if encoding.size_per_warp is not None:
            return encoding.size_per_warp[dim] * encoding.warps_per_cta[dim]
        return encoding.tile[dim]
    if isinstance(encoding, DotOperandEncoding) and isinstance(encoding.parent, DpasEncoding):
        is_k = dim == len(encoding.parent.rep_cluster) - 1 - encoding.op_idx
        return encoding.parent.depth if is_k else _extent(encoding.parent, dim)
    return _extent(cast("SliceEncoding | DotOperandEncoding", encoding).parent, dim)


def _dpas(encoding: DpasEncoding, shape: Shape) -> LinearLayout:
    """A row of the instruction's tile in the lanes; a warp of 32 has two rows."""
    rows, size = encoding.threads_per_warp // encoding.execution_size, encoding.execution_size
    in_lanes, in_registers = _rows(encoding, rows)
    registers: Vectors = [(row, 0) for row in in_registers]
    lanes: Vectors = [(0, column) for column in _steps(1, size)] + [(row, 0) for row in in_lanes]
    layout = _matrix(len(shape), registers, lanes, (encoding.repeat_count, size))
    layout.repeat("register", -1, encoding.rep_cluster[-1])
    layout.repeat("register", -2, encoding.rep_cluster[-2])
    layout.repeat("warp", -1, encoding.warps_per_cta[-1])
    layout.repeat("warp", -2, encoding.warps_per_cta[-2])
    return _with_batches(layout, encoding, shape).fill(shape, (-1, -2, *range(len(shape) - 2)))


def _rows(dpas: DpasEncoding, at_once: int) -> tuple[Shape, Shape]:
    """The bases of the rows of one instruction, of which one register has `at_once`: those in lanes, in registers."""
    bits = at_once.bit_length() - 1
    return dpas.rows[:bits], dpas.rows[bits:]


def _matrix(rank: int, registers: Vectors, lanes: Vectors, tile: Shape) -> _Growing:
    """One instruction's tile of the first batch."""
    none = (0,) * (rank - 2)
    registers, lanes = ([(*none, *vector) for vector in vectors] for vectors in (registers, lanes))
    return _Growing(registers, lanes, (*(1 for _ in none), *tile))


def _with_batches(layout: _Growing, encoding: DpasEncoding, shape: Shape) -> _Growing:
    """Batches of one warp next to each other, then those of other warps, after everything else."""
    for dim in reversed(range(len(shape) - 2)):
        layout.repeat("register", dim, encoding.rep_cluster[dim])
        layout.repeat("warp", dim, encoding.warps_per_cta[dim])
    return layout


def _dot_operand(encoding: DotOperandEncoding, shape: Shape) -> LinearLayout:
    parent = encoding.parent
    if not isinstance(parent, DpasEncoding):
        raise NoLanesError("an operand of a dot has lanes where the result is #ttig.dpas")
    return (_left if encoding.op_idx == 0 else _right)(parent, shape)


def _left(dpas: DpasEncoding, shape: Shape) -> LinearLayout:
    """A row of the left operand lies in the lanes, two bytes next to each other in one."""
    packed = 2 if dpas.ops_per_channel == 4 else 1
    columns = dpas.depth // packed
    in_lanes, in_registers = _rows(dpas, -(-dpas.threads_per_warp // columns))
    registers: Vectors = [(0, k) for k in _steps(1, packed)] + [(row, 0) for row in in_registers]
    lanes: Vectors = [(0, packed * k) for k in _steps(1, min(columns, dpas.threads_per_warp))]
    lanes += [(row, 0) for row in in_lanes]
    layout = _matrix(len(shape), registers, lanes, (dpas.repeat_count, dpas.depth))
    layout.repeat("register", -2, dpas.rep_cluster[-2])
    layout.share("warp", dpas.warps_per_cta[-1])
    layout.repeat("warp", -2, dpas.warps_per_cta[-2])
    return _with_batches(layout, dpas, shape).fill(shape, (-1, -2, *range(len(shape) - 2)))


def _right(dpas: DpasEncoding, shape: Shape) -> LinearLayout:
    """A column of the right operand lies in one lane, the elements of 32 bits next to each other (VNNI)."""
    ops, size = dpas.ops_per_channel, dpas.execution_size
    rows = dpas.threads_per_warp // size
    registers: Vectors = [(k, 0) for k in _steps(1, ops)]
    registers += [(row * ops, 0) for row in _steps(rows, dpas.systolic_depth)]
    lanes: Vectors = [(0, column) for column in _steps(1, size)] + [(row * ops, 0) for row in _steps(1, rows)]
    layout = _matrix(len(shape), registers, lanes, (dpas.depth, size))
    layout.repeat("register", -1, dpas.rep_cluster[-1])
    layout.repeat("warp", -1, dpas.warps_per_cta[-1])
    layout.share("warp", dpas.warps_per_cta[-2])
    return _with_batches(layout, dpas, shape).fill(shape, (-2, -1, *range(len(shape) - 2)))


def _block(encoding: Subgroup2DBlockEncoding, shape: Shape) -> LinearLayout:
    """Neighbouring columns in one lane as far as a row is longer than the warp; lanes along columns, then rows."""
    (height, width), threads = encoding.block, encoding.threads_per_warp
    if encoding.packed_rows > 1:
        registers, lanes = _packed_rows(encoding)
    else:
        packed = -(-width // threads)
        lanes: Vectors = [(0, column) for column in _steps(packed, width)]
        rows = threads >> len(lanes)
        lanes += [(row, 0) for row in _steps(1, rows)]
        registers: Vectors = [(0, column) for column in _steps(1, packed)]
        registers += [(row, 0) for row in _steps(rows, height)]
    layout = _matrix(len(shape), registers, lanes, (height, width))
    layout.repeat("register", -1, encoding.blocks)
    size, batches = encoding.size_per_warp, tuple(range(len(shape) - 2))
    if size is not None:
        for dim in (-2, -1, *reversed(batches)):
            layout.repeat("register", dim, max(1, size[dim] // layout.tile[dim]))
    for dim in reversed(range(len(shape))):
        if size is None and dim == encoding.order[0]:
            layout.share("warp", encoding.warps_per_cta[dim])
        else:
            layout.repeat("warp", dim, encoding.warps_per_cta[dim])
    return layout.fill(shape, (-2, -1, *batches))


def _packed_rows(encoding: Subgroup2DBlockEncoding) -> tuple[Vectors, Vectors]:
    """Registers and lanes of a block whose words hold rows side by side; words follow each other along columns."""
    (height, width), packed = encoding.block, encoding.packed_rows
    words: Vectors = [(0, column) for column in _steps(1, width)] + [(row, 0) for row in _steps(packed, height)]
    lanes = encoding.threads_per_warp.bit_length() - 1
    return [(row, 0) for row in _steps(1, packed)] + words[lanes:], words[:lanes]


def _linear(encoding: LinearEncoding, shape: Shape) -> LinearLayout:
    """The bases as they are listed."""
    span = tuple(encoding.span(dim) for dim in range(encoding.rank))
    layout = _Growing(list(encoding.register), list(encoding.lane), span)
    layout.bases["warp"] = list(encoding.warp)
    return layout.fill(shape, tuple(reversed(range(encoding.rank))))


_RULES: dict[type[Encoding], Callable[..., LinearLayout]] = {
    BlockedEncoding: _blocked,
    LinearEncoding: _linear,
    SliceEncoding: _slice,
    DotOperandEncoding: _dot_operand,
    DpasEncoding: _dpas,
    Subgroup2DBlockEncoding: _block,
}
