# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Grouped matrix multiplication: many products of different sizes in one launch.

Level: user. A table in memory tells each program where the operands of each problem lie (elements from a base array,
so that the arrays may lie anywhere), their sizes and strides. The blocks of all results are numbered through; program
p of P takes blocks p, p + P, ... of whatever problems they belong to. Where a launch copies arrays to a GPU, operands
and results are parts of one array each.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate as accumulated
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    addresses,
    all_strides,
    dtype_name,
    empty,
    item_size,
    recorded,
    require_arrays,
    requires_gradient,
)
from mltriton.kernels.calls import again, keep, key_of
from mltriton.kernels.epilogues import Epilogue, Function, finish, make_epilogue, silu
from mltriton.kernels.fused_gemm import accumulate
from mltriton.kernels.gemm_few_groups import few_groups_launch
from mltriton.kernels.gemm_gpu import groups_on, is_engine_of
from mltriton.kernels.gemm_tiles import ACCUMULATORS, Tile, blocks_of, speed, tile_of
from mltriton.kernels.launch import Example, Launch, block_limits, family_of_warps
from mltriton.records import NamedTuple
from mltriton.runtime.specialization import ON_HOST, device_of

# Columns of the table, int64: distances of A, B and C from their bases, M, N, K, strides of A (m, k), B (k, n), C (m).
COLUMNS = tl.constexpr(11)


@triton.jit
def entry(row, column: tl.constexpr, ALIGNED: tl.constexpr):
    """A number of the table, which ALIGNED divides."""
    return tl.multiple_of(tl.load(row + column), ALIGNED)


@triton.jit
def grouped_gemm_kernel(
    a_ptr, b_ptr, c_ptr, table_ptr, groups,
    A_UNIT: tl.constexpr, B_UNIT: tl.constexpr, ALIGNED: tl.constexpr,
    ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C_i = activation(A_i B_i) for the problems of table [groups, COLUMNS]; A_UNIT and B_UNIT are the dimension in
    which all A, or B, have stride 1, or None; ALIGNED divides all distances, N, K and strides, and M where A_UNIT is 0.
    """
    block, programs = tl.program_id(0), tl.num_programs(0)
    for group in tl.range(groups):
        row = table_ptr + group * COLUMNS
        M = entry(row, 3, ALIGNED if A_UNIT == 0 else 1).to(tl.int32)
        N, K = entry(row, 4, ALIGNED).to(tl.int32), entry(row, 5, ALIGNED).to(tl.int32)
        rows = tl.cdiv(M, BM)
        blocks = rows * tl.cdiv(N, BN)
        mine = tl.maximum(tl.cdiv(blocks - block, programs), 0)
        for i in tl.range(mine):
            inside = block + i * programs
            m, n = inside % rows * BM, inside // rows * BN
            stride_am = 1 if A_UNIT == 0 else entry(row, 6, ALIGNED)
            stride_ak = 1 if A_UNIT == 1 else entry(row, 7, ALIGNED)
            stride_bk = 1 if B_UNIT == 0 else entry(row, 8, ALIGNED)
            stride_bn = 1 if B_UNIT == 1 else entry(row, 9, ALIGNED)
            # All that is known of the matrices before the product: what hardware asks of them is asked once.
            c_base, stride_cm = c_ptr + entry(row, 2, ALIGNED), entry(row, 10, ALIGNED)
            acc = accumulate(
                a_ptr + entry(row, 0, ALIGNED), b_ptr + entry(row, 1, ALIGNED), m, n, 0, K, M, N, K,
                stride_am, stride_ak, stride_bk, stride_bn, None, ACC, BM, BN, BK,
            )  # fmt: skip
            c = finish(acc, None, None, 0, m, n, M, N, 0, 0, 0, ACTIVATION, COMPUTE)
            c_block = tl.make_block_ptr(c_base, (M, N), (stride_cm, 1), (m, n), (BM, BN), (1, 0))
            tl.store(c_block, c.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))
        block += mine * programs - blocks


def grouped_gemm(
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    activation: Function | None = None,
    out_dtype: Any = None,
    target: str | None = None,
) -> list[Array]:
    """[activation(a_i b_i)] of matrices a_i [M_i, K_i] and b_i [K_i, N_i] of any sizes (0 too) and strides, all of one
    kind and dtype, in one launch; dtypes, accumulators and activations as in `matmul`. `target` is what it runs on
    ("xe:pvc", say), None where the arrays lie.

    Returns contiguous arrays of the same kind and dtype, or of `out_dtype`. Raises `ArgumentError` for arrays that do
    not fit.
    """
    is_listed = isinstance(a, list | tuple) and isinstance(b, list | tuple) and bool(a)
    name = None if out_dtype is None else str(out_dtype)
    key = key_of(grouped_gemm, (*a, *b), len(a), activation, name, target) if is_listed else None
    if key is not None and (made := again(key, (*a, *b))) is not None:
        return made
    if is_listed and requires_gradient(*a, *b):
        named = {f"{name}{i}": x for name, xs in (("a", a), ("b", b)) for i, x in enumerate(xs)}
        return recorded("grouped_gemm", named, activation=activation, out_dtype=out_dtype, target=target)
    _check(a, b)
    if not a:
        return []
    epilogue = make_epilogue(a[0], (0, 0), None, None, activation, out_dtype)
    out = None if epilogue.out_dtype == dtype_name(a[0]) else epilogue.out_dtype
    shapes = tuple((x.shape[0], y.shape[1]) for x, y in zip(a, b, strict=True))
    shares = groups_on(target, [(*shape, x.shape[1]) for shape, x in zip(shapes, a, strict=True)], a[0])
    c = _results(shapes, a[0], out)
    is_full = not any(0 in x.shape for x in (*a, *b))
    keeps = is_full and (target is None or device_of(a[0]) != ON_HOST)
    if shares.tile is not None and is_full and is_engine_of(target, a[0]):
        launch = few_groups_launch(a, b, c, epilogue, shares.tile, shares.warps)
        if launch is not None:
            launch = launch.on(target, shares.warps, shares.stages)
            launch.run()
            if keeps:
                keep(key, _Known(shapes, out, launch._replace(arguments=launch.arguments[3:]), None).run)
            return c
    bases = None
    if family_of_warps(target) is not None and device_of(a[0]) == ON_HOST:
        limits = block_limits(target)
        alignment = LINE if limits is None else limits.base_alignment
        (a_all, a), (b_all, b) = (_copied(x, alignment) for x in (a, b))
        c_all, c = _side_by_side(shapes, alignment, a[0], out)
        bases = a_all, b_all, c_all
    if any(math.prod(x.shape) for x in c):
        launch = grouped_gemm_launch(a, b, c, epilogue, None, shares.tile, bases, is_aligned=shares.tile is not None)
        launch = launch.on(target, shares.warps, shares.stages)
        launch.run()
        if keeps:
            table = np.asarray(launch.arguments[3] if device_of(a[0]) == ON_HOST else launch.arguments[3].cpu())
            keep(key, _Known(shapes, out, launch._replace(arguments=launch.arguments[4:]), table).run)
    return c


def _results(shapes: Sequence[tuple[int, int]], like: Array, out: str | None) -> list[Array]:
    """Contiguous matrices; on a GPU those of as many columns are rows of one allocation, which takes the host some 8 us
    for each.
    """
    columns, on_gpu = shapes[0][1], device_of(like) != ON_HOST
    if not on_gpu or columns % LINE or len(shapes) == 1 or any(n != columns for _, n in shapes):
        return [empty(shape, like, out) for shape in shapes]
    rows = [m for m, _ in shapes]
    return list(empty((sum(rows), columns), like, out).split(rows))


class _Known(NamedTuple):
    """Groups of such shapes as were multiplied before: the results' shapes and dtype, the launch without arrays, and
    the table of more groups than are arguments, in which the distances are another call's.
    """

    shapes: tuple[tuple[int, int], ...]
    out: str | None
    launch: Launch
    table: Array | None

    def run(self, arrays: Sequence[Array]) -> list[Array] | None:
        """The products of arrays of the same shapes, first all a and then all b; None where they lie otherwise than the
        kernel was compiled for.
        """
        c, launch = _results(self.shapes, arrays[0], self.out), self.launch
        a, b = tuple(arrays[: len(c)]), tuple(arrays[len(c) :])
        first: tuple[Any, ...] = a, b, tuple(c)
        if self.table is not None:
            bases, table = (a[0], b[0], c[0]), self.table.copy()
            _fill_distances(table, first, bases)
            if (table[:, :3] % launch.constants["ALIGNED"]).any():
                return None
            first = (*bases, _beside(table, a[0]))
        launch.kernel[launch.grid](*first, *launch.arguments, **launch.constants)
        return c


def grouped_gemm_launch(
    a: Sequence[Array],
    b: Sequence[Array],
    c: Sequence[Array],
    epilogue: Epilogue,
    programs: int | None = None,
    tile: Tile | None = None,
    bases: tuple[Array, ...] | None = None,
    is_aligned: bool = False,
) -> Launch:
    """The launch that computes all c_i = epilogue(a_i b_i); one program for each block when `programs` is None; `tile`
    is chosen when None. `bases` are the arrays from which distances count, the largest a, b and c when None.
    `is_aligned`: the kernel is compiled for what divides all numbers of the table.
    """
    if not all(x.shape[0] and x.shape[1] for x in c):
        some = [(x, y, z) for x, y, z in zip(a, b, c, strict=True) if math.prod(z.shape)]
        a, b, c = zip(*some, strict=True)
    sizes = tuple((*z.shape, x.shape[1]) for x, z in zip(a, c, strict=True))
    tile = tile or _tile_of(sizes, item_size(a[0]))
    strides = [all_strides(arrays) for arrays in (a, b, c)]
    bases = bases or tuple(next((x for x in arrays if 0 not in x.shape), arrays[0]) for arrays in (a, b, c))
    table = np.empty((len(sizes), COLUMNS.value), np.int64)
    _fill_distances(table, (a, b, c), bases)
    table[:, 3:6] = sizes
    table[:, 6:8], table[:, 8:10], table[:, 10:] = strides[0], strides[1], [stride[:1] for stride in strides[2]]
    blocks = int((-(-table[:, 3] // tile.m) * -(-table[:, 4] // tile.n)).sum())
    units = _unit_dimension(a, strides[0]), _unit_dimension(b, strides[1])
    constants = epilogue.constants(dtype_name(a[0])) | {
        "A_UNIT": units[0], "B_UNIT": units[1], "ALIGNED": _divisor(table, units, bases) if is_aligned else 1,
        "BM": tile.m, "BN": tile.n, "BK": tile.k,
    }  # fmt: skip
    grid = (min(programs or blocks, blocks),)
    return Launch(grouped_gemm_kernel, grid, (*bases, _beside(table, a[0]), len(sizes)), constants)


def _fill_distances(table: Array, groups: Sequence[Sequence[Array]], bases: Sequence[Array]) -> None:
    """In elements, from the bases to each of the arrays."""
    starts = np.array([addresses(arrays) for arrays in groups], np.int64).T - np.array(addresses(bases), np.int64)
    table[:, :3] = starts // [item_size(base) for base in bases]


def _beside(table: Array, like: Array) -> Array:
    """The table where a launch of arrays like this one can reach it."""
    if device_of(like) == ON_HOST:
        return table
    # Not waited for: from such memory a copy has been read before this returns.
    return sys.modules["torch"].from_numpy(table).to(like.device, non_blocking=True)


LINE = 16  # bytes that a lane moves at a time


def _divisor(table: Array, units: tuple[int | None, int | None], arrays: Sequence[Array]) -> int:
    """What divides all numbers of the table on which the beginnings of lines depend; no more than lanes make use of."""
    used = [0, 1, 2, 4, 5, 10, *(3 for _ in units[:1] if units[0] == 0)]
    used += [first + dim for first, unit in zip((6, 8), units, strict=True) for dim in (0, 1) if dim != unit]
    return math.gcd(int(np.bitwise_or.reduce(table[:, used], axis=None)), LINE // min(map(item_size, arrays)))


def _copied(matrices: Sequence[Array], alignment: int) -> tuple[Array, list[Array]]:
    """An array, and its parts: copies of matrices, row by row, each where blocks may start."""
    memory, parts = _side_by_side([x.shape for x in matrices], alignment, matrices[0])
    for part, matrix in zip(parts, matrices, strict=True):
        part[...] = matrix
    return memory, parts


def _side_by_side(
    shapes: Sequence[Sequence[int]], alignment: int, like: Array, dtype: str | None = None
) -> tuple[Array, list[Array]]:
    """An array of the kind of `like`, and matrices in it that start at multiples of `alignment` bytes."""
    item = item_size(empty((), like, dtype))
    line = alignment // item
    memory = empty(((1 + len(shapes)) * line + sum(map(math.prod, shapes)),), like, dtype)
    memory = memory[-addresses([memory])[0] % alignment // item :]
    return memory, _packed(memory, shapes, line)


@lru_cache(maxsize=256)
def _tile_of(sizes: Sequence[tuple[int, int, int]], item_bytes: int) -> Tile:
    """The tile with which the work on all problems, and on what blocks reach beyond them, takes the shortest time.
    Cores have enough blocks: there are many problems.
    """
    m, n, k = (max(extents) for extents in zip(*sizes, strict=True))
    kinds = Counter(sizes)

    def time(block: tuple[int, int]) -> float:
        return sum(count * m * n * max(k, 1) / speed(m, n, block) for (m, n, k), count in kinds.items())

    return tile_of(min(blocks_of(m, n, item_bytes), key=time), k, item_bytes)


def _unit_dimension(arrays: Sequence[Array], strides: Sequence[tuple[int, ...]]) -> int | None:
    """The dimension in which all matrices have stride 1, if there is one."""
    for dim in (1, 0):
        if all(stride[dim] == 1 or x.shape[dim] <= 1 for x, stride in zip(arrays, strides, strict=True)):
            return dim
    return None


def _check(a: Sequence[Array], b: Sequence[Array]) -> None:
    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, list | tuple):
            raise ArgumentError(
                f"grouped_gemm: {name} is no list of matrices",
                expected="a list or tuple of arrays [M, K] or [K, N]",
                found=type(x).__name__,
                hint="matmul multiplies two matrices, and batches of them in one array.",
            )
    if len(a) != len(b):
        raise ArgumentError(
            "grouped_gemm: the lists differ in length", expected="as many a as b", found=f"{len(a)} and {len(b)}"
        )
    if not a:
        return
    if len({(type(x), getattr(x, "dtype", None)) for x in (*a, *b)}) > 1 or len(a) == 1:
        require_arrays(**{f"{name}[{i}]": x for name, xs in (("a", a), ("b", b)) for i, x in enumerate(xs)})
    if dtype_name(a[0]) not in ACCUMULATORS:
        raise ArgumentError("grouped_gemm: unsupported dtype", expected=", ".join(ACCUMULATORS), found=dtype_name(a[0]))
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
            raise ArgumentError(
                f"grouped_gemm: the shapes of problem {i} do not fit",
                expected="[M, K] and [K, N]",
                found=f"{tuple(x.shape)} and {tuple(y.shape)}",
            )


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: four problems of different sizes, one of them an empty sum, for three programs;
    operands and results are parts of one array each.
    """
    if name != "grouped_gemm_kernel":
        return None
    sizes = [(40, 70, 50), (16, 16, 16), (5, 40, 0), (33, 20, 64)]
    memory = [rng.uniform(0.5, 1.5, 6000).astype(np.float16) for _ in range(2)] + [np.zeros(6000, np.float32)]
    shapes = ([(m, k), (k, n), (m, n)] for m, n, k in sizes)
    a, b, c = (_packed(x, matrices) for x, matrices in zip(memory, zip(*shapes, strict=True), strict=True))
    epilogue = Epilogue("float32", activation=silu)
    return grouped_gemm_launch(a, b, c, epilogue, 3, Tile(16, 32, 32, 1), tuple(memory)).example()


def _packed(memory: Array, shapes: Sequence[Sequence[int]], line: int = 1) -> list[Array]:
    """Matrices one after another in an array, each from a multiple of `line` elements on."""
    starts = accumulated((triton.cdiv(m * n, line) * line for m, n in shapes), initial=0)
    return [memory[start : start + m * n].reshape(m, n) for (m, n), start in zip(shapes, starts, strict=False)]
