"""Printing and assertions from a running kernel.

Level: intrinsic -> llvm. `tt.print` writes a line for each element to the process's standard output through the C
library's `dprintf`, in the form of the reference executor. A false `tt.assert` records itself in the exported variable
`kernel.failure`, three i64: the assertion's number in the module, from 1; the program's linear id; the element. The
first failure stays there, and each ends the work on its range of programs; `cpu/assertions.py` raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from mltriton.dialects import tile, tt
from mltriton.ir.types import FloatType, IntegerType, element_type
from mltriton.targets.cpu.assertions import FAILURE
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.types import I1, I32, I64, PTR, VOID, Value, constant, vector


def _print(e: Emitter, op: tt.Print) -> None:
    if not op.arguments:
        _print_line(e, f"{op.prefix}", [], [])
    for number, argument in enumerate(op.arguments):
        operand = f"(operand {number}) " if len(op.arguments) > 1 else ""
        value = e.get(argument)
        text, printable = _printable(e, value, element_type(argument.type), op.hex)
        prefix = f"{op.prefix}{operand}"
        if not value.type.is_vector:
            _print_line(e, prefix, [(text, printable)], [])
            continue
        with e.function.loop(0, value.type.lanes, name="print") as loop:
            _print_line(e, prefix, [(text, e.function.extract(printable, loop.index))], [loop.index])


def _print_elements(e: Emitter, op: tile.Print) -> None:
    f, value = e.function, e.get(op.value)
    text, printable = _printable(e, value, element_type(op.value.type), op.hex)
    *row, first = (f.cast("sext", e.get(place), I64) for place in op.places)
    if not value.type.is_vector:
        _print_line(e, op.prefix, [(text, printable)], [*row, first])
        return
    with f.loop(0, value.type.lanes, name="print") as loop:
        _print_line(e, op.prefix, [(text, f.extract(printable, loop.index))], [*row, f.add(first, loop.index)])


def _printable(e: Emitter, value: Value, type_: object, as_hex: bool) -> tuple[str, Value]:
    """A printf conversion and the value widened to what it takes."""
    f = e.function
    if isinstance(type_, FloatType):
        wide = e.widen(value, type_)
        return "%f", f.cast("fpext", wide, wide.type.with_element("double"))
    if value.type.element == "ptr":
        return "0x%016lx", f.cast("ptrtoint", value, value.type.with_element("i64"))
    is_boolean = isinstance(type_, IntegerType) and type_.width == 1
    wide = f.cast("zext" if as_hex or is_boolean else "sext", value, value.type.with_element("i64"))
    return (f"0x%0{max(1, value.type.bits // 4)}lx" if as_hex else "%ld"), wide


def _print_line(e: Emitter, prefix: str, values: Sequence[tuple[str, Value]], places: Sequence[Value]) -> None:
    f = e.function
    comma = "," if len(places) == 1 else ""  # as Python writes tuples
    index = f" idx ({', '.join('%ld' for _ in places)}{comma})" if places else ""
    text = f"pid (%d, %d, %d){index} {prefix.replace('%', '%%')}{''.join(form for form, _ in values)}\n"
    data = text.encode() + b"\0"
    form = e.module.bytes_constant(f"print.{crc32(data):08x}", data)
    arguments = [*e.program, *places, *(value for _, value in values)]
    e.module.declare_variadic("dprintf", I32, [I32, PTR])
    f.line(f"call i32 (i32, ptr, ...) @dprintf({', '.join(map(str, [constant(I32, 1), form, *arguments]))})")


def _assert(e: Emitter, op: tt.Assert) -> None:
    f, condition = e.function, e.get(op.condition)
    failed = f.xor(condition, constant(condition.type, 1))
    with f.when(f.any_lane(failed), "assert"):
        lane = _first_lane(e, failed)
        state = e.module.variable(FAILURE, "[3 x i64] zeroinitializer")
        number = constant(I64, e.assertions[op])
        swapped = f.fresh()
        f.line(f"{swapped} = cmpxchg {state}, i64 0, {number} acq_rel acquire, align 8")
        with f.when(f.emit(f"extractvalue {{ i64, i1 }} {swapped}, 1", I1), "first"):
            f.store(e.linear_id, f.gep(state, 1, I64))
            f.store(lane, f.gep(state, 2, I64))
        f.ret()
        f.open_block(f.label("unreachable"))


def _first_lane(e: Emitter, condition: Value) -> Value:
    """The number of the first lane that holds, as i64."""
    if not condition.type.is_vector:
        return constant(I64, 0)
    bits = e.function.bitcast(condition, vector(f"i{condition.type.lanes}", 1))
    return e.function.intrinsic("llvm.cttz", I64, e.function.cast("zext", bits, I64), constant(I1, 1))


def _assume(e: Emitter, op: tt.Assume) -> None:
    condition = e.get(op.condition)
    if not condition.type.is_vector and condition.literal is None:
        e.function.declared_call("llvm.assume", VOID, condition)


RULES: Rules = {
    tt.Print: _print,
    tile.Print: _print_elements,
    tt.Assert: _assert,
    tt.Assume: _assume,
}
