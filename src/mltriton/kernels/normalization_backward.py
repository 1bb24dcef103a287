# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Gradients of softmax, layer normalisation and normalisation by the root mean square.

Level: user. Of the norms a program takes several rows in turn and adds up what they give to the gradients of weight and
bias; a second launch, which begins while the first one ends, sums these parts. Guarantees: no sum depends on the order
in which programs run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    as_rows,
    dtype_name,
    empty,
    item_size,
    number,
    require_arrays,
    require_no_gradient,
)
from mltriton.kernels.calls import again, key_of, remember
from mltriton.kernels.gemm_persistent import multiprocessors_of
from mltriton.kernels.gemm_tiles import FULL
from mltriton.kernels.launch import Example, Launch, example_of, family_of_warps, target_of
from mltriton.kernels.normalization import COMPUTED_IN, check_norm, check_rows, choose_rows, row_statistics
from mltriton.records import NamedTuple
from mltriton.runtime.specialization import device_kind


@triton.jit
def softmax_backward_kernel(
    dy_ptr, y_ptr, dx_ptr, dy_stride, y_stride, dx_stride, n_columns, FLOAT: tl.constexpr, BLOCK: tl.constexpr
):
    """One row of dx = y * (dy - sum(y * dy)), in blocks, in FLOAT."""
    row = tl.program_id(0).to(tl.int64)
    dy_row = dy_ptr + row * dy_stride
    y_row = y_ptr + row * y_stride
    total = tl.full((), 0.0, FLOAT)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        y = tl.load(y_row + columns, mask=columns < n_columns, other=0.0).to(FLOAT)
        total += tl.sum(y * tl.load(dy_row + columns, mask=columns < n_columns, other=0.0).to(FLOAT), axis=0)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        y = tl.load(y_row + columns, mask=inside, other=0.0).to(FLOAT)
        dx = y * (tl.load(dy_row + columns, mask=inside, other=0.0).to(FLOAT) - total)
        tl.store(dx_ptr + row * dx_stride + columns, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def softmax_backward(dy: Array, y: Array, *, target: str | None = None) -> Array:
    """The gradient of sum(dy * y) to x, where y = softmax(x) over the last axis: f16, bf16 and f32 computed in f32, f64
    in f64. `target` is what it runs on ("xe:pvc", say), None where the arrays lie.

    Returns a contiguous array of the kind, shape and dtype of `y`. Raises `ArgumentError` for other dtypes, and for
    arrays that differ in kind, dtype or shape.
    """
    key = key_of(softmax_backward, (dy, y), target)
    if (made := again(key, (dy, y))) is not None:
        return made[0]
    require_arrays(dy=dy, y=y)
    require_no_gradient("softmax_backward", dy, y)
    check_rows("softmax_backward", y)
    if dy.shape != y.shape:
        raise ArgumentError(
            "softmax_backward: dy does not fit y", expected=f"shape {tuple(y.shape)}", found=str(tuple(dy.shape))
        )
    dx = empty(y.shape, y)
    if 0 in y.shape:
        return dx
    target = target_of(target, y)
    blocks = choose_rows(y, target)
    launch = softmax_backward_launch(dy, y, dx, blocks.longest).on(target, blocks.warps)
    launch.run()
    remember(key, (dy, y), (dx,), (), (launch,))
    return dx


def softmax_backward_launch(dy: Array, y: Array, dx: Array, longest_block: int) -> Launch:
    """The launch of `softmax_backward` into dx, contiguous, in blocks of at most `longest_block`."""
    (rows, y_stride), (dy, dy_stride), n_columns = as_rows(y), as_rows(dy), y.shape[-1]
    return Launch(
        softmax_backward_kernel,
        (rows.shape[0],),
        (dy, rows, dx, dy_stride, y_stride, n_columns, n_columns),
        {"FLOAT": COMPUTED_IN[dtype_name(y)], "BLOCK": min(longest_block, triton.next_power_of_2(n_columns))},
    )


@triton.jit
def norm_backward_kernel(
    dx_ptr, dy_ptr, parts_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, x_stride, dy_stride, rows, columns,
    eps: tl.float64,  # pyright: ignore[reportInvalidTypeForm]
    CENTRED: tl.constexpr, FLOAT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    """Rows in turn, ROWS at a time, with a program's own sums of dw and, where the norm is CENTRED, of db: its row of
    `parts` [sums, programs, columns]. Means and 1 / deviations are computed again where `rstd` is None; w is loaded
    again with each row where registers are few (AGAIN).
    """
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)[None, :]
    if not AGAIN:
        w = tl.load(w_ptr + at, mask=at < columns, other=0.0).to(FLOAT)
    dw = tl.zeros([ROWS, BLOCK], FLOAT)
    if CENTRED:
        db = tl.zeros([ROWS, BLOCK], FLOAT)
    for first in tl.range(program * ROWS, rows, tl.num_programs(0) * ROWS):
        row = (first + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (at < columns)
        hat = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(FLOAT)
        dy = tl.load(dy_ptr + row * dy_stride + at, mask=inside, other=0.0).to(FLOAT)
        if rstd_ptr is not None:
            rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0).to(FLOAT)
        if CENTRED:
            if rstd_ptr is not None:
                mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0).to(FLOAT)
            else:
                mean = tl.sum(hat, axis=1)[:, None] / columns
            hat = tl.where(inside, hat - mean, 0.0)
        if rstd_ptr is None:
            rstd = tl.rsqrt(tl.sum(hat * hat, axis=1)[:, None] / columns + eps.to(FLOAT))
        hat = hat * rstd
        if AGAIN:
            w = tl.load(w_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last").to(FLOAT)
        wdy = w * dy
        less = hat * (tl.sum(hat * wdy, axis=1)[:, None] / columns)
        if CENTRED:
            less += tl.sum(wdy, axis=1)[:, None] / columns
            db += dy
        dx = (wdy - less) * rstd
        tl.store(dx_ptr + row * columns + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dw += dy * hat
    tl.extra.cuda.gdc_launch_dependents()
    at = tl.arange(0, BLOCK)
    part = program.to(tl.int64) * columns + at
    tl.store(parts_ptr + part, tl.sum(dw, axis=0), mask=at < columns)
    if CENTRED:
        part += tl.num_programs(0).to(tl.int64) * columns
        tl.store(parts_ptr + part, tl.sum(db, axis=0), mask=at < columns)


@triton.jit
def _normalised(x_row, dy_row, w_ptr, at, inside, mean, rstd, FLOAT: tl.constexpr):
    """A block of a row's normalised elements, of dy, and of w * dy."""
    hat = (tl.load(x_row + at, mask=inside, other=0.0).to(FLOAT) - mean) * rstd
    dy = tl.load(dy_row + at, mask=inside, other=0.0).to(FLOAT)
    return hat, dy, tl.load(w_ptr + at, mask=inside, other=0.0).to(FLOAT) * dy


@triton.jit
def norm_backward_long_kernel(
    dx_ptr, dy_ptr, parts_ptr, x_ptr, w_ptr, x_stride, dy_stride, rows, columns,
    eps: tl.float64,  # pyright: ignore[reportInvalidTypeForm]
    CENTRED: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same of rows of any length, in blocks: a program's sums lie in memory, which its first row writes."""
    program = tl.program_id(0)
    dw_part = parts_ptr + program.to(tl.int64) * columns
    db_part = dw_part + tl.num_programs(0).to(tl.int64) * columns
    for turn in tl.range(program, rows, tl.num_programs(0)):
        row = turn.to(tl.int64)
        x_row = x_ptr + row * x_stride
        dy_row = dy_ptr + row * dy_stride
        mean, rstd = row_statistics(x_row, columns, eps, CENTRED, FLOAT, BLOCK)
        c1 = tl.full((), 0.0, FLOAT)
        c2 = tl.full((), 0.0, FLOAT)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < columns
            hat, dy, wdy = _normalised(x_row, dy_row, w_ptr, at, inside, mean, rstd, FLOAT)
            c1 += tl.sum(hat * wdy, axis=0)
            added = inside & (row > program)
            tl.store(dw_part + at, tl.load(dw_part + at, mask=added, other=0.0) + dy * hat, mask=inside)
            if CENTRED:
                c2 += tl.sum(wdy, axis=0)
                tl.store(db_part + at, tl.load(db_part + at, mask=added, other=0.0) + dy, mask=inside)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < columns
            hat, dy, wdy = _normalised(x_row, dy_row, w_ptr, at, inside, mean, rstd, FLOAT)
            dx = (wdy - (hat * c1 + c2) / columns) * rstd
            tl.store(dx_ptr + row * columns + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        tl.debug_barrier()  # between what a thread adds to the sums and what the next row reads of them


@triton.jit
def sum_parts_kernel(parts_ptr, sums_ptr, parts, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Some columns of what programs added up, all parts at once, of one of the sums: program ids (columns, sum)."""
    which = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    part = tl.arange(0, PARTS)[:, None]
    inside = (part < parts) & (at < columns)[None, :]
    found = tl.load(parts_ptr + (which * parts + part) * columns + at[None, :], mask=inside, other=0.0)
    total = tl.sum(found, axis=0).to(sums_ptr.dtype.element_ty)
    tl.store(sums_ptr + which * columns + at, total, mask=at < columns)


def layer_norm_backward(
    dy: Array, x: Array, weight: Array, eps: float = 1e-5, *, target: str | None = None
) -> tuple[Array, Array, Array]:
    """The gradients dx, dweight, dbias of sum(dy * y), where y = layer_norm(x, weight, bias, eps); `dy` is as `x`. Mean
    and variance are computed again: f16, bf16 and f32 in f32, f64 in f64. `target` is what it runs on ("xe:pvc", say),
    None where the arrays lie.

    Returns contiguous arrays of the kind, shapes and dtype of `x`, `weight` and the bias. Raises `ArgumentError` for
    other dtypes, and for arrays that differ in kind or dtype or do not fit.
    """
    dx, sums = _norm_backward(layer_norm_backward, dy, x, weight, eps, target, 2)
    return dx, sums[0], sums[1]


def rms_norm_backward(
    dy: Array, x: Array, weight: Array, eps: float = 1e-6, *, target: str | None = None
) -> tuple[Array, Array]:
    """The gradients dx, dweight of sum(dy * y), where y = rms_norm(x, weight, eps), as `layer_norm_backward`'s."""
    dx, sums = _norm_backward(rms_norm_backward, dy, x, weight, eps, target, 1)
    return dx, sums[0]


def _norm_backward(
    function: Callable[..., Any], dy: Array, x: Array, weight: Array, eps: float, target: str | None, count: int
) -> tuple[Array, Array]:
    """dx, and so many sums over rows: [count, columns]."""
    arrays = dy, x, weight
    key = key_of(function, arrays, eps, target)
    if (made := again(key, arrays)) is not None:
        return made[0], made[1]
    require_no_gradient(function.__name__, *arrays)
    check_norm(function.__name__, x=x, weight=weight, dy=dy)
    dx, sums = empty(x.shape, x), empty((count, *weight.shape), x)
    if 0 in x.shape:
        sums[...] = 0
        return dx, sums
    target = target_of(target, x)
    blocks = choose_backward_rows(x, target)
    wide = "float64" if dtype_name(x) == "float64" else "float32"
    parts = empty((count, blocks.programs, *weight.shape), x, wide)
    launches = [launch.on(target) for launch in norm_backward_launches(dx, dy, sums, parts, x, weight, eps, blocks)]
    for launch in launches:
        launch.run()
    remember(key, arrays, (dx, sums), (parts,), launches)
    return dx, sums


class BackwardRows(NamedTuple):
    """Rows that a program has at once, each in blocks, the programs, and the warps that share a block; None where a
    program is one thread. `together` columns are summed by one program.
    """

    at_once: int
    block: int
    programs: int
    warps: int | None = None
    together: int = 256


CPU_PROGRAMS = 32  # whatever the threads, so that sums do not depend on them
PROGRAM_WARPS = 16  # of all programs that a multiprocessor of an NVIDIA GPU has at a time


def choose_backward_rows(x: Array, target: str | None) -> BackwardRows:
    """Blocks for rows of `x`: on NVIDIA's GPUs sixteen numbers a lane, of long rows more, and several short rows at
    once, so that programs, each of which has sums of its own in registers, are few.
    """
    columns, family = x.shape[-1], family_of_warps(target)
    rows, block = int(np.prod(x.shape[:-1], dtype=np.int64)), triton.next_power_of_2(columns)
    if family != "cuda":
        blocks = choose_rows(x, target)
        block = block if block <= blocks.longest else blocks.piece
        programs = CPU_PROGRAMS if family is None else FULL
        return BackwardRows(1, block, min(rows, programs), blocks.warps, 256 if family is None else 16)
    computed = max(4, item_size(x))
    at_once, warps = (4, 8) if columns <= 1024 else (1, min(16, max(4, block * computed // 2048)))
    if at_once == 1 and warps < PROGRAM_WARPS:
        at_once, warps = 2, 2 * warps
    programs = min(multiprocessors_of(x) * (PROGRAM_WARPS // warps), triton.cdiv(rows, at_once))
    return BackwardRows(at_once, min(block, 65536 // computed), programs, warps, 256 // computed)


def norm_backward_launches(
    dx: Array, dy: Array, sums: Array, parts: Array, x: Array, weight: Array, eps: float, blocks: BackwardRows,
    mean: Array | None = None, rstd: Array | None = None,
) -> list[Launch]:  # fmt: skip
    """The launches that fill dx, contiguous, and `sums` [1 or 2, columns], in order. `parts` is [1 or 2, programs,
    columns], in what is computed in; `mean` and `rstd` of rows are only taken where a row is one block.
    """
    (rows, x_stride), (dy, dy_stride), weight = as_rows(x), as_rows(dy), as_rows(weight)[0]
    (count, columns), height = sums.shape, rows.shape[0]
    given = dx, dy, parts, rows, weight
    numbers = x_stride, dy_stride, height, columns, number("eps", eps)
    constants = {"CENTRED": count == 2, "FLOAT": COMPUTED_IN[dtype_name(x)], "BLOCK": blocks.block}
    if columns > blocks.block:
        main = Launch(norm_backward_long_kernel, (blocks.programs,), (*given, *numbers), constants)
    else:
        constants |= {"ROWS": blocks.at_once, "AGAIN": columns * item_size(x) > 32768}
        main = Launch(norm_backward_kernel, (blocks.programs,), (*given, mean, rstd, *numbers), constants)
    # It begins while the first one ends.
    ahead = {"launch_pdl": True, "num_warps": 8} if device_kind(x) == "cuda" else {}
    finish = Launch(
        sum_parts_kernel,
        (triton.cdiv(columns, blocks.together), count),
        (parts, sums, blocks.programs, columns),
        {"PARTS": triton.next_power_of_2(blocks.programs), "BLOCK": blocks.together, **ahead},
    )
    return [main.on(None, blocks.warps), finish]


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: seven rows of a length that no block divides, in three programs."""
    x, dy, dx = (rng.standard_normal((7, 200), np.float32) for _ in range(3))
    sums, parts = np.zeros((2, 200), np.float32), rng.standard_normal((2, 3, 200), np.float32)
    blocks = BackwardRows(2, 64 if "long" in name else 256, 3, together=64)
    launches = norm_backward_launches(dx, dy, sums, parts, x, x[0], 1e-5, blocks)
    launches.append(softmax_backward_launch(dy, x, dx, 128))
    return example_of(name, *launches)
