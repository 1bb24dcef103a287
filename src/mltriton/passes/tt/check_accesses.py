"""check-accesses: every access to memory is asserted to stay inside the arrays passed, and left out where it does not.

Level: tt, inlined, without block pointers. Takes the one public function of a module and changes it in place. For each
pointer parameter it gets two more: where its array begins (a pointer to bytes) and how many bytes it has (i64). An
access through a pointer that is based on parameters is asserted to lie in the array of one of them; elements outside
are masked off. Windows of shared memory are asserted to lie in their buffer, and moved to its start where they do not.
Guarantees: memory is touched in these bounds only, but for pointers that the kernel reads from memory or makes of
integers, which it trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from mltriton.analysis.pointers import ANYTHING, PointerBases
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.errors import OptionError
from mltriton.ir.attributes import ArrayAttr, DictAttr, TypeAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import (
    I1,
    I8,
    I64,
    FunctionType,
    MemDescType,
    PointerType,
    TensorType,
    byte_width,
    like,
    pointee,
)
from mltriton.records import NamedTuple


class CheckAccesses(Pass):
    """Assert that accesses stay inside the arrays passed."""

    name = "check-accesses"

    def run(self, module: Module) -> Module:
        function = tt.kernel_of(module)
        ops = list(function.walk())
        if pointer := next((op for op in ops if isinstance(op, tt.MakeTensorPtr)), None):
            message = "block pointers are not checked: rewrite-tensor-pointers comes before check-accesses"
            raise OptionError(message, location=pointer.loc.in_source)
        checker = _Checker(_with_bounds(function))
        for op in ops:
            rule = RULES.get(type(op))
            if rule is not None:
                checker.builder.before(op)
                rule(checker, op)
        return module


class Bounds(NamedTuple):
    """The parameters that say where the array of another one begins, and its bytes."""

    start: Value
    size: Value


def _with_bounds(function: tt.Func) -> dict[Value, Bounds]:
    """Give a function the parameters for the bounds of its arrays."""
    block = function.body.block
    pointers = [argument for argument in block.arguments if isinstance(argument.type, PointerType)]
    found: dict[Value, Bounds] = {}
    for pointer in pointers:
        start, size = block.add_argument(PointerType(I8)), block.add_argument(I64)
        start.hint, size.hint = f"{pointer.hint}.start", f"{pointer.hint}.bytes"
        found[pointer] = Bounds(start, size)
    inputs = tuple(argument.type for argument in block.arguments)
    function.attributes["function_type"] = TypeAttr(FunctionType(inputs, function.function_type.results))
    attributes = function.attributes.get("arg_attrs")
    if isinstance(attributes, ArrayAttr):
        empty = (DictAttr(()),) * (2 * len(pointers))
        function.attributes["arg_attrs"] = ArrayAttr((*attributes.elements, *empty))
    return found


class _Checker:
    def __init__(self, bounds: Mapping[Value, Bounds]) -> None:
        self.builder = Builder()
        self.bounds = bounds
        self.bases = PointerBases()

    def inside(self, pointer: Value) -> tuple[Value, str] | None:
        """Which elements a pointer or block of pointers has inside, and the names of the arrays; None of pointers that
        may point anywhere.
        """
        bases = self.bases.of(pointer)
        if ANYTHING in bases or not all(base in self.bounds for base in bases):
            return None
        parameters = sorted((base for base in bases if isinstance(base, BlockArgument)), key=lambda base: base.index)
        emit, kind = self.builder.emit, like(pointer.type, I64)
        address = emit(tt.PtrToInt, pointer, result_types=[kind])
        width = byte_width(pointee(pointer.type))
        found: Value | None = None
        for parameter in parameters:
            start, size = self.bounds[parameter]
            first = emit(tt.PtrToInt, start, result_types=[I64])
            # A position below the array is a large number without its sign.
            position = emit(arith.SubI, address, self._spread(first, kind))
            fitting = emit(arith.MaxSI, emit(arith.SubI, size, self._number(width - 1, I64)), self._number(0, I64))
            here = emit(arith.CmpI, position, self._spread(fitting, kind), predicate="ult")
            found = here if found is None else emit(arith.OrI, found, here)
        assert found is not None
        return found, " or ".join(str(parameter.hint) for parameter in parameters)

    def _number(self, number: int, kind: Any) -> Value:
        return arith.integer(self.builder, number, kind)

    def _spread(self, value: Value, kind: Any) -> Value:
        return self.builder.emit(tt.Splat, value, result_types=[kind]) if isinstance(kind, TensorType) else value

    def require(self, condition: Value, message: str) -> None:
        """Assert a condition about an access."""
        self.builder.create(tt.Assert, condition, None, message=message, of_access=True, result_types=[])

    def masked(self, pointer: Value, mask: Value | None, what: str) -> Value | None:
        """The mask of an access that leaves out what is outside, which is asserted to be nothing."""
        checked = self.inside(pointer)
        if checked is None:
            return mask
        inside, name = checked
        if mask is None:
            self.require(inside, f"{what} outside of {name}")
            return inside
        emit = self.builder.emit
        off = emit(arith.XOrI, mask, arith.filled(self.builder, 1, mask.type))
        self.require(emit(arith.OrI, off, inside), f"{what} outside of {name}")
        return emit(arith.AndI, mask, inside)


def _load(checker: _Checker, op: tt.Load) -> None:
    mask = checker.masked(op.ptr, op.mask, "a load")
    if mask is not None:
        others = [] if op.other is None else [op.other]
        op.set_operands([op.ptr, mask, *others], (1, 1, len(others)))


def _store(checker: _Checker, op: tt.Store | tt.AtomicRMW) -> None:
    mask = checker.masked(op.ptr, op.mask, "a store" if isinstance(op, tt.Store) else "an atomic update")
    if mask is not None:
        op.set_operands([op.ptr, op.value, mask], (1, 1, 1))


def _swap(checker: _Checker, op: tt.AtomicCAS) -> None:
    """A swap has no mask: it is done where all elements are inside."""
    checked = checker.inside(op.ptr)
    if checked is None:
        return
    inside, name = checked
    checker.require(inside, f"a compare-and-swap outside of {name}")
    builder, type_ = checker.builder, op.result.type
    sides = [Block(), Block()]
    regions = [Region([side]) for side in sides]
    made = builder.create(scf.If, _all(builder, inside), result_types=[type_], regions=regions)
    op.result.replace_by(made.results[0])
    op.detach()
    with builder.inside(sides[0]):
        builder.insert(op)
        builder.create(scf.Yield, [op.result], result_types=[])
    with builder.inside(sides[1]):
        nothing = make_constant(type_, (0,))
        builder.create(scf.Yield, [builder.emit(arith.Constant, value=nothing)], result_types=[])


def _all(builder: Builder, condition: Value) -> Value:
    """Whether a condition holds for all elements."""
    while isinstance(condition.type, TensorType):
        body = Block([I1, I1])
        with builder.inside(body):
            both = builder.emit(arith.AndI, *body.arguments)
            builder.create(tt.ReduceReturn, [both], result_types=[])
        condition = builder.create(tt.Reduce, [condition], axis=0, regions=[Region([body])]).results[0]
    return condition


def _window(checker: _Checker, op: ttg.MemDescSubview) -> None:
    """A window of shared memory."""
    source, window = (cast(MemDescType, memory.type).shape for memory in (op.memory, op.result))
    sizes = (*(1,) * (len(source) - len(window)), *window)
    builder, offsets = checker.builder, list[Value]()
    for offset, whole, size in zip(op.offsets, source, sizes, strict=True):
        bound, zero = (arith.integer(builder, n) for n in (whole - size, 0))
        inside = builder.emit(arith.CmpI, offset, bound, predicate="ule")
        checker.require(inside, "a window outside of its shared memory")
        offsets.append(builder.emit(arith.Select, inside, offset, zero))
    op.set_operands([op.memory, *offsets], op.segments)


RULES: Mapping[type[Operation], Callable[[_Checker, Any], None]] = {
    tt.Load: _load,
    tt.Store: _store,
    tt.AtomicRMW: _store,
    tt.AtomicCAS: _swap,
    ttg.MemDescSubview: _window,
}
