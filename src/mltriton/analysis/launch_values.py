"""What the scalars of a kernel are made of: expressions over its arguments, as far as a launch can evaluate them.

Level: tt to intrinsic. Takes a function; changes nothing; a value is looked at when it is asked for. A program's
position in the grid, its warp and the iterations of loops count as numbers of which bounds are known; `varies` marks
what depends on them. What is loaded from memory, or made in a way that nobody follows here, is opaque. Guarantees:
`evaluate` says of an expression what holds in every program, warp and iteration.
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.bounds import Expression, Known, combined, evaluate
from mltriton.dialects import arith, gpu, scf, tt
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.types import IntegerType, PointerType, TensorType, Type, byte_width
from mltriton.records import NamedTuple

_MOST = (1 << 31) - 1
_MOST_NODES = 48  # of an expression; one with more is opaque: launches would spend their time on it

_SIGNED: dict[type[Operation], str] = {
    arith.AddI: "add",
    arith.SubI: "sub",
    arith.MulI: "mul",
    arith.DivSI: "div",
    arith.RemSI: "rem",
    arith.AndI: "and",
    arith.MinSI: "min",
    arith.MaxSI: "max",
}
# The same for numbers that are not negative.
_UNSIGNED: dict[type[Operation], str] = {
    arith.DivUI: "div",
    arith.RemUI: "rem",
    arith.MinUI: "min",
    arith.MaxUI: "max",
}
_SHIFTS: dict[type[Operation], str] = {arith.ShLI: "mul", arith.ShRSI: "div", arith.ShRUI: "div"}


class Traced(NamedTuple):
    """What a value is made of; `opaque` are the values of which nothing is known before the kernel runs."""

    expression: Expression
    opaque: tuple[Value, ...] = ()
    varies: bool = False

    @property
    def nodes(self) -> int:
        """The size of the expression."""
        return _nodes(self.expression)


def _nodes(expression: Expression) -> int:
    if isinstance(expression, int) or expression[0] in ("argument", "known", "opaque"):
        return 1
    return 1 + _nodes(expression[2]) + _nodes(expression[3])


def _nothing(_: int) -> Known:
    return Known()


class LaunchValues:
    """The scalars of one function."""

    def __init__(self, function: tt.Func, warps: int) -> None:
        self._warps = warps
        parameters = function.body.block.arguments
        self._made: dict[Value, Traced] = {
            value: Traced(("argument", number)) for number, value in enumerate(parameters)
        }

    def of(self, value: Value) -> Traced:
        """What a scalar is made of; addresses count bytes."""
        if value not in self._made:
            self._made[value] = _opaque(value)  # should it lead back to itself
            self._made[value] = self._of_argument(value) if isinstance(value, BlockArgument) else self._of_result(value)
        return self._made[value]

    def combined(self, operation: str, bits: int, x: Traced, y: Traced) -> Traced:
        """An operation of `analysis.bounds`."""
        opaque, varies = tuple(dict.fromkeys((*x.opaque, *y.opaque))), x.varies or y.varies
        if not opaque and not _has_argument(x.expression) and not _has_argument(y.expression):
            known = combined(operation, bits, evaluate(x.expression, _nothing), evaluate(y.expression, _nothing))
            number = known.number
            return Traced(number if number is not None else ("known", *known), varies=varies)
        return Traced((operation, bits, x.expression, y.expression), opaque, varies)

    def _of_argument(self, value: BlockArgument) -> Traced:
        loop = value.block.parent_op
        if isinstance(loop, scf.For) and value.index == 0:
            return self._stepped(_bits(value.type), self.of(loop.lower), self.of(loop.step))
        return self._of_carried(value)

    def _of_carried(self, value: Value) -> Traced:
        """A number or address that a loop only moves."""
        carried = _carried(value)
        if carried is None or isinstance(value.type, TensorType):
            return _opaque(value)
        argument, init, following = carried
        made = self.of(init)
        while following is not argument:
            moved = _moved(following)
            if moved is None:
                return _opaque(value)
            following, step = moved
            made = self._stepped(_bits(value.type), made, self._in_bytes(value.type, self.of(step)))
        return made

    def _of_result(self, value: Value) -> Traced:
        op = cast(OpResult, value).op
        if isinstance(value.type, TensorType):
            return _opaque(value)
        made = self._made_by(op, value)
        if made is None:
            return _opaque(value)
        return made if made.nodes <= _MOST_NODES else _opaque(value, evaluate(made.expression, _nothing).divisor)

    def _made_by(self, op: Operation, value: Value) -> Traced | None:
        bits = _bits(value.type)
        match op:
            case arith.Constant():
                number = splat_of(value)
                return Traced(number) if isinstance(number, int) else None
            case arith.ExtSI() | arith.IndexCast():
                return self.of(op.operands[0])
            case arith.ExtUI():
                return self._natural(self.of(op.operands[0]))
            case arith.TruncI():
                return self.combined("add", bits, self.of(op.operands[0]), Traced(0))
            case arith.Select():
                return self._either(bits, self.of(op.true_value), self.of(op.false_value))
            case tt.AddPtr():
                return self.combined("add", 64, self.of(op.ptr), self._in_bytes(value.type, self.of(op.offset)))
            case tt.GetProgramId():
                return Traced(("known", 0, _MOST - 1, 1), varies=True)
            case tt.GetNumPrograms():
                return Traced(("known", 1, _MOST, 1), varies=True)
            case gpu.SubgroupId():
                return Traced(("known", 0, self._warps - 1, 1) if self._warps > 1 else 0, varies=self._warps > 1)
            case scf.If():
                return self._either(bits, *map(self.of, handed_from(value) or ()))
            case scf.For():
                return self._of_carried(value)
            case _:
                return self._arithmetic(op, bits)

    def _arithmetic(self, op: Operation, bits: int) -> Traced | None:
        kind = type(op)
        if kind in _SIGNED:
            return self.combined(_SIGNED[kind], bits, *map(self.of, op.operands))
        if kind in _UNSIGNED:
            x, y = (self._natural(self.of(operand)) for operand in op.operands)
            return self.combined(_UNSIGNED[kind], bits, x, y) if x is not None and y is not None else None
        if kind in _SHIFTS:
            by = splat_of(op.operands[1])
            x = self.of(op.operands[0]) if kind is arith.ShLI else self._natural(self.of(op.operands[0]))
            if x is not None and isinstance(by, int) and 0 <= by < min(bits, 32) - 1:
                return self.combined(_SHIFTS[kind], bits, x, Traced(1 << by))
        return None

    def _natural(self, x: Traced) -> Traced | None:
        """A number that is never negative, whatever the arguments are; None for others."""
        return x if evaluate(x.expression, _nothing).is_natural else None

    def _either(self, bits: int, x: Traced, y: Traced) -> Traced:
        return self.combined("either", bits, x, y)._replace(varies=True)

    def _stepped(self, bits: int, start: Traced, step: Traced) -> Traced:
        return start if step.expression == 0 else self.combined("stepped", bits, start, step)._replace(varies=True)

    def _in_bytes(self, type_: Type, elements: Traced) -> Traced:
        """By how much an address, or a number, of a type moves."""
        if not isinstance(type_, PointerType):
            return elements
        return self.combined("mul", 64, elements, Traced(byte_width(type_.pointee)))


def _opaque(value: Value, divisor: int = 1) -> Traced:
    return Traced(("opaque", divisor), (value,), varies=True)


def _has_argument(expression: Expression) -> bool:
    if isinstance(expression, int) or expression[0] in ("known", "opaque"):
        return False
    return expression[0] == "argument" or any(map(_has_argument, expression[2:]))


def _bits(type_: Type) -> int:
    return type_.width if isinstance(type_, IntegerType) else 64


def _carried(value: Value) -> tuple[Value, Value, Value] | None:
    """Of what a `for` carries: its argument in the body, the first value, and the one handed on to the next iteration;
    `value` is that argument or the result.
    """
    if isinstance(value, BlockArgument):
        loop, index = value.block.parent_op, value.index - 1
    else:
        loop, index = value.defining_op, cast(OpResult, value).index
    if not isinstance(loop, scf.For) or index < 0:
        return None
    block = loop.body.block
    return block.arguments[1 + index], loop.inits[index], block.terminator.operands[index]


def _moved(value: Value) -> tuple[Value, Value] | None:
    """What a value was before a number was added, and that number."""
    match op := value.defining_op:
        case arith.AddI():
            return op.lhs, op.rhs
        case tt.AddPtr():
            return op.ptr, op.offset
        case _:
            return None
