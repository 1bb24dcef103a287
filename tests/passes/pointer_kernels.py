"""Kernels in which one block pointer or descriptor serves loads and stores that are used in different ways."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def plain_and_operand(x, w, out, rows, D: tl.constexpr, BR: tl.constexpr):
    """x through one pointer as a plain block, then as the operand of a dot; out is read back and added to."""
    total = tl.zeros([BR, BR], dtype=tl.float32)
    for _ in range(tl.cdiv(D, D)):
        p_x = tl.make_block_ptr(x, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
        p_w = tl.make_block_ptr(w, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
        p_out = tl.make_block_ptr(out, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
        b = tl.load(p_x, boundary_check=(0, 1))
        total += tl.dot(tl.load(p_w, boundary_check=(0, 1)), tl.trans(b * 2), input_precision="ieee")
        tl.store(p_out, b * 2, boundary_check=(0, 1))
        tl.debug_barrier()
        b = tl.load(p_x, boundary_check=(0, 1))
        d = tl.load(p_out, boundary_check=(0, 1))
        d += tl.dot(total, b, input_precision="ieee")
        tl.debug_barrier()
        tl.store(p_out, d, boundary_check=(0, 1))


@triton.jit
def advanced(x, w, out, rows, D: tl.constexpr, BR: tl.constexpr):
    """A pointer that a loop advances is the left operand, the right one and a plain block; then it is stored to."""
    p_x = tl.make_block_ptr(x, (rows, D), (D, 1), (0, 0), (BR, 16), (1, 0))
    p_out = tl.make_block_ptr(out, (rows, D), (D, 1), (0, 0), (BR, 16), (1, 0))
    total = tl.zeros([BR, BR], dtype=tl.float32)
    most = tl.zeros([BR], dtype=tl.float32)
    for _ in range(0, D, 16):
        left = tl.load(p_x, boundary_check=(0, 1))
        total = tl.dot(left, tl.trans(tl.load(p_x, boundary_check=(0, 1))), total, input_precision="ieee")
        most = tl.maximum(most, tl.max(left + 1, axis=1))
        p_x = tl.advance(p_x, (0, 16))
    for _ in range(0, D, 16):
        p_x = tl.advance(p_x, (0, -16))
        part = tl.dot(total, tl.load(p_x, boundary_check=(0, 1)), input_precision="ieee") * most[:, None]
        tl.store(p_out, part + tl.load(p_x, boundary_check=(0, 1)), boundary_check=(0, 1))
        p_out = tl.advance(p_out, (0, 16))


@triton.jit
def chosen(x, w, out, rows, D: tl.constexpr, BR: tl.constexpr):
    """A pointer chosen by a branch or a loop with an exit is an operand and a plain block."""
    p = tl.make_block_ptr(x, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
    q = tl.make_block_ptr(w, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
    p_out = tl.make_block_ptr(out, (rows, D), (D, 1), (0, 0), (BR, D), (1, 0))
    if rows > 40:
        p = q
    product = tl.dot(tl.load(p, boundary_check=(0, 1)), tl.trans(tl.load(q, boundary_check=(0, 1))))
    shifts = 0
    while shifts < 2:
        p = tl.advance(p, (1, 0))
        shifts += 1
    plain = tl.load(p, boundary_check=(0, 1))
    row = tl.sum(product, axis=1)
    tl.store(p_out, plain * 3 + tl.cumsum(plain, axis=0) + row[:, None], boundary_check=(0, 1))


@triton.jit
def described(x, w, out, rows, D: tl.constexpr, BR: tl.constexpr):
    """A descriptor's blocks are operands on both sides, plain blocks, and stored and read again."""
    d_x = tl.make_tensor_descriptor(x, (rows, D), (D, 1), (BR, 16))
    d_out = tl.make_tensor_descriptor(out, (rows, D), (D, 1), (BR, 16))
    total = tl.zeros([BR, BR], dtype=tl.float32)
    for k in range(0, D, 16):
        left = d_x.load([0, k])
        total = tl.dot(left, d_x.load([0, k]).T, total, input_precision="ieee")
        d_out.store([0, k], left + tl.max(left, axis=0)[None, :])
    tl.debug_barrier()
    for k in range(0, D, 16):
        back = d_out.load([0, k])
        part = tl.dot(total, back, input_precision="ieee") + d_x.load([0, k])
        tl.debug_barrier()
        d_out.store([0, k], part)
