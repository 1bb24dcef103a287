"""What emission functions of a SIMD kernel share: a block's registers as vectors of all lanes.

Level: intrinsic -> llvm. What is one scalar of each lane otherwise (`emit/context.py`) is here a vector of 16 elements;
where an instruction of the matrix engine takes several registers of a lane, they are one longer vector, register after
register (of elements smaller than a word, word after word), as they lie in the register file. Scalars stay scalars,
pointers are integers. Rules that see one LLVM value of each block see these vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.operation import Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorType
from mltriton.ir.types import Type as IRType
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import I32, Type, Value, constant, integers, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.context import Rule, Rules
from mltriton.targets.simt.lanes import Emitted, Form, Lanes, Made, element_name, layout_of
from mltriton.targets.simt.moves import names
from mltriton.targets.xe.cache_hints import LOADS, Controls, Load, Store
from mltriton.targets.xe.layouts.region_moves import RegionMoves
from mltriton.targets.xe.llvm.emit.context import XeEmitter
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.llvm.machine import XeMachine
from mltriton.targets.xe.llvm.simd import moves
from mltriton.targets.xe.llvm.simd.intrinsics import AS_USUAL, LANES, Caching, joined, read, same_bits, write
from mltriton.targets.xe.llvm.simd.rows import Rows, form_of_rows, holds_rows, rows_of
from mltriton.targets.xe.llvm.simd.vector_offsets import VectorAffine
from mltriton.targets.xe.llvm.surfaces import Legality

# What a load or a store asks of a cache -> the code in a message.
LOADED = {Load.UNCACHED: 1, Load.CACHED: 2, Load.STREAMING: 5}
STORED = {Store.UNCACHED: 1, Store.WRITE_THROUGH: 4, Store.WRITE_BACK: 3, Store.STREAMING: 5}


def held_element(type_: IRType) -> Type:
    """LLVM's type of one element of a block, or of a scalar: pointers are integers."""
    return _as_integer(vector(element_name(type_), 1))


def _as_integer(type_: Type) -> Type:
    return type_.with_element("i64") if type_.element.startswith("ptr") else type_


def value_type(form: Form) -> Type:
    """The vector that holds `form.width` registers of all lanes."""
    held = _as_integer(form.type)
    return held.with_lanes(held.lanes * LANES)


def _cache_code(level: Load | Store) -> int:
    return LOADED[level] if isinstance(level, Load) else STORED[level]


class WarpEmitter(XeEmitter):
    """The state of one kernel's emission."""

    def __init__(
        self,
        module: Module,
        function: Function,
        machine: XeMachine,
        warps: int,
        rules: Rules,
        elements: Rules,
        legality: Legality,
    ) -> None:
        super().__init__(module, function, machine, warps, rules, elements, legality)
        self.affine = VectorAffine(function)
        self.rows = Rows(function)
        self._bits_of: dict[str, Value] = {}
        self._made_of: dict[str, Sequence[Value]] = {}
        self._variables: tuple[object, dict[tuple[str, int], Value]] = (None, {})

    def put(self, value: IRValue, emitted: Emitted) -> None:
        """Remember what stands for a value; a block that is the same in all lanes is held as its rows."""
        if isinstance(emitted, Lanes) and rows_of(value.type) and not holds_rows(emitted.form):
            emitted = self._as_rows(emitted)
        super().put(value, emitted)

    def _as_rows(self, lanes: Lanes) -> Lanes:
        registers = self.scalars(lanes)
        element = registers[0].type.scalar
        whole = self.divided(registers, [self.rows.whole(registers)])
        return Lanes(form_of_rows(len(registers), element), whole)

    def raised(self, like: IRValue, type_: IRType, values: Sequence[Value]) -> Emitted:
        """What stands for a value that a region carries as `values`."""
        rows = rows_of(type_)
        if rows:
            return Lanes(form_of_rows(rows, values[0].type.scalar), values)
        return super().raised(like, type_, values)

    def type_of(self, type_: IRType) -> Type:
        """The LLVM type of scalars, or of the part at hand of blocks."""
        element = type_.element if isinstance(type_, TensorType) else type_
        return held_element(element).with_lanes(self._lanes)

    def by_lane(self, images: tuple[int, ...]) -> Value:
        """For each lane the images of the bits of its number, put together: a constant."""
        numbers: list[int] = []
        for lane in range(LANES):
            number = 0
            for bit, image in enumerate(images):
                number ^= image if lane >> bit & 1 else 0
            numbers.append(number)
        return integers("i32", numbers)

    def lane_bit(self, bit: int) -> Value:
        """Whether a bit of the lane's number is set: a constant."""
        return integers("i1", [lane >> bit & 1 for lane in range(LANES)])

    def from_lane(self, value: Value, kept: int, set_: int) -> Value:
        """What the lane has whose number has the bits `kept` of this one's, and the bits `set_`."""
        return moves.pick(self.function, value, [lane & kept | set_ for lane in range(LANES)])

    def everywhere(self, number: int) -> Value:
        """A number, i32, in all lanes."""
        return constant(I32.with_lanes(LANES), number)

    def bits_as(self, value: Value, to: Type) -> Value:
        """The same bits; going back gives the value itself."""
        first = self._bits_of.get(value.text, value)
        if first.type == to:
            return first
        made = same_bits(self.function, first, to)
        if made.literal is None:
            self._bits_of[made.text] = first
        return made

    @property
    def cached(self) -> Caching:
        """What the access at hand asks of the caches, as messages name it."""
        asked: Controls | None = LOADS["cg"] if self.volatile else self.caching
        return AS_USUAL if asked is None else (_cache_code(asked.first), _cache_code(asked.third))

    def variable(self, first: Value, number: int = 0) -> Value:
        """A variable of the innermost loop that starts with a value known in front of it; the same for the same one
        with the same number.
        """
        loop = self.function.innermost_loop
        if self._variables[0] is not loop or loop is None:
            self._variables = loop, {}
        known = self._variables[1]
        if (first.text, number) not in known:
            known[first.text, number] = made = self.function.alloca(first.type)
            with self.function.before_loop():
                self.function.store(first, made, 64)
        return known[first.text, number]

    def repeated(self, value: Value, lanes: int) -> Value:
        """What is known of the scalar is known of its copies."""
        return self.affine.spread(value, lanes)

    def vector_of(self, value: IRValue) -> list[Value]:
        """The registers of a block, or a scalar in every lane."""
        if isinstance(value.type, TensorType):
            return self.registers(value)
        return [self.affine.spread(self.get(value), LANES)]

    def rearranged(
        self,
        registers: Sequence[Value],
        source: LinearLayout,
        wanted: LinearLayout,
        origin: tuple[int, ...] | None = None,
    ) -> list[Value]:
        """The registers at the indices of `wanted`, moved by `origin`, of those of a block with layout `source`."""
        origin = origin or (0,) * len(source.outputs)
        renamed = names(source, wanted, origin)
        if renamed is not None:
            return [registers[number] for number in renamed]
        return self.divided(registers, moves.move(self.function, registers, source, wanted, origin))

    def by_regions(self, inputs: Sequence[Value], moves: RegionMoves, form: Form, count: int) -> list[Value]:
        """`count` values of a form, by moves from the inputs, which lie one after the other."""
        f, type_ = self.function, value_type(form)
        parts = inputs
        for stage in moves.stages:
            whole = joined(f, parts)
            units = same_bits(f, whole, vector(f"i{8 * stage.unit}", whole.type.bytes // stage.unit))
            starts = [stage.source(number) // stage.unit for number in range(stage.moves)]
            parts = [read(f, units, start, stage.length, stage.stride) for start in starts]
        together = max(1, type_.bytes // moves.stages[-1].run)  # parts of one value
        values = [joined(f, parts[at : at + together]) for at in range(0, len(parts), together)]
        size = type_.bytes // moves.unit
        split = [read(f, value, at, size) for value in values for at in range(0, value.type.lanes, size)]
        return [self.bits_as(part, type_) for part in split]

    def held(self, registers: Sequence[Value], type_: IRType) -> Emitted:
        """Registers as what a value of `type_` is: a block, or a scalar from the first lane."""
        if isinstance(type_, TensorType):
            return self.packed(registers, form_of(type_))
        return self.function.extract(registers[0], 0)

    def word(self, value: Value, number: int) -> Value:
        """One of the words of which a value of a block is made, of all lanes."""
        return read(self.function, value, number * LANES, LANES)

    def of_words(self, words: Sequence[Value], form: Form) -> Value:
        """A value of a block of its words."""
        return joined(self.function, words)

    def _taken_apart(self, value: Value, form: Form) -> list[Value]:
        if form.width > 1 and holds_rows(form):
            return self.divided([value], [self.rows.everywhere(value, number) for number in range(form.width)])
        if form.width > 1 and value.text in self._made_of:
            return list(self._made_of[value.text])
        return super()._taken_apart(value, form)

    def _registers_of(self, word: Value, form: Form) -> list[Value]:
        count = form.width // form.type.lanes
        parts = same_bits(self.function, word, form.element.with_lanes(count * LANES)) if count > 1 else word
        return [read(self.function, parts, part, LANES, count) for part in range(count)] if count > 1 else [word]

    def _put_together(self, registers: Sequence[Value], form: Form) -> Value:
        whole_type = value_type(form)
        whole = self._whole(registers, whole_type)
        if whole is not None:
            return whole
        f, per_word = self.function, form.width // form.type.lanes
        if per_word == 1:
            made = self.rows.spread(registers) or joined(f, registers)
            if made.literal is None:
                self._made_of[made.text] = registers
            return made
        words: list[Value] = []
        for start in range(0, form.width, per_word):
            parts = Value(form.element.with_lanes(per_word * LANES), "poison")
            for part in range(per_word):
                parts = write(f, parts, registers[start + part], part, per_word)
            words.append(same_bits(f, parts, form.type.scalar.with_lanes(LANES)))
        return joined(f, words)

    def _whole(self, registers: Sequence[Value], type_: Type) -> Value | None:
        """The part of a longer value from which these registers were taken, all and in order."""
        value, first = self._taken_from.get(registers[0].text, (None, 0))
        per_word = len(registers) * LANES // type_.lanes
        if value is None or value.type.scalar != type_.scalar or first % per_word:
            return None
        if any(self._taken_from.get(r.text) != (value, first + number) for number, r in enumerate(registers)):
            return None
        return read(self.function, value, first // per_word * LANES, type_.lanes)

    def elementwise(self, op: Operation, rule: Rule) -> Made:
        """By rows, by whole values of one instruction, or register by register."""
        blocks = [value for value in op.operands if isinstance(value.type, TensorType)]
        types = [value.type for value in (*op.results, *blocks) if isinstance(value.type, TensorType)]
        forms = [form_of(type_) for type_ in types]
        if types and rows_of(types[0]):
            parts = {value: self.lanes(value).values[0] for value in blocks}
            made = super()._part(op, rule, rows_of(types[0]), parts)
            return Lanes(form_of_rows(rows_of(types[0]), made.type.scalar), [made])
        if types and all(form.type.lanes == form.width == forms[0].width > 1 for form in forms):
            operands = {value: self.lanes(value).values for value in blocks}
            count = layout_of(types[0]).count("register") // forms[0].width
            made = [self._part(op, rule, forms[0].width, {v: o[i] for v, o in operands.items()}) for i in range(count)]
            return Lanes(forms[0], made)
        return super().elementwise(op, rule)

    def _part(self, op: Operation, rule: Rule, width: int, parts: dict[IRValue, Value]) -> Value:
        return super()._part(op, rule, width * LANES, parts)

    def splat(self, literal: int | float, form: Form, registers: int) -> Lanes:
        """A block of one number."""
        whole = value_type(form)
        if (per_word := form.width // form.type.lanes) > 1:
            bits, size = int(literal), form.element.bits
            raw = (bits & (1 << size) - 1).to_bytes(size // 8, "little") * per_word
            literal = int.from_bytes(raw, "little", signed=True)
        return Lanes(form, [constant(whole, literal)] * (registers // form.width))
