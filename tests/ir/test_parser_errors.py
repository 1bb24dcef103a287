"""What is wrong in IR text is named with its place: line, column (from 0) and what was expected."""

from __future__ import annotations

import pytest

from mltriton.errors import IRSyntaxError
from mltriton.ir.parser import parse_module

BODY = "tt.func @k(%p: !tt.ptr<f32>, %x: f32, %t: tensor<4xf32>) {{\n  {}\n  tt.return\n}}\n"

WRONG_LINES = {
    "%0 = arith.addf %x, %y : f32": (22, "%y is not defined here"),
    "%0 = arith.addf %x, %x : f16": (27, "%x has another type than stated here"),
    "%0 = arith.addf %x %x : f32": (21, "expected `,`"),
    "%0 = arith.addx %x, %x : f32": (7, "unknown operation `arith.addx`"),
    '%0 = "arith.addx"(%x) : (f32) -> f32': (7, "unknown operation `arith.addx`"),
    "%x = arith.negf %x : f32": (2, "%x is defined twice"),
    "%0, %1 = arith.negf %x : f32": (2, "has not so many results"),
    "%0, %1 = tt.get_program_id w : i32": (29, "unknown keyword `w`"),
    "%0 = arith.cmpf lt, %x, %x : f32": (18, "unknown keyword `lt`"),
    "%0 = arith.constant dense<[1.0, 2.0]> : tensor<3xf32>": (28, "wrong number of elements"),
    "%0 = arith.constant dense<1.0> : tensor<3xi32>": (28, "no elements of type i32"),
    "%0 = arith.constant 1.5 : i32": (22, "1.5 is no value of type i32"),
    "%0 = arith.constant 1 : q32": (26, "unknown type `q32`"),
    "%0 = arith.constant 1 : !tt.pointer<f32>": (26, "unknown type !tt.pointer"),
    "%0 = arith.constant dense<1.0> : tensor<?xf32>": (42, "dynamic sizes are not supported"),
    "%0 = arith.constant dense<1.0> : tensor<4xf32, #b>": (49, "unknown attribute alias #b"),
    "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.mma<{a = 1}>>": (49, "is no layout encoding known here"),
    "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.slice<{dim = 0}>>": (49, "parent must be an encoding"),
    '%0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<f32>) -> f32': (7, "does not fit"),
    '%0 = "arith.addf"(%x) : (f32) -> f32': (7, "wrong number of operands"),
    '%0 = "arith.cmpf"(%x, %x) <{predicate = 77 : i64}> : (f32, f32) -> i1': (29, "77 is no case of cmpf"),
    "tt.store %p, %x {a = 1 : i32, a = 2 : i32} : !tt.ptr<f32>": (32, "attribute `a` is given twice"),
    "tt.store %p, %x : !tt.ptr<f32> loc(#nowhere)": (37, "unknown location alias #nowhere"),
    "%0 = tt.reduce %t : f32": (7, "has no custom syntax"),
    "%0 = tt.load %p : f16": (20, "%p has another type than stated here"),
    "scf.for %i = %x to %x step %x : i32 {": (34, "%x has another type than stated here"),
}


@pytest.mark.parametrize("line", WRONG_LINES)
def test_the_place_is_named(line: str) -> None:
    column, message = WRONG_LINES[line]
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(BODY.format(line), "wrong.mlir")
    error = caught.value
    assert message in error.message
    assert (error.file, error.line, error.column) == ("wrong.mlir", 2, column)
    assert error.source == f"  {line}"


def test_the_rendering_shows_the_line_and_a_caret() -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(BODY.format("%0 = arith.addf %x, %y : f32"), "wrong.mlir")
    assert caught.value.render() == (
        "wrong.mlir:2:23: IRSyntaxError: %y is not defined here\n"
        "    2 |   %0 = arith.addf %x, %y : f32\n"
        "      |                       ^\n"
        "found `%y`"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "expected `}`"),
        ("module { tt.func @f() {", "expected `}`"),
        ("tt.func @f() { tt.return }\n}", "expected an operation"),
        ("tt.func f() { tt.return }", "expected a symbol"),
        ("tt.func @f() { ^bb0: tt.return ^bb1: tt.return }", "jumps between blocks are not supported"),
        ("module attributes {a = } {}", "expected a type"),
        ('module attributes {a = "open} {}', "expected a string"),
        ("#a = #ttg.slice<{dim = 0, parent = #a}>\nmodule {}", "refers to itself"),
    ],
)
def test_structure(text: str, message: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(text)
    assert message in caught.value.message


def test_values_are_not_seen_outside_their_region() -> None:
    text = "scf.if %x {\n %y = arith.constant 1 : i32\n}\n%z = arith.addi %y, %y : i32"
    with pytest.raises(IRSyntaxError, match="%y is not defined here"):
        parse_module("tt.func @f(%x: i1) {\n" + text + "\ntt.return\n}")


def test_functions_do_not_see_each_others_values() -> None:
    with pytest.raises(IRSyntaxError, match="%x is not defined here"):
        parse_module("tt.func @f(%x: i1) { tt.return } tt.func @g() { scf.if %x { } tt.return }")
