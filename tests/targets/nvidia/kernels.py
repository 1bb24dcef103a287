"""Kernels that tests of the compiler's side share."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    at, row = tl.arange(0, BLOCK), tl.program_id(0)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * n + at, powers / tl.sum(powers, 0), mask=at < n)


@triton.jit
def product(a, b, c, K, BLOCK: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr):
    at, along = tl.arange(0, BLOCK), tl.arange(0, STEP)
    total = tl.zeros((BLOCK, BLOCK), c.dtype.element_ty)
    for k in range(0, K, STEP):
        left = tl.load(a + at[:, None] * K + (k + along)[None, :])
        right = tl.load(b + (k + along)[:, None] * BLOCK + at[None, :])
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=c.dtype.element_ty)
    tl.store(c + at[:, None] * BLOCK + at[None, :], total)


@triton.jit
def checked(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.device_assert(values < n, "too large")
    tl.device_print("value", values)


@triton.jit
def counted(x, count, BLOCK: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(count + tl.load(x + at), 1, sem=SEM, scope=SCOPE)


@triton.jit(warp_level=True)
def kept(x, BLOCK: tl.constexpr):
    memory = tl.alloc((BLOCK, BLOCK), tl.float32)
    at = tl.arange(0, BLOCK)
    tl.store(memory[0], tl.load(x + at))
    tl.barrier()
    tl.store(x + at, tl.load(memory[0]))


@triton.jit
def extrema_of_negated(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    block = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(out + i, tl.max(-block, 1))
    tl.store(out + ROWS + i, tl.min(block * -1, 1))


@triton.jit
def assembled(x, BLOCK: tl.constexpr, TEXT: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(x + at, tl.inline_asm_elementwise(TEXT, "=r,r", [value], dtype=tl.int32, is_pure=True, pack=1))


@triton.jit
def wrapped(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    """A block of a matrix that goes on at its beginning."""
    i = (tl.program_id(0) * M + tl.arange(0, M)) % m
    j = (tl.program_id(1) * N + tl.arange(0, N)) % n
    block = tl.load(x + i[:, None] * n + j[None, :])
    across = tl.program_id(1) * N + tl.arange(0, N)
    down = tl.program_id(0) * M + tl.arange(0, M)
    tl.store(out + down[:, None] * (N * tl.num_programs(1)) + across[None, :], block)


@triton.jit
def transposed(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    block = tl.load(x + i[:, None] * columns + j[None, :], mask=inside)
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(block), mask=tl.trans(inside))


@triton.jit
def scaled_columns(x, factors, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at, inside = i[:, None] * COLUMNS + j[None, :], i[:, None] < n
    scale = tl.exp(tl.load(factors + j))
    tl.store(out + at, tl.load(x + at, mask=inside) * scale[None, :] / 3, mask=inside)


@triton.jit
def logits_of_rows(x, labels, loss, out, stride, n, BLOCK: tl.constexpr):
    """The loss of a row, and its gradient."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    largest, total = -float("inf"), 0.0
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
        new = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(values - new), 0)
        largest = new
    tl.store(loss + row, largest + tl.log(total) - tl.load(x + row * stride + label))
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + at, mask=at < n)
        tl.store(
            out + row * stride + at, tl.exp(values - largest) / total - tl.where(at == label, 1.0, 0.0), mask=at < n
        )


@triton.jit
def centred_rows(x, scales, out, sums, rows, columns, BLOCK: tl.constexpr):
    """Rows in turn, with a sum of all."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        centred = (values - tl.sum(values, 0) / columns) * tl.load(scales + row)
        tl.store(out + row * columns + at, centred, mask=inside)
        total += values
    tl.store(sums + tl.program_id(0) * columns + at, total, mask=inside)


@triton.jit
def steps_in_place(x, out, n, BLOCK: tl.constexpr):
    """Each iteration adds up what the one before has stored."""
    at = tl.arange(0, BLOCK)
    for _ in range(n):
        values = tl.load(x + at)
        tl.store(out + at, values + tl.max(values, 0))


@triton.jit
def running_in_place(x, n, BLOCK: tl.constexpr):
    """Each block is that before it, which this program has changed, and one more."""
    at = tl.arange(0, BLOCK)
    for step in range(n - 1):
        values = tl.load(x + step * BLOCK + at)
        tl.store(x + (step + 1) * BLOCK + at, values + tl.max(values, 0))


@triton.jit
def moments(x, sums, rows, columns, BLOCK: tl.constexpr):
    """The sums of each column's values, squares, cubes and fourth powers, each times its row's mean."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    third = tl.zeros([BLOCK], tl.float32)
    fourth = tl.zeros([BLOCK], tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * columns + at, mask=inside, other=0.0)
        scaled = value * (tl.sum(value, axis=0) / columns)
        first += scaled
        second += scaled * value
        third += scaled * value * value
        fourth += scaled * value * value * value
    sums += tl.program_id(0) * 4 * columns
    tl.store(sums + at, first, mask=inside)
    tl.store(sums + columns + at, second, mask=inside)
    tl.store(sums + 2 * columns + at, third, mask=inside)
    tl.store(sums + 3 * columns + at, fourth, mask=inside)
