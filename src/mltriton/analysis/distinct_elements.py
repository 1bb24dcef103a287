"""Whether the elements of a block are at addresses of their own, as far as their offsets say.

Level: ttg to intrinsic. Nothing is changed. Addresses are sums of steps along the block's dimensions. Where steps are
known, elements are apart if each step is longer than all shorter ones together reach; a step that only the running
program knows counts as such (docs/architecture.md, semantics: strides of what is written). What a dimension does not
appear in is repeated along it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.constants import is_narrow, splat_of, width_of
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.order import operands_first
from mltriton.ir.types import TensorType, byte_width, pointee

SAME = (tt.Broadcast, tt.Bitcast, ttg.ConvertLayout, arith.ExtSI, arith.ExtUI, arith.TruncI)
FOLLOWED = (*SAME, tt.ExpandDims, tt.Trans)  # besides what is elementwise; nothing is known of any other's results

Steps = Mapping[int, int | None]  # by dimension: from an element to its neighbour, in bytes of addresses
NO_STEPS: Steps = {}


class Distinct(Enum):
    """What is known of the addresses of a block."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()


def distinct_elements(pointer: Value) -> Distinct:
    """Whether a pointer of any kind says another address for each element of its block."""
    if not isinstance(pointer.type, TensorType):
        return Distinct.YES  # one element, or a block whose strides a program gives
    known: dict[Value, Steps | None] = {}
    for value in operands_first(pointer, _sources):
        known[value] = _within_width(_steps(value, known), value)
    steps = known[pointer]
    if steps is None:
        return Distinct.UNKNOWN
    return Distinct.YES if _are_apart(steps, pointer.type.shape, byte_width(pointee(pointer.type))) else Distinct.NO


def _are_apart(steps: Steps, shape: Sequence[int], size: int) -> bool:
    """Whether no two elements of so many bytes share one."""
    extents = {dim: extent for dim, extent in enumerate(shape) if extent > 1}
    if not extents.keys() <= steps.keys():
        return False
    reach = size
    for step, extent in sorted((abs(step), extents[dim]) for dim in extents if (step := steps[dim]) is not None):
        if step < reach:
            return False
        reach += step * (extent - 1)
    return True


def _sources(value: Value) -> Sequence[Value]:
    """The blocks that a block is computed from; a loop's are what it began with, if all elements move alike."""
    if not isinstance(value.type, TensorType):
        return ()
    loop = value.block.parent_op if isinstance(value, BlockArgument) else value.defining_op
    if isinstance(loop, scf.For) and isinstance(value, BlockArgument | OpResult):
        number = value.index - isinstance(value, BlockArgument)
        return loop.inits[number : number + 1] if _moves_as_one(loop, number) else ()
    op = value.defining_op
    if op is None or not (op.elementwise or isinstance(op, FOLLOWED)):
        return ()
    return [each for each in op.operands if isinstance(each.type, TensorType)]


def _moves_as_one(loop: scf.For, number: int) -> bool:
    """Whether a loop hands on what it carries, or adds the same to all of its elements."""
    value, carried = loop.body.block.terminator.operands[number], loop.carried[number]
    while value is not carried:
        op = value.defining_op
        if not isinstance(op, tt.AddPtr | arith.AddI | arith.SubI) or not _is_one_number(op.operands[1]):
            return False
        value = op.operands[0]
    return True


def _steps(value: Value, known: Mapping[Value, Steps | None]) -> Steps | None:
    """The steps between a block's elements; None where they are not known."""
    found = [known[source] for source in _sources(value)]
    steps = [each for each in found if each is not None]
    op = value.defining_op
    if len(steps) < len(found):
        return None
    if op is None or isinstance(op, scf.For):
        return steps[0] if steps else None
    if isinstance(op, tt.MakeRange):
        return {0: 1}
    if _is_one_number(value):
        return NO_STEPS
    if isinstance(op, SAME):
        return steps[0]
    if isinstance(op, tt.ExpandDims):
        return {dim + (dim >= op.axis): step for dim, step in steps[0].items()}
    if isinstance(op, tt.Trans):
        return {number: steps[0][dim] for number, dim in enumerate(op.order) if dim in steps[0]}
    if isinstance(op, tt.AddPtr):
        return _sum(steps[0], _scaled(steps[1], byte_width(pointee(value.type))))
    if isinstance(op, arith.AddI):
        return _sum(*steps)
    if isinstance(op, arith.SubI):
        return _sum(steps[0], _scaled(steps[1], -1))
    return _product(op, steps)


def _product(op: Operation, steps: Sequence[Steps]) -> Steps | None:
    """The steps of a block that is multiplied by a number; those of what else is computed of numbers alone."""
    if isinstance(op, arith.ShLI) and not steps[1]:
        bits = splat_of(op.operands[1])
        return _scaled(steps[0], None if bits is None else 1 << int(bits))
    if isinstance(op, arith.MulI) and not all(steps):
        number = next(operand for operand, of in zip(op.operands, steps, strict=True) if not of)
        factor = splat_of(number)
        return _scaled(_sum(*steps), None if factor is None else int(factor))
    return NO_STEPS if op.elementwise and not any(steps) else None


def _sum(a: Steps, b: Steps) -> Steps:
    summed = {dim: _plus(a.get(dim, 0), b.get(dim, 0)) for dim in {**a, **b}}
    return {dim: step for dim, step in summed.items() if step != 0}


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _scaled(steps: Steps, factor: int | None) -> Steps:
    if factor == 0:
        return NO_STEPS
    return {dim: None if step is None or factor is None else step * factor for dim, step in steps.items()}


def _within_width(steps: Steps | None, value: Value) -> Steps | None:
    """The steps of numbers that do not wrap: those of fewer bits than an index has reach no further than their type."""
    if not steps or not is_narrow(value.type):
        return steps
    assert isinstance(value.type, TensorType)
    reach = 0
    for dim, step in steps.items():
        if step is None:
            return None
        reach += abs(step) * (value.type.shape[dim] - 1)
    return steps if reach < 1 << width_of(value.type) else None


def _is_one_number(value: Value) -> bool:
    """Whether all elements are surely one number."""
    return isinstance(value.defining_op, tt.Splat) or splat_of(value) is not None
