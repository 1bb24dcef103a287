"""Looking at a kernel level by level, for this machine's CPU and for a GPU. `python examples/levels.py [LEVEL]`"""

from __future__ import annotations

import sys

import mltriton as triton
import mltriton.language as tl


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A block of C = A B for row-major matrices, as in the ML-Triton paper's example."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a = tl.advance(a, (0, BK))
        b = tl.advance(b, (BK, 0))
    tl.store(tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0)), acc)


SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, 256, 256, 32"


def main() -> None:
    for target in ("generic", "cpu"):
        compiled = triton.compile(gemm, signature=SIGNATURE, target=target, num_warps=32)
        print(f"{target}: the lines of each level")
        for level, text in compiled.asm.items():
            print(f"  {level:<10}{len(text.splitlines()):>6}")
    if len(sys.argv) > 1:
        print(triton.compile(gemm, signature=SIGNATURE, target="generic", num_warps=32).asm[sys.argv[1]])


if __name__ == "__main__":
    main()
