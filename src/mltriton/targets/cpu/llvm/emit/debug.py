"""Printing and assertions from a running kernel.

Level: intrinsic -> llvm. `tt.print` writes a line for each element to the process's standard output through the C
library's `dprintf`, in the form of the reference executor. A false `tt.assert` records itself in the exported variable
`kernel.failure`, three i64: the assertion's number in the module, from 1; the program's linear id; the element. The
first failure stays there, and each ends the work on its range of programs; `cpu/assertions.py` raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tile, tt
from mltriton.ir.types import element_type
from mltriton.targets.cpu.assertions import FAILURE
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.emit.debug import line_form, prefixes, printable, record_failure
from mltriton.targets.llvm.types import I1, I32, I64, PTR, VOID, Value, constant, vector


def _print(e: Emitter, op: tt.Print) -> None:
    if not op.arguments:
        _print_line(e, f"{op.prefix}", [], [], ())
    for prefix, argument in zip(prefixes(op), op.arguments, strict=True):
        value = e.get(argument)
        text, shown = printable(e, value, element_type(argument.type), bool(op.hex))
        if not value.type.is_vector:
            _print_line(e, prefix, [(text, shown)], [], ())
            continue
        widths = (tt.index_width(value.type.lanes),)
        with e.function.loop(0, value.type.lanes, name="print") as loop:
            _print_line(e, prefix, [(text, e.function.extract(shown, loop.index))], [loop.index], widths)


def _print_elements(e: Emitter, op: tile.Print) -> None:
    f, value = e.function, e.get(op.value)
    text, shown = printable(e, value, element_type(op.value.type), bool(op.hex))
    *row, first = (f.cast("sext", e.get(coordinate), I64) for coordinate in op.coordinates)
    if not value.type.is_vector:
        _print_line(e, op.prefix, [(text, shown)], [*row, first], op.widths)
        return
    with f.loop(0, value.type.lanes, name="print") as loop:
        coordinates = [*row, f.add(first, loop.index)]
        _print_line(e, op.prefix, [(text, f.extract(shown, loop.index))], coordinates, op.widths)


def _print_line(
    e: Emitter, prefix: str, values: Sequence[tuple[str, Value]], coordinates: Sequence[Value], widths: Sequence[int]
) -> None:
    f = e.function
    form = line_form(e, prefix, "".join(text for text, _ in values), widths, "ld", PTR)
    arguments = [*e.program, *coordinates, *(value for _, value in values)]
    e.module.declare("dprintf", I32, [I32, PTR], variadic=True)
    f.line(f"call i32 (i32, ptr, ...) @dprintf({', '.join(map(str, [constant(I32, 1), form, *arguments]))})")


def _assert(e: Emitter, op: tt.Assert) -> None:
    f, condition = e.function, e.get(op.condition)
    failed = f.xor(condition, constant(condition.type, 1))
    with f.when(f.any_lane(failed), "assert"):
        element = _first_lane(e, failed)
        if op.first is not None:
            element = f.add(element, f.cast("sext", e.get(op.first), I64))
        e.failure = e.module.variable(FAILURE, "[3 x i64] zeroinitializer")
        record_failure(e, op, e.linear_id, element)
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
