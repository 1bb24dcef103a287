"""The bases of pointers."""

from __future__ import annotations

from mltriton.analysis.pointers import ANYTHING, PointerBases
from mltriton.dialects import tt
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module

TEXT = """
tt.func @f(%a: !tt.ptr<i64>, %b: !tt.ptr<i64>, %c: i1, %n: i32, %address: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  %moved = tt.addptr %a, %n : !tt.ptr<i64>, i32
  %from_a = tt.load %moved : !tt.ptr<i64>
  %either = arith.select %c, %a, %b : !tt.ptr<i64>
  %from_either = tt.load %either : !tt.ptr<i64>
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (!tt.ptr<i64>) : i32 {
    %from_loop = tt.load %x : !tt.ptr<i64>
    %next = tt.addptr %x, %c1 : !tt.ptr<i64>, i32
    %chosen = scf.if %c -> (!tt.ptr<i64>) {
      scf.yield %next : !tt.ptr<i64>
    } else {
      scf.yield %b : !tt.ptr<i64>
    }
    scf.yield %chosen : !tt.ptr<i64>
  }
  %read = tt.int_to_ptr %from_a : i64 -> !tt.ptr<i64>
  %from_read = tt.load %read : !tt.ptr<i64>
  %given = tt.int_to_ptr %address : i64 -> !tt.ptr<i64>
  %from_given = tt.load %given : !tt.ptr<i64>
  %block = tt.make_tensor_ptr %b, [%one], [%one], [%n] {order = array<i32: 0>} : <tensor<16xi64>>
  %further = tt.advance %block, [%n] : <tensor<16xi64>>
  %from_block = tt.load %further : !tt.ptr<tensor<16xi64>>
  tt.return
}
"""


def loads() -> dict[str, Operation]:
    return {op.result.hint or "": op for op in parse_module(TEXT).walk() if isinstance(op, tt.Load)}


def test_bases() -> None:
    bases = PointerBases()
    found = {
        name: {"anything" if base is ANYTHING else base.hint for base in bases.of(op.operands[0])}
        for name, op in loads().items()
    }
    assert found["from_a"] == {"a"}
    assert found["from_either"] == {"a", "b"}
    assert found["from_loop"] == {"a", "b"}
    assert found["from_read"] == {"anything"}
    assert found["from_given"] == {"anything"}
    assert found["from_block"] == {"b"}
