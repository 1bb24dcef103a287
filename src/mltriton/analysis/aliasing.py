"""Which accesses may touch the same memory: global memory by parameter and offset, shared memory by allocation.

Level: tt to intrinsic. Nothing is changed. Two pointer parameters are either different memory or the same array, and
then every element is accessed at the same index of a block (docs/architecture.md, "Semantics").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, gpu, scf, tt, ttg, ttng
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.constants import constant_of
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import MemDescType, PointerType, TensorDescType, TensorType, Type
from mltriton.records import NamedTuple

GLOBAL_READS = (tt.Load, tt.DescriptorLoad, ttng.AsyncTMACopyGlobalToLocal)
GLOBAL_WRITES = (tt.Store, tt.DescriptorStore, tt.AtomicRMW, tt.AtomicCAS, ttng.AsyncTMACopyLocalToGlobal)
WRITES = (*GLOBAL_WRITES, ttg.LocalStore, tt.VolatileAsm)
ORDERING = (tt.AtomicRMW, tt.AtomicCAS, tt.VolatileAsm, ttng.GridDependencyWait)
SHARED = (ttg.LocalLoad, ttg.LocalGather, ttg.LocalStore)
SAME_POINTER = (tt.ExpandDims, tt.Broadcast, tt.Trans, ttg.ConvertLayout)
MADE_POINTERS = (tt.MakeTensorPtr, tt.MakeTensorDesc, tt.Advance, ttng.TensorMap)


def argument_of(pointer: Value) -> Value | None:
    """The pointer that an address is computed from: a parameter of the function; None where it is not known, or where
    loops hand on one of several.
    """
    ends = [value for value in reached([pointer], _before) if not _before(value)]
    is_parameter = len(ends) == 1 and isinstance(ends[0].defining_block.parent_op, tt.Func) and not ends[0].defining_op
    return ends[0] if is_parameter else None


def _before(pointer: Value) -> Sequence[Value]:
    """The pointers that one is computed from; none where it is a parameter or not known."""
    op = pointer.defining_op
    if isinstance(op, (tt.AddPtr, tt.Splat, tt.Bitcast, tt.Reshape, *SAME_POINTER, *MADE_POINTERS)):
        return op.operands[:1]
    return handed_from(pointer) or ()


class Offsets(NamedTuple):
    """What is added to `start`: a parameter (None: any), or a pointer that a loop hands on or control flow chooses."""

    added: tuple[object, ...]
    start: Value | None


def offsets_of(pointer: Value) -> Offsets:
    """What is added to the parameter, as the values it was written with, and how the block of pointers is turned: equal
    ones are equal addresses, whatever the parameter.
    """
    added: list[object] = []
    while not isinstance(pointer, BlockArgument):
        op = pointer.defining_op
        if isinstance(op, (tt.AddPtr, *MADE_POINTERS)):
            added.extend(op.operands[1:])
        elif isinstance(op, tt.Trans):
            added.append(tuple(op.order))
        elif isinstance(op, tt.ExpandDims):
            added.append(op.axis)
        elif not isinstance(op, (tt.Splat, tt.Bitcast, *SAME_POINTER)):
            return Offsets(tuple(added), pointer)
        pointer = op.operands[0]
    is_parameter = isinstance(pointer.block.parent_op, tt.Func)
    return Offsets(tuple(added), None if is_parameter else pointer)


def pointer_of(op: Operation) -> Value:
    """The pointer (or descriptor) operand of an access."""
    return op.operands[0]


def pointee(pointer: Value) -> Type:
    """The element type behind a pointer of any kind."""
    type = pointer.type
    if isinstance(type, TensorDescType):
        return type.block.element
    if isinstance(type, TensorType):
        type = type.element
    assert isinstance(type, PointerType)
    return type.pointee.element if isinstance(type.pointee, TensorType) else type.pointee


def same_elements(a: Operation, b: Operation) -> bool:
    """Whether two accesses touch the same element for the same index and no other one, if their parameters are the same
    array. Of different parameters it is taken for granted that no index shares its element unless all surely do.
    """
    if isinstance(a, tt.VolatileAsm) or isinstance(b, tt.VolatileAsm):
        return False
    if isinstance(a, SHARED) or isinstance(b, SHARED):
        return isinstance(a, SHARED) and isinstance(b, SHARED) and is_same_window(a.memory, b.memory)
    from mltriton.analysis.distinct_elements import Distinct, distinct_elements  # Most accesses touch no memory twice.

    is_other, distinct = through_other_parameter(a, b), distinct_elements(pointer_of(b))
    if distinct is Distinct.NO or (distinct is Distinct.UNKNOWN and not is_other):
        return False
    if _same_indices(a, b) and offsets_of(pointer_of(a)) == offsets_of(pointer_of(b)):
        return True
    return is_other and _shape_of(a) == _shape_of(b) and _varying(a) == _varying(b)


def _same_indices(a: Operation, b: Operation) -> bool:
    """Whether accesses through descriptors have the same indices."""
    indices = [op.indices if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore) else () for op in (a, b)]
    return tuple(indices[0]) == tuple(indices[1])


def _may_be_same_array(a: Operation, b: Operation) -> bool:
    """Whether two parameters may be one: both are accessed at the same index of a block, as far as one can see.

    The numbers in the offsets may differ: programs pass the strides of an array once for each parameter.
    """
    if pointee(pointer_of(a)) is not pointee(pointer_of(b)):
        return False
    if _same_indices(a, b) and offsets_of(pointer_of(a)).added == offsets_of(pointer_of(b)).added:
        return True
    ranges = [{leaf for leaf, _ in _varying(op)} for op in (a, b)]
    return _shape_of(a) == _shape_of(b) and ranges[0] == ranges[1]


def _shape_of(access: Operation) -> tuple[int, ...]:
    """The shape of the block that an access moves."""
    blocks = (value.type for value in (*access.results, *access.operands[1:]))
    return next((kind.shape for kind in blocks if isinstance(kind, TensorType)), ())


def _varying(access: Operation) -> frozenset[tuple[object, tuple[object, ...]]]:
    """What the offsets in an access are made of besides numbers that are the same for the whole block: ranges and other
    blocks, each with how it is turned on its way into the offsets.
    """
    found: set[tuple[object, tuple[object, ...]]] = set()
    pending: list[tuple[Value, tuple[object, ...]]] = [(pointer_of(access), ())]
    seen = set(pending)
    while pending:
        value, turns = pending.pop()
        op = value.defining_op
        parent = value.block.parent_op if isinstance(value, BlockArgument) else op
        if isinstance(parent, scf.For) and isinstance(value, BlockArgument | OpResult):
            # What a loop carries varies as what it began with.
            before = value.index - isinstance(value, BlockArgument)
            if before >= 0:
                pending.append((parent.inits[before], turns))
            continue
        if isinstance(op, (tt.Splat, arith.Constant, *MADE_POINTERS)) or not isinstance(value.type, TensorType):
            continue
        blocks = [operand for operand in op.operands if isinstance(operand.type, TensorType)] if op is not None else []
        if op is None or not blocks or isinstance(op, GLOBAL_READS):
            found.add(((op.start, op.end) if isinstance(op, tt.MakeRange) else value, turns))
            continue
        if isinstance(op, (tt.Trans, tt.ExpandDims)):
            turns = (*turns, tuple(op.order) if isinstance(op, tt.Trans) else op.axis)
        new = [(block, turns) for block in blocks if (block, turns) not in seen]
        seen.update(new)
        pending += new
    return frozenset(found)


def may_alias(load: Operation, write: Operation) -> bool:
    """Whether a write may change what a load reads. Two parameters are the same array only where both are accessed at
    the same index of a block (docs/architecture.md, "Semantics"). Nobody knows what assembly does.
    """
    if isinstance(load, tt.VolatileAsm) or isinstance(write, tt.VolatileAsm):
        return True
    if isinstance(load, SHARED) or isinstance(write, SHARED):
        return isinstance(load, SHARED) and isinstance(write, SHARED) and _windows_meet(load.memory, write.memory)
    a, b = argument_of(pointer_of(load)), argument_of(pointer_of(write))
    if a is None or b is None:
        return True
    return a is b or _may_be_same_array(load, write)


def through_other_parameter(load: Operation, write: Operation) -> bool:
    """Whether two accesses of global memory have different parameters: then a warp writes only where it reads itself,
    if they are the same array.
    """
    if isinstance(load, tt.VolatileAsm) or isinstance(write, tt.VolatileAsm):
        return False
    if isinstance(load, SHARED) or isinstance(write, SHARED):
        return False
    a, b = argument_of(pointer_of(load)), argument_of(pointer_of(write))
    return a is not None and b is not None and a is not b


def writes_in(op: Operation) -> list[Operation]:
    """The operations in `op` (itself included) that write global or shared memory."""
    if not op.regions:
        return [op] if isinstance(op, WRITES) else []
    return [inner for inner in op.walk() if isinstance(inner, WRITES)]


def waits_for_programs(op: Operation) -> bool:
    """Whether an operation may order memory between programs: what was loaded before it may be another's to change. A
    volatile load may wait for what another program stores.
    """
    return any(map(_waits, op.walk()))


def waits_for_own_programs(op: Operation) -> bool:
    """The same of programs of one launch, with which those of an earlier one have nothing to do."""
    return any(_waits(inner) and not isinstance(inner, ttng.GridDependencyWait) for inner in op.walk())


def _waits(op: Operation) -> bool:
    return op.volatile if isinstance(op, tt.Load) else isinstance(op, ORDERING) and not only_adds(op)


def orders_memory(op: Operation) -> bool:
    """Whether what was accessed before an operation must be done before what comes behind it, through whatever
    parameter: a barrier, or what `waits_for_programs`. Only the program's own barriers count, so a pass asks before
    others are made.
    """
    return waits_for_programs(op) or any(isinstance(inner, gpu.Barrier) for inner in op.walk())


def only_adds(op: Operation) -> bool:
    """Whether an update orders nothing: it is relaxed, and nobody learns what was there before."""
    return isinstance(op, tt.AtomicRMW | tt.AtomicCAS) and op.sem == "relaxed" and not op.result.users


def reads_in(op: Operation) -> list[Operation]:
    """The operations in `op` (itself included) that read global or shared memory and nothing else."""
    return [inner for inner in op.walk() if isinstance(inner, (*GLOBAL_READS, ttg.LocalLoad))]


# Shared memory


def allocation_of(memory: Value) -> Value:
    """The whole buffer that a block in shared memory is, or is a window of."""
    while isinstance(memory.defining_op, ttg.MemDescSubview | ttg.MemDescTrans):
        memory = memory.defining_op.operands[0]
    return memory


def is_same_window(a: Value, b: Value) -> bool:
    """Whether two blocks in shared memory are the same elements in the same order, as far as one can see."""
    if a is b:
        return True
    first, second = a.defining_op, b.defining_op
    if isinstance(first, ttg.MemDescSubview) and isinstance(second, ttg.MemDescSubview):
        same = a.type is b.type and all(map(_is_same_number, first.offsets, second.offsets))
        return same and is_same_window(first.memory, second.memory)
    if isinstance(first, ttg.MemDescTrans) and isinstance(second, ttg.MemDescTrans):
        return is_same_window(first.memory, second.memory)
    return False


def _is_same_number(a: Value, b: Value) -> bool:
    return a is b or (_number(a) is not None and _number(a) == _number(b))


def _number(value: Value) -> int | None:
    found = constant_of(value)
    return found.value if isinstance(found, IntegerAttr) else None


def _windows_meet(a: Value, b: Value) -> bool:
    """Whether two blocks in shared memory may have an element in common."""
    if allocation_of(a) is not allocation_of(b):
        return not (_is_whole(allocation_of(a)) and _is_whole(allocation_of(b)))
    first, second = a.defining_op, b.defining_op
    if not (isinstance(first, ttg.MemDescSubview) and isinstance(second, ttg.MemDescSubview)):
        return True
    return first.memory is not second.memory or all(map(_ranges_meet, _ranges(first), _ranges(second)))


def _is_whole(memory: Value) -> bool:
    return isinstance(memory.defining_op, ttg.LocalAlloc)


def _ranges(op: ttg.MemDescSubview) -> list[tuple[Value, int]]:
    """Start and length of a window along each dimension of its source."""
    type = cast(MemDescType, op.result.type)
    dropped = len(op.offsets) - len(type.shape)
    return list(zip(op.offsets, (*(1,) * dropped, *type.shape), strict=True))


def _ranges_meet(a: tuple[Value, int], b: tuple[Value, int]) -> bool:
    starts = _number(a[0]), _number(b[0])
    if starts[0] is None or starts[1] is None:
        return True
    return starts[0] < starts[1] + b[1] and starts[1] < starts[0] + a[1]
