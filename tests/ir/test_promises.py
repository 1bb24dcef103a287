"""Promises of operations that take the place of others, and of parts of blocks."""

from __future__ import annotations

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module
from mltriton.ir.promises import of_part, promise, promises_in, takes_over
from mltriton.ir.types import TensorType

TEXT = """
tt.func @f(%p: !tt.ptr<f16>, %i: tensor<64xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %s = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %x = tt.addptr %s, %i {tt.divisibility = dense<64> : tensor<1xi32>} : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %r = scf.for %k = %c0 to %n step %n iter_args(%a = %n) -> (i32) : i32 {
    scf.yield %a : i32
  } {tt.divisibility = dense<8> : tensor<1xi32>}
  tt.return
}
"""


def operation(kind: type[Operation]) -> Operation:
    return next(op for op in parse_module(TEXT).walk() if isinstance(op, kind))


def test_a_part_may_begin_within_a_group() -> None:
    moved = operation(tt.AddPtr)
    whole = moved.results[0].type
    assert isinstance(whole, TensorType)
    assert promises_in(of_part(moved, [whole])) == {"tt.divisibility": (64,)}
    assert promises_in(of_part(moved, [whole.with_shape((8,))])) == {"tt.divisibility": (16,)}


def test_what_takes_the_place_promises_the_same() -> None:
    moved = operation(tt.AddPtr)
    maker = moved.operands[0].defining_op
    assert maker is not None
    promise(maker, {"tt.divisibility": (4,), "tt.contiguity": (2,)})
    assert takes_over(moved.operands[0], moved)
    assert promises_in(maker.attributes) == {"tt.divisibility": (64,), "tt.contiguity": (2,)}
    assert not takes_over(operation(tt.Splat).operands[0], moved)  # a parameter


def test_a_promise_about_a_counter_is_none_about_results() -> None:
    loop = operation(scf.For)
    assert takes_over(loop.operands[0], loop)
    assert not promises_in(loop.operands[0].defining_op.attributes)
