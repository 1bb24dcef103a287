"""What the last loop of a row stores is prefetched by the loop before it, where that pays and is possible; that loop
itself asks for the next row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import compile
from mltriton.dialects import scf, tile, tt
from mltriton.frontend.function import LanguageFunction
from mltriton.ir.operation import Operation

BLOCK = 1024


@triton.jit
def centred(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, other=0.0)
    tl.store(y_ptr + i, (x - tl.sum(x, 0)).to(y_ptr.dtype.element_ty), i < n)


@triton.jit
def copied(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, i < n), i < n)


@triton.jit
def scattered(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, other=0)
    tl.store(y_ptr + (i + tl.max(x, 0)), x, i < n)


@triton.jit
def chosen(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, other=0.0)
    tl.store(y_ptr + i, x, mask=x * 2 > tl.max(x, 0))


@triton.jit
def centred_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    x = tl.load(x_ptr + at, i < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (x - tl.sum(x, 0)).to(y_ptr.dtype.element_ty), i < n)


@triton.jit
def centred_in_turn(x_ptr, y_ptr, n, rows, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + i, i < n, other=0.0)
        tl.store(y_ptr + row * n + i, x - tl.sum(x, 0), i < n)


def loops_of(kernel: LanguageFunction, **types: str) -> list[Operation]:
    """The outermost loops of the function; each is split where its masks end."""
    signature = {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "n": "i32", **types}
    constants: dict[str, Any] = {"BLOCK": BLOCK}
    function = compile(kernel, signature, constants).job.module("intrinsic").body.block.ops[0]
    assert isinstance(function, tt.Func)
    return [op for op in function.body.block.ops if isinstance(op, scf.For)]


def prefetches(loop: Operation) -> list[tile.Prefetch]:
    return [op for op in loop.walk() if isinstance(op, tile.Prefetch)]


def stores(loop: Operation) -> int:
    return sum(isinstance(op, tile.Store) for op in loop.walk())


def test_the_loop_before_the_stores_asks_for_their_lines() -> None:
    total, rest_of_total, result, rest_of_result = loops_of(centred)
    assert [stores(loop) for loop in (total, rest_of_total, result, rest_of_result)] == [0, 0, 4, 1]
    assert (len(prefetches(total)), len(prefetches(rest_of_total))) == (4, 1)
    assert all(op.write for op in prefetches(total))
    assert not prefetches(result)
    assert not prefetches(rest_of_result)


def test_one_loop_has_nobody_to_ask() -> None:
    loop, rest = loops_of(copied)
    assert (stores(loop), stores(rest)) == (4, 1)
    assert not prefetches(loop)
    assert not prefetches(rest)


def test_an_address_that_the_row_computes_is_not_known_before() -> None:
    loops = loops_of(scattered, x_ptr="*i32:16", y_ptr="*i32:16")
    assert len(loops) == 4
    assert not any(prefetches(loop) for loop in loops)


def test_a_mask_that_the_row_computes_is_none_of_the_address() -> None:
    loops = loops_of(chosen)
    assert sum(stores(loop) for loop in loops) > 0
    assert sum(len(prefetches(loop)) for loop in loops) > 0
    x, y = np.arange(BLOCK, dtype=np.float32), np.zeros(BLOCK, np.float32)
    chosen[(1,)](x, y, BLOCK, BLOCK=BLOCK, target="cpu")
    np.testing.assert_array_equal(y, np.where(x * 2 > BLOCK - 1, x, 0))


@pytest.mark.parametrize(("dtype", "lines"), [("fp32", 4), ("bf16", 2), ("fp64", 4)])
def test_the_next_programs_row_is_asked_for_once_a_line(dtype: str, lines: int) -> None:
    """Four chunks of 16 elements an iteration, of which two of bf16 are in one line of 64 bytes."""
    total, _, result, rest = loops_of(centred_rows, x_ptr=f"*{dtype}:16", y_ptr=f"*{dtype}:16")
    assert [op.write for op in prefetches(result)] == [False] * lines
    assert all(op.write for op in prefetches(total))
    assert not prefetches(rest)


def test_a_row_that_all_programs_have_is_asked_for_once() -> None:
    assert not any(prefetches(loop) for loop in loops_of(centred)[2:])


def test_rows_in_turn() -> None:
    (around,) = loops_of(centred_in_turn, rows="i32")
    assert isinstance(around, scf.For)
    loops = [op for op in around.body.block.ops if isinstance(op, scf.For)]
    assert [op.write for op in prefetches(loops[2])] == [False] * 4


@pytest.mark.parametrize("n", [1000, 1024])
def test_rows_whose_next_one_is_asked_for_are_right(n: int) -> None:
    x = np.random.default_rng(0).standard_normal((7, n), np.float32)
    exact = x - x.sum(1, keepdims=True, dtype=np.float64)
    for kernel, grid, arguments in ((centred_rows, (7,), (n,)), (centred_in_turn, (3,), (n, 7))):
        y = np.full_like(x, np.nan)
        kernel[grid](x, y, *arguments, BLOCK=BLOCK, target="cpu")
        np.testing.assert_allclose(y, exact, atol=1e-3)
