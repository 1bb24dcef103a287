"""FlashAttention-2 in the language, for attention.mlir: once with a tiling hint on its second dot, once without."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, n, row,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, TILING: tl.constexpr,
):  # fmt: skip
    """o = softmax2(q k^T) v for BM queries from `row` on; all arrays are [n, BD] and contiguous."""
    qp = tl.make_block_ptr(q_ptr, (n, BD), (BD, 1), (row, 0), (BM, BD), (1, 0))
    kj = tl.make_block_ptr(k_ptr, (BD, n), (1, BD), (0, 0), (BD, BN), (0, 1))
    vj = tl.make_block_ptr(v_ptr, (n, BD), (BD, 1), (0, 0), (BN, BD), (1, 0))
    op = tl.make_block_ptr(o_ptr, (n, BD), (BD, 1), (row, 0), (BM, BD), (1, 0))
    q = tl.load(qp)
    o = tl.zeros((BM, BD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    m = tl.full((BM,), -float("inf"), tl.float32)
    for _ in range(0, n, BN):
        k = tl.load(kj)
        qk = tl.dot(q, k)
        m_new = tl.maximum(m, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(vj)
        o_new = tl.dot(p.to(v.dtype), v, o * alpha[:, None], tiling=TILING)
        o = o_new
        m = m_new
        kj = tl.advance(kj, (0, BN))
        vj = tl.advance(vj, (BN, 0))
    tl.store(op, (o / total[:, None]).to(o_ptr.dtype.element_ty))
