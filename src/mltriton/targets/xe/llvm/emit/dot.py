"""`tt.dot` on the matrix engine (DPAS).

Level: intrinsic -> llvm. The operands lie in the lanes as the instruction takes them (`#ttg.dot_op` of `#ttig.dpas`).
Products of f32 are those of TF32 where the program says so: the engine reads the upper 19 bits of each operand, which
loses less than 2**-10 of it, towards 0. Otherwise each operand is the sum of two TF32 numbers, rounded to the nearest,
and the three products that matter are added up, which errs by 2**-21 of a product.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.types import F32, I8, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.types import Type, Value
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted, Form, Lanes
from mltriton.targets.xe.layouts.encodings import DpasEncoding
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.spirv.builtins import DPAS_TABLE, ROUND_TO_TF32, Dpas

_NAMES = {F32: "tf32", I8: "s8"}


def _dot(e: Emitter, op: tt.Dot) -> Emitted:
    a, c = (cast(TensorType, value.type) for value in (op.a, op.c))
    if not isinstance(c.encoding, DpasEncoding):
        raise BackendError("a dot whose result is not in the matrix engine's layout", found=str(c))
    product = product_of(op)
    rows = c.shape[-2]
    types = product.builtin(rows).parameter_types
    left, right = ([_one(e, op, value, type_)] for value, type_ in ((op.a, types[1]), (op.b, types[2])))
    if a.element is F32 and op.precision != "tf32":
        left, right = _tf32(e, left[0]), _tf32(e, right[0])
    total = _one(e, op, op.c, types[3])
    for x, y in reversed([(i, j) for i in range(len(left)) for j in range(len(right)) if i + j < len(left)]):
        total = product.call(e.function, rows, left[x], right[y], total)
    form = form_of(cast(TensorType, op.result.type))
    held = e.function.bitcast(total, form.element.with_lanes(rows))
    made = Lanes(Form(rows, form.element, held.type), [held])
    return made if made.form == form else e.packed(e.scalars(made), form)


def factors_of(op: tt.Dot) -> tuple[str, str]:
    """What the matrix engine calls the elements of both operands."""
    a, b = (element_type(value.type) for value in (op.a, op.b))
    return _name(a, op.a_unsigned), _name(b, op.b_unsigned)


def _name(element: IRType, unsigned: bool) -> str:
    return "u8" if unsigned else _NAMES.get(element, str(element))


def product_of(op: tt.Dot) -> Dpas:
    """The matrix engine's product of such elements. Raises `BackendError` where there is none."""
    a, b = factors_of(op)
    c = str(element_type(op.result.type))
    found = DPAS_TABLE.get((a, b, c))
    if found is None:
        expected = ", ".join(" x ".join(known[:2]) + f" -> {known[2]}" for known in DPAS_TABLE)
        raise BackendError("no matrix product of these elements", expected=expected, found=f"{a} x {b} -> {c}")
    return found


def _one(e: Emitter, op: tt.Dot, value: object, type_: Type) -> Value:
    """An operand as the one LLVM value that the instruction takes."""
    operand = next(operand for operand in op.operands if operand is value)
    lanes = e.lanes(operand)
    if len(lanes.values) == 1 and lanes.form.type.bytes == type_.bytes:
        return e.function.bitcast(lanes.values[0], type_)
    registers, element = e.scalars(lanes), lanes.form.element
    if len(registers) * element.bytes != type_.bytes:
        found = f"{len(registers)} registers of {element}"
        raise BackendError("an operand of a dot is not one instruction's", expected=str(type_), found=found)
    whole = element.with_lanes(len(registers)) if element.bits == type_.bits else type_
    return e.function.bitcast(e.packed(registers, Form(len(registers), element, whole)).values[0], type_)


def _tf32(e: Emitter, value: Value) -> list[Value]:
    """A vector of f32 as two TF32 numbers whose sum it is."""
    rounding = ROUND_TO_TF32.of(f"float{value.type.lanes}" if value.type.is_vector else "float")
    high = rounding.call(e.function, value)
    return [high, rounding.call(e.function, e.function.fsub(value, high))]


RULES: Rules = {tt.Dot: _dot}
