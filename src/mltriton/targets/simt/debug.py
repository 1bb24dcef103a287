"""Printing and assertions from a running kernel, by C's printf and a record in memory that the host shares.

Level: intrinsic -> llvm. Lanes print the elements that they hold; what several hold alike, one of them does. A lane
whose assertion fails writes into the kernel's last argument. Its warp then ends, except in kernels with barriers, where
the others would wait for it: there it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mltriton.dialects import tt
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorType, element_type
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.emit.debug import Printed, line_form, prefixes, printable, record_failure
from mltriton.targets.llvm.types import I1, I64, Value, constant
from mltriton.targets.simt.context import Emitter, Rules, coordinates
from mltriton.targets.simt.lanes import layout_of


def _print(e: Emitter, op: tt.Print) -> None:
    program = [e.calls.program(e.function, axis) for axis in range(3)]
    if not op.arguments:
        with e.function.when(_is_first_lane(e), "print"):
            print_line(e, str(op.prefix), program, [], (), None)
    for prefix, argument in zip(prefixes(op), op.arguments, strict=True):
        if not isinstance(argument.type, TensorType):
            with e.function.when(_is_first_lane(e), "print"):
                print_line(e, prefix, program, [], (), _printable(e, op, argument, e.get(argument)))
            continue
        layout = layout_of(argument.type)
        along = [coordinates(e, layout, dim) for dim in range(argument.type.rank)]
        with e.function.when(_holds_first(e, layout), "print"):
            for number in first_registers(layout):
                shown = _printable(e, op, argument, e.registers(argument)[number])
                print_line(e, prefix, program, [at[number] for at in along], argument.type.shape, shown)


def _printable(e: Emitter, op: tt.Print, argument: IRValue, value: Value) -> Printed:
    return printable(e, value, element_type(argument.type), bool(op.hex))


def print_line(
    e: Emitter,
    prefix: str,
    program: Sequence[Value],
    along: Sequence[Value],
    shape: Sequence[int],
    shown: Printed | None,
) -> None:
    """Print a line: the program's coordinates, where an element is in a block of `shape`, the text, the element."""
    widths = [tt.index_width(size) for size in shape]
    form = line_form(e, prefix, shown.conversion if shown else "", widths, "d", e.machine.text_pointer)
    e.machine.print(e.function, form, [*program, *along, *([shown.value] if shown else [])])


def _is_first_lane(e: Emitter) -> Value:
    return e.function.icmp("eq", e.calls.lane(e.function), 0)


def _holds_first(e: Emitter, layout: LinearLayout) -> Value:
    """Whether no lane with a smaller number holds the same elements."""
    copies = sum(1 << bit for bit, vector in enumerate(layout.vectors("lane")) if not any(vector))
    f = e.function
    return f.icmp("eq", f.and_(e.calls.lane(f), copies), 0) if copies else constant(I1, 1)


def first_registers(layout: LinearLayout) -> list[int]:
    """The registers of a lane that hold what no other one before them holds."""
    copies = sum(1 << bit for bit, vector in enumerate(layout.vectors("register")) if not any(vector))
    return [number for number in range(layout.count("register")) if not number & copies]


def _assert(e: Emitter, op: tt.Assert) -> None:
    f, type_ = e.function, op.condition.type
    conditions = e.registers(op.condition) if isinstance(type_, TensorType) else [e.get(op.condition)]
    holds = reduce(f.and_, dict.fromkeys(conditions), constant(I1, 1))
    if holds.literal:
        return
    with f.when(f.xor(e.calls.everywhere(f, holds), constant(I1, 1)), "assert"):
        with f.when(f.xor(holds, constant(I1, 1)), "fails"):
            at, grid = ([of(f, axis) for axis in range(3)] for of in (e.calls.program, e.calls.programs))
            element = f.cast("sext", first_element(e, op, conditions), I64)
            record_failure(e, op, program_number(e, at, grid), element, e.machine.record_scope)
        if not e.waits:
            f.ret()
            f.open_block(f.label("unreachable"))


def first_element(e: Emitter, op: tt.Assert, conditions: Sequence[Value]) -> Value:
    """The number, in the warp's block, of the first element of this lane whose condition does not hold; i32."""
    f, type_ = e.function, op.condition.type
    if not isinstance(type_, TensorType):
        return e.everywhere(0)
    layout = layout_of(type_)
    along = [coordinates(e, layout, dim) for dim in range(type_.rank)]
    found = e.everywhere(0)
    for number in reversed(range(len(conditions))):
        element = e.everywhere(0)
        for size, at in zip(type_.shape, along, strict=True):
            element = f.add(f.mul(element, size), at[number])
        found = f.select(conditions[number], found, element)
    return found


def program_number(e: Emitter, at: Sequence[Value], grid: Sequence[Value]) -> Value:
    """The number of a program in its grid, x fastest; i64."""
    f = e.function
    x, y, z = (f.cast("zext", coordinate, I64) for coordinate in at)
    columns, rows = (f.cast("zext", size, I64) for size in grid[:2])
    return f.add(x, f.mul(columns, f.add(y, f.mul(rows, z))))


RULES: Rules = {
    tt.Print: _print,
    tt.Assert: _assert,
}
