"""Blocks that are the same in all lanes - a number for each row, say - as one vector with an element for each register.

Level: intrinsic -> llvm. Such a block costs a register for 16 of its elements; where it meets whole rows, instructions
read each element for all lanes. What a vector was made of is remembered, so that taking it apart and putting it
together again costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mltriton.ir.types import TensorType
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.types import Type, Value, constant, listed, poison
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.lanes import Form, layout_of
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, joined, read


@cache
def rows_of(type_: IRType) -> int:
    """How many numbers a block holds that is the same in all lanes; 0 for others."""
    if not isinstance(type_, TensorType):
        return 0
    layout = layout_of(type_)
    registers = layout.count("register")
    return 0 if registers == 1 or any(any(vector) for vector in layout.vectors("lane")) else registers


def form_of_rows(rows: int, element: Type) -> Form:
    """How such a block is held: no other form has more registers than elements of that type."""
    return Form(rows, element, element)


def holds_rows(form: Form) -> bool:
    """Whether a form is that of such a block."""
    return form.width > 1 and form.type == form.element


class Rows:
    """The elements of such vectors in every lane, and where they come from."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._from: dict[str, tuple[Value, int]] = {}

    def everywhere(self, rows: Value, number: int) -> Value:
        """Element `number` in every lane."""
        f = self._function
        if rows.literal is not None:
            return constant(rows.type.with_lanes(LANES), rows.literal)
        if rows.elements:
            return constant(rows.type.with_lanes(LANES), rows.elements[number])
        made = f.splat(f.extract(rows, number), LANES)
        self._from[made.text] = (rows, number)
        return made

    def whole(self, registers: Sequence[Value]) -> Value:
        """The vector of registers that are each the same in all lanes."""
        f, scalar = self._function, registers[0].type.scalar
        found = self.run(registers)
        if found is not None:
            return found
        literals = [register.literal for register in registers]
        if all(literal is not None for literal in literals):
            return constants([literal or 0 for literal in literals], scalar)
        made = poison(scalar.with_lanes(len(registers)))
        for number, register in enumerate(registers):
            rows, index = self._from.get(register.text, (register, 0))
            made = f.insert(made, f.extract(rows, index), number)
        return made

    def run(self, registers: Sequence[Value]) -> Value | None:
        """The elements of one or more vectors, in order, that these registers are; None for others."""
        parts: list[tuple[Value, int, int]] = []
        for register in registers:
            rows, index = self._from.get(register.text, (None, 0))
            if rows is None:
                return None
            if parts and parts[-1][0] == rows and sum(parts[-1][1:]) == index:
                parts[-1] = (rows, parts[-1][1], parts[-1][2] + 1)
            else:
                parts.append((rows, index, 1))
        if len({count for *_, count in parts}) > 1 or (len(parts) > 1 and parts[0][2] == 1):
            return None
        pieces = [read(self._function, rows, start, count) for rows, start, count in parts]
        return joined(self._function, pieces) if pieces[0].type.is_vector else None

    def spread(self, registers: Sequence[Value]) -> Value | None:
        """The vector of all lanes of registers that follow each other in one such vector; None for others."""
        rows, start = self._from.get(registers[0].text, (None, 0))
        same = all(self._from.get(r.text) == (rows, start + number) for number, r in enumerate(registers))
        if rows is None or not same or rows.type.bits == 1:
            return None
        return read(self._function, rows, start, LANES, 0, len(registers), 1)


def constants(numbers: Sequence[int | float], scalar: Type) -> Value:
    """A vector of numbers, equal ones or others."""
    if len({constant(scalar, number) for number in numbers}) == 1:
        return constant(scalar.with_lanes(len(numbers)), numbers[0])
    return listed(scalar, numbers)
