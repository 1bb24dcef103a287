"""Loops, branches, calls, prints, assertions."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from mltriton.errors import DeviceAssertionError, ExecutionError
from mltriton.executor import Options
from mltriton.executor.faults import BrokenAssumption, InvalidOperation


def test_for_counts_up_to_the_bound(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<i32>, %lo: i32, %hi: i32, %step: i32) {
      %z = arith.constant 0 : i32
      %c = arith.constant 10 : i32
      %s = scf.for %i = %lo to %hi step %step iter_args(%a = %z) -> (i32) : i32 {
        %m = arith.muli %a, %c : i32
        %n = arith.addi %m, %i : i32
        scf.yield %n : i32
      }
      tt.store %p, %s : !tt.ptr<i32>
      tt.return
    }"""
    out = np.zeros(1, np.int32)
    for bounds, expected in [((1, 4, 1), 123), ((1, 4, 2), 13), ((4, 4, 1), 0), ((5, 4, 1), 0)]:
        execute(text, [out, *bounds])
        assert out[0] == expected
    with pytest.raises(InvalidOperation, match="step of a loop is 0"):
        execute(text, [out, 0, 1, 0])


def test_while_and_if(execute: Any) -> None:
    text = """
    tt.func @collatz(%p: !tt.ptr<i32>, %n: i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %r:2 = scf.while (%x = %n, %c = %zero) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi ne, %x, %one : i32
        scf.condition(%go) %x, %c : i32, i32
      } do {
      ^bb0(%x: i32, %c: i32):
        %odd = arith.remsi %x, %two : i32
        %is = arith.cmpi eq, %odd, %one : i32
        %y = scf.if %is -> (i32) {
          %t = arith.muli %x, %three : i32
          %u = arith.addi %t, %one : i32
          scf.yield %u : i32
        } else {
          %h = arith.divsi %x, %two : i32
          scf.yield %h : i32
        }
        %d = arith.addi %c, %one : i32
        scf.yield %y, %d : i32, i32
      }
      tt.store %p, %r#1 : !tt.ptr<i32>
      tt.return
    }"""
    out = np.zeros(1, np.int32)
    for n, expected in [(1, 0), (6, 8), (27, 111)]:
        execute(text, [out, n])
        assert out[0] == expected


def test_if_without_else(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<i32>, %c: i1) {
      %one = arith.constant 1 : i32
      scf.if %c {
        tt.store %p, %one : !tt.ptr<i32>
      }
      tt.return
    }"""
    out = np.zeros(1, np.int32)
    execute(text, [out, False])
    assert out[0] == 0
    execute(text, [out, True])
    assert out[0] == 1


def test_calls_have_their_own_values(execute: Any) -> None:
    text = """
    module {
      tt.func public @main(%p: !tt.ptr<i32>) {
        %five = arith.constant 5 : i32
        %r = tt.call @factorial(%five) : (i32) -> i32
        tt.store %p, %r : !tt.ptr<i32>
        tt.return
      }
      tt.func private @factorial(%n: i32) -> i32 {
        %one = arith.constant 1 : i32
        %last = arith.cmpi sle, %n, %one : i32
        %r = scf.if %last -> (i32) {
          scf.yield %one : i32
        } else {
          %m = arith.subi %n, %one : i32
          %f = tt.call @factorial(%m) : (i32) -> i32
          %g = arith.muli %f, %n : i32
          scf.yield %g : i32
        }
        tt.return %r : i32
      }
    }"""
    out = np.zeros(1, np.int32)
    execute(text, [out])
    assert out[0] == 120
    with pytest.raises(ExecutionError, match="no function @other"):
        execute(text, [out], function="other")


def test_program_coordinates(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<i32>) {
      %x = tt.get_program_id x : i32
      %y = tt.get_program_id y : i32
      %z = tt.get_program_id z : i32
      %nx = tt.get_num_programs x : i32
      %ny = tt.get_num_programs y : i32
      %a = arith.muli %z, %ny : i32
      %b = arith.addi %a, %y : i32
      %c = arith.muli %b, %nx : i32
      %d = arith.addi %c, %x : i32
      %q = tt.addptr %p, %d : !tt.ptr<i32>, i32
      tt.store %q, %d : !tt.ptr<i32>
      tt.return
    }"""
    out = np.full(24, -1, np.int32)
    execute(text, [out], (2, 3, 4))
    assert out.tolist() == list(range(24))
    out[:] = -1
    execute(text, [out], (2, 3, 4), programs=range(5, 8))
    assert np.flatnonzero(out + 1).tolist() == [5, 6, 7]


def test_print_shows_program_index_and_value(execute: Any) -> None:
    text = """
    tt.func @f(%n: i32) {
      %i = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
      tt.print " i: " {hex = false, isSigned = array<i32: 1>} : %i : tensor<2xi32>
      tt.print " n: " {hex = true, isSigned = array<i32: 1>} : %n : i32
      tt.return
    }"""
    output = io.StringIO()
    execute(text, [-1], options=Options(output=output))
    lines = output.getvalue().splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["pid", "(0,", "0,", "0)", "idx", "(0)", "i:", "0"],
        ["pid", "(0,", "0,", "0)", "idx", "(1)", "i:", "1"],
    ]
    assert lines[2].endswith("n: 0xffffffff")


def test_assert_names_program_and_element(execute: Any) -> None:
    text = """
    tt.func @f(%n: i32) {
      %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
      %s = tt.splat %n : i32 -> tensor<4xi32>
      %c = arith.cmpi slt, %i, %s : tensor<4xi32>
      tt.assert %c, "too far" : tensor<4xi1>
      tt.return
    }"""
    execute(text, [4])
    with pytest.raises(DeviceAssertionError, match=r"too far \(program \(1, 0, 0\), element \(2,\)\)") as caught:
        execute(text, [2], (2,), programs=[1])
    assert caught.value.line == 6


def test_a_false_assumption_is_a_fault(execute: Any) -> None:
    text = """
    tt.func @f(%c: i1) {
      llvm.intr.assume %c : i1
      tt.return
    }"""
    execute(text, [True])
    with pytest.raises(BrokenAssumption):
        execute(text, [False])
    execute(text, [False], options=Options(assumptions=False))
