"""Where new operations go: the stack of open scopes, and the outermost one in which an operation can stand.

Level: intrinsic. A pure operation is written to the outermost scope in which its operands exist, and only once there:
what does not depend on a loop's counter stands before the loop, and nothing is computed twice. Operations that touch
memory stand where they are asked for. Guarantees: definitions dominate uses; `depth_of` tells a value's scope.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import cache
from math import gcd
from typing import Any

from mltriton.dialects import arith, scf, tt
from mltriton.errors import CompilationError, TargetError
from mltriton.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.definition import parts_of
from mltriton.ir.location import UNKNOWN, Location
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import I32, FloatType, IntegerType, TensorType, Type
from mltriton.records import record

NO_ATTRIBUTES: Mapping[str, Attribute] = {}


class Scope:
    """One block under construction: what was computed in it by how it was computed, and block values by coordinate."""

    __slots__ = ("block", "known", "memo")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.known: dict[tuple[Any, ...], Value] = {}
        self.memo: dict[Any, Any] = {}


@record()
class Loop:
    """A loop under construction. Set `yields` before it ends; `results` are there afterwards."""

    counter: Value
    carried: list[Value]
    yields: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


class Emitter:
    """Writes operations of one function."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.scopes: list[Scope] = []
        self.loc: Location = UNKNOWN
        self.depth: dict[Value, int] = {}
        self.integers: dict[Value, int] = {}  # known constants
        self.multiples: dict[Value, int] = {}  # a divisor of a value that is known
        self._constants: dict[tuple[int, Type], Value] = {}

    # Scopes

    @property
    def level(self) -> int:
        """The depth of the innermost scope."""
        return len(self.scopes) - 1

    def depth_of(self, values: Sequence[Value]) -> int:
        """The depth of the outermost scope in which all values exist."""
        depth = 0
        for value in values:
            depth = max(depth, self.depth[value])
        return depth

    @contextmanager
    def inside(self, block: Block) -> Generator[Scope]:
        """Write into `block`, whose arguments exist from here on."""
        self.scopes.append(Scope(block))
        for argument in block.arguments:
            self.depth[argument] = self.level
        try:
            yield self.scopes[-1]
        finally:
            self.scopes.pop()

    @contextmanager
    def at(self, depth: int) -> Generator[None]:
        """Write into the scope of that depth, as if the ones inside it were not open."""
        saved = self.scopes
        self.scopes = saved[: depth + 1]
        try:
            yield
        finally:
            self.scopes = saved

    @contextmanager
    def trial(self, count: int) -> Generator[list[Value]]:
        """A scope that is thrown away, with i32 values that stand for any index."""
        block = Block([I32] * count)
        with self.inside(block):
            yield list(block.arguments)
        for op in block.ops:
            op.drop_operands()

    # Operations

    def pure(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        type: Type,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
    ) -> Value:
        """The result of an operation without effects."""
        depth = self.depth
        level = 0
        for operand in operands:
            found = depth[operand]
            if found > level:
                level = found
        scope = self.scopes[level]
        key = (cls, *operands, type, *attributes.items()) if attributes else (cls, *operands, type)
        known = scope.known.get(key)
        if known is not None:
            return known
        op = cls(operands, (type,), attributes, (), self.loc)
        scope.block.append(op)
        result = op.results[0]
        depth[result] = level
        scope.known[key] = result
        multiple = _MULTIPLES.get(cls)
        if multiple is not None:
            self.multiples[result] = multiple(*(self.multiple_of(operand) for operand in operands))
        return result

    def insert(self, op: Operation) -> Operation:
        """Put an operation at the end of the innermost scope."""
        op.loc = self.loc
        self.scopes[-1].block.append(op)
        for result in op.results:
            self.depth[result] = self.level
        return op

    def effect(
        self,
        cls: type[Operation],
        operands: Sequence[Value | None],
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """An operation that touches memory, in the innermost scope; None stands for a missing optional operand."""
        present = [operand for operand in operands if operand is not None]
        groups = _operand_groups(cls)
        segments = None
        if groups:
            segments = (*(0 if operand is None else 1 for operand in operands), *(0,) * (groups - len(operands)))
        return self.insert(cls(present, types, attributes, regions, self.loc, segments))

    @contextmanager
    def loop(self, lower: Value, upper: Value, step: Value, inits: Sequence[Value] = ()) -> Generator[Loop]:
        """A counted loop with carried values."""
        body = Block([lower.type, *(init.type for init in inits)])
        counter, *carried = body.arguments
        self.multiples[counter] = gcd(self.multiple_of(lower), self.multiple_of(step))
        loop = Loop(counter, list[Value](carried))
        with self.inside(body):
            yield loop
            self.insert(scf.Yield(loop.yields))
        op = scf.For([lower, upper, step, *inits], [init.type for init in inits], {}, [Region([body])], self.loc)
        op.segments = (1, 1, 1, len(inits))
        loop.results = list(self.insert(op).results)

    def count(
        self, extent: int, step: int = 1, first: int = 0, inits: Sequence[Value] = ()
    ) -> AbstractContextManager[Loop]:
        """A loop over [first, extent), which are known, with an i32 counter."""
        return self.loop(self.integer(first), self.integer(extent), self.integer(step), inits)

    # Constants

    def integer(self, number: int, type: Type = I32) -> Value:
        """An integer constant, wrapped to its type."""
        value = self._constants.get((number, type))
        if value is None:
            known = wrapped(number, type.width) if isinstance(type, IntegerType) else number
            value = self.pure(arith.Constant, (), type, {"value": IntegerAttr(known, type)})
            self.integers[value] = known
            self._constants[number, type] = value
        return value

    def number(self, number: float, type: Type) -> Value:
        """A constant of any scalar type, or a splat chunk."""
        if isinstance(type, TensorType):
            return self.pure(arith.Constant, (), type, {"value": DenseAttr((number,), type)})
        if isinstance(type, FloatType):
            return self.pure(arith.Constant, (), type, {"value": FloatAttr(float(number), type)})
        return self.integer(int(number), type)

    def multiple_of(self, value: Value) -> int:
        """A number that divides `value` for certain; 0 for zero."""
        known = self.integers.get(value)
        return abs(known) if known is not None else self.multiples.get(value, 1)

    # Chunks

    def chunk_type(self, element: Type, lanes: int) -> TensorType:
        """The type of a chunk."""
        return TensorType((lanes,), element)

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar in every lane."""
        return self.pure(tt.Splat, (value,), TensorType((lanes,), value.type))

    def lane_numbers(self, lanes: int, start: int = 0) -> Value:
        """start, start + 1, ... as i32."""
        attributes = {"start": IntegerAttr(start, I32), "end": IntegerAttr(start + lanes, I32)}
        return self.pure(tt.MakeRange, (), TensorType((lanes,), I32), attributes)


@cache
def _operand_groups(cls: type[Operation]) -> int:
    """The number of operand groups of a class with optional ones; 0 for other classes."""
    parts = parts_of(cls)
    return 0 if parts.is_fixed else len(parts.operands)


def wrapped(number: int, width: int) -> int:
    """The signed value of `number` in `width` bits; booleans are 0 and 1."""
    if width == 1:
        return number & 1
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


def _product(a: int, b: int) -> int:
    return a * b


def _same(a: int) -> int:
    return a


# How a known divisor of the result comes from those of the operands.
_MULTIPLES: dict[type[Operation], Callable[..., int]] = {
    arith.AddI: gcd,
    arith.SubI: gcd,
    arith.MulI: _product,
    arith.RemSI: gcd,
    arith.ExtSI: _same,
}


def refuse(op: Operation, message: str) -> CompilationError:
    """The error for what this lowering cannot do, at the operation's line."""
    found = ", ".join(str(operand.type) for operand in op.operands) or None
    return TargetError(message, location=op.loc.in_source, found=found)


def unknown_buffer(memory: Value) -> CompilationError:
    """The error for a block in shared memory that control flow chooses."""
    op = memory.defining_op
    message = "which block in shared memory this is must be known when compiling"
    return TargetError(message, location=op.loc.in_source if op is not None else None, found=str(memory.type))
