# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Grouped matrix multiplication of few groups: all their arrays and sizes are arguments of the kernel.

Level: user. The kernel has a loop over blocks for each group, so that an engine can copy the blocks of tensors that the
launch describes, and no table has to come to the GPU. The blocks of all results are numbered through; program p of P
computes blocks p, p + P, ...
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, dtype_name
from mltriton.kernels.epilogues import Epilogue, finish, silu
from mltriton.kernels.gemm_gpu import is_large
from mltriton.kernels.gemm_persistent import lines_of, multiprocessors_of, right, right_descriptor
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Example, Launch

MOST_GROUPS = 4  # each takes some 0.3 s to compile


@triton.jit
def few_groups_kernel(
    a_ptrs, b_ptrs, c_ptrs, Ms, Ns, Ks, strides_a, strides_b, strides_c,
    GROUPS: tl.constexpr, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C_i = activation(A_i B_i). `A_TURNED[i]`: A_i is the transpose of rows of `strides_a[i]`."""
    block, programs = tl.program_id(0), tl.num_programs(0)
    for group in tl.static_range(GROUPS):
        M, N, K = Ms[group], Ns[group], Ks[group]
        if A_TURNED[group]:
            a_desc = tl.make_tensor_descriptor(a_ptrs[group], [K, M], [strides_a[group], 1], [BK, BM])
        else:
            a_desc = tl.make_tensor_descriptor(a_ptrs[group], [M, K], [strides_a[group], 1], [BM, BK])
        b_desc = right_descriptor(b_ptrs[group], N, K, strides_b[group], B_TURNED[group], BN, BK)
        c_desc = tl.make_tensor_descriptor(c_ptrs[group], [M, N], [strides_c[group], 1], [BM, BN])
        rows = tl.cdiv(M, BM)
        blocks = rows * tl.cdiv(N, BN)
        for inside in tl.range(block, blocks, programs):
            m, n = inside % rows * BM, inside // rows * BN
            acc = tl.zeros((BM, BN), dtype=ACC)
            for k in range(0, K, BK):
                if A_TURNED[group]:
                    a = a_desc.load([k, m]).T
                else:
                    a = a_desc.load([m, k])
                b = right(b_desc, k, n, B_TURNED[group])
                acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
            c = finish(acc, None, None, 0, m, n, M, N, 0, 0, 0, ACTIVATION, COMPUTE)
            c_desc.store([m, n], c.to(c_ptrs[group].dtype.element_ty))
        block = (block + programs - blocks % programs) % programs


def few_groups_launch(
    a: Sequence[Array],
    b: Sequence[Array],
    c: Sequence[Array],
    epilogue: Epilogue,
    tile: Tile,
    warps: int | None = None,
    programs: int | None = None,
) -> Launch | None:
    """The launch that computes all c_i = epilogue(a_i b_i), of which none is empty, by so many programs (as many as a
    GPU has room for when None); None for too many groups, and where neither rows nor columns of an array lie together,
    or rows of c do not.
    """
    lines = [lines_of(*(z[None] for z in each)) for each in zip(a, b, c, strict=True)]
    known = [each for each in lines if each is not None and not each[2][1]]
    if len(a) > MOST_GROUPS or len(known) < len(lines):
        return None
    sizes = [(*z.shape, x.shape[1]) for x, z in zip(a, c, strict=True)]
    blocks = sum(triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n) for m, n, _ in sizes)
    programs = programs or multiprocessors_of(a[0]) * (1 if is_large(tile, warps) else 2)
    constants = epilogue.constants(dtype_name(a[0])) | {
        "GROUPS": len(a), "A_TURNED": tuple(each[0][1] for each in known),
        "B_TURNED": tuple(each[1][1] for each in known), "BM": tile.m, "BN": tile.n, "BK": tile.k,
    }  # fmt: skip
    numbers = [*zip(*sizes, strict=True), *(tuple(each[i][0] for each in known) for i in range(3))]
    arguments = (tuple(a), tuple(b), tuple(c), *numbers)
    return Launch(few_groups_kernel, (min(programs, blocks),), arguments, constants)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: two problems of different sizes, B by columns, for three programs."""
    if name != "few_groups_kernel":
        return None
    sizes = [(40, 70, 50), (33, 20, 64)]
    a = [rng.uniform(0.5, 1.5, (m, k)).astype(np.float16) for m, _, k in sizes]
    b = [rng.uniform(0.5, 1.5, (n, k)).astype(np.float16).T for _, n, k in sizes]
    c = [np.zeros((m, n), np.float32) for m, n, _ in sizes]
    launch = few_groups_launch(a, b, c, Epilogue("float32", activation=silu), Tile(16, 32, 32, 1), None, 3)
    return launch.example() if launch is not None else None
