"""Matrix products of a whole warp: c + a b, row by row.

Level: `llvm`. a lies row by row, b in words of 32 bits, which hold elements of a column that are below each other. Sums
are those of f32 or i32, k by k.
"""

from __future__ import annotations

from mltriton.targets.cpu.features import host
from mltriton.targets.llvm.emit.narrow import narrow, widen
from mltriton.targets.llvm.types import Type, Value, constant, poison, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.emulation.simd.call import Call, Write
from mltriton.targets.xe.llvm.simd.intrinsics import PRECISIONS

_COLUMNS, _DEPTH = 16, 8
_NAMES = {code: name for name, code in PRECISIONS.items()}
_BITS = {"u8": 8, "s8": 8, "bf16": 16, "f16": 16, "tf32": 32}
_TF32_DROPPED = 13  # low bits of an f32 that TF32 has not


def _product(f: Function, call: Call) -> Value:
    c, b, a = f.parameters[:3]
    kinds = [_NAMES[call.constant(number)] for number in (3, 4)]
    rows = call.constant(6)
    b_rows = _rows_of_b(f, b, kinds[0])
    of_a = f.bitcast(a, vector(f"i{_BITS[kinds[1]]}", a.type.lanes * 32 // _BITS[kinds[1]]))
    wide_a = _widened(f, of_a, kinds[1])
    made: list[Value] = []
    for row in range(rows):
        total = _sums(f, f.shuffle(c, poison(c.type), range(row * _COLUMNS, (row + 1) * _COLUMNS)))
        for k, b_row in enumerate(b_rows):
            left = f.splat(f.extract(wide_a, row * len(b_rows) + k), _COLUMNS)
            if total.type.is_float:
                total = f.fadd(total, f.fmul(left, b_row))
            else:
                total = f.add(total, f.mul(left, b_row))
        made.append(_as(f, total, c.type))
    return _joined(f, made)


def _rows_of_b(f: Function, b: Value, kind: str) -> list[Value]:
    """The rows, 16 columns each."""
    bits = _BITS[kind]
    together = 32 // bits
    elements = f.bitcast(b, vector(f"i{bits}", b.type.lanes * together))
    rows: list[Value] = []
    for number in range(_DEPTH * together):
        start = number // together * _COLUMNS * together + number % together
        row = f.shuffle(elements, poison(elements.type), [start + together * column for column in range(_COLUMNS)])
        rows.append(_widened(f, row, kind))
    return rows


def _widened(f: Function, value: Value, kind: str) -> Value:
    """Elements as the sums have them."""
    if kind in ("u8", "s8"):
        return f.cast("zext" if kind == "u8" else "sext", value, value.type.with_element("i32"))
    if kind == "tf32":
        cut = f.and_(value, constant(value.type, -(1 << _TF32_DROPPED)))
        return f.bitcast(cut, value.type.with_element("float"))
    return widen(f, host().f16_conversion, value, kind)


def _sums(f: Function, value: Value) -> Value:
    if value.type.element == "half":
        return f.cast("fpext", value, value.type.with_element("float"))
    return widen(f, host().f16_conversion, value, "bf16") if value.type.element == "i16" else value


def _as(f: Function, value: Value, type_: Type) -> Value:
    if type_.element == "half":
        return f.cast("fptrunc", value, value.type.with_element("half"))
    return narrow(f, host().f16_conversion, value, "bf16", False) if type_.element == "i16" else value


def _joined(f: Function, rows: list[Value]) -> Value:
    while len(rows) > 1:
        rows = [f.shuffle(rows[n], rows[n + 1], range(2 * rows[n].type.lanes)) for n in range(0, len(rows), 2)]
    return rows[0]


WRITERS: dict[str, Write] = {"llvm.genx.dpas2.": _product}
