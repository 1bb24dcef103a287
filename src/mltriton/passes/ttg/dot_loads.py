"""Loads of what dots take, and stores of what they give, where it goes through shared memory: which they are, and how
warps share them out.

Level: tt to ttg. Takes a function; gives each load of a matrix through a block of pointers from which an operand of a
dot is computed, and each store of a matrix computed from a dot's result, an encoding in which every element is accessed
once: warps take lines of memory, whatever part of the dot they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.workload import goes_along, is_multiplied
from mltriton.dialects import scf, tt, ttg, ttng
from mltriton.dialects.scf_flow import handed_from
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import TensorType
from mltriton.layouts import tiling
from mltriton.layouts.encodings import Encoding

# Of warps: no dot's result that is cut alike has it, and so these blocks get lanes of their own.
BY_COLUMNS = (0, 1)


def staged_loads(function: tt.Func, num_warps: int) -> dict[Operation, Encoding]:
    """The loads and their encodings."""
    axes = AxisInfoAnalysis(function)
    loads = [op for op in function.walk() if isinstance(op, tt.Load) and is_load_of_dot(op)]
    return {op: _shared_out(op, axes, num_warps) for op in loads}


def staged_stores(function: tt.Func, num_warps: int, most: int) -> dict[Operation, Encoding]:
    """The stores of at most so many bytes and their encodings."""
    axes = AxisInfoAnalysis(function)
    found = (op for op in function.walk() if isinstance(op, tt.Store) and _is_store_of_dot(op))
    return {op: _shared_out(op, axes, num_warps) for op in found if cast(TensorType, op.value.type).bytes <= most}


def _is_store_of_dot(op: Operation) -> bool:
    if not isinstance(op, tt.Store) or not isinstance(op.ptr.type, TensorType) or op.ptr.type.rank != 2:
        return False
    return _is_product(op.value)


def _is_product(value: Value) -> bool:
    """Whether a value is a dot's result, as a loop hands it on or computed on element by element."""
    return any(isinstance(found.defining_op, tt.Dot) for found in reached([value], _before))


def _before(value: Value) -> Sequence[Value]:
    op = value.defining_op
    if op is not None and (isinstance(op, ttg.ConvertLayout) or (op.elementwise and op.pure)):
        return [operand for operand in op.operands if isinstance(operand.type, TensorType)]
    return (isinstance(op, scf.For) and handed_from(value)) or ()


def is_load_of_dot(op: Operation) -> bool:
    """Whether an operation loads a matrix, through a block of pointers or a descriptor of the launch, that is
    multiplied; through a descriptor also what goes along with it.
    """
    if isinstance(op, tt.DescriptorLoad):
        described = isinstance(op.desc.defining_op, ttng.TensorMap)
        return described and (is_multiplied(op.result, turned=True) or goes_along(op))
    if not isinstance(op, tt.Load) or op.volatile:
        return False
    pointers = op.ptr.type
    return isinstance(pointers, TensorType) and pointers.rank == 2 and is_multiplied(op.result)


def along_k(dot: tt.Dot, axes: AxisInfoAnalysis, operands: Sequence[int] = (0, 1)) -> bool:
    """Whether operands that are loaded have K along lines of memory."""
    return all(_along((dot.a, dot.b)[index], 1 - index, axes) for index in operands)


def _along(operand: Value, dim: int, axes: AxisInfoAnalysis) -> bool:
    load = operand.defining_op
    load = load.source.defining_op if isinstance(load, ttg.ConvertLayout) else load
    if isinstance(load, tt.Trans) and isinstance(load.source.defining_op, tt.DescriptorLoad):
        return dim == 0
    if isinstance(load, tt.DescriptorLoad):
        return dim == 1
    return (
        not isinstance(load, tt.Load) or not isinstance(load.ptr.type, TensorType) or fastest_dim(load, axes)[0] == dim
    )


def is_small_spread(load: tt.Load, lanes: int) -> bool:
    """Whether a load has fewer elements than there are lanes, all of which go into larger blocks."""
    block = load.result.type
    if not isinstance(block, TensorType) or load.volatile or block.size >= lanes or is_block_pointer(load.ptr.type):
        return False
    pending, seen = [load.result], {load.result}
    while pending:
        for user in pending.pop().users:
            if user.elementwise and user.pure and user.results[0] not in seen:
                seen.add(user.results[0])
                pending.append(user.results[0])
            elif not (user.elementwise and user.pure) and not isinstance(user, tt.ExpandDims):
                return False
    return True


def fastest_dim(access: tt.Load | tt.Store, axes: AxisInfoAnalysis) -> tuple[int, int]:
    """The dimension along which an access has the longest runs of memory, and their bytes."""
    runs = [axes.contiguous_bytes(access.ptr, dim) for dim in range(2)]
    dim = max(range(2), key=lambda dim: (runs[dim], dim))
    return dim, runs[dim]


def _shared_out(op: Operation, axes: AxisInfoAnalysis, num_warps: int) -> Encoding:
    access = cast(tt.Load | tt.Store, op)
    fastest, _ = fastest_dim(access, axes)
    cut = tiling.along(cast(TensorType, access.ptr.type).shape, num_warps, (1 - fastest, fastest))
    return cut.replaced(order=BY_COLUMNS)
