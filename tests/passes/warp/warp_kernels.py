"""Warp-level kernels with barriers in all places, to be run by warps together and by one thread."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def alone(x, y, N: tl.constexpr):
    """No barrier: branches and loops that differ from warp to warp."""
    w = tl.warp_id()
    i = tl.arange(0, N)
    a = tl.load(x + w * N + i)
    for step in range(w + 1):
        if (step + w) % 2 == 0:
            a = a * 2 + step
        else:
            a = a - 1
    if w == 1:
        tl.store(y + N * tl.num_warps() + i, a)
    tl.store(y + w * N + i, a)


@triton.jit
def neighbours(x, y, N: tl.constexpr):
    """Blocks, scalars and sums live across barriers; the sum over a block is the expensive value."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((count, N), tl.float32)
    a = tl.load(x + w * N + i)
    total = tl.sum(a, axis=0)
    e = tl.exp(a - total)
    tl.store(shared[w], a + 1)
    tl.barrier()
    b = tl.load(shared[(w + 1) % count])
    tl.barrier()
    tl.store(shared[w], b * total)
    tl.barrier()
    c = tl.load(shared[(w + 3) % count])
    tl.store(y + w * N + i, a + b * 2 + c + e + total)


@triton.jit
def steps(x, y, n, N: tl.constexpr):
    """Carried blocks and scalars, two of which change places, in a loop with barriers; two buffers."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((2, count, N), tl.float32)
    a = tl.load(x + w * N + i)
    b = a * 0.5
    s = w * 1.5
    fixed = tl.zeros((N,), tl.float32)
    for step in range(n):
        tl.store(shared[step % 2, w], a)
        tl.barrier()
        other = tl.load(shared[step % 2, (w + 1) % count])
        s += tl.sum(other, axis=0)
        fixed += step
        a, b = b + other * 0.25, a
    tl.store(y + w * N + i, a + b * 3 + s + fixed)


@triton.jit
def nested(x, y, n, m, N: tl.constexpr):
    """Loops with barriers in loops with barriers, and uniform branches."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((count, N), tl.float32)
    acc = tl.zeros((N,), tl.float32)
    for outer in range(n):
        if outer % 2 == 0:
            tl.store(shared[w], acc + outer + w)
            tl.barrier()
            part = tl.load(shared[(w + outer) % count])
            tl.barrier()
        else:
            part = acc * 0.5
        for inner in range(m):
            tl.store(shared[w], part + inner)
            tl.barrier()
            acc += tl.load(shared[(w + 1) % count]) * 0.125
            tl.barrier()
        acc += part
    if n > 3:
        return
    tl.barrier()
    tl.store(y + w * N + i, acc + tl.load(x + w * N + i))


@triton.jit
def until(x, y, N: tl.constexpr):
    """A loop with a condition on what the warps find together."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((count, N), tl.float32)
    a = tl.load(x + w * N + i)
    largest = 1.0e9
    rounds = 0
    while largest > 1.0:
        tl.store(shared[w], tl.abs(a))
        tl.barrier()
        largest = tl.max(tl.max(tl.load(shared), axis=1), axis=0)
        tl.barrier()
        a = a * 0.5
        rounds += 1
    tl.store(y + w * N + i, a + rounds)


@triton.jit
def products(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Each warp's rows of a matrix product; the right operand comes through shared memory, a part from each warp."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    part: tl.constexpr = BK // count
    shared = tl.alloc((BK, N), tl.float32)
    rows = w * M + tl.arange(0, M)
    columns = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        mine = k + w * part + tl.arange(0, part)
        loaded = tl.load(b + mine[:, None] * N + columns[None, :], mask=mine[:, None] < K, other=0.0)
        tl.store(shared.block((w * part, 0), (part, N)), loaded)
        tl.barrier()
        ks = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
        acc = tl.dot(left, tl.load(shared), acc, input_precision="ieee")
        tl.barrier()
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def block_pointers(x, y, n, N: tl.constexpr):
    """Block pointers that move, from before a loop with barriers to after it."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    shared = tl.alloc((count, 1, N), tl.float32)
    source = tl.make_block_ptr(x, (count * n, N), (N, 1), (w, 0), (1, N), (1, 0))
    target = tl.make_block_ptr(y, (count * n, N), (N, 1), (w, 0), (1, N), (1, 0))
    for _ in range(n):
        tl.store(shared[w], tl.load(source))
        tl.barrier()
        tl.store(target, tl.load(shared[(w + 1) % count]) + tl.load(source))
        tl.barrier()
        source = tl.advance(source, (count, 0))
        target = tl.advance(target, (count, 0))


@triton.jit
def in_turn(x, counter, N: tl.constexpr):
    """Global memory that other warps write before a barrier, loads that stores would spoil, and atomics."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    first = tl.load(x + w * N + i)
    tl.atomic_add(counter, 1)
    tl.barrier()
    tl.store(x + ((w + 1) % count) * N + i, first + 1)
    done = tl.load(counter)
    tl.barrier()
    again = tl.load(x + w * N + i)
    tl.atomic_add(counter + 1 + w, done + w)
    tl.barrier()
    tl.store(x + w * N + i, again * 2 + first)
