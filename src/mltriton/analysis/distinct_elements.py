"""Whether the elements of a block are at addresses of their own, as far as their offsets say.

Level: ttg to intrinsic. Nothing is changed. Ranges times numbers count as distinct (a program that writes passes no
stride of zero); what a dimension does not appear in is repeated along it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.order import operands_first
from mltriton.ir.types import TensorType

SAME = (tt.Broadcast, tt.Bitcast, ttg.ConvertLayout, arith.ExtSI, arith.ExtUI, arith.TruncI)
SUMS = (tt.AddPtr, arith.AddI, arith.SubI, arith.OrI, arith.XOrI)
SCALED = (arith.MulI, arith.ShLI)
FOLLOWED = (*SAME, tt.ExpandDims, tt.Trans)  # besides what is elementwise; nothing is known of any other's results

Dims = frozenset[int]
NO_DIMS: Dims = frozenset()


class Distinct(Enum):
    """What is known of the addresses of a block."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()


def distinct_elements(pointer: Value) -> Distinct:
    """Whether a pointer of any kind says another address for each element of its block."""
    if not isinstance(pointer.type, TensorType):
        return Distinct.YES  # one element, or a block whose strides a program gives
    known: dict[Value, Dims | None] = {}
    for value in operands_first(pointer, _sources):
        known[value] = _dims(value, known)
    dims = known[pointer]
    if dims is None:
        return Distinct.UNKNOWN
    extended = {dim for dim, extent in enumerate(pointer.type.shape) if extent > 1}
    return Distinct.YES if extended <= dims else Distinct.NO


def _sources(value: Value) -> Sequence[Value]:
    """The blocks that a block is computed from; a loop's are what it began with."""
    if not isinstance(value.type, TensorType):
        return ()
    loop = value.block.parent_op if isinstance(value, BlockArgument) else value.defining_op
    if isinstance(loop, scf.For) and isinstance(value, BlockArgument | OpResult):
        number = value.index - isinstance(value, BlockArgument)
        return loop.inits[number : number + 1]
    op = value.defining_op
    if op is None or not (op.elementwise or isinstance(op, FOLLOWED)):
        return ()
    return [each for each in op.operands if isinstance(each.type, TensorType)]


def _dims(value: Value, known: Mapping[Value, Dims | None]) -> Dims | None:
    """The dimensions along which a block's elements are distinct numbers; None where that is not known."""
    found = [known[source] for source in _sources(value)]
    dims = [each for each in found if each is not None]
    if len(dims) < len(found):
        return None
    op = value.defining_op
    if op is None or isinstance(op, scf.For):
        return dims[0] if dims else None
    if isinstance(op, tt.MakeRange):
        return frozenset({0})
    if isinstance(op, tt.Splat) or _is_one_number(op):
        return NO_DIMS
    if isinstance(op, SAME):
        return dims[0]
    if isinstance(op, tt.ExpandDims):
        return frozenset(dim + (dim >= op.axis) for dim in dims[0])
    if isinstance(op, tt.Trans):
        return frozenset(number for number, dim in enumerate(op.order) if dim in dims[0])
    if isinstance(op, SUMS) or (isinstance(op, SCALED) and not all(dims)):
        return NO_DIMS.union(*dims)
    return NO_DIMS if op.elementwise and not any(dims) else None


def _is_one_number(op: Operation) -> bool:
    return isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr) and op.value.is_splat
