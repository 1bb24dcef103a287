"""Programs whose blocks say which lane holds what: every level agrees with level tt, with 1 to 32 warps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.compiler import Job, options_of
from mltriton.dialects import tt, ttg
from mltriton.frontend.signature import parse_signature, with_parts
from mltriton.ir.module import Module
from mltriton.ir.types import TensorType
from mltriton.layouts.conversions import Means, conversion
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.targets.registry import spec
from mltriton.targets.target import find_target
from mltriton.targets.xe.layouts.encodings import Subgroup2DBlockEncoding

from ..programs import kernel
from ..warp.test_levels import PROGRAMS

PIPELINE = spec("xe:pvc").pipeline
LEVELS = (",".join(PIPELINE[:2]), PIPELINE[2], PIPELINE[3])


@each_value(("name", PROGRAMS), ("warps", [1, 4, 32]))
def test_every_level(name: str, warps: int) -> None:
    PROGRAMS[name].with_warps(warps, "xe:pvc").check_each(LEVELS)


@triton.jit
def matmul(
    a, b, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, B_T: tl.constexpr
):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    pa = tl.make_block_ptr(a, (M, K), (lda, 1), (row, 0), (BM, BK), (1, 0))
    if B_T:
        pb = tl.make_block_ptr(b, (K, N), (1, ldb), (0, column), (BK, BN), (0, 1))
    else:
        pb = tl.make_block_ptr(b, (K, N), (ldb, 1), (0, column), (BK, BN), (1, 0))
    sums = tl.zeros((BM, BN), c.dtype.element_ty)
    for _ in range(0, K, BK):
        sums = tl.dot(tl.load(pa, boundary_check=(0, 1)), tl.load(pb, boundary_check=(0, 1)), sums)
        pa, pb = tl.advance(pa, (0, BK)), tl.advance(pb, (BK, 0))
    pc = tl.make_block_ptr(c, (M, N), (ldc, 1), (row, column), (BM, BN), (1, 0))
    tl.store(pc, sums, boundary_check=(0, 1))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, n, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    qp = tl.make_block_ptr(q_ptr, (n, BD), (BD, 1), (0, 0), (BM, BD), (1, 0))
    kp = tl.make_block_ptr(k_ptr, (BD, n), (1, BD), (0, 0), (BD, BN), (0, 1))
    vp = tl.make_block_ptr(v_ptr, (n, BD), (BD, 1), (0, 0), (BN, BD), (1, 0))
    op = tl.make_block_ptr(o_ptr, (n, BD), (BD, 1), (0, 0), (BM, BD), (1, 0))
    q = tl.load(qp)
    o = tl.zeros((BM, BD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    m = tl.full((BM,), -float("inf"), tl.float32)
    for _ in range(0, n, BN):
        qk = tl.dot(q, tl.load(kp))
        m_new = tl.maximum(m, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        o = tl.dot(p.to(o_ptr.dtype.element_ty), tl.load(vp), o * alpha[:, None])
        m = m_new
        kp, vp = tl.advance(kp, (0, BN)), tl.advance(vp, (BN, 0))
    tl.store(op, (o / total[:, None]).to(o_ptr.dtype.element_ty))


def intrinsic(function: Any, signature: str, warps: int) -> Module:
    entries = with_parts(parse_signature(signature, list(function.signature.parameters)))
    return Job(function, entries, find_target("xe:pvc"), options_of(num_warps=warps)).module("intrinsic")


def means(op: ttg.ConvertLayout) -> Means:
    layouts: list[Any] = []
    for value in (op.source, op.result):
        assert isinstance(value.type, TensorType)
        assert isinstance(value.type.encoding, Encoding)
        layouts.append(warp_layout(value.type.encoding, value.type.shape))
    return conversion(*layouts).means


def conversions(module: Module) -> Counter[Means]:
    return Counter(means(op) for op in module.walk() if isinstance(op, ttg.ConvertLayout))


def blocks_in_loop(module: Module) -> Counter[tuple[int, ...]]:
    """Shapes of the 2D blocks that are loaded in loops."""
    found: Counter[tuple[int, ...]] = Counter()
    for op in module.walk():
        if isinstance(op, tt.Load) and op.parent_op is not None and op.parent_op.name == "scf.for":
            assert isinstance(op.result.type, TensorType)
            assert isinstance(op.result.type.encoding, Subgroup2DBlockEncoding)
            found[op.result.type.shape] += 1
    return found


def test_gemm_of_the_paper() -> None:
    module = intrinsic(
        matmul, "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i32:16, 256, 256, 32, 0", 32
    )
    assert blocks_in_loop(module) == {(32, 32): 3}
    assert sum(isinstance(op, tt.Dot) for op in module.walk()) == 32
    assert max(conversions(module)) <= Means.RENAMING


@pytest.mark.parametrize(
    ("dtype", "k", "loads"),
    [
        ("bf16", 32, {(32, 32): 3}),
        ("i8", 64, {(32, 64): 3}),
        ("fp32", 16, {(32, 16): 1, (16, 16): 4}),
    ],
)
def test_gemm_of_other_elements(dtype: str, k: int, loads: dict[tuple[int, int], int]) -> None:
    out = "i32" if dtype == "i8" else "fp32"
    signature = f"*{dtype}:16, *{dtype}:16, *{out}:16, i32, i32, i32, i32:16, i32:16, i32:16, 256, 256, {k}, 0"
    module = intrinsic(matmul, signature, 32)
    assert blocks_in_loop(module) == loads
    assert max(conversions(module)) <= Means.RENAMING


def test_bytes_that_the_matrix_engine_does_not_take_are_loaded_as_bytes() -> None:
    """fp8 becomes f16 in registers, in the layout of the operand."""
    signature = "*fp8e5:16, *fp8e5:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i32:16, 256, 256, 32, 0"
    module = intrinsic(matmul, signature, 32)
    assert blocks_in_loop(module) == {(32, 32): 1, (32, 64): 1}
    assert max(conversions(module)) <= Means.RENAMING


def test_a_transposed_operand_costs_messages_and_no_conversion() -> None:
    module = intrinsic(
        matmul, "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i32:16, 256, 256, 32, 1", 32
    )
    assert blocks_in_loop(module) == {(32, 32): 1, (16, 16): 8}
    assert max(conversions(module)) <= Means.RENAMING


@triton.jit
def rows_by_rows(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B^T through descriptors of both, a tile of C."""
    rows = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(rows.load([0, k]), columns.load([0, k]).T, sums)
    tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN]).store([0, 0], sums)


def test_a_descriptor_whose_block_is_transposed() -> None:
    module = intrinsic(rows_by_rows, "*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 128, 128, 32", 8)
    assert not any(isinstance(op, tt.Trans) for op in module.walk())
    assert max(conversions(module)) <= Means.RENAMING


@pytest.mark.parametrize("warps", [1, 4])
def test_transposed_descriptors_at_every_level(warps: int) -> None:
    def arrays(random: np.random.Generator) -> list[Any]:
        made = [random.standard_normal(shape).astype(np.float16) for shape in ((30, 48), (28, 48))]
        return [*made, np.zeros((30, 28), np.float32), 30, 28, 48]

    program = kernel(rows_by_rows, "*fp16, *fp16, *fp32, i32, i32, i32", arrays, BM=32, BN=32, BK=32)
    program.with_warps(warps, "xe:pvc").check(",".join(PIPELINE))


@pytest.mark.parametrize(("width", "warps"), [(64, 8), (128, 16)])
def test_attention_has_nothing_between_its_dots_but_names(width: int, warps: int) -> None:
    signature = f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, 128, 64, {width}"
    module = intrinsic(attention, signature, warps)
    assert max(conversions(module)) <= Means.RENAMING
    assert not any(isinstance(op, ttg.LocalLoad | ttg.LocalStore) for op in module.walk())


@triton.jit
def doubled(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    source = tl.make_tensor_descriptor(a, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    target.store([row, column], source.load([row, column]) * 2)


@triton.jit
def doubled_columns(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    source = tl.make_block_ptr(a, [M, N], [1, M], [row, column], [BM, BN], [0, 1])
    target = tl.make_block_ptr(c, [M, N], [1, M], [row, column], [BM, BN], [0, 1])
    tl.store(target, tl.load(source, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))


@pytest.mark.parametrize("dtype", ["i8", "fp16", "fp32"])
def test_what_comes_and_goes_by_blocks_stays_in_its_lane(dtype: str) -> None:
    for kernel_ in (doubled, doubled_columns):
        module = intrinsic(kernel_, f"*{dtype}:16, *{dtype}:16, i32:16, i32:16, 64, 64", 4)
        assert max(conversions(module), default=Means.NOTHING) <= Means.RENAMING
