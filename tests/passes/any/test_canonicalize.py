"""canonicalize: each pattern of its table, and that programs compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.dialects import scf
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module

from ..programs import LIBRARY, text_program, transform


@pytest.mark.parametrize("name", LIBRARY)
def test_programs_compute_the_same(name: str) -> None:
    LIBRARY[name].check("canonicalize")


# What %x and %y (i32), %a and %b (f32) become; the text of every operation left, without types.
COMPARED = "%0 = arith.cmpi slt, %x, %y : i32\n"
WIDENED = COMPARED + "%1 = arith.extui %0 : i1 to i32\n"
END = "\n%r = arith.extui %2 : i1 to i32"
CASES = [
    ("%0 = arith.addi %x, %c5 : i32\n%r = arith.addi %0, %c7 : i32", ["addi %x, %c12_i32"]),
    ("%0 = arith.muli %c5, %x : i32\n%r = arith.muli %c7, %0 : i32", ["muli %x, %c35_i32"]),
    (COMPARED + "%2 = arith.xori %0, %true : i1" + END, ["cmpi sge, %x, %y", "extui %0"]),
    (WIDENED + "%2 = arith.cmpi ne, %1, %c0 : i32" + END, ["cmpi slt, %x, %y", "extui %0"]),
    (WIDENED + "%2 = arith.cmpi eq, %1, %c0 : i32" + END, ["cmpi sge, %x, %y", "extui %0"]),
    ("%0 = arith.maxsi %x, %y : i32\n%r = arith.maxsi %y, %0 : i32", ["maxsi %x, %y"]),
    ("%0 = arith.minsi %x, %y : i32\n%r = arith.maxsi %y, %0 : i32", ["minsi %x, %y", "maxsi %y, %0"]),
    ("%r = arith.muli %x, %c8 : i32", ["muli %x, %c8"]),
    (
        COMPARED + "%r = scf.if %0 -> (i32) {\n scf.yield %x : i32\n} else {\n scf.yield %y : i32\n}",
        ["cmpi slt, %x, %y", "select %0, %x, %y"],
    ),
    (COMPARED + "%r = scf.if %0 -> (i32) {\n scf.yield %x : i32\n} else {\n scf.yield %x : i32\n}", []),
]


@pytest.mark.parametrize(("text", "left"), CASES)
def test_simplest_form(text: str, left: list[str]) -> None:
    constants = "\n".join(f"%c{n} = arith.constant {n} : i32" for n in (0, 5, 7, 8))
    module = f"""
    tt.func @f(%x: i32, %y: i32, %p: !tt.ptr<i32>) {{
      {constants}
      %true = arith.constant true
      {text}
      tt.store %p, %r : !tt.ptr<i32>
      tt.return
    }}"""
    for x, y in ((3, 9), (9, 3), (-4, -4)):
        program = text_program(module, lambda _, x=x, y=y: [x, y, np.zeros(1, np.int32)])
        result = program.check("canonicalize")
    computed = [_form(line) for line in str(result).splitlines() if " = arith." in line and "constant" not in line]
    assert [form.split(" : ")[0] for form in computed] == left


def _form(line: str) -> str:
    return line.strip().partition(" = arith.")[2]


def test_a_result_that_both_regions_give_alike_is_that_value() -> None:
    text = """
    tt.func @f(%c: i1, %x: i32, %p: !tt.ptr<i32>) {
      %r:2 = scf.if %c -> (i32, i32) {
        tt.store %p, %x : !tt.ptr<i32>
        scf.yield %x, %x : i32, i32
      } else {
        %old = tt.load %p : !tt.ptr<i32>
        scf.yield %old, %x : i32, i32
      }
      tt.store %p, %r#1 : !tt.ptr<i32>
      tt.return
    }"""
    module = transform(parse_module(text), "canonicalize,dce")
    (branch,) = (op for op in module.walk() if isinstance(op, scf.If))
    assert not branch.results
    assert _stored(module) == "x"


def _stored(module: Operation) -> str | None:
    *_, last = (op for op in module.walk() if op.name == "tt.store")
    return last.operands[1].hint
