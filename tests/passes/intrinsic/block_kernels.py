"""Kernels in which loops over chunks are easy to get wrong: hazards, carried blocks, shapes, scans, odd accesses."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def rows(x, y, largest, where, columns, M: tl.constexpr, N: tl.constexpr):
    """Softmax of rows, with every reduction that it needs stored, too."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    m = tl.max(v, 1)
    e = tl.exp(v - m[:, None])
    tl.store(y + i[:, None] * N + j[None, :], e / tl.sum(e, 1)[:, None])
    tl.store(largest + i, m)
    tl.store(where + i, tl.argmax(v, 1))
    tl.store(columns + j, tl.sum(v, 0))


@triton.jit
def running(x, along, back, down, M: tl.constexpr, N: tl.constexpr):
    """Running sums along rows, forwards and backwards, and, backwards, along columns."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(along + i[:, None] * N + j[None, :], tl.cumsum(v, 1))
    tl.store(back + i[:, None] * N + j[None, :], tl.cumsum(v, 1, reverse=True))
    tl.store(down + i[:, None] * N + j[None, :], tl.cumsum(v, 0, reverse=True))


@triton.jit
def affine_step(a, b, c, d):
    """Two maps x -> a x + b, one after the other."""
    return a * c, b * c + d


@triton.jit
def recurrence(x, y, z, N: tl.constexpr):
    """A linear recurrence as a scan of pairs."""
    i = tl.arange(0, N)
    a, b = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, affine_step)
    tl.store(z + i, a + b)


@triton.jit
def first_positive(a, b):
    """A combination with control flow."""
    if a > 0:
        result = a
    else:
        result = b
    return result


@triton.jit
def branching(x, y, z, N: tl.constexpr):
    """A reduction and a scan that cannot be done on whole chunks."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y, tl.reduce(v, 0, first_positive))
    tl.store(z + i, tl.associative_scan(v, 0, first_positive))


@triton.jit
def shapes(x, flat, pairs, both, M: tl.constexpr, N: tl.constexpr):
    """Transpose, reshape, split, join, concatenate."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(flat + tl.arange(0, M * N), tl.reshape(tl.trans(v), [M * N]))
    a, b = tl.split(tl.reshape(v, [M, N // 2, 2]))
    tl.store(pairs + i[:, None] * N + j[None, :], tl.reshape(tl.join(b, a * 2), [M, N]))
    tl.store(both + tl.arange(0, 2 * M), tl.cat(tl.sum(v, 1), tl.max(v, 1), can_reorder=True))


@triton.jit
def swap(x, y, N: tl.constexpr):
    """What is loaded before a store must not be loaded again after it."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@triton.jit
def rotate(x, N: tl.constexpr):
    """Halves that are computed from each other, in place."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(x + N + i)
    tl.store(x + i, a * 0.5 - b)
    tl.store(x + N + i, b * 0.5 + a)


@triton.jit
def transpose_in_place(x, N: tl.constexpr):
    """A store whose chunks would overwrite what later chunks load."""
    i = tl.arange(0, N)
    tl.store(x + i[:, None] + i[None, :] * N, tl.load(x + i[:, None] * N + i[None, :]))


@triton.jit
def carried(x, y, n, N: tl.constexpr):
    """Blocks that trade places in a loop, a branch and a loop with a condition, pointers that move."""
    i = tl.arange(0, N)
    a = tl.zeros([N], tl.float32)
    b = tl.full([N], 1.0, tl.float32)
    pointers = x + i
    for _ in range(n):
        v = tl.load(pointers)
        a, b = b + v, a * 0.5 + v
        pointers += N
    if n > 2:
        a = a + b
    else:
        a = a - b
    k = 0
    while k < n:
        a, b = a * 0.9 + b, a
        k += 1
    tl.store(y + i, a)


@triton.jit
def reversed_in_loop(x, y, n, N: tl.constexpr):
    """A carried block that is computed from other elements of itself."""
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    for _ in range(n):
        v = tl.trans(v) + 1.0
    tl.store(y + i[:, None] * N + i[None, :], v)


@triton.jit
def picked(x, index, y, total, M: tl.constexpr, N: tl.constexpr):
    """A gather from computed values; atomics whose old values are used."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.exp(tl.load(x + i[:, None] * N + j[None, :]) * 0.1)
    k = tl.load(index + i[:, None] * N + j[None, :]) & (N - 1)
    tl.store(y + i[:, None] * N + j[None, :], tl.gather(v, k, 1))
    old = tl.atomic_add(total + j, tl.sum(v, 0))
    tl.store(y + j, old, mask=j < 3)


@triton.jit
def windows(x, y, m, n, M: tl.constexpr, N: tl.constexpr):
    """Block pointers over every edge of a tensor, and a descriptor."""
    for row in range(-M // 2, m, M):
        block = tl.make_block_ptr(x, (m, n), (n, 1), (row, -N // 2), (M, N), (1, 0))
        out = tl.make_block_ptr(y, (m, n), (n, 1), (row, -N // 2), (M, N), (1, 0))
        for _ in range(0, n + N, N):
            v = tl.load(block, boundary_check=(0, 1), padding_option="zero")
            tl.store(out, v * 2 + tl.sum(v, 1)[:, None], boundary_check=(0, 1))
            block = tl.advance(block, (0, N))
            out = tl.advance(out, (0, N))


@triton.jit
def masked(x, y, total, n, N: tl.constexpr):
    """A reduction to a scalar and a store that needs it, both masked."""
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0.0)
    s = tl.sum(v * v, 0)
    tl.store(y + i, v / s, mask=i < n)
    tl.store(total, s)


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """One dot, operands row-major or transposed in memory."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if LEFT:
        x = tl.trans(tl.load(a + k[:, None] * M + m[None, :]))
    else:
        x = tl.load(a + m[:, None] * K + k[None, :])
    if RIGHT:
        y = tl.trans(tl.load(b + n[:, None] * K + k[None, :]))
    else:
        y = tl.load(b + k[:, None] * N + n[None, :])
    z = tl.dot(x, y, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], z.to(c.dtype.element_ty))


@triton.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Dots of rank 3, chained."""
    p, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + p[:, None, None] * (M * K) + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + p[:, None, None] * (K * N) + k[None, :, None] * N + n[None, None, :])
    z = tl.dot(x * 2, y, input_precision="ieee")
    z = tl.dot(x, y + 1, z, input_precision="ieee")
    tl.store(c + p[:, None, None] * (M * N) + m[None, :, None] * N + n[None, None, :], z)


@triton.jit
def chained(a, b, c, n, N: tl.constexpr):
    """Dots whose accumulators are needed elsewhere, too, in a loop and under a condition."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    acc = tl.zeros([N, N], tl.float32)
    for step in range(n):
        old = acc
        if step % 2 == 0:
            acc = tl.dot(x, y, acc * 0.5, input_precision="ieee")
        else:
            acc = acc + 1.0
        acc = tl.dot(tl.exp2(old * 0.01), x, acc, input_precision="ieee") - old
    tl.store(c + at, acc * 0.001)


@triton.jit
def sharing(x, y, p, d, e, f, M: tl.constexpr, N: tl.constexpr):
    """Dots whose left operands are made of the same exponential, transposed or not; f: where one is stored."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    at = m[:, None] * N + n[None, :]
    u, v = tl.load(x + at), tl.load(y + at)
    s = tl.dot(u, tl.trans(v), input_precision="ieee")
    weights = tl.exp2(s * 0.1)
    scaled = (weights * (s - 1.0)).to(u.dtype)
    tl.store(p + at, tl.dot(tl.trans(weights.to(u.dtype)), u, input_precision="ieee"))
    tl.store(d + at, tl.dot(tl.trans(scaled), v, input_precision="ieee"))
    tl.store(e + at, tl.dot(scaled, u, tl.dot(weights.to(u.dtype), v, input_precision="ieee"), input_precision="ieee"))
    if f is not None:
        tl.store(f + m[:, None] * M + m[None, :], scaled.to(tl.float32))


@triton.jit
def transposed(x, y, z, m, n, M: tl.constexpr, N: tl.constexpr):
    """Stores along columns: of what was loaded along rows, and along columns."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j[None, :] < n)
    v = tl.load(x + i[:, None] * n + j[None, :], mask=inside, other=0.0)
    tl.store(y + i[:, None] + j[None, :] * m, v * 2, mask=inside)
    w = tl.load(x + i[:, None] + j[None, :] * m, mask=inside, other=0.0)
    tl.store(z + i[:, None] + j[None, :] * m, w + 1, mask=inside)


@triton.jit
def normalized(x, y, n, N: tl.constexpr):
    """Scalars that are computed from what a loop over chunks gives, and used in the next one."""
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0.0)
    mean = tl.sum(v, 0) / n
    scale = 1.0 / tl.sqrt(tl.sum((v - mean) * (v - mean), 0) + 1.0)
    tl.store(y + i, (v - mean) * scale, mask=i < n)


@triton.jit
def places_from_sums(x, y, z, table, M: tl.constexpr, N: tl.constexpr):
    """Masks and addresses of two dimensions that reductions just before give."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    positive = tl.max(v, 0, keep_dims=True)
    where = tl.argmax(v, 1)
    tl.store(y + i[:, None] * N + j[None, :], v * 2, mask=(positive > 1.0) & (i[:, None] < M))
    tl.store(z + (j[None, :] * M + i[:, None]) * 2 + where[:, None] % 2, v)
    picked = tl.load(table + where[:, None] * N + j[None, :], mask=positive > 0.5, other=1.0)
    tl.store(y + M * N + j[:, None] * M + i[None, :], tl.trans(picked))


@triton.jit
def dot_of_places_from_sums(x, y, N: tl.constexpr):
    """A dot whose operand is loaded through the result of a reduction, under a mask of another."""
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    where, largest = tl.argmax(v, 1), tl.max(v, 1)
    right = tl.load(x + where[:, None] * N + i[None, :], mask=largest[:, None] > 0.5, other=0.0)
    left = tl.load(x + i[:, None] * N + i[None, :], mask=i[:, None] < tl.sum(where, 0), other=0.0)
    tl.store(y + i[:, None] * N + i[None, :], tl.dot(left, right))


@triton.jit
def moving_pointer(x, y, n, N: tl.constexpr):
    """What is loaded through a pointer that a loop moves was stored in the iteration before, at other places."""
    i = tl.arange(0, N)
    moved = x
    for _ in range(n):
        tl.store(x + 8 + i, tl.load(moved + 8 + i) + 1)
        tl.store(moved, tl.load(x + 8) * 2)
        moved -= 1
    tl.store(y + i, tl.load(x + i))


@triton.jit
def exchanged_pointers(x, y, out, n, N: tl.constexpr):
    """Two pointers change places in every iteration; what is stored through one of them spoils what was loaded."""
    i = tl.arange(0, N)
    a, b = y, x
    for j in range(n):
        v = tl.load(a + i)
        tl.store(x + 1 + i, v * 0.5 + 1)
        tl.store(out + j * N + i, v)
        t = a
        a = b
        b = t


@triton.jit
def kept_for_every_iteration(x, y, n, N: tl.constexpr):
    """What every iteration reads first stays where it is while the rest of the iteration needs room."""
    i = tl.arange(0, N)
    v = tl.cumsum(tl.load(x + i), 0)
    total = tl.zeros((N,), tl.float32)
    for j in range(n):
        w = tl.cumsum(v * (j + 1), 0)
        z = tl.cumsum(w * 0.25, 0)
        total += tl.flip(tl.cumsum(z, 0)) * 0.125
    tl.store(y + i, total)


@triton.jit
def masked_dot(a, b, c, m, n, k, S: tl.constexpr):
    """A dot of operands that end before the block does."""
    i = tl.arange(0, S)
    left = tl.load(a + i[:, None] * k + i[None, :], mask=(i[:, None] < m) & (i[None, :] < k), other=0.0)
    right = tl.load(b + i[:, None] * n + i[None, :], mask=(i[:, None] < k) & (i[None, :] < n), other=0.0)
    tl.store(c + i[:, None] * n + i[None, :], tl.dot(left, right), mask=(i[:, None] < m) & (i[None, :] < n))


@triton.jit
def stored_then_loaded(x, y, N: tl.constexpr):
    """What was stored is loaded from other places."""
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(y + i) * 2)
    tl.debug_barrier()
    tl.store(y + i, tl.load(x + (N - 1 - i)) + 1)


@triton.jit
def doubled(x, y, z, N: tl.constexpr):
    """What is loaded from one parameter is needed after a store to another, which may be the same array."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, v * 2)
    tl.store(z + i, tl.flip(v, 0))


@triton.jit
def counted_from_below(x, y, low, high, N: tl.constexpr):
    """A loop whose counter starts below zero."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for j in range(low, high):
        v = v * 0.5 + j
    tl.store(y + i, v)
