"""cse, dce and licm: what they remove and move, and that programs compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.dialects import arith, scf, tt
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module

from ..programs import LIBRARY, text_program, transform


def count(module: Module, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


@pytest.mark.parametrize("name", LIBRARY)
def test_programs_compute_the_same(name: str) -> None:
    LIBRARY[name].check("licm,cse,dce")


LOADS = """
tt.func @f(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  %a = tt.load %x : !tt.ptr<i32>
  %b = tt.load %x : !tt.ptr<i32>
  %s = arith.addi %a, %b : i32
  tt.store %y, %s : !tt.ptr<i32>
  %c = tt.load %x : !tt.ptr<i32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%n = %c) -> (i32) : i32 {
    %d = tt.load %x : !tt.ptr<i32>
    %m = arith.addi %n, %d : i32
    tt.store %x, %m : !tt.ptr<i32>
    scf.yield %m : i32
  }
  %e = tt.load %x : !tt.ptr<i32>
  %t = arith.addi %r, %e : i32
  tt.store %y, %t : !tt.ptr<i32>
  tt.return
}
"""


def test_a_load_is_repeated_after_a_write() -> None:
    program = text_program(LOADS, lambda _: [np.array([3], np.int32), np.zeros(1, np.int32)])
    assert count(program.check("cse"), tt.Load) == 4


def test_volatile_loads_stay() -> None:
    text = """
    tt.func @f(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
      %a = tt.load %x {isVolatile = true} : !tt.ptr<i32>
      %b = tt.load %x {isVolatile = true} : !tt.ptr<i32>
      %s = arith.addi %a, %b : i32
      tt.store %y, %s : !tt.ptr<i32>
      tt.return
    }"""
    assert count(transform(parse_module(text), "cse"), tt.Load) == 2


REDUCTIONS = """
tt.func @f(%x: tensor<8xf32>, %y: !tt.ptr<f32>) {{
  %a = "tt.reduce"(%x) ({{
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tt.reduce.return %s : f32
  }}) {{axis = 0 : i32}} : (tensor<8xf32>) -> f32
  %b = "tt.reduce"(%x) ({{
  ^bb0(%u: f32, %v: f32):
    %t = {combine} : f32
    tt.reduce.return %t : f32
  }}) {{axis = 0 : i32}} : (tensor<8xf32>) -> f32
  %r = arith.mulf %a, %b : f32
  tt.store %y, %r : !tt.ptr<f32>
  tt.return
}}
"""


@pytest.mark.parametrize(
    ("combine", "left"), [("arith.addf %u, %v", 1), ("arith.addf %v, %u", 1), ("arith.maximumf %u, %v", 2)]
)
def test_reductions_are_equal_when_their_regions_are(combine: str, left: int) -> None:
    assert count(transform(parse_module(REDUCTIONS.format(combine=combine)), "cse"), tt.Reduce) == left


def test_what_a_branch_defines_is_not_known_after_it() -> None:
    text = """
    tt.func @f(%c: i1, %n: i32, %y: !tt.ptr<i32>) {
      scf.if %c {
        %a = arith.muli %n, %n : i32
        tt.store %y, %a : !tt.ptr<i32>
      }
      %b = arith.muli %n, %n : i32
      tt.store %y, %b : !tt.ptr<i32>
      tt.return
    }"""
    assert count(transform(parse_module(text), "cse"), arith.MulI) == 2


CARRIED = """
tt.func @f(%n: i32, %y: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1, %s = %c0) -> (i32, i32, i32) : i32 {
    %d = arith.addi %b, %i : i32
    %e = arith.addi %a, %d : i32
    %f = arith.muli %e, %d : i32
    %t = arith.addi %s, %i : i32
    %u:2 = scf.if %d -> (i32, i32) {
      scf.yield %f, %t : i32, i32
    } else {
      scf.yield %a, %s : i32, i32
    }
    scf.yield %u#0, %d, %u#1 : i32, i32, i32
  }
  tt.store %y, %r#2 : !tt.ptr<i32>
  tt.return
}
""".replace("scf.if %d", "scf.if %odd").replace("%u:2", "%odd = arith.trunci %i : i32 to i1\n    %u:2")


def test_values_that_only_feed_themselves_go() -> None:
    program = text_program(CARRIED, lambda _: [9, np.zeros(1, np.int32)])
    module = program.check("dce")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.For))
    (branch,) = (op for op in module.walk() if isinstance(op, scf.If))
    assert (len(loop.results), len(branch.results)) == (1, 1)
    assert count(module, arith.MulI) == 0


def test_a_loop_without_effect_goes_and_a_while_stays() -> None:
    text = """
    tt.func @f(%n: i32, %y: !tt.ptr<i32>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {
        %b = arith.addi %a, %i : i32
        scf.yield %b : i32
      }
      %w = scf.while (%k = %c0) : (i32) -> i32 {
        %more = arith.cmpi slt, %k, %n : i32
        scf.condition(%more) %k : i32
      } do {
      ^bb0(%k: i32):
        %next = arith.addi %k, %c1 : i32
        scf.yield %next : i32
      }
      tt.return
    }"""
    module = transform(parse_module(text), "dce")
    assert (count(module, scf.For), count(module, scf.While)) == (0, 1)


NEST = """
tt.func @f(%n: i32, %y: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %a = arith.muli %n, %n : i32
      %b = arith.muli %i, %a : i32
      %d = arith.addi %b, %j : i32
      %p = tt.addptr %y, %j : !tt.ptr<i32>, i32
      %old = tt.load %y : !tt.ptr<i32>
      %e = arith.addi %d, %old : i32
      tt.store %p, %e : !tt.ptr<i32>
      scf.yield
    }
    scf.yield
  }
  tt.return
}
"""


def test_invariants_leave_as_many_loops_as_they_can() -> None:
    module = text_program(NEST, lambda _: [4, np.arange(4, dtype=np.int32)]).check("licm")
    depth = {op.name: _depth(op) for op in module.walk()}
    products = sorted(_depth(op) for op in module.walk() if isinstance(op, arith.MulI))
    assert products == [0, 1]
    assert depth["tt.load"] == depth["tt.addptr"] == 2


def _depth(op: Operation) -> int:
    parent = op.parent_op
    return 0 if parent is None else _depth(parent) + isinstance(parent, scf.For)
