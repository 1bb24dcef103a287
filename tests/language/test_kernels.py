"""The language in kernels: written in Python, compiled by the front end, run by the reference executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import CompilationError, DotShapeError, PointerError, TypeMismatchError
from mltriton.executor import run
from mltriton.frontend.code_generator import generate
from mltriton.frontend.signature import Argument, Constant
from mltriton.ir.verifier import verify
from mltriton.language.extra import libdevice

from .tracing import DTYPES


def launch(kernel: Any, *args: Any, grid: Sequence[int] = (1,), **constants: Any) -> None:
    """Compile a kernel for its arguments (arrays, ints as i32, floats as fp32) and run it at the `tt` level."""
    names = [name for name in kernel.signature.parameters if name not in constants]
    entries: dict[str, Any] = {}
    for name in kernel.signature.parameters:
        if name in constants:
            entries[name] = Constant(constants[name])
            continue
        value = args[names.index(name)]
        is_array = isinstance(value, np.ndarray)
        scalar = DTYPES[value.dtype.name].mangle() if is_array else "i32" if isinstance(value, int) else "fp32"
        entries[name] = Argument(scalar, is_pointer=is_array)
    module = generate(kernel, entries)
    verify(module)
    run(module, [value.reshape(-1) if isinstance(value, np.ndarray) else value for value in args], grid)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def welford(mean1, square1, count1, mean2, square2, count2):
    delta = mean2 - mean1
    count = count1 + count2
    ratio = tl.where(count == 0, 0.0, count2 / count)
    return mean1 + delta * ratio, square1 + square2 + delta * delta * count1 * ratio, count


@triton.jit
def statistics(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    mean, square, _ = tl.reduce((x, tl.zeros_like(x), tl.full((N,), 1.0, x.dtype)), 0, welford)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, tl.sqrt(square / N))
    tl.store(out_ptr + 2, tl.reduce(x, 0, larger))
    tl.store(out_ptr + 3, x.max() - x.min(axis=0))


def test_reductions_with_functions_of_the_language():
    x, out = np.random.default_rng(0).standard_normal(128, np.float32), np.zeros(4, np.float32)
    launch(statistics, x, out, N=128)
    np.testing.assert_allclose(out, [x.mean(), x.std(), x.max(), np.ptp(x)], rtol=1e-5)


@triton.jit
def recurrence(first, second):
    return first[0] * second[0], second[0] * first[1] + second[1]


@triton.jit
def step(a1, b1, a2, b2):
    return recurrence((a1, b1), (a2, b2))


@triton.jit
def linear_recurrence(a_ptr, b_ptr, out_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    _, state = tl.associative_scan((tl.load(a_ptr + i), tl.load(b_ptr + i)), 0, step, reverse=REVERSE)
    tl.store(out_ptr + i, state)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_scan_with_functions_of_the_language(is_reverse: bool):
    a, b = np.random.default_rng(1).uniform(0.5, 1, (2, 32)).astype(np.float32)
    out = np.zeros(32, np.float32)
    launch(linear_recurrence, a, b, out, N=32, REVERSE=is_reverse)
    order = slice(None, None, -1) if is_reverse else slice(None)
    state, expected = 0.0, []
    for x, y in zip(a[order], b[order], strict=True):
        state = state * x + y
        expected.append(state)
    np.testing.assert_allclose(out[order], expected, rtol=1e-5)


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if KIND == "block":
        a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BM, BK), (1, 0))
        b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BK, BN), (1, 0))
        for _ in range(tl.cdiv(K, BK)):
            acc = tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)), acc)
            a = tl.advance(a, (0, BK))
            b = tl.advance(b, (BK, 0))
    elif KIND == "descriptor":
        a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
        b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
        for k in tl.range(0, K, BK, num_stages=3):
            acc += tl.dot(a.load([row, k]), b.load([k, column]))
    else:
        i, j, k = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
        a, b = a_ptr + i[:, None] * K + k[None, :], b_ptr + k[:, None] * N + j
        for left in tl.range(0, K, BK):
            inside = k < K - left
            acc += tl.dot(
                tl.load(a, (i[:, None] < M) & inside[None, :]), tl.load(b, inside[:, None] & (j < N), other=0.0)
            )
            a += BK
            b += BK * N
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(c, acc.to(c.dtype.element_ty.element_ty), boundary_check=(0, 1))


@pytest.mark.parametrize("kind", ["block", "descriptor", "pointer"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gemm(kind: str, dtype: type):
    random = np.random.default_rng(2)
    a, b = random.standard_normal((20, 40)).astype(dtype), random.standard_normal((40, 24)).astype(dtype)
    c = np.zeros((20, 24), dtype)
    launch(gemm, a, b, c, 20, 24, 40, grid=(2, 2), BM=16, BN=16, BK=16, KIND=kind)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-3 if dtype is np.float16 else 1e-5, atol=1e-3)


@triton.jit
def mixture(x_ptr, i_ptr, out_ptr, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 4 == 0, f"BLOCK is {BLOCK}")
    places = tl.program_id(0) * BLOCK + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    mask = places < tl.multiple_of(n, 4)
    x = tl.load(x_ptr + places, mask=mask, other=0.0)
    i = tl.load(i_ptr + places, mask=mask, other=1)
    if x.dtype.is_fp32() and SCALE is not None:
        x = x * SCALE
    quotient, remainder = i // 3, i % 3
    total = tl.where(remainder == 0, x / 2, x.to(tl.float64).to(tl.float32)) + quotient
    total = libdevice.copysign(total.abs(), x) + tl.sigmoid(x) * (i & 1)
    tl.store(out_ptr + places, total, mask=mask)


def test_elementwise_mixture():
    random = np.random.default_rng(3)
    x, i, out = (
        random.standard_normal(60).astype(np.float32),
        random.integers(-9, 9, 60).astype(np.int32),
        np.zeros(60, np.float32),
    )
    launch(mixture, x, i, out, 60, grid=(2,), SCALE=2.0, BLOCK=32)
    scaled = 2 * x.astype(np.float64)
    quotient = np.trunc(i / 3)
    total = np.where(i - 3 * quotient == 0, scaled / 2, scaled) + quotient
    expected = np.copysign(np.abs(total), x) + 1 / (1 + np.exp(-scaled)) * (i & 1)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@triton.jit
def dropout(x_ptr, out_ptr, count_ptr, seed, P: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > P
    tl.store(out_ptr + i, tl.where(keep, tl.load(x_ptr + i) / (1 - P), 0.0))
    tl.atomic_add(count_ptr, tl.sum(keep))


def test_random_numbers_and_atomics():
    x, out, count = np.ones(1024, np.float32), np.zeros(1024, np.float32), np.zeros(1, np.uint32)
    launch(dropout, x, out, count, 11, grid=(4,), P=0.25, BLOCK=256)
    assert set(out.tolist()) == {0.0, np.float32(1 / 0.75)} and count[0] == (out > 0).sum()
    assert 700 < count[0] < 830


@triton.jit
def wrong_dot(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64)[:, None] * 32 + tl.arange(0, 32))
    y = tl.dot(x, x)
    tl.store(x_ptr, y)


@triton.jit
def wrong_mask(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8, 8), (8, 1), (0, 0), (8, 8), (1, 0))
    tl.load(p, mask=tl.program_id(0) == 0)


@triton.jit
def wrong_function(x_ptr):
    tl.reduce(tl.load(x_ptr + tl.arange(0, 8)), 0, smaller_or_not)


@triton.jit
def smaller_or_not(a, b):
    return a < b


@pytest.mark.parametrize(
    ("kernel", "error", "line", "column"),
    [
        (wrong_dot, DotShapeError, "y = tl.dot(x, x)", "tl.dot"),
        (wrong_mask, PointerError, "tl.load(p, mask=tl.program_id(0) == 0)", "tl.load"),
        (
            wrong_function,
            TypeMismatchError,
            "tl.reduce(tl.load(x_ptr + tl.arange(0, 8)), 0, smaller_or_not)",
            "tl.reduce",
        ),
    ],
)
def test_errors_point_at_the_line(kernel, error: type[CompilationError], line: str, column: str):
    with pytest.raises(error) as caught:
        launch(kernel, np.zeros(2048, np.float32))
    first, source, caret, *rest = str(caught.value).splitlines()
    assert first.startswith(f"{__file__}:") and f"{error.__name__}: " in first
    assert source.endswith(line) and source[caret.index("^") :].startswith(column)
    assert rest
