"""Calls of machine code: of functions, of LLVM's own, and of what makes or takes addresses.

Level: runtime.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .names import ADDRESSES, F64, I1, I32, I64, PTR, SLOTS, VOID, Type, Value, refused

if TYPE_CHECKING:
    from .values import Values

INTRINSICS = {  # name: LLVM's, type of two operands and the result
    "umin": ("llvm.umin.i64", I64),
    "umax": ("llvm.umax.i64", I64),
    "smax": ("llvm.smax.i64", I64),
    "fmax": ("llvm.maxnum.f64", F64),
}
CONVERSIONS = {  # name: result, and the instruction for each operand
    "i32": (I32, {"i1": "zext", "i64": "trunc"}),
    "unsigned": (I64, {"i1": "zext", "i32": "zext"}),
    "signed": (I64, {"i32": "sext"}),
    "as_float": (F64, {"i64": "sitofp"}),
    "as_integer": (I64, {"double": "fptosi"}),
    "as_number": (I64, {"ptr": "ptrtoint"}),
}


def call(body: Values, node: ast.Call) -> Value:
    """What a call gives."""
    match node.func:
        case ast.Name(id=name) if name in INTRINSICS:
            return _intrinsic(body, name, node.args)
        case ast.Name(id=name) if name in CONVERSIONS:
            return _conversion(body, node, *CONVERSIONS[name])
        case ast.Name(id="below"):
            a, b = body.operands(node.args[0], node.args[1])
            return body.emit(I1, f"icmp ult {a}, {b.text}")
        case ast.Name(id="ashr"):
            return body.emit(I64, f"ashr {body.value(node.args[0])}, {body.value(node.args[1], I64).text}")
        case ast.Name(id=name) if name in MEMORY:
            return MEMORY[name](body, node.args)
        case ast.Name(id=name) if name in body.names.structures:
            return Value(Type("ptr", structure=name), body.room(f"%{name}", ", align 64"))
        case ast.Attribute(value=base, attr=name) if (cell := _cell(body, base)) is not None:
            return _access(body, node, cell, name)
        case _:
            return _call_function(body, node, body.value(node.func))


def _call_function(body: Values, node: ast.Call, function: Value) -> Value:
    type = function.type
    if type.result is None:
        raise refused(node, "no function")
    wanted = [*type.parameters, *(None for _ in node.args[len(type.parameters) :])]
    arguments = ", ".join(str(body.value(a, t)) for a, t in zip(node.args, wanted, strict=True))
    shape = f"{type.result.text} ({', '.join([t.text for t in type.parameters] + ['...'])})"
    text = f"call {shape if type.variadic else type.result.text} {function.text}({arguments})"
    if type.result is not VOID:
        return body.emit(type.result, text)
    body.lines.append(f"  {text}")
    return Value(VOID, "")


def _intrinsic(body: Values, name: str, arguments: Sequence[ast.expr]) -> Value:
    llvm, type = INTRINSICS[name]
    body.intrinsics[llvm] = f"declare {type.text} @{llvm}({type.text}, {type.text})"
    values = ", ".join(str(body.value(argument, type)) for argument in arguments)
    return body.emit(type, f"call {type.text} @{llvm}({values})")


def _conversion(body: Values, node: ast.Call, result: Type, instructions: dict[str, str]) -> Value:
    value = body.value(node.args[0], result)
    if value.type == result:
        return value
    if value.type.text not in instructions:
        raise refused(node, "no conversion")
    return body.emit(result, f"{instructions[value.type.text]} {value} to {result.text}")


def _cell(body: Values, node: ast.expr) -> Value | None:
    """What threads meet at, if it is that."""
    if isinstance(node, ast.Name) and node.id not in (body.names.variables | body.slots):
        return None
    found = body.value(node)
    return found if found.type.cell is not None else None


def _access(body: Values, node: ast.Call, at: Value, name: str) -> Value:
    """A word, lock or relaxed number."""
    assert at.type.cell is not None
    type, order = at.type.cell, at.type.order
    align = 4 if type is I32 else 8
    operand = body.value(node.args[0], type) if node.args else None
    match name:
        case "load":
            return body.emit(type, f"load atomic {type.text}, {at} {order}, align {align}")
        case "store":
            body.lines.append(f"  store atomic {operand}, {at} {order}, align {align}")
        case "unlock":
            body.lines.append(f"  store atomic i32 0, {at} release, align 4")
        case "add" | "subtract":
            return body.emit(type, f"atomicrmw {name[:3]} {at}, {operand} {order}")
        case "try_lock":
            pair = body.emit(PTR, f"cmpxchg {at}, i32 0, i32 1 acquire monotonic")
            return body.emit(I1, f"extractvalue {{ i32, i1 }} {pair.text}, 1")
        case _:
            raise refused(node, "no access")
    return Value(VOID, "")


def pair(body: Values, node: ast.Call) -> list[Value]:
    """`seen, is_done = number.exchange(expected, value)`, or `product, overflows = multiplied(a, b)`."""
    if not isinstance(node.func, ast.Attribute):
        values = ", ".join(str(body.value(argument, I64)) for argument in node.args)
        name = "llvm.smul.with.overflow.i64"
        body.intrinsics[name] = f"declare {{ i64, i1 }} @{name}(i64, i64)"
        return _parts(body, body.emit(PTR, f"call {{ i64, i1 }} @{name}({values})"), I64)
    at = body.value(node.func.value)
    assert at.type.cell is not None, ast.unparse(node)
    type = at.type.cell
    expected, value = (body.value(argument, type) for argument in node.args)
    return _parts(body, body.emit(PTR, f"cmpxchg {at}, {expected}, {value} monotonic monotonic"), type)


def _parts(body: Values, pair: Value, first: Type) -> list[Value]:
    shape = f"{{ {first.text}, i1 }} {pair.text}"
    return [body.emit(type, f"extractvalue {shape}, {number}") for number, type in enumerate((first, I1))]


# Functions that make or take addresses


def _words(body: Values, arguments: Sequence[ast.expr]) -> Value:
    return body.emit(SLOTS, f"alloca i64, {body.value(arguments[0], I64)}, align 16")


def _addresses(body: Values, arguments: Sequence[ast.expr]) -> Value:
    count = body.value(arguments[0], I64)
    if isinstance(arguments[0], ast.Constant):
        return Value(ADDRESSES, body.room(f"[{count.text} x ptr]"))
    return body.emit(ADDRESSES, f"alloca ptr, {count}")


def _after(body: Values, arguments: Sequence[ast.expr]) -> Value:
    base, count = body.value(arguments[0]), body.value(arguments[1], I64)
    assert base.type.element is not None
    return body.emit(base.type, f"getelementptr {body.names.inline(base.type.element)}, {base}, {count}")


def _moved(body: Values, arguments: Sequence[ast.expr]) -> Value:
    return body.emit(PTR, f"getelementptr i8, {body.value(arguments[0])}, {body.value(arguments[1], I64)}")


def _address_of(body: Values, arguments: Sequence[ast.expr]) -> Value:
    return Value(PTR, body.place(arguments[0])[1])


def _cast(body: Values, arguments: Sequence[ast.expr]) -> Value:
    type, value = body.names.type(arguments[0]), body.value(arguments[1])
    return body.emit(type, f"inttoptr {value} to ptr") if value.type == I64 else Value(type, value.text)


def _copy(body: Values, arguments: Sequence[ast.expr]) -> Value:
    name = "llvm.memcpy.p0.p0.i64"
    body.intrinsics[name] = f"declare void @{name}(ptr, ptr, i64, i1)"
    values = ", ".join(str(body.value(argument, I64)) for argument in arguments)
    body.lines.append(f"  call void @{name}({values}, i1 false)")
    return Value(VOID, "")


def _f64_bits(body: Values, arguments: Sequence[ast.expr]) -> Value:
    return body.emit(I64, f"bitcast {body.value(arguments[0])} to i64")


def _f32_bits(body: Values, arguments: Sequence[ast.expr]) -> Value:
    wide = body.emit(F64, f"bitcast {body.value(arguments[0])} to double")
    narrow = body.emit(Type("float"), f"fptrunc {wide} to float")
    bits = body.emit(I32, f"bitcast {narrow} to i32")
    return body.emit(I64, f"zext {bits} to i64")


MEMORY: dict[str, Callable[[Values, Sequence[ast.expr]], Value]] = {
    "words": _words,
    "addresses": _addresses,
    "after": _after,
    "moved": _moved,
    "address_of": _address_of,
    "cast": _cast,
    "copy": _copy,
    "f64_bits": _f64_bits,
    "f32_bits": _f32_bits,
}
