"""A product of which each program computes block after block, through descriptors: a loop in a loop."""

import mltriton as triton
import mltriton.language as tl


@triton.jit
def product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    TURNED: tl.constexpr = False, ASKS: tl.constexpr = False,
):  # fmt: skip
    """c = a b; b lies transposed in memory where TURNED, and the kernel asks for a producer warp where ASKS."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    if TURNED:
        right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    else:
        right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        i, j = tile // tl.cdiv(N, BN) * BM, tile % tl.cdiv(N, BN) * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, warp_specialize=ASKS):
            y = right.load([j, k]).T if TURNED else right.load([k, j])
            total = tl.dot(left.load([i, k]), y, total)
        out.store([i, j], total.to(c.dtype.element_ty))
