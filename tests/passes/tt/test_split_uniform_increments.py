"""split-uniform-increments: loops that move blocks, in every shape of control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import scf
from mltriton.ir.module import Module
from mltriton.ir.types import I32, PointerType, TensorType, element_type

from ..programs import LIBRARY, Program, kernel, text_program

PIPELINE = "canonicalize,reorder-broadcast,split-uniform-increments,canonicalize"


@triton.jit
def several(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    xs, ys = x_ptr + i, y_ptr + i
    j = i
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(n):
        total += tl.load(xs) * j
        tl.store(ys, total)
        xs += stride
        ys = BLOCK + ys
        j -= 3
        xs += 1
    tl.store(ys, tl.load(xs) + j)


@triton.jit
def nested(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    xs = x_ptr + i[:, None] * 2 + tl.arange(0, 2)[None, :]
    total = tl.zeros([BLOCK, 2], tl.float32)
    for row in range(n):
        for _ in range(row):
            total += tl.load(xs)
            xs += 1
        xs += stride
    tl.store(y_ptr + i[:, None] * 2 + tl.arange(0, 2)[None, :], total)


@triton.jit
def branches(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    xs, j = x_ptr + i, i
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(n):
        total += tl.load(xs) * j
        if row % 2 == 0:
            xs += stride
            j += row
        else:
            if row == 3:
                xs += 2
            j -= 1
    tl.store(y_ptr + i, total)


@triton.jit
def while_loop(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    xs, j = x_ptr + i, i
    total = tl.zeros([BLOCK], tl.float32)
    row = 0
    while row < n:
        total += tl.load(xs) * j
        xs += stride
        j += 5
        row += 1
    tl.store(y_ptr + i, total + tl.load(xs) + j)


@triton.jit
def different(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    xs = x_ptr + i
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(n):
        total += tl.load(xs)
        xs += i
    tl.store(y_ptr + i, total)


def arguments(random: np.random.Generator) -> list[Any]:
    return [random.standard_normal(200).astype(np.float32), np.zeros(200, np.float32), 5, 3]


def carried_pointers(module: Module) -> int:
    loops = (op for op in module.walk() if isinstance(op, scf.For | scf.While))
    types = [result.type for loop in loops for result in loop.results]
    return sum(isinstance(t, TensorType) and isinstance(element_type(t), PointerType) for t in types)


def carried_integers(module: Module) -> int:
    loops = (op for op in module.walk() if isinstance(op, scf.For | scf.While))
    types = [result.type for loop in loops for result in loop.results]
    return sum(isinstance(t, TensorType) and element_type(t) is I32 for t in types)


@pytest.mark.parametrize("fn", [several, nested, branches, while_loop])
def test_blocks_that_move_as_a_whole_are_not_carried(fn: Any) -> None:
    program = kernel(fn, "*fp32, *fp32, i32, i32", arguments, BLOCK=8)
    assert carried_pointers(program.make()) > 0
    module = program.check(PIPELINE)
    assert (carried_pointers(module), carried_integers(module)) == (0, 0)


def test_pointers_that_move_apart_are_carried() -> None:
    assert carried_pointers(kernel(different, "*fp32, *fp32, i32, i32", arguments, BLOCK=8).check(PIPELINE)) == 1


@pytest.mark.parametrize("name", LIBRARY)
def test_library(name: str) -> None:
    assert carried_pointers(LIBRARY[name].check(PIPELINE)) == 0


COUNTER = """
tt.func @f(%n: i32, %y: !tt.ptr<{type}>) {{
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %step = arith.constant {growth} : {type}
  %start = arith.constant 100 : {type}
  %r:2 = scf.for %i = %c2 to %n step %c3 iter_args(%k = %start, %s = %start) -> ({type}, {type}) : i32 {{
    %a = arith.muli %s, %k : {type}
    %b = arith.{operation} %k, %step : {type}
    scf.yield %b, %a : {type}, {type}
  }}
  tt.store %y, %r#{result} : !tt.ptr<{type}>
  tt.return
}}
"""


def counter(type: str, growth: int, operation: str, result: int) -> Program:
    text = COUNTER.format(type=type, growth=growth, operation=operation, result=result)
    return text_program(text, lambda _: [15, np.zeros(1, {"i64": np.int64, "i32": np.int32, "i16": np.int16}[type])])


@pytest.mark.parametrize("type", ["i64", "i32", "i16"])
@pytest.mark.parametrize(("growth", "carried"), [(3, 1), (-6, 1), (4, 2)])
@pytest.mark.parametrize("operation", ["addi", "subi"])
def test_counters(type: str, growth: int, operation: str, carried: int) -> None:
    module = counter(type, growth, operation, 1).check("split-uniform-increments,canonicalize")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.For))
    assert len(loop.results) == carried


def test_a_counter_that_is_needed_after_the_loop_stays() -> None:
    module = counter("i32", 3, "addi", 0).check("split-uniform-increments")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.For))
    assert len(loop.results) == 2


@triton.jit
def counted(x, out, n, N: tl.constexpr, BREAK: tl.constexpr):
    """The amount by which a block moves is the counter of the loop itself."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = a * 2
    for k in range(n):
        a = a + k
        b = b * 2
        if BREAK and k == 3:
            break
    tl.store(out + i, a + b)


@pytest.mark.parametrize("breaks", [False, True])
def test_a_block_that_moves_by_the_counter(breaks: bool, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    for n in (0, 1, 6):
        counted[(1,)](x, out, n, 8, breaks)
        steps = min(n, 4) if breaks else n
        np.testing.assert_array_equal(out, x + sum(range(steps)) + x * 2 * 2**steps)
