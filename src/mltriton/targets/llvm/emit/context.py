"""What emission functions share: the function under construction, the values emitted so far, types.

Level: intrinsic -> llvm. A scalar becomes an LLVM scalar, a chunk (1D tensor) a vector of its elements; f16, bf16 and
fp8 values are integers of their width (see `narrow`), pointers are `ptr` whatever they point to, `index` is i64.
Guarantees: an operation without an emission function raises `BackendError` at its source line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mltriton.errors import BackendError
from mltriton.ir.operation import Block, Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, PointerType, TensorType
from mltriton.ir.types import Type as IRType
from mltriton.ir.types import element_type as element_type
from mltriton.targets.llvm.types import PTR, Type, Value, poison, vector
from mltriton.targets.llvm.writer import Function, Module

Rule = Callable[["Emitter", Any], Value | Sequence[Value] | None]
Rules = Mapping[type[Operation], Rule]
TargetRules = Mapping[type[Operation], Callable[[Any, Any], Any]]  # with an emitter of the target's own

_FLOATS = {F32: "float", F64: "double", F16: "i16", BF16: "i16"}


def element_name(type_: IRType) -> str:
    """LLVM's element type for a scalar IR type, as values have it (i1 is one bit)."""
    if isinstance(type_, IntegerType):
        return f"i{type_.width}"
    if isinstance(type_, FloatType):
        return _FLOATS.get(type_, "i8")
    if isinstance(type_, PointerType):
        return "ptr"
    if isinstance(type_, IndexType):
        return "i64"
    raise BackendError(f"values of type {type_} cannot be held in registers")


class Emitter:
    """The state of one kernel's emission. `f16_conversion`: instructions widen and narrow f16."""

    target_name = "the target"  # in errors

    def __init__(self, module: Module, function: Function, f16_conversion: bool, rules: TargetRules) -> None:
        self.module = module
        self.function = function
        self.f16_conversion = f16_conversion
        self.rules = rules
        self.program: list[Value] = []  # coordinates of the running program, i32
        self.grid: list[Value] = []  # sizes of the grid, i32
        self.assertions: dict[Operation, int] = {}  # their numbers, from 1
        self.failure: Value = poison(PTR)  # where the first that fails writes
        self.waits = False  # whether warps of a program wait for each other
        self._values: dict[IRValue, Value] = {}
        self._lanes = 1

    def get(self, value: IRValue) -> Value:
        """What was emitted for a value."""
        found = self._values[value]
        return self.repeated(found, self._lanes) if self._lanes > found.type.lanes else found

    def repeated(self, value: Value, lanes: int) -> Value:
        """A scalar in so many lanes."""
        return self.function.splat(value, lanes)

    def optional(self, value: IRValue | None) -> Value | None:
        """What was emitted for an optional operand."""
        return None if value is None else self.get(value)

    def put(self, value: IRValue, emitted: Value) -> None:
        """Remember what stands for a value."""
        self._values[value] = emitted

    def type_of(self, type_: IRType) -> Type:
        """The LLVM type of values of an IR type."""
        if isinstance(type_, TensorType):
            return vector(element_name(type_.element), type_.size)
        return vector(element_name(type_), self._lanes)

    def result_type(self, op: Operation) -> Type:
        """The LLVM type of the only result."""
        return self.type_of(op.results[0].type)

    @contextmanager
    def lanewise(self, lanes: int) -> Generator[None]:
        """Emit scalar code for `lanes` scalars at once."""
        saved, self._lanes = self._lanes, lanes
        yield
        self._lanes = saved

    def block(self, block: Block, arguments: Sequence[Value] = ()) -> list[Value]:
        """Emit a block's operations; gives the operands of its terminator."""
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.put(argument, value)
        *body, last = block.ops
        for op in body:
            self.operation(op)
        return [self.get(operand) for operand in last.operands]

    def operation(self, op: Operation) -> None:
        """Emit one operation."""
        rule = self.rules.get(type(op))
        if rule is None:
            raise BackendError(
                f"{op.name} is not an operation of the intrinsic level of {self.target_name}",
                location=op.loc.in_source,
                found=", ".join(str(operand.type) for operand in op.operands),
            )
        emitted = rule(self, op)
        if emitted is None:
            return
        values = [emitted] if isinstance(emitted, Value) else emitted
        for result, value in zip(op.results, values, strict=True):
            self.put(result, value)

    def widen(self, value: Value, type_: IRType) -> Value:
        """A float value of (element) type `type_` in the format arithmetic is done in: f32 or f64."""
        element = element_type(type_)
        if element is F32 or element is F64:
            return value
        from mltriton.targets.llvm.emit import narrow  # Many kernels have wide floats only.

        assert isinstance(element, FloatType)
        return narrow.widen(self.function, self.f16_conversion, value, element.name)

    def narrow(self, value: Value, type_: IRType, toward_zero: bool = False) -> Value:
        """An f32 or f64 value rounded to the (element) type `type_`."""
        element = element_type(type_)
        assert isinstance(element, FloatType)
        target = "double" if element is F64 else "float"
        rounds_to_zero = toward_zero and element is F32 and value.type.element == "double"
        if (element is F32 or element is F64) and not rounds_to_zero:
            return self.function.cast(_float_cast(value, target), value, value.type.with_element(target))
        from mltriton.targets.llvm.emit import narrow  # As above.

        if rounds_to_zero:
            return narrow.truncated(self.function, value)
        return narrow.narrow(self.function, self.f16_conversion, value, element.name, toward_zero)


def _float_cast(value: Value, target: str) -> str:
    return "fpext" if target == "double" else "fptrunc"
