"""merge-k-steps: every form of GEMM, any size of K, and loops that must be left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.analysis.affine.motion import LoopAffine
from mltriton.dialects import scf, tt
from mltriton.ir.module import Module

from ..programs import LIBRARY, MATMULS, Program, kernel, matmul

CLEAN = (
    "canonicalize,cse,combine,reorder-broadcast,normalize-block-pointers,split-uniform-increments,"
    "canonicalize,cse,licm,dce"
)
WARP = f"{CLEAN},assign-layouts,distribute-to-warps"


def long_steps(module: Module) -> list[int]:
    """K of every dot, in program order."""
    return [op.a.type.shape[-1] for op in module.walk() if isinstance(op, tt.Dot)]


@pytest.mark.parametrize("level", [CLEAN, WARP])
@pytest.mark.parametrize("k", [1, 16, 63, 64, 65, 112, 128, 200])
@pytest.mark.parametrize("name", MATMULS)
def test_gemm(name: str, k: int, level: str) -> None:
    module = matmul(MATMULS[name], m=20, n=24, k=k).check(f"{level},merge-k-steps{{k=64}},canonicalize,cse,dce")
    assert long_steps(module) == [64, 16]


@pytest.mark.parametrize("name", MATMULS)
def test_operands_of_other_sizes_and_types(name: str) -> None:
    program = matmul(MATMULS[name], m=9, n=40, k=150, dtype="fp16", BM=8, BN=32, BK=32)
    assert long_steps(program.check(f"{WARP},merge-k-steps{{k=128}},canonicalize")) == [128, 32]


@pytest.mark.parametrize("name", ["attention", "attention-causal", "softmax-rows"])
def test_other_loops_stay(name: str) -> None:
    before = LIBRARY[name].transformed(WARP)
    after = LIBRARY[name].transformed(f"{WARP},merge-k-steps{{k=64}}")
    assert str(before) == str(after)


@triton.jit
def scaled(a_ptr, b_ptr, c_ptr, K, BK: tl.constexpr, KIND: tl.constexpr):
    """C [16, 16] = f(A) g(B) with a transposed, converted or scaled operand; KIND says which."""
    i = tl.arange(0, 16)
    k = tl.arange(0, BK)
    acc = tl.zeros((16, 16), dtype=tl.float32)
    a_ptrs = a_ptr + i[:, None] * K + k[None, :]
    b_ptrs = b_ptr + i[:, None] * K + k[None, :]
    row_scale = tl.load(c_ptr + i)
    for start in range(0, K, BK):
        inside = k[None, :] + start < K
        a = tl.load(a_ptrs, mask=inside, other=0.0)
        b = tl.load(b_ptrs, mask=inside, other=0.0)
        if KIND == "pointwise":
            a = tl.where(a > 0, a * 2.0 + 1.0, tl.exp(a)) * row_scale[:, None]
            a = tl.where(inside, a, 0.0)
        if KIND == "counter":
            a = a * (start + k[None, :]).to(tl.float32)
        if KIND == "scale_per_step":
            a = a * start
        if KIND == "within_step":
            a = a * k[None, :].to(tl.float32)
        if KIND == "wrapped":
            a = a * ((start + k[None, :]) % 7).to(tl.float32)
        if KIND == "load_per_step":
            a = a * tl.load(c_ptr + start)
        if KIND == "uneven":
            a_ptrs += 1
        if KIND == "two_uses":
            acc += acc
        acc += tl.dot(a, tl.trans(b), input_precision="ieee")
        if KIND == "store":
            tl.store(c_ptr + start, 1.0)
        if KIND == "condition":
            acc = tl.where(start > 20, acc + 1.0, acc)
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


def operand_program(kind: str, k: int = 75) -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        a, b = (random.standard_normal(16 * k + 200).astype(np.float32) for _ in range(2))
        return [a, b, random.standard_normal(256).astype(np.float32), k]

    return kernel(scaled, "*fp32:16, *fp32:16, *fp32:16, i32", make, BK=16, KIND=kind)


@pytest.mark.parametrize("level", [CLEAN, WARP])
@pytest.mark.parametrize("kind", ["plain", "pointwise", "counter", "wrapped"])
def test_pointwise_work_on_operands_is_merged(kind: str, level: str) -> None:
    module = operand_program(kind).with_warps(1).check(f"{level},merge-k-steps{{k=64}},canonicalize,cse,dce")
    assert long_steps(module) == [64, 16]


@pytest.mark.parametrize(
    "kind", ["scale_per_step", "within_step", "load_per_step", "uneven", "two_uses", "store", "condition"]
)
@pytest.mark.parametrize("level", [CLEAN, WARP])
def test_what_is_not_proven_stays(kind: str, level: str) -> None:
    program = operand_program(kind).with_warps(1)
    assert str(program.transformed(f"{level},merge-k-steps{{k=64}}")) == str(program.transformed(level))


@triton.jit
def two_products(a_ptr, b_ptr, c_ptr, K, LOW: tl.constexpr, BK: tl.constexpr):
    """Two dots in one loop that does not start at 0."""
    i = tl.arange(0, 16)
    k = tl.arange(0, BK)
    left = tl.zeros((16, 16), dtype=tl.float32)
    right = tl.zeros((16, 16), dtype=tl.float32)
    for start in range(LOW, K, BK):
        inside = k[None, :] < K - start
        a = tl.load(a_ptr + i[:, None] * K + (k + start)[None, :], mask=inside, other=0.0)
        b = tl.load(b_ptr + i[:, None] * K + (k + start)[None, :], mask=inside, other=0.0)
        left = tl.dot(a, tl.trans(b), left, input_precision="ieee")
        right = tl.dot(b, tl.trans(a), right, input_precision="ieee")
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], left * 3 + right)


@pytest.mark.parametrize("k", [8, 75, 140])
def test_several_dots_and_another_start(k: int) -> None:
    def make(random: np.random.Generator) -> list[Any]:
        a, b = (random.standard_normal((16, k)).astype(np.float32) for _ in range(2))
        return [a, b, np.zeros((16, 16), np.float32), k]

    program = kernel(two_products, "*fp32:16, *fp32:16, *fp32:16, i32", make, BK=16, LOW=5).with_warps(1)
    assert long_steps(program.check(f"{WARP},merge-k-steps{{k=32}},canonicalize")) == [32, 32, 16, 16]


@triton.jit
def fixed(a_ptr, b_ptr, c_ptr, K: tl.constexpr, BK: tl.constexpr):
    i = tl.arange(0, 16)
    k = tl.arange(0, BK)
    acc = tl.zeros((16, 16), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + i[:, None] * K + (k + start)[None, :])
        b = tl.load(b_ptr + i[:, None] * K + (k + start)[None, :])
        acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@pytest.mark.parametrize(("steps", "left"), [(4, [64]), (8, [128]), (3, [32, 16]), (1, [16])])
def test_a_known_number_of_steps(steps: int, left: list[int]) -> None:
    def make(random: np.random.Generator) -> list[Any]:
        shape = (16, 16 * steps)
        return [*(random.standard_normal(shape).astype(np.float32) for _ in range(2)), np.zeros((16, 16), np.float32)]

    program = kernel(fixed, "*fp32:16, *fp32:16, *fp32:16", make, K=16 * steps, BK=16)
    assert long_steps(program.check(f"{WARP},merge-k-steps{{k=256}},canonicalize")) == left


def test_motions() -> None:
    module = matmul(MATMULS["matmul-pointer"]).transformed(CLEAN)
    loop = next(op for op in module.walk() if isinstance(op, scf.For))
    affine = LoopAffine(loop)
    a = next(op for op in loop.walk() if isinstance(op, tt.Load))
    motion = affine.motion(a.ptr, 1)
    assert motion is not None
    assert motion.per_step == motion.along.times(16)
    assert [value.hint for value in motion.along.values] == ["stride_ak"]
    assert affine.motion(a.ptr, 0) is not None
    assert a.mask is not None
    assert affine.motion(a.mask, 1) is None
