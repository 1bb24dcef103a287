"""The instructions of a function under construction, one short method each.

Level: `llvm`. Each method takes typed values and appends an instruction (or none, where the result is known already).
Vectors and scalars are treated alike: a method works on whatever lane count its operands have.
Guarantees: see `writer`; instructions with an effect are never merged or dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from mltriton.targets.llvm.folds import (
    COMMUTES,
    COMPARISONS,
    EXTREMA_OF_BITS,
    FOLDS,
    NEUTRAL,
    ON_BITS,
    ORDER_OF_BITS,
)
from mltriton.targets.llvm.instruction import LABEL, Instruction, Lines, Names, Operands
from mltriton.targets.llvm.types import I1, I32, I64, PTR, VOID, Type, Value, constant, integers, poison, vector

Declare = Callable[[str, Type, Sequence[Type]], None]


class Instructions:
    """Appends instructions to the current block."""

    def __init__(self, declare: Declare, *, keeps_parts: bool = False) -> None:
        self.lines: Lines = []
        self.keeps_parts = keeps_parts  # whether lines are instructions, for others than LLVM, or texts
        self.current_block = "entry"
        self._declare = declare
        self._counter = 0
        self._scopes: list[dict[str, Value]] = [{}]
        self._truncated: dict[str, Value] = {}  # the name of a number -> the wider one whose low bits it has
        self._narrow: set[str] = set()  # names of numbers of 64 bits that surely are ones of 32

    def fresh(self, stem: str = "v") -> str:
        """A new SSA name."""
        self._counter += 1
        return f"%{stem}{self._counter}"

    def label(self, stem: str) -> str:
        """A new block name."""
        self._counter += 1
        return f"{stem}{self._counter}"

    def line(self, text: str, op: str = "", operands: Operands = (), names: Names = ()) -> None:
        """Append an instruction that gives no value; without `op` nothing but LLVM can read it."""
        self.lines.append(Instruction(text, op, "", VOID, operands, names) if self.keeps_parts else f"  {text}")

    def open_block(self, label: str) -> None:
        """Continue in a new block."""
        self.lines.append(Instruction(label, LABEL) if self.keeps_parts else f"{label}:")
        self.current_block = label

    def branch(self, label: str) -> None:
        """Go on in another block."""
        self.line(f"br label %{label}", "br", (), (label,))

    def branch_if(self, condition: Value, then: str, otherwise: str) -> None:
        """Go on in one of two blocks."""
        text = f"br i1 {condition.text}, label %{then}, label %{otherwise}"
        self.line(text, "br", (condition,), (then, otherwise))

    def phi(self, result: Value, values: Operands, blocks: Names) -> None:
        """Append a value that depends on the block before."""
        incoming = (f"[ {value.text}, %{block} ]" for value, block in zip(values, blocks, strict=True))
        self.define(result, f"phi {result.type} {', '.join(incoming)}", "phi", values, blocks)

    def push_scope(self) -> None:
        """From here on, results are only reusable until the matching `pop_scope`."""
        self._scopes.append({})

    def pop_scope(self) -> None:
        """Forget what was computed since `push_scope`."""
        self._scopes.pop()

    def emit(self, text: str, type_: Type, op: str = "", operands: Operands = (), names: Names = ()) -> Value:
        """Append an instruction with an effect and give its result; without `op` nothing but LLVM can read it."""
        return self.define(Value(type_, self.fresh()), text, op, operands, names)

    def define(self, value: Value, text: str, op: str, operands: Operands, names: Names = ()) -> Value:
        """Append an instruction whose result has a name already."""
        if self.keeps_parts:
            self.lines.append(Instruction(text, op, value.text, value.type, operands, names))
        else:
            self.lines.append(f"  {value.text} = {text}")
        return value

    def pure(self, text: str, type_: Type, op: str = "", operands: Operands = (), names: Names = ()) -> Value:
        """The result of an instruction without effects: an earlier one where a dominating block has it."""
        for scope in self._scopes:
            if (known := scope.get(text)) is not None:
                return known
        value = self._scopes[-1][text] = self.define(Value(type_, self.fresh()), text, op, operands, names)
        return value

    def binary(self, op: str, a: Value, b: Value | int, flags: str = "") -> Value:
        """An integer or float operation by LLVM's name on operands of one type; an int stands for a constant."""
        b = constant(a.type, b) if isinstance(b, int) else b
        if a.type is not b.type and a.type != b.type:
            raise TypeError(f"{op} on {a.type} and {b.type}")
        if not a.type.is_float:
            if a.type.bits == 1 and op in ON_BITS:
                op, negated = ON_BITS[op]
                return self.binary(op, a, self.xor(b, 1) if negated else b)
            if a.literal is not None and op in COMMUTES:
                a, b = b, a
            if b.literal is not None:
                if a.literal is not None and op in FOLDS:
                    return constant(a.type, FOLDS[op](int(a.literal), int(b.literal)))
                if NEUTRAL.get(op) == b.literal:
                    return a
                if b.literal == 0 and op in ("mul", "and"):
                    return b
                if op == "and" and a.type.bits == 1:
                    return a
        return self.pure(f"{op}{' ' + flags if flags else ''} {a}, {b.text}", a.type, op, (a, b))

    def add(self, a: Value, b: Value | int) -> Value:
        """Integer sum."""
        return self.binary("add", a, b)

    def sub(self, a: Value, b: Value | int) -> Value:
        """Integer difference."""
        return self.binary("sub", a, b)

    def mul(self, a: Value, b: Value | int) -> Value:
        """Integer product."""
        return self.binary("mul", a, b)

    def and_(self, a: Value, b: Value | int) -> Value:
        """Bitwise and."""
        return self.binary("and", a, b)

    def or_(self, a: Value, b: Value | int) -> Value:
        """Bitwise or."""
        return self.binary("or", a, b)

    def xor(self, a: Value, b: Value | int) -> Value:
        """Bitwise exclusive or."""
        return self.binary("xor", a, b)

    def shl(self, a: Value, b: Value | int) -> Value:
        """Shift left."""
        return self.binary("shl", a, b)

    def ashr(self, a: Value, b: Value | int) -> Value:
        """Arithmetic shift right."""
        return self.binary("ashr", a, b)

    def lshr(self, a: Value, b: Value | int) -> Value:
        """Logical shift right."""
        return self.binary("lshr", a, b)

    def fadd(self, a: Value, b: Value) -> Value:
        """Float sum."""
        return self.binary("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        """Float difference."""
        return self.binary("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        """Float product."""
        return self.binary("fmul", a, b)

    def fdiv(self, a: Value, b: Value, flags: str = "") -> Value:
        """Float quotient."""
        return self.binary("fdiv", a, b, flags)

    def fneg(self, a: Value) -> Value:
        """The value with its sign flipped."""
        return self.pure(f"fneg {a}", a.type, "fneg", (a,))

    def fmuladd(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, fused where the target has it and never a library call."""
        return self.intrinsic("llvm.fmuladd", a.type, a, b, c)

    def icmp(self, predicate: str, a: Value, b: Value | int) -> Value:
        """Integer comparison: one i1 per lane."""
        b = constant(a.type, b) if isinstance(b, int) else b
        if a.literal is not None and b.literal is not None and a.type.bits > 1:
            numbers = (int(x) % (1 << a.type.bits) if predicate[0] == "u" else int(x) for x in (a.literal, b.literal))
            return constant(a.type.with_element("i1"), COMPARISONS[predicate[-2:]](*numbers))
        if a.type.bits == 1 and predicate in ORDER_OF_BITS:
            op, second = ORDER_OF_BITS[predicate]
            return self.binary(op, a if second else self.xor(a, 1), self.xor(b, 1) if second else b)
        text, type_ = f"icmp {predicate} {a}, {b.text}", a.type.with_element("i1")
        return self.pure(text, type_, "icmp", (a, b), (predicate,))

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        """Float comparison: one i1 per lane."""
        text, type_ = f"fcmp {predicate} {a}, {b.text}", a.type.with_element("i1")
        return self.pure(text, type_, "fcmp", (a, b), (predicate,))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`; a scalar condition chooses whole values."""
        if condition.literal is not None:
            return a if condition.literal else b
        return a if a == b else self.pure(f"select {condition}, {a}, {b}", a.type, "select", (condition, a, b))

    def cast(self, op: str, a: Value, to: Type) -> Value:
        """A conversion by LLVM's name (`sext`, `fptrunc`, `bitcast`, ...); none where the type is right already."""
        if a.type == to:
            return a
        if a.literal is not None and op in ("sext", "trunc", "zext") and not to.is_vector and a.type.bits > 1:
            number = int(a.literal)
            return constant(to, number % (1 << a.type.bits) if op == "zext" else number)
        wide = self._truncated.get(a.text)
        if op == "sext" and wide is not None and wide.type == to and self._is_narrow(wide):
            return wide
        if op == "zext" and wide is not None:
            # LLVM's SPIR-V back end masks the wide number itself, whose type may be another one.
            resized = self.cast("trunc" if wide.type.bits > to.bits else "zext", wide, to)
            return self.and_(resized, (1 << a.type.bits) - 1)
        made = self.pure(f"{op} {a} to {to}", to, op, (a,))
        if op == "trunc":
            self._truncated[made.text] = a
        elif op == "sext" and a.type.bits <= 32:
            self._narrow.add(made.text)
        return made

    def counter(self, name: str, between: Sequence[Value], type_: Type) -> Value:
        """A name for a number that lies between others, where there are any."""
        made = Value(type_, self.fresh(name))
        if between and all(map(self._is_narrow, between)):
            self._narrow.add(made.text)
        return made

    def _is_narrow(self, number: Value) -> bool:
        return number.text in self._narrow if number.literal is None else -(2**31) <= number.literal < 2**31

    def bitcast(self, a: Value, to: Type) -> Value:
        """The same bits as another type."""
        return self.cast("bitcast", a, to)

    def call(self, name: str, result: Type, *arguments: Value) -> Value:
        """Call a function that may have effects; a void call gives a value nobody may use."""
        text = f"call {result} @{name}({', '.join(map(str, arguments))})"
        if result == VOID:
            self.line(text, "call", arguments, (name,))
            return poison(VOID)
        return self.emit(text, result, "call", arguments, (name,))

    def declared_call(self, name: str, result: Type, *arguments: Value) -> Value:
        """Call an external function or intrinsic with effects, declaring it."""
        self._declare(name, result, [argument.type for argument in arguments])
        return self.call(name, result, *arguments)

    def prefetch(self, address: Value, *, write: bool = False, level: int = 1) -> None:
        """Bring a line of memory to the cache of a level, and to those behind it."""
        places = [constant(I32, number) for number in (int(write), 4 - level, 1)]
        self.declared_call("llvm.prefetch.p0", VOID, address, *places)

    def pure_call(self, name: str, result: Type, *arguments: Value, flags: str = "") -> Value:
        """Call an external function or intrinsic without effects, declaring it."""
        self._declare(name, result, [argument.type for argument in arguments])
        text = f"call {flags + ' ' if flags else ''}{result} @{name}({', '.join(map(str, arguments))})"
        return self.pure(text, result, "call", arguments, (name,))

    def assembly(
        self, text: str, constraints: str, results: Sequence[Type], *operands: Value, pure: bool = False
    ) -> list[Value]:
        """Inline assembly for all lanes of a GPU's warp together, or (`pure`) of nothing but the operands' values."""
        result = VOID.text if not results else results[0].text
        if len(results) > 1:
            result = f"{{ {', '.join(map(str, results))} }}"
        effect, after = ("", "memory(none)") if pure else ("sideeffect ", "convergent")
        call = f'call {result} asm {effect}"{text}", "{constraints}"({", ".join(map(str, operands))}) {after}'
        if not results:
            self.line(call)
            return []
        if len(results) == 1:
            return [(self.pure if pure else self.emit)(call, results[0])]
        whole = (self.pure if pure else self.emit)(call, VOID).text
        return [self.pure(f"extractvalue {result} {whole}, {i}", type_) for i, type_ in enumerate(results)]

    def intrinsic(self, stem: str, result: Type, *arguments: Value, flags: str = "") -> Value:
        """Call a pure intrinsic overloaded on its first argument's type: `stem` without the type suffix."""
        if arguments[0].type.element == "i1" and stem in EXTREMA_OF_BITS:
            return self.binary(EXTREMA_OF_BITS[stem], arguments[0], arguments[1])
        return self.pure_call(f"{stem}.{arguments[0].type.suffix}", result, *arguments, flags=flags)

    def splat(self, scalar: Value, lanes: int) -> Value:
        """`scalar` in every lane."""
        if lanes == 1:
            return scalar
        type_ = scalar.type.with_lanes(lanes)
        if scalar.literal is not None:
            return constant(type_, scalar.literal)
        first = self.insert(poison(type_), scalar, 0)
        return self._chosen(first, poison(type_), constant(I32.with_lanes(lanes), 0))

    def shuffle(self, a: Value, b: Value, mask: Sequence[int]) -> Value:
        """Lanes of `a` (0 ..) and `b` (after those of `a`) picked by constant numbers; -1 leaves a lane undefined."""
        lanes = ", ".join(f"i32 {lane}" if lane >= 0 else "i32 poison" for lane in mask)
        chosen = Value(I32.with_lanes(len(mask)), f"<{lanes}>", None, tuple(max(lane, 0) for lane in mask))
        return self._chosen(a, b, chosen)

    def _chosen(self, a: Value, b: Value, lanes: Value) -> Value:
        type_ = a.type.with_lanes(lanes.type.lanes)
        return self.pure(f"shufflevector {a}, {b}, {lanes}", type_, "shufflevector", (a, b, lanes))

    def extract(self, a: Value, lane: int | Value) -> Value:
        """One lane; of a scalar, the scalar."""
        if not a.type.is_vector:
            return a
        if a.literal is not None:
            return constant(a.type.scalar, a.literal)
        place = _lane(lane)
        return self.pure(f"extractelement {a}, {place}", a.type.scalar, "extractelement", (a, place))

    def insert(self, a: Value, scalar: Value, lane: int | Value) -> Value:
        """`a` with one lane replaced; of a scalar, the new scalar."""
        if not a.type.is_vector:
            return scalar
        place = _lane(lane)
        return self.pure(f"insertelement {a}, {scalar}, {place}", a.type, "insertelement", (a, scalar, place))

    def joined(self, values: Sequence[Value]) -> Value:
        """Scalars of one type as one vector; a single one as it is."""
        if len(values) == 1:
            return values[0]
        made = poison(values[0].type.with_lanes(len(values)))
        for number, value in enumerate(values):
            made = self.insert(made, value, number)
        return made

    def lane_numbers(self, element: str, lanes: int) -> Value:
        """0, 1, ... in the lanes."""
        return integers(element, range(lanes))

    def gep(self, pointer: Value, index: Value | int, element: Type) -> Value:
        """The address `index` elements behind `pointer` (or each pointer, for vectors)."""
        index = constant(I64, index) if isinstance(index, int) else index
        if index.literal == 0 and not index.type.is_vector:
            return pointer
        if (wide := self._truncated.get(index.text)) is not None and index.type == I32 and self._is_narrow(wide):
            index = wide  # An address takes 64 bits.
        lanes = max(pointer.type.lanes, index.type.lanes)
        return self.pure(f"getelementptr {element}, {pointer}, {index}", pointer.type.with_lanes(lanes))

    def load(
        self, type_: Type, pointer: Value, align: int | None = None, flags: str = "", volatile: bool = False
    ) -> Value:
        """Read memory; `align` in bytes, the element's size by default."""
        align = align or max(1, type_.bits // 8)
        how = "load volatile" if volatile else "load"
        return self.emit(f"{how} {type_}, {pointer}, align {align}{flags}", type_, "load", (pointer,))

    def store(self, value: Value, pointer: Value, align: int | None = None, flags: str = "") -> None:
        """Write memory; `align` in bytes, the element's size by default."""
        align = align or max(1, value.type.bits // 8)
        self.line(f"store {value}, {pointer}, align {align}{flags}", "store", (value, pointer))

    def masked_load(self, type_: Type, pointer: Value, mask: Value, other: Value, align: int | None = None) -> Value:
        """Read the lanes whose mask bit holds; the others give `other`'s lane and touch no memory."""
        align = align or max(1, type_.bits // 8)
        name = f"llvm.masked.load.{type_.suffix}.p0"
        self._declare(name, type_, [PTR, mask.type, type_])
        return self.emit(f"call {type_} @{name}(ptr align {align} {pointer.text}, {mask}, {other})", type_)

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int | None = None) -> None:
        """Write the lanes whose mask bit holds.

        LLVM 22 stores all bits of the wide number, beyond the lane, where it knows a mask to hold for one lane of a
        truncation (on AVX-512): of those the mask is not known to it.
        """
        if value.text in self._truncated:
            mask = self.and_(mask, self.splat(self.icmp("ne", pointer, Value(PTR, "null")), mask.type.lanes))
        align = align or max(1, value.type.bits // 8)
        name = f"llvm.masked.store.{value.type.suffix}.p0"
        self._declare(name, VOID, [value.type, PTR, mask.type])
        self.line(f"call void @{name}({value}, ptr align {align} {pointer.text}, {mask})")

    def any_lane(self, condition: Value) -> Value:
        """Whether any lane of an i1 vector holds."""
        if not condition.type.is_vector:
            return condition
        bits = self.bitcast(condition, vector(f"i{condition.type.lanes}", 1))
        return self.icmp("ne", bits, 0)

    def true(self, lanes: int = 1) -> Value:
        """An all-true mask."""
        return constant(I1.with_lanes(lanes), 1)


def _lane(lane: int | Value) -> Value:
    return _constant_lane(lane) if isinstance(lane, int) else lane


@cache
def _constant_lane(lane: int) -> Value:
    return constant(I64, lane)
