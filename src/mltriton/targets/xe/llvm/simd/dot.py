"""`tt.dot` on the matrix engine, whose operands are vectors of a whole warp.

Level: intrinsic -> llvm. Products of f32 are those of one or two TF32 parts of each operand, as in a lane's program.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import F32, TensorType
from mltriton.targets.llvm.types import Type, Value, constant, vector
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted, Form, Lanes
from mltriton.targets.xe.layouts.encodings import DpasEncoding
from mltriton.targets.xe.llvm.emit.dot import factors_of, product_of
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, value_type
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, product

WORDS_OF_B = 128  # 8 words of each lane
_SUMS = {"f32": "float", "f16": "half", "bf16": "i16", "i32": "i32"}


def _dot(e: WarpEmitter, op: tt.Dot) -> Emitted:
    a, c = (cast(TensorType, value.type) for value in (op.a, op.c))
    if not isinstance(c.encoding, DpasEncoding):
        raise BackendError("a dot whose result is not in the matrix engine's layout", found=str(c))
    left, right = factors_of(op)
    rows = c.shape[-2]
    _, of_a, of_b, of_c, _ = product_of(op).builtin(rows).parameter_types
    total = _one(e, op.c, of_c, vector(_SUMS[str(c.element)], rows * LANES))
    lefts = [_one(e, op.a, of_a, vector("i32", rows * 8))]
    rights = [_one(e, op.b, of_b, vector("i32", WORDS_OF_B))]
    if a.element is F32:
        parts = 1 if op.precision == "tf32" else 2
        lefts, rights = _tf32(e, lefts[0], parts), _tf32(e, rights[0], parts)
    pairs = [(i, j) for i in range(len(lefts)) for j in range(len(rights)) if i + j < len(lefts)]
    for i, j in reversed(pairs):
        signed = str(c.element) == "i32"
        total = product(e.function, total, rights[j], lefts[i], (right, left), rows, signed)
    form = form_of(cast(TensorType, op.result.type))
    whole = Form(rows, form.element, form.element.with_lanes(rows))
    if form == whole:
        return Lanes(form, [e.bits_as(total, value_type(form))])
    return e.packed(e.scalars(Lanes(whole, [e.bits_as(total, form.element.with_lanes(rows * LANES))])), form)


def _one(e: WarpEmitter, value: IRValue, of_lane: Type, type_: Type) -> Value:
    """An operand as the one vector that the instruction takes, of which a lane has a value of type `of_lane`."""
    lanes = e.lanes(value)
    if len(lanes.values) != 1:
        registers, element = e.scalars(lanes), lanes.form.element
        whole = element.with_lanes(len(registers)) if element.bits == of_lane.bits else of_lane
        lanes = e.packed(registers, Form(len(registers), element, whole))
    [held] = lanes.values
    if held.type.bytes != type_.bytes:
        raise BackendError("an operand of a dot is not one instruction's", expected=str(type_), found=str(held.type))
    return e.bits_as(held, type_)


def _tf32(e: WarpEmitter, value: Value, parts: int) -> list[Value]:
    """Words of f32 as those of TF32 numbers whose sum it is; the matrix engine leaves the low bits out itself."""
    f = e.function
    if parts == 1:
        return [value]
    floats = value.type.with_element("float")
    high = f.and_(value, constant(value.type, -(1 << 13)))
    left = f.fsub(f.bitcast(value, floats), f.bitcast(high, floats))
    return [high, f.bitcast(left, value.type)]


RULES: Rules = {tt.Dot: _dot}  # type: ignore[dict-item]
