"""The greedy driver on random programs: they stay valid, and a second run finds nothing to do."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings

from mltriton.dialects import arith
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.verifier import verify
from mltriton.passes.any.canonicalize import PATTERNS
from mltriton.passes.any.folding import fold_all

from ...ir.random_modules import modules


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(module=modules())
def test_folding_reaches_a_fixpoint(module: Module) -> None:
    fold_all(module)
    verify(module)
    text = print_op(module)
    assert not fold_all(module)
    assert print_op(module) == text


def test_constants_stand_once_at_the_start() -> None:
    module = parse_module(
        """
        tt.func @f(%n: i32, %p: !tt.ptr<i32>) {
          %a = arith.addi %n, %n : i32
          %c0 = arith.constant 5 : i32
          scf.for %i = %a to %n step %n : i32 {
            %c1 = arith.constant 5 : i32
            %c2 = arith.constant 7 : i32
            %s = arith.addi %c1, %c2 : i32
            %t = arith.addi %c0, %i : i32
            %u = arith.addi %t, %s : i32
            tt.store %p, %u : !tt.ptr<i32>
          }
          tt.return
        }"""
    )
    assert fold_all(module)
    body = module.body.block.ops[0].regions[0].block
    constants = [op for op in module.walk() if isinstance(op, arith.Constant)]
    assert [str(op.value) for op in constants] == ["5 : i32", "12 : i32"]
    assert body.ops[:2] == constants


def test_a_combine_region_keeps_its_own_constants() -> None:
    module = parse_module(
        """
        tt.func @f(%x: tensor<8xi32>, %p: !tt.ptr<i32>) {
          %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
          ^bb0(%a: i32, %b: i32):
            %one = arith.constant 1 : i32
            %two = arith.addi %one, %one : i32
            %s = arith.maxsi %a, %two : i32
            %t = arith.maxsi %s, %b : i32
            tt.reduce.return %t : i32
          }) : (tensor<8xi32>) -> i32
          %one_0 = arith.constant 1 : i32
          %q = arith.addi %r, %one_0 : i32
          tt.store %p, %q : !tt.ptr<i32>
          tt.return
        }"""
    )
    fold_all(module)
    verify(module)
    homes = {str(op.value): op.parent_op for op in module.walk() if isinstance(op, arith.Constant)}
    assert {value: home.name for value, home in homes.items() if home} == {"2 : i32": "tt.reduce", "1 : i32": "tt.func"}


def test_names_of_the_user_survive() -> None:
    module = parse_module(
        """
        tt.func @f(%n: i32, %p: !tt.ptr<i32>) {
          %c0 = arith.constant 0 : i32
          %0 = arith.muli %n, %n : i32
          %total = arith.addi %0, %c0 : i32
          tt.store %p, %total : !tt.ptr<i32>
          tt.return
        }"""
    )
    fold_all(module)
    assert "%total = arith.muli %n, %n" in str(module)


def test_bodies_are_moved_and_simplified_without_what_was_folded_in_them() -> None:
    module = parse_module(
        """
        tt.func @f(%n: i32, %c: i1, %p: !tt.ptr<i32>) {
          %c0 = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          %true = arith.constant true
          %r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %n, %y = %n) -> (i32, i32) : i32 {
            %a = arith.addi %x, %c0 : i32
            %z = scf.if %true -> (i32) {
              %b = arith.muli %a, %c1 : i32
              tt.store %p, %b : !tt.ptr<i32>
              scf.yield %b : i32
            } else {
              scf.yield %c1 : i32
            }
            %w = scf.if %c -> (i32) {
              %d = arith.addi %z, %c0 : i32
              scf.yield %d : i32
            } else {
              %e = arith.muli %y, %c1 : i32
              scf.yield %e : i32
            }
            scf.yield %w, %y : i32, i32
          }
          tt.store %p, %r#0 : !tt.ptr<i32>
          tt.store %p, %r#1 : !tt.ptr<i32>
          tt.return
        }"""
    )
    fold_all(module, PATTERNS)
    verify(module)
    body = module.body.block.ops[0].regions[0].block
    assert [op.name for op in body.ops] == ["tt.store"] * 3 + ["tt.return"]


@pytest.mark.parametrize("count", [500, 2000])
def test_folding_looks_at_few_operations_for_each(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"%a{i} = arith.constant {i % 50} : i32\n%b{i} = arith.addi %b{i - 1}, %a{i} : i32\n"
        f"%d{i} = arith.muli %n, %n : i32"
        for i in range(1, count)
    ]
    text = "\n".join(["tt.func @f(%n: i32, %b0: i32, %p: !tt.ptr<i32>) {", *lines])
    module = parse_module(f"{text}\ntt.store %p, %b{count - 1} : !tt.ptr<i32>\ntt.return\n}}")
    compared = 0

    def equal(a: Operation, b: object) -> bool:
        nonlocal compared
        compared += 1
        return a is b

    monkeypatch.setattr(Operation, "__eq__", equal)
    fold_all(module, PATTERNS)
    assert len(list(module.walk())) == 6  # the module, the function, a constant, the sum, the store, the return
    assert compared < 100 * count


def test_a_place_in_a_block_is_found_wherever_it_was_looked_for_before() -> None:
    block, choice = Block(), random.Random(0)
    ops = [arith.Constant() for _ in range(500)]
    for op in ops:
        block.append(op)
    for _ in range(300):
        op = choice.choice(ops)
        assert block.position(op) == ops.index(op)
        if choice.random() < 0.5:
            ops.remove(op)
            op.detach()
        else:
            new = arith.Constant()
            ops.insert(ops.index(op) + 1, new)
            block.insert_after(op, new)
    assert block.ops == ops
    with pytest.raises(ValueError, match="not in the block"):
        block.position(arith.Constant())


def test_looking_for_a_place_writes_no_operation_down(monkeypatch: pytest.MonkeyPatch) -> None:
    block, written = Block(), list[object]()
    ops = [arith.Constant() for _ in range(100)]
    for op in ops:
        block.append(op)
    monkeypatch.setattr(arith.Constant, "__repr__", lambda op: written.append(op) or "")
    assert [block.position(op) for op in (ops[0], ops[99], ops[0])] == [0, 99, 0]
    assert not written
