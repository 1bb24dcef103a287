"""Operations that make and reshape blocks, reductions, scans and dots, at the level of whole blocks."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

from mltriton.executor import run, to_bfloat16
from mltriton.executor.faults import InvalidOperation
from mltriton.ir.parser import parse_module


def shape_of(type: str) -> tuple[int, ...]:
    return tuple(int(part) for part in type.split("<")[1].split("x")[:-1])


def transform(execute: Any, operation: str, inputs: list[tuple[str, Any]], results: list[str]) -> list[Any]:
    """Run `operation`, which computes %r0, %r1, ... from %x0, %x1, ...; all lie in memory in row-major order."""
    arrays = [np.ascontiguousarray(value) for _, value in inputs]
    types = [type for type, _ in inputs]
    kinds = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "i8": np.int8}
    outputs = [np.zeros(shape_of(type), kinds[type.rstrip(">").split("x")[-1]]) for type in results]
    lines: list[str] = []
    for i, type in enumerate([*types, *results]):
        shape, element = shape_of(type), type.rstrip(">").split("x")[-1]
        size = int(np.prod(shape))
        flat, pointers = f"tensor<{size}x!tt.ptr<{element}>>", type.replace(element, f"!tt.ptr<{element}>")
        lines.append(f"%i{i} = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>")
        lines.append(f"%s{i} = tt.splat %p{i} : !tt.ptr<{element}> -> {flat}")
        lines.append(f"%f{i} = tt.addptr %s{i}, %i{i} : {flat}, tensor<{size}xi32>")
        lines.append(f"%a{i} = tt.reshape %f{i} : {flat} -> {pointers}")
        if i < len(types):
            lines.append(f"%x{i} = tt.load %a{i} : {pointers}")
    lines.append(operation)
    for j, type in enumerate(results):
        element = type.rstrip(">").split("x")[-1]
        lines.append(f"tt.store %a{len(types) + j}, %r{j} : {type.replace(element, f'!tt.ptr<{element}>')}")
    elements = [type.rstrip(">").split("x")[-1] for type in [*types, *results]]
    parameters = ", ".join(f"%p{i}: !tt.ptr<{element}>" for i, element in enumerate(elements))
    body = "\n".join(lines)
    execute(f"tt.func @f({parameters}) {{\n{body}\ntt.return\n}}", [*arrays, *outputs])
    return outputs


A = np.arange(12, dtype=np.int32).reshape(3, 4)


@pytest.mark.parametrize(
    ("operation", "inputs", "results", "expected"),
    [
        ("%r0 = tt.trans %x0 {order = array<i32: 1, 0>} : tensor<3x4xi32> -> tensor<4x3xi32>", [A], ["4x3"], [A.T]),
        (
            "%r0 = tt.trans %x0 {order = array<i32: 2, 0, 1>} : tensor<2x3x2xi32> -> tensor<2x2x3xi32>",
            [A.reshape(2, 3, 2)],
            ["2x2x3"],
            [A.reshape(2, 3, 2).transpose(2, 0, 1)],
        ),
        ("%r0 = tt.reshape %x0 : tensor<3x4xi32> -> tensor<2x6xi32>", [A], ["2x6"], [A.reshape(2, 6)]),
        (
            "%r0 = tt.expand_dims %x0 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>",
            [A[0]],
            ["4x1"],
            [A[0][:, None]],
        ),
        (
            "%r0 = tt.broadcast %x0 : tensor<3x1xi32> -> tensor<3x4xi32>",
            [A[:, :1]],
            ["3x4"],
            [np.broadcast_to(A[:, :1], (3, 4))],
        ),
        ("%r0 = tt.join %x0, %x1 : tensor<4xi32> -> tensor<4x2xi32>", [A[0], A[1]], ["4x2"], [A[:2].T]),
        (
            "%r0, %r1 = tt.split %x0 : tensor<3x2xi32> -> tensor<3xi32>",
            [A[:, :2]],
            ["3", "3"],
            [A[:, 0], A[:, 1]],
        ),
        ("%r0 = tt.cat %x0, %x1 : tensor<4xi32> -> tensor<8xi32>", [A[0], A[1]], ["8"], [A[:2].ravel()]),
        (
            '%r0 = "tt.gather"(%x0, %x1) {axis = 1 : i32} : (tensor<3x4xi32>, tensor<3x2xi32>) -> tensor<3x2xi32>',
            [A, np.array([[3, 0], [1, 1], [2, 3]], np.int32)],
            ["3x2"],
            [np.array([[3, 0], [5, 5], [10, 11]])],
        ),
    ],
)
def test_shapes(execute: Any, operation: str, inputs: list[Any], results: list[str], expected: list[Any]) -> None:
    typed = [(f"tensor<{'x'.join(map(str, value.shape))}xi32>", value) for value in inputs]
    got = transform(execute, operation, typed, [f"tensor<{shape}xi32>" for shape in results])
    for ours, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)


ADD = "^bb0(%a: f32, %b: f32):\n%c = arith.addf %a, %b : f32\ntt.{}.return %c : f32"
IF = """^bb0(%a: f32, %b: f32):
  %g = arith.cmpf ogt, %a, %b : f32
  %c = scf.if %g -> (f32) {{ scf.yield %a : f32 }} else {{ scf.yield %b : f32 }}
  tt.{}.return %c : f32"""


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("combine", "function"), [(ADD, np.sum), (IF, np.max)])
def test_reduce_any_axis_and_length(execute: Any, axis: int, combine: str, function: Any) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (3, 8, 5)).astype(np.float32)
    shape = [n for i, n in enumerate(x.shape) if i != axis]
    result = f"tensor<{shape[0]}x{shape[1]}xf32>"
    region = f"({{\n{combine.format('reduce')}\n}})"
    text = f'%r0 = "tt.reduce"(%x0) <{{axis = {axis} : i32}}> {region} : (tensor<3x8x5xf32>) -> {result}'
    (got,) = transform(execute, text, [("tensor<3x8x5xf32>", x)], [result])
    np.testing.assert_array_equal(got, function(x, axis=axis))


def test_reduce_to_a_scalar(execute: Any) -> None:
    x = np.arange(7, dtype=np.float32)
    text = f'%s = "tt.reduce"(%x0) <{{axis = 0 : i32}}> ({{\n{ADD.format("reduce")}\n}}) : (tensor<7xf32>) -> f32\n'
    (got,) = transform(
        execute, text + "%r0 = tt.splat %s : f32 -> tensor<1xf32>", [("tensor<7xf32>", x)], ["tensor<1xf32>"]
    )
    assert got.tolist() == [21.0]


def test_reduce_of_two_values_finds_the_first_maximum(execute: Any) -> None:
    x = np.random.default_rng(0).integers(0, 5, (4, 16)).astype(np.float32)
    index = np.broadcast_to(np.arange(16, dtype=np.int32), (4, 16))
    text = """%r0, %r1 = "tt.reduce"(%x0, %x1) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
        %g = arith.cmpf ogt, %a, %b : f32
        %e = arith.cmpf oeq, %a, %b : f32
        %l = arith.cmpi slt, %ai, %bi : i32
        %t = arith.andi %e, %l : i1
        %p = arith.ori %g, %t : i1
        %v = arith.select %p, %a, %b : f32
        %i = arith.select %p, %ai, %bi : i32
        tt.reduce.return %v, %i : f32, i32
    }) : (tensor<4x16xf32>, tensor<4x16xi32>) -> (tensor<4xf32>, tensor<4xi32>)"""
    inputs = [("tensor<4x16xf32>", x), ("tensor<4x16xi32>", index)]
    value, where = transform(execute, text, inputs, ["tensor<4xf32>", "tensor<4xi32>"])
    np.testing.assert_array_equal(value, x.max(axis=1))
    np.testing.assert_array_equal(where, x.argmax(axis=1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan_keeps_the_order(execute: Any, axis: int, reverse: bool) -> None:
    # a * 10 + b is not associative, but b last wins: take the composition of x -> p x + q instead.
    rng = np.random.default_rng(0)
    p, q = (rng.integers(1, 3, (4, 6)).astype(np.float32) for _ in "pq")
    text = f"""%r0, %r1 = "tt.scan"(%x0, %x1) <{{axis = {axis} : i32, reverse = {str(reverse).lower()}}}> ({{
      ^bb0(%p: f32, %q: f32, %s: f32, %t: f32):
        %a = arith.mulf %p, %s : f32
        %b = arith.mulf %q, %s : f32
        %c = arith.addf %b, %t : f32
        tt.scan.return %a, %c : f32, f32
    }}) : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)"""
    got = transform(execute, text, [("tensor<4x6xf32>", p), ("tensor<4x6xf32>", q)], ["tensor<4x6xf32>"] * 2)
    step = -1 if reverse else 1
    ps, qs = (np.moveaxis(v, axis, 0)[::step].copy() for v in (p, q))
    for i in range(1, len(ps)):
        qs[i] = qs[i - 1] * ps[i] + qs[i]
        ps[i] = ps[i - 1] * ps[i]
    for ours, wanted in zip(got, (ps, qs), strict=True):
        np.testing.assert_array_equal(ours, np.moveaxis(wanted[::step], 0, axis))


@pytest.mark.parametrize(
    ("element", "result", "tolerance"), [("f32", "f32", 1e-6), ("f16", "f32", 1e-6), ("i8", "i32", 0)]
)
def test_dot(execute: Any, element: str, result: str, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    kind = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i32": np.int32}
    a, b = (rng.integers(-128, 127, shape).astype(kind[element]) for shape in ((2, 16, 32), (2, 32, 8)))
    c = rng.integers(-9, 9, (2, 16, 8)).astype(kind[result])
    types = [f"tensor<2x16x32x{element}>", f"tensor<2x32x8x{element}>", f"tensor<2x16x8x{result}>"]
    text = f"%r0 = tt.dot %x0, %x1, %x2 : {types[0]} * {types[1]} -> {types[2]}"
    (got,) = transform(execute, text, list(zip(types, (a, b, c), strict=True)), [types[2]])
    wanted = np.float64(c) + np.float64(a) @ np.float64(b)
    np.testing.assert_allclose(got, wanted, rtol=tolerance)


def test_integer_dot_wraps(execute: Any) -> None:
    c = np.full((16, 16), 2**31 - 1, np.int32)
    a = np.ones((16, 16), np.int8)
    types = ["tensor<16x16xi8>", "tensor<16x16xi8>", "tensor<16x16xi32>"]
    text = f"%r0 = tt.dot %x0, %x1, %x2 : {types[0]} * {types[1]} -> {types[2]}"
    (got,) = transform(execute, text, list(zip(types, (a, a, c), strict=True)), [types[2]])
    assert (got == -(2**31) + 15).all()


GEMM = """
tt.func @gemm(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %i0 = arith.constant 0 : i32
  %i32 = arith.constant 32 : i32
  %i128 = arith.constant 128 : i32
  %one = arith.constant 1 : i64
  %size = arith.extsi %n : i32 to i64
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %row = arith.muli %x, %i128 : i32
  %col = arith.muli %y, %i128 : i32
  %pa = tt.make_tensor_ptr %a, [%size, %size], [%size, %one], [%row, %i0]
      {order = array<i32: 1, 0>} : !tt.ptr<tensor<128x32xf16>>
  %pb = tt.make_tensor_ptr %b, [%size, %size], [%size, %one], [%i0, %col]
      {order = array<i32: 1, 0>} : !tt.ptr<tensor<32x128xf16>>
  %r:3 = scf.for %k = %i0 to %n step %i32 iter_args(%acc = %zero, %qa = %pa, %qb = %pb)
      -> (tensor<128x128xf32>, !tt.ptr<tensor<128x32xf16>>, !tt.ptr<tensor<32x128xf16>>) : i32 {
    %va = tt.load %qa : !tt.ptr<tensor<128x32xf16>>
    %vb = tt.load %qb : !tt.ptr<tensor<32x128xf16>>
    %d = tt.dot %va, %vb, %acc : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
    %na = tt.advance %qa, [%i0, %i32] : !tt.ptr<tensor<128x32xf16>>
    %nb = tt.advance %qb, [%i32, %i0] : !tt.ptr<tensor<32x128xf16>>
    scf.yield %d, %na, %nb : tensor<128x128xf32>, !tt.ptr<tensor<128x32xf16>>, !tt.ptr<tensor<32x128xf16>>
  }
  %pc = tt.make_tensor_ptr %c, [%size, %size], [%size, %one], [%row, %col]
      {order = array<i32: 1, 0>} : !tt.ptr<tensor<128x128xf32>>
  tt.store %pc, %r#0 : !tt.ptr<tensor<128x128xf32>>
  tt.return
}"""


def test_gemm_programs_take_a_few_calls_an_operation() -> None:
    """Blocks are computed whole: what Python does grows with the operations that run, not with their elements."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(256, 256)).astype(np.float16) for _ in "ab")
    c = np.zeros((256, 256), np.float32)
    module, calls = parse_module(GEMM), 0
    run(module, [a, b, c, 256], (2, 2))
    np.testing.assert_allclose(c, np.float64(a) @ np.float64(b), rtol=1e-4, atol=1e-4)

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        run(module, [a, b, c, 256], (2, 2))
    finally:
        sys.setprofile(None)
    assert calls < 30 * 4 * (13 + 8 * 6)  # programs, operations before and behind the loop, turns, operations of one


def test_bf16_dot_reads_bit_patterns() -> None:
    text = """
    tt.func @f(%a: !tt.ptr<bf16>, %c: !tt.ptr<f32>) {
      %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
      %s = tt.splat %a : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>>
      %p = tt.addptr %s, %i : tensor<256x!tt.ptr<bf16>>, tensor<256xi32>
      %l = tt.load %p : tensor<256x!tt.ptr<bf16>>
      %x = tt.reshape %l : tensor<256xbf16> -> tensor<16x16xbf16>
      %z = arith.constant dense<0.0> : tensor<16x16xf32>
      %d = tt.dot %x, %x, %z : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
      %t = tt.splat %c : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
      %q = tt.addptr %t, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
      %e = tt.reshape %d : tensor<16x16xf32> -> tensor<256xf32>
      tt.store %q, %e : tensor<256x!tt.ptr<f32>>
      tt.return
    }"""
    a, c = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    run(parse_module(text), [to_bfloat16(a), c], (1,))
    np.testing.assert_allclose(c, a @ a, rtol=1e-6)


def test_a_result_of_another_shape_than_its_type_is_refused(execute: Any) -> None:
    text = """
    tt.func @f() {
      %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<4xi32>
      tt.return
    }"""
    with pytest.raises(InvalidOperation, match=r"tt\.make_range gives another block") as caught:
        execute(text, [])
    assert "tensor<4xi32>" in str(caught.value)


def test_operands_that_do_not_fit_are_refused(execute: Any) -> None:
    text = """
    tt.func @f() {
      %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %j = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
      %k = "arith.addi"(%i, %j) : (tensor<8xi32>, tensor<4xi32>) -> tensor<8xi32>
      tt.return
    }"""
    with pytest.raises(InvalidOperation, match=r"arith\.addi cannot take its operands"):
        execute(text, [])
