"""Folds of constants give bit for bit what the reference executor computes without them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mltriton.dialects import arith, tt
from mltriton.dialects import math as m
from mltriton.dialects.arith_folding import CASTS, FLOATS, SHIFTS, SIGNED, UNARY, UNSIGNED
from mltriton.executor import run
from mltriton.executor.values import memory_dtype
from mltriton.ir.attributes import FloatAttr, IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import wrap
from mltriton.ir.floats import bits_to_float
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, FloatType, FunctionType, PointerType, Type
from mltriton.ir.verifier import verify
from mltriton.passes.any.folding import fold_all

INTEGERS = [I1, I8, I16, I32, I64]
FLOAT_TYPES = [F16, BF16, F32, F64]
INTEGER_OPS = [*SIGNED, *UNSIGNED, *SHIFTS]
CONVERSIONS = [cls for cls in CASTS if cls is not arith.IndexCast]

quick = settings(max_examples=25, deadline=None)


def value_of(bits: int, type: Type) -> IntegerAttr | FloatAttr:
    """The constant with those bits; small numbers come up often."""
    if isinstance(type, FloatType):
        small = bits_to_float(bits & ((1 << type.width) - 1), type) if bits % 3 else float(bits % 7 - 3) / 2
        return FloatAttr(small, type)
    assert not isinstance(type, PointerType)
    return IntegerAttr(wrap(bits if bits % 3 else bits % 9 - 4, type), type)


def program(
    cls: type[Operation], rows: Sequence[Sequence[int]], source: Type, target: Type, **attributes: Any
) -> Module:
    """A function that applies `cls` to constants, row by row, and stores the results one after the other."""
    pointer = PointerType(target)
    body = Block([pointer])
    types = FunctionType((pointer,), ())
    module = Module.empty()
    builder = Builder(module.body.block)
    builder.create(
        tt.Func, sym_name="f", function_type=types, sym_visibility="public", result_types=[], regions=[Region([body])]
    )
    builder.at_end(body)
    for index, row in enumerate(rows):
        operands: list[Value] = [builder.emit(arith.Constant, value=value_of(bits, source)) for bits in row]
        result = builder.emit(cls, *operands, result_types=[target], **attributes)
        offset = builder.emit(arith.Constant, value=IntegerAttr(index, I32))
        builder.create(tt.Store, builder.emit(tt.AddPtr, body.arguments[0], offset), result, None)
    builder.create(tt.Return, [], result_types=[])
    verify(module)
    return module


def stored_bits(module: Module, count: int, type: Type) -> list[bytes]:
    out = np.zeros(count, memory_dtype(type))
    run(module, [out], (1,))
    return [item.tobytes() for item in out]


def check(cls: type[Operation], rows: Sequence[Sequence[int]], source: Type, target: Type, **attributes: Any) -> int:
    """Compare with and without folding; returns how many operations folded."""
    with np.errstate(all="ignore"):
        module = program(cls, rows, source, target, **attributes)
        expected = stored_bits(module, len(rows), target)
        fold_all(module)
        verify(module)
        assert stored_bits(module, len(rows), target) == expected, print_op(module)
    return len(rows) - sum(type(op) is cls for op in module.walk())


bits = st.integers(0, 2**64 - 1)
pairs = st.lists(st.tuples(bits, bits), min_size=8, max_size=8)
singles = st.lists(st.tuples(bits), min_size=8, max_size=8)


@pytest.mark.parametrize("cls", INTEGER_OPS, ids=lambda cls: cls.name)
@quick
@given(rows=pairs, type=st.sampled_from(INTEGERS))
def test_integers(cls: type[Operation], rows: list[tuple[int, int]], type: Type) -> None:
    check(cls, rows, type, type)


@pytest.mark.parametrize("cls", FLOATS, ids=lambda cls: cls.name)
@quick
@given(rows=pairs, type=st.sampled_from(FLOAT_TYPES))
def test_floats(cls: type[Operation], rows: list[tuple[int, int]], type: Type) -> None:
    check(cls, rows, type, type)


@pytest.mark.parametrize("cls", UNARY, ids=lambda cls: cls.name)
@quick
@given(rows=singles, data=st.data())
def test_unary(cls: type[Operation], rows: list[tuple[int]], data: st.DataObject) -> None:
    type = data.draw(st.sampled_from(INTEGERS[1:] if cls is m.AbsI else FLOAT_TYPES))
    check(cls, rows, type, type)


@pytest.mark.parametrize("cls", CONVERSIONS, ids=lambda cls: cls.name)
@quick
@given(rows=singles, data=st.data())
def test_conversions(cls: type[Operation], rows: list[tuple[int]], data: st.DataObject) -> None:
    kinds = {"e": INTEGERS, "t": INTEGERS, "s": INTEGERS, "u": INTEGERS, "f": FLOAT_TYPES}
    name = cls.name.removeprefix("arith.")
    sources = FLOAT_TYPES if name in ("extf", "truncf") else kinds[name[0]]
    targets = FLOAT_TYPES if name in ("extf", "truncf", "sitofp", "uitofp") else INTEGERS
    source = data.draw(st.sampled_from(sources))
    fitting = [t for t in targets if fits(name, source, t)]
    if fitting:
        check(cls, rows, source, data.draw(st.sampled_from(fitting)))


def fits(name: str, source: Any, target: Any) -> bool:
    """Whether a conversion takes these types."""
    if name.startswith("ext"):
        return target.width > source.width
    return target.width < source.width if name.startswith("trunc") else True


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@quick
@given(rows=pairs, type=st.sampled_from(INTEGERS))
def test_integer_comparisons(predicate: str, rows: list[tuple[int, int]], type: Type) -> None:
    check(arith.CmpI, rows, type, I1, predicate=predicate)


@pytest.mark.parametrize("predicate", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "une", "uno"])
@quick
@given(rows=pairs, type=st.sampled_from(FLOAT_TYPES))
def test_float_comparisons(predicate: str, rows: list[tuple[int, int]], type: Type) -> None:
    assert check(arith.CmpF, rows, type, I1, predicate=predicate) == len(rows)


@quick
@given(rows=singles, data=st.data())
def test_bitcasts(rows: list[tuple[int]], data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from([(I16, F16), (F16, BF16), (I32, F32), (F32, I32), (F64, I64)]))
    check(arith.Bitcast, rows, source, target)


@pytest.mark.parametrize("cls", [*INTEGER_OPS, *FLOATS], ids=lambda cls: cls.name)
def test_ordinary_numbers_fold(cls: type[Operation]) -> None:
    type = F32 if cls in FLOATS else I32
    assert check(cls, [(13, 4), (28, 7)], type, type) == 2


def folded(body: str) -> str:
    """The body of a function after folding, without the lines of the function."""
    head = "tt.func @f(%x: i32, %y: f32, %b: i1, %t: tensor<4x8xf32>, %p: !tt.ptr<i32>, %q: !tt.ptr<f32>) {\n"
    module = parse_module(f"{head}{body}\ntt.return\n}}")
    verify(module)
    fold_all(module)
    verify(module)
    return "\n".join(line.strip() for line in str(module).splitlines()[2:-3])


IDENTITIES = {
    "addi {x}, {0}": "x",
    "subi {x}, {0}": "x",
    "subi {x}, {x}": "0",
    "muli {x}, {1}": "x",
    "muli {x}, {0}": "0",
    "divsi {x}, {1}": "x",
    "remsi {x}, {1}": "0",
    "andi {x}, {-1}": "x",
    "andi {x}, {0}": "0",
    "andi {x}, {x}": "x",
    "ori {x}, {0}": "x",
    "xori {x}, {x}": "0",
    "shli {x}, {0}": "x",
    "maxsi {x}, {x}": "x",
    "addi {0}, {x}": "x",
    "muli {1}, {x}": "x",
}


@pytest.mark.parametrize("line", IDENTITIES)
def test_integer_identities(line: str) -> None:
    name, _, operands = line.partition(" ")
    constants = "".join(f"%c{n} = arith.constant {v} : i32\n" for n, v in (("0", 0), ("1", 1), ("m1", -1)))
    written = operands.replace("{x}", "%x").replace("{-1}", "%cm1").replace("{0}", "%c0").replace("{1}", "%c1")
    text = folded(f"{constants}%r = arith.{name} {written} : i32\ntt.store %p, %r : !tt.ptr<i32>")
    result = "%x" if IDENTITIES[line] == "x" else "%c0(_i32)?"
    assert re.fullmatch(f"tt.store %p, {result} : !tt.ptr<i32>", text.splitlines()[-1])
    assert "arith." + name not in text


@pytest.mark.parametrize(
    ("line", "constant", "folds"),
    [
        ("addf %y, %c", "-0.0", True),
        ("addf %y, %c", "0.0", False),  # -0.0 + 0.0 is 0.0
        ("subf %y, %c", "0.0", True),
        ("subf %y, %c", "-0.0", False),
        ("mulf %y, %c", "1.0", True),
        ("mulf %y, %c", "0.0", False),
        ("mulf %c, %y", "1.0", True),
        ("divf %y, %c", "1.0", True),
        ("maximumf %y, %y", "0.0", True),
    ],
)
def test_float_identities(line: str, constant: str, folds: bool) -> None:
    body = f"%c = arith.constant {constant} : f32\n%r = arith.{line} : f32\ntt.store %q, %r : !tt.ptr<f32>"
    assert ("tt.store %q, %y" in folded(body)) == folds


STORE = "\ntt.store %p, %r : !tt.ptr<i32>"
FORMS = {
    "%r = arith.select %b, %x, %x : i32": "%x",
    "%t1 = arith.constant true\n%z = arith.constant 0 : i32\n%r = arith.select %t1, %x, %z : i32": "%x",
    "%e = arith.extsi %x : i32 to i64\n%r = arith.trunci %e : i64 to i32": "%x",
    "%e = arith.index_cast %x : i32 to index\n%r = arith.index_cast %e : index to i32": "%x",
    "%e = arith.bitcast %x : i32 to f32\n%r = arith.bitcast %e : f32 to i32": "%x",
    "%s = tt.splat %x : i32 -> tensor<1xi32>\n%r = tt.unsplat %s : tensor<1xi32>": "%x",
}


@pytest.mark.parametrize("body", FORMS)
def test_forms_that_are_a_value(body: str) -> None:
    assert folded(body + STORE) == f"tt.store %p, {FORMS[body]} : !tt.ptr<i32>"


def test_a_narrowing_round_trip_stays() -> None:
    text = folded("%e = arith.trunci %x : i32 to i8\n%r = arith.extsi %e : i8 to i32" + STORE)
    assert "arith.trunci" in text and "arith.extsi" in text


def test_transpositions_compose() -> None:
    body = """
      %a = tt.trans %t {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
      %c = tt.trans %a {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
      %s = tt.splat %q : !tt.ptr<f32> -> tensor<4x8x!tt.ptr<f32>>
      tt.store %s, %c : tensor<4x8x!tt.ptr<f32>>"""
    assert "tt.trans" not in folded(body) and "tt.store %s, %t" in folded(body)


def test_constants_pass_through_shapes() -> None:
    body = """
      %c = arith.constant 3.0 : f32
      %v = tt.splat %c : f32 -> tensor<8xf32>
      %e = tt.expand_dims %v {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
      %w = tt.broadcast %e : tensor<1x8xf32> -> tensor<4x8xf32>
      %r = arith.mulf %w, %w : tensor<4x8xf32>
      %s = tt.splat %q : !tt.ptr<f32> -> tensor<4x8x!tt.ptr<f32>>
      tt.store %s, %r : tensor<4x8x!tt.ptr<f32>>"""
    assert folded(body).splitlines()[0] == "%cst = arith.constant dense<9.000000e+00> : tensor<4x8xf32>"


def test_masks_that_are_known() -> None:
    body = """
      %on = arith.constant true
      %off = arith.constant false
      %a = tt.load %p, %on : !tt.ptr<i32>
      %c = tt.load %p, %off, %x : !tt.ptr<i32>
      %r = arith.addi %a, %c : i32
      tt.store %p, %r, %on : !tt.ptr<i32>"""
    assert folded(body).splitlines() == [
        "%a = tt.load %p : !tt.ptr<i32>",
        "%r = arith.addi %a, %x : i32",
        "tt.store %p, %r : !tt.ptr<i32>",
    ]


def test_effects_stay() -> None:
    body = """
      %a = tt.atomic_rmw add, acq_rel, gpu, %p, %x : (!tt.ptr<i32>, i32) -> i32
      %unread = tt.load %p : !tt.ptr<i32>
      scf.if %b {
        tt.print "here"
      }
      scf.if %b {
        %unused = arith.addi %x, %x : i32
      }"""
    text = folded(body)
    assert "tt.atomic_rmw" in text and "tt.print" in text
    assert "tt.load" not in text and text.count("scf.if") == 1


def test_not_a_number_is_not_folded() -> None:
    assert math.isnan(math.inf - math.inf)
    body = "%c = arith.constant 0x7F800000 : f32\n%r = arith.subf %c, %c : f32\ntt.store %q, %r : !tt.ptr<f32>"
    assert "arith.subf" in folded(body)
