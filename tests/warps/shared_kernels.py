"""Warp-level kernels that overwrite what they have just read: what a memory target must not delay or hurry."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit(warp_level=True)
def swap(x, y, N: tl.constexpr):
    """Two blocks change places, one is transposed in its place, and one moved by a few elements over itself."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    shared = tl.alloc((warps, 3, N, N), tl.float32)
    mine = shared[w]
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    for part in tl.static_range(3):
        tl.store(mine[part], tl.load(x + (w * 3 + part) * N * N + at))
    first, second = tl.load(mine[0]), tl.load(mine[1])
    tl.store(mine[0], second * 2)
    tl.store(mine[1], first + second)
    tl.store(mine[2], tl.trans(tl.load(mine[2])))
    half: tl.constexpr = N // 2
    tl.store(mine[2].block((0, 0), (half, N)), tl.load(mine[2].block((half // 2, 0), (half, N))))
    tl.barrier()
    other = shared[(w + 1) % warps]
    for part in tl.static_range(3):
        tl.store(y + (w * 3 + part) * N * N + at, tl.load(other[part]))
    tl.store(y + w * 3 * N * N + at, first + tl.load(other[0]))


@triton.jit(warp_level=True)
def sums_in_place(a, b, c, n, M: tl.constexpr):
    """Dots that add to a block in shared memory, scale it first, read it as an operand, or keep the old one."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    shared = tl.alloc((warps, 2, M, M), tl.float32)
    mine = shared[w]
    left, right = tl.load(a + w * M * M + at), tl.load(b + at)
    tl.store(mine[0], left)
    tl.store(mine[1], right)
    for step in range(n):
        old = tl.load(mine[0])
        scaled = tl.dot(left, right, old * 0.5, input_precision="ieee")
        tl.store(mine[0], scaled)
        product = tl.dot(tl.load(mine[0]), tl.load(mine[1]), input_precision="ieee")
        tl.store(mine[0], product * 0.125)
        tl.store(mine[1], tl.dot(left, right, tl.load(mine[1]), input_precision="ieee") * 0.25 + old + step)
    tl.barrier()
    tl.store(c + w * M * M + at, tl.load(shared[(w + 1) % warps, 0]) + tl.load(mine[1]))


@triton.jit(warp_level=True)
def small_things(x, out, n, N: tl.constexpr):
    """Scalars, booleans and integers of all widths in shared memory and across barriers."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    flags = tl.alloc((warps, N), tl.int1)
    single = tl.alloc((warps,), tl.int64)
    halves = tl.alloc((warps, N), tl.float16)
    a = tl.load(x + w * N + i)
    tl.store(flags[w], a > 0)
    tl.store(single[w], tl.sum(a, axis=0).to(tl.int64))
    tl.store(halves[w], a.to(tl.float16))
    any_negative = tl.max((a < 0).to(tl.int32), axis=0) > 0
    odd = tl.sort(a)
    tl.barrier()
    total = tl.load(single[(w + 1) % warps])
    if w < warps:
        tl.barrier()
        total += 1
    positive = tl.load(flags[(w + 1) % warps])
    tl.barrier()
    value = tl.where(positive, tl.load(halves[(w + 1) % warps]).to(tl.float32), 0.5) + odd
    if any_negative:
        value += total.to(tl.float32)
    for _ in range(n):
        tl.barrier()
        value = value * 0.5
        any_negative = not any_negative
    tl.store(out + w * N + i, tl.where(any_negative, value, -value))


@triton.jit(warp_level=True)
def chosen_pointers(x, y, out, N: tl.constexpr):
    """Pointers that a branch chooses, kept across a barrier; and a barrier in both sides of a branch."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((warps, N), tl.float32)
    source = x
    if w % 2 == 1:
        source = y + N
    block = source + i
    a = tl.load(block)
    n = tl.load(x).to(tl.int32)
    if n > 0:
        tl.store(shared[w], a)
        tl.barrier()
        b = tl.load(shared[(w + 1) % warps])
    else:
        tl.store(shared[w], a * 2)
        tl.barrier()
        b = -tl.load(shared[(w + 1) % warps])
    tl.store(out + w * N + i, b + tl.load(block) + tl.load(source))
