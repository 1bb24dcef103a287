"""What emission functions share: the function under construction, the scalars, blocks and pointers emitted so far.

Level: intrinsic -> llvm. A scalar is an LLVM scalar, the same in all lanes of a warp; a block is `Lanes`. Element-wise
operations share their rules with other targets: such a rule sees one value of each operand at a time. Guarantees: an
operation without an emission function raises `BackendError` at its source line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Any

from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.errors import BackendError
from mltriton.ir.operation import Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorDescType, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.emit import context
from mltriton.targets.llvm.types import I32, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.constant_offsets import Affine
from mltriton.targets.simt.lanes import (
    BlockPointer,
    Emitted,
    Form,
    Lanes,
    Made,
    SharedBlock,
    element_name,
    layout_of,
    parts_of,
)
from mltriton.targets.simt.machine import Machine
from mltriton.targets.simt.moves import lane_bit, linear, move, names
from mltriton.targets.simt.promises import take_promises
from mltriton.targets.simt.shared_accesses import SharedAccesses

Rule = Callable[[Any, Any], Any]  # of an emitter and an operation; gives `Made`
Rules = Mapping[type[Operation], Rule]


class Emitter(context.Emitter):
    """The state of one kernel's emission. `elements` are the rules that see one LLVM value of each block."""

    def __init__(
        self, module: Module, function: Function, machine: Machine, warps: int, rules: Rules, elements: Rules
    ) -> None:
        super().__init__(module, function, f16_conversion=True, rules={})
        self.machine = machine
        self.calls = machine.calls
        self.warps = warps
        self.affine = Affine(function)
        self.block_rules = rules
        self.element_rules = elements
        self.shared_starts: dict[Operation, Value] = {}  # where each allocation of shared memory starts
        self.own_bytes = 0  # of shared memory that only one warp uses
        self.shared_accesses = SharedAccesses()
        self.caching: Any = None  # what the access at hand asks of the caches, as the machine says it
        self.volatile = False  # whether the access at hand is done where it stands, each time
        self._emitted: dict[IRValue, Emitted] = {}
        self._parts: dict[IRValue, Value] = {}
        self._taken_from: dict[str, tuple[Value, int]] = {}

    # What is emitted for a value

    def get(self, value: IRValue) -> Value:
        """A scalar, or within an element-wise rule the part at hand of a block."""
        part = self._parts.get(value)
        return part if part is not None else super().get(value)

    def put(self, value: IRValue, emitted: Emitted) -> None:
        """Remember what stands for a value."""
        if isinstance(emitted, Value):
            super().put(value, emitted)
        else:
            self._emitted[value] = emitted
        if value.defining_op is None or value.defining_op.attributes:
            take_promises(self, value, emitted)

    def any(self, value: IRValue) -> Emitted:
        """What stands for a value of any type."""
        return self._emitted[value] if value in self._emitted else super().get(value)

    def find(self, value: IRValue) -> Emitted | None:
        """What stands for a value; None where it was not emitted yet."""
        return self._emitted.get(value) or self._values.get(value)

    def ensure(self, value: IRValue) -> bool:
        """Emit a scalar before its turn; whether it can be: it is made of what is there without effects."""
        op = value.defining_op
        if self.find(value) is not None:
            return True
        if op is None or not op.pure or op.regions or isinstance(value.type, TensorType):
            return False
        if not all(self.ensure(operand) for operand in op.operands):
            return False
        self.operation(op)
        return True

    def lanes(self, value: IRValue) -> Lanes:
        """A block in registers."""
        found = self._emitted[value]
        assert isinstance(found, Lanes)
        return found

    def block_pointer(self, value: IRValue) -> BlockPointer:
        """A block pointer or descriptor."""
        found = self._emitted[value]
        assert isinstance(found, BlockPointer)
        return found

    def shared(self, value: IRValue) -> SharedBlock:
        """A block in shared memory."""
        found = self._emitted[value]
        assert isinstance(found, SharedBlock)
        return found

    # Types

    def type_of(self, type_: IRType) -> Type:
        """The LLVM type of scalars, or of the part at hand of blocks."""
        element = type_.element if isinstance(type_, TensorType) else type_
        return vector(element_name(element), self._lanes)

    def narrow(self, value: Value, type_: IRType, toward_zero: bool = False) -> Value:
        """An f32 or f64 value rounded to the (element) type `type_`."""
        made = None
        if value.type.element == "float" and not toward_zero:
            made = self.machine.narrow(self.function, value, element_type(type_))
        return super().narrow(value, type_, toward_zero) if made is None else made

    def widen(self, value: Value, type_: IRType) -> Value:
        """A float value of (element) type `type_` in the format arithmetic is done in: f32 or f64."""
        made = self.machine.widen(self.function, value, element_type(type_))
        return super().widen(value, type_) if made is None else made

    # Blocks as registers

    def form_of(self, type_: TensorType) -> Form:
        """How a block of that type is held."""
        return self.machine.form_of(type_)

    def registers(self, value: IRValue) -> list[Value]:
        """The registers of a block, as scalars."""
        return self.scalars(self.lanes(value))

    def scalars(self, lanes: Lanes) -> list[Value]:
        """The registers of a block, as scalars."""
        return [register for value in lanes.values for register in self._taken_apart(value, lanes.form)]

    def _taken_apart(self, value: Value, form: Form) -> list[Value]:
        if form.width == 1:
            return [value]
        numbers = range(form.type.lanes)
        made = [register for number in numbers for register in self._registers_of(self.word(value, number), form)]
        for index, register in enumerate(made):
            if register.literal is None:
                self._taken_from[register.text] = (value, index)
        return made

    def _registers_of(self, word: Value, form: Form) -> list[Value]:
        """The registers that share a word."""
        f, count = self.function, form.width // form.type.lanes
        parts = f.bitcast(word, form.element.with_lanes(count)) if count > 1 else word
        return [f.extract(parts, part) for part in range(count)] if count > 1 else [word]

    def packed(self, registers: Sequence[Value], form: Form) -> Lanes:
        """Scalars as a block of that form."""
        if form.width == 1:
            return Lanes(form, registers)
        starts = range(0, len(registers), form.width)
        return Lanes(form, [self._put_together(registers[start : start + form.width], form) for start in starts])

    def _put_together(self, registers: Sequence[Value], form: Form) -> Value:
        whole = self._whole(registers, form.type)
        if whole is not None:
            return whole
        f, per_word = self.function, form.width // form.type.lanes
        literals = {register.literal for register in registers}
        if len(literals) == 1 and (None not in literals) and per_word == 1:
            return f.splat(registers[0], form.width)
        starts = range(0, form.width, per_word)
        words = [f.bitcast(f.joined(registers[start : start + per_word]), form.type.scalar) for start in starts]
        return f.joined(words)

    def _whole(self, registers: Sequence[Value], type_: Type) -> Value | None:
        """The value from which these registers were taken, all and in order."""
        value, _ = self._taken_from.get(registers[0].text, (None, 0))
        if value is None or value.type != type_:
            return None
        same = all(self._taken_from.get(r.text) == (value, number) for number, r in enumerate(registers))
        return value if same else None

    def word(self, value: Value, number: int) -> Value:
        """One of the words of which a value of a block is made."""
        return self.function.extract(value, number)

    def of_words(self, words: Sequence[Value], form: Form) -> Value:
        """A value of a block of its words."""
        return self.function.joined(words)

    def shared_word(self, registers: Sequence[Value]) -> Value | None:
        """The word from which just these registers were taken, in order; None where there is none."""
        value, index = self._taken_from.get(registers[0].text, (None, 0))
        if value is None or value.type.bits != len(registers) * registers[0].type.bits or index % len(registers):
            return None
        together = all(self._taken_from.get(r.text) == (value, index + i) for i, r in enumerate(registers))
        return self.word(value, index // len(registers)) if together else None

    def moved(
        self,
        lanes: Lanes,
        source: LinearLayout,
        wanted: LinearLayout,
        form: Form,
        origin: tuple[int, ...] | None = None,
    ) -> Lanes:
        """The registers of the elements of `wanted`, moved by `origin`, of a block with layout `source`."""
        origin = origin or (0,) * len(source.outputs)
        numbers = names(source, wanted, origin)
        if numbers is not None and form == lanes.form:
            width = form.width
            groups = [numbers[start : start + width] for start in range(0, len(numbers), width)]
            if all(group[0] % width == 0 and group == tuple(range(group[0], group[0] + width)) for group in groups):
                return Lanes(form, [lanes.values[group[0] // width] for group in groups])
        return self.regrouped(lanes, source, wanted, form, origin)

    def regrouped(
        self, lanes: Lanes, source: LinearLayout, wanted: LinearLayout, form: Form, origin: tuple[int, ...]
    ) -> Lanes:
        """The same where values of the result are no values of the source."""
        return self.packed(self.rearranged(self.scalars(lanes), source, wanted, origin), form)

    def rearranged(
        self,
        registers: Sequence[Value],
        source: LinearLayout,
        wanted: LinearLayout,
        origin: tuple[int, ...] | None = None,
    ) -> list[Value]:
        """The registers of the elements of `wanted`, moved by `origin`, of those of a block with layout `source`."""
        return self.divided(registers, move(self.calls, self.function, registers, source, wanted, origin))

    def divided(self, registers: Sequence[Value], moved: list[Value]) -> list[Value]:
        """What was made of registers by moving their elements: what divides all of these divides them."""
        if registers[0].type.element.startswith(("i", "ptr")):
            divisor = gcd(*map(self.affine.divisor, registers))
            for value in moved:
                self.affine.promise(value, divisor)
        return moved

    def by_lane(self, images: tuple[int, ...]) -> Value:
        """For each lane the images of the bits of its number, put together, i32."""
        return linear(self.function, self.calls.lane(self.function), images)

    def lane_bit(self, bit: int) -> Value:
        """Whether a bit of the lane's number is set."""
        return lane_bit(self.calls, self.function, bit)

    def from_lane(self, value: Value, kept: int, set_: int) -> Value:
        """What the lane has whose number has the bits `kept` of this one's, and the bits `set_`."""
        f = self.function
        return self.calls.shuffle(f, value, f.or_(f.and_(self.calls.lane(f), kept), set_))

    def everywhere(self, number: int) -> Value:
        """A number, i32, the same in all lanes."""
        return constant(I32, number)

    def held(self, registers: Sequence[Value], type_: IRType) -> Emitted:
        """Registers as what a value of `type_` is: a block, or a scalar from register 0."""
        return self.packed(registers, self.form_of(type_)) if isinstance(type_, TensorType) else registers[0]

    # Lanes that need not run in step

    def meet(self) -> None:
        """The lanes of the warp wait for each other, and see what the others have written, where they may run ahead."""
        if not self.machine.in_step:
            self.calls.barrier(self.function, of_warp=True)

    # Values that regions carry, flattened

    def flat(self, value: IRValue) -> list[Value]:
        """What a loop carries or a branch gives for a value."""
        found = self.any(value)
        if isinstance(found, SharedBlock) or is_block_pointer(value.type):
            raise BackendError(
                "a region cannot carry a block in shared memory or a block pointer", found=str(value.type)
            )
        return parts_of(found)

    def raised(self, like: IRValue, type_: IRType, values: Sequence[Value]) -> Emitted:
        """The opposite of `flat`; `like` has what does not travel with the values."""
        if isinstance(type_, TensorType):
            return Lanes(self.form_of(type_), values)
        if isinstance(type_, TensorDescType):
            rank = type_.block.rank
            padding = self.block_pointer(like).padding if like in self._emitted else "pad_zero"
            return BlockPointer(values[0], values[1 : 1 + rank], values[1 + rank :], (), padding)
        return values[0]

    # Operations

    def operations(self, ops: Sequence[Operation]) -> None:
        """Emit operations that follow each other in a block."""
        for op in ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        """Emit one operation."""
        kind = type(op)
        try:
            if (rule := self.block_rules.get(kind)) is not None:
                self._remember(op, rule(self, op))
            elif (rule := self.element_rules.get(kind)) is not None:
                self._remember(op, self.elementwise(op, rule))
            else:
                found = ", ".join(str(operand.type) for operand in op.operands)
                raise BackendError(f"{op.name} has no lowering for {self.machine.name}", found=found)
        except BackendError as error:
            raise error.at(op.loc.in_source) from None

    def _remember(self, op: Operation, emitted: Made) -> None:
        made = () if emitted is None else emitted if isinstance(emitted, list) else (emitted,)
        for result, value in zip(op.results, made, strict=True):
            self.put(result, value)

    def elementwise(self, op: Operation, rule: Rule) -> Made:
        """What a rule that sees one LLVM value of each block makes of all of them."""
        blocks = [value for value in op.operands if isinstance(value.type, TensorType)]
        types = [value.type for value in (*op.results, *blocks) if isinstance(value.type, TensorType)]
        if not types:
            return rule(self, op)
        forms = [self.form_of(type_) for type_ in types]
        whole = all(form.is_plain and form.width == forms[0].width for form in forms)
        width = forms[0].width if whole else 1
        operands = {value: self.lanes(value).values if whole else self.registers(value) for value in blocks}
        parts = layout_of(types[0]).count("register") // width
        made = [self._part(op, rule, width, {v: values[i] for v, values in operands.items()}) for i in range(parts)]
        return Lanes(forms[0], made) if whole else self.packed(made, forms[0])

    def _part(self, op: Operation, rule: Rule, width: int, parts: dict[IRValue, Value]) -> Value:
        saved, self._parts = self._parts, parts
        with self.lanewise(width):
            made = rule(self, op)
        self._parts = saved
        return made


def coordinates(e: Emitter, layout: LinearLayout, dim: int) -> list[Value]:
    """The coordinate along a dimension of each register of this lane, i32."""
    f = e.function
    by_lane = tuple(vector[dim] for vector in layout.vectors("lane"))
    by_register = [layout.at(register=register)[dim] for register in range(layout.count("register"))]
    if not any(by_lane):
        return [e.everywhere(number) for number in by_register]
    base = e.by_lane(by_lane)
    used = 0
    for image in by_lane:
        used |= image
    e.affine.promise_bits(base, used)
    made: list[Value] = []
    for number in by_register:
        apart = number & used == 0
        made.append(e.affine.add(base, e.everywhere(number)) if apart else f.xor(base, number))
    return made
