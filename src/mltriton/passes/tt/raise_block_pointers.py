"""raise-block-pointers: blocks of pointers to a rectangle of a matrix become block pointers.

Level: tt. Takes any program and changes it in place; does nothing for a target without block accesses. A load or store
whose pointers and mask `analysis/regular_pointers.py` understands goes through a block pointer that is made right in
front of it. Guarantees: the same effects; what is in memory outside of the old mask is not touched. Sizes, strides and
base are those of the kernel's arguments as far as masks and pointers allow, and what differs between programs and
iterations is in the offsets.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from mltriton.analysis.affine.formula import Iteration
from mltriton.analysis.affine.formulas import Formulas
from mltriton.analysis.affine.polynomials import ONE, ZERO, Monomial, Polynomial
from mltriton.analysis.rectangles import Line, Rectangle
from mltriton.analysis.regular_pointers import Access, RegularPointers
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, I64, PointerType, TensorType, Type, byte_width
from mltriton.passes.tt.normalize_block_pointers import LARGEST, fits
from mltriton.targets.base import BlockIO
from mltriton.targets.registry import spec_of


class RaiseBlockPointers(Pass):
    """Access rectangles through block pointers."""

    name = "raise-block-pointers"

    def run(self, module: Module) -> Module:
        limits = spec_of(module).block_load
        if limits is None:
            return module
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                _raise_in(function, limits)
        return module


def _raise_in(function: tt.Func, limits: BlockIO) -> None:
    pointers = RegularPointers(function, limits)
    accesses = [op for op in function.walk() if isinstance(op, Access) and isinstance(op.ptr.type, TensorType)]
    found = [(op, rectangle) for op in accesses if isinstance(rectangle := pointers.of(op), Rectangle)]
    if found:
        scalars = Scalars(pointers.formulas)
        for op, rectangle in found:
            _raise(op, rectangle, scalars, limits)


def _raise(op: Access, rectangle: Rectangle, scalars: Scalars, limits: BlockIO) -> None:
    """Put an access through a block pointer in the place of one."""
    builder = Builder().before(op)
    pointer = _block_pointer(builder, rectangle, scalars, limits)
    hints: dict[str, Any] = {"boundary_check": (0, 1), "cache": op.cache, "evict": op.evict}
    if isinstance(op, tt.Store):
        builder.create(tt.Store, pointer, op.value, None, result_types=[], **hints)
    else:
        loaded = builder.emit(tt.Load, pointer, None, None, **hints)
        if op.mask is not None and op.other is not None and not _is_zero(op.other):
            loaded = builder.emit(arith.Select, op.mask, loaded, op.other)
        loaded.hint = op.result.hint
        op.result.replace_by(loaded)
    op.erase()


def _is_zero(value: Value) -> bool:
    """Whether every element is 0, and not -0."""
    number = splat_of(value)
    return number == 0 and math.copysign(1, number) > 0


def _block_pointer(builder: Builder, rectangle: Rectangle, scalars: Scalars, limits: BlockIO) -> Value:
    shift, offsets, sizes = rectangle.shift, list[Value](), list[Value]()
    least = limits.least_pitch // byte_width(rectangle.block.element)
    for dim, line in enumerate(rectangle.lines):
        size, below = rectangle.block.shape[dim], ZERO
        if not line.may_be_negative.is_zero:
            start = scalars.emit(builder, line.may_be_negative, I64)
            below = Polynomial.of(builder.emit(arith.MinSI, start, arith.integer(builder, 0, I64)))
            shift += below * line.stride
        offset = line.offset - below
        offsets.append(scalars.emit(builder, offset, I32))
        ends = [end - below for end in line.ends] or [_last(builder, line, scalars) - below + Polynomial.constant(size)]
        found: list[Value] = [scalars.emit(builder, end, I64) for end in ends]
        if not line.ends and dim == rectangle.contiguous and size < least:
            found = [builder.emit(arith.MaxSI, *found, arith.integer(builder, least, I64))]
        if not any(map(fits, found)):
            found.append(arith.integer(builder, LARGEST, I64))
        sizes.append(reduce(lambda a, b: builder.emit(arith.MinSI, a, b), found))
    for condition in rectangle.scalars:
        sizes[0] = builder.emit(arith.Select, condition, sizes[0], arith.integer(builder, 0, I64))
    strides = [scalars.emit(builder, line.stride, I64) for line in rectangle.lines]
    base = rectangle.base
    if not shift.is_zero:
        base = builder.emit(tt.AddPtr, base, scalars.emit(builder, shift, I64))
    order = (rectangle.contiguous, 1 - rectangle.contiguous)
    type = PointerType(rectangle.block)
    return builder.emit(tt.MakeTensorPtr, base, sizes, strides, offsets, order=order, result_types=[type])


def _last(builder: Builder, line: Line, scalars: Scalars) -> Polynomial:
    """The largest offset of any iteration, where it grows by constants."""
    total = ZERO
    for monomial, factor in line.offset.terms.items():
        term = Polynomial({monomial: factor})
        if len(monomial) == 1 and factor > 0 and isinstance(turns := monomial[0], Iteration) and not turns.is_over:
            term = scalars.last_iteration(builder, turns.loop).times(factor)
        total += term
    return total


class Scalars:
    """Computes formulas; iterations of loops are counted where their counters do not say enough."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self._counted: dict[scf.For, tuple[Value, Value]] = {}

    def emit(self, builder: Builder, formula: Polynomial, type: Type) -> Value:
        """Compute a formula as a scalar of `type` where the builder stands."""
        turns = [value for value in formula.values if isinstance(value, Iteration)]
        for value in turns:
            formula = self._without(formula, value)
        return formula.emit(builder, type)

    def last_iteration(self, builder: Builder, loop: scf.For) -> Polynomial:
        """The number of a loop's last iteration, in a loop that has one."""
        lower, upper, step = map(self.formulas.scalar, (loop.lower, loop.upper, loop.step))
        room = upper - lower - ONE
        if step.number == 1:
            return room
        return Polynomial.of(builder.emit(arith.DivSI, self.emit(builder, room, I64), self.emit(builder, step, I64)))

    def _without(self, formula: Polynomial, turns: Iteration) -> Polynomial:
        """The formula with the loop's counter, or else a number that the loop carries."""
        step = self.formulas.scalar(turns.loop.step).number
        counting = {monomial: factor for monomial, factor in formula.terms.items() if turns in monomial}
        rest = formula - Polynomial(counting)
        if not turns.is_over and step and all(factor % step == 0 for factor in counting.values()):
            count = Polynomial({(turns.loop.counter,): 1}) - self.formulas.scalar(turns.loop.lower)
        else:
            step, count = 1, Polynomial({(self._count(turns.loop)[turns.is_over],): 1})
        for monomial, factor in counting.items():
            term = Polynomial({_without(monomial, turns): factor // step})
            rest += term * reduce(lambda a, b: a * b, [count] * monomial.count(turns))
        return rest

    def _count(self, loop: scf.For) -> tuple[Value, Value]:
        """A loop's iterations counted: in its body, and after it."""
        if loop not in self._counted:
            argument, result = carry_also(loop, arith.integer(Builder().before(loop), 0, I32))
            argument.hint = "iteration"
            builder = Builder().before(loop.body.block.terminator)
            yield_also(loop.body.block, [builder.emit(arith.AddI, argument, arith.integer(builder, 1, I32))])
            self._counted[loop] = argument, result
        return self._counted[loop]


def _without(monomial: Monomial, value: Value) -> Monomial:
    return tuple(each for each in monomial if each is not value)
