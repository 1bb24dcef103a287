"""distribute-to-warps: ttg -> warp.

Takes a program in which every block has an encoding; leaves the program of one warp: shapes are per warp and offsets
depend on its id (`gpu.subgroup_id`). Guarantees: no tensor is larger than its encoding's per-warp shape; values cross
warps only through shared memory between barriers; where several warps hold the same part, one of them has the effects.
Source: ML-Triton paper, section 2.2 and Table 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, scf, tt, ttg, ttng
from mltriton.errors import PassError
from mltriton.ir.attributes import DenseAttr, StringAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.rewriting import Rewriter, RuleTable
from mltriton.ir.types import I1, MemDescType, PointerType, TensorType, Type, element_type, shape_of
from mltriton.layouts.encodings import Encoding, SliceEncoding, parts_of, same_cut
from mltriton.passes.warp import sides
from mltriton.passes.warp.coordinates import WarpCoordinates
from mltriton.passes.warp.exchange import Exchange
from mltriton.passes.warp.sides import by_owner, owner_of
from mltriton.targets.registry import sharing_warps_of, spec_of


class DistributeToWarps(Pass):
    """Turn block operations into one warp's operations."""

    name = "distribute-to-warps"

    def run(self, module: Module) -> Module:
        attributes = module.attributes | {"mltriton.level": StringAttr("warp")}
        distributed = Module.empty(attributes, module.loc)
        swizzles = spec_of(module).swizzles
        for op in module.body.block.ops:
            assert isinstance(op, tt.Func)
            distributed.body.block.append(Distributor(sharing_warps_of(module), swizzles=swizzles).function(op))
        return distributed


class Distributor(Rewriter):
    """Rebuilds one function; adds the warp's coordinates to what a rewriter knows."""

    def __init__(self, num_warps: int, *, swizzles: bool = False) -> None:
        super().__init__(RULES, per_warp_type)
        self.num_warps = num_warps
        self.swizzles = swizzles
        self.exchange = Exchange(self.builder, num_warps)
        self.warp = WarpCoordinates(num_warps, self.builder.loc)
        self.once: scf.If | None = None  # the latest branch for what is done once for the program

    def function(self, function: tt.Func) -> tt.Func:
        self.warp = WarpCoordinates(self.num_warps, function.loc)
        body = self.rebuild_region(function.body)
        self.warp.prepend_to(body.block)
        return tt.Func((), (), function.attributes, [body], function.loc)

    def offsets(self, type: TensorType) -> list[Value | None]:
        """This warp's first element of a whole block."""
        return self.warp.offsets(_encoding(type), type.shape)

    def part(self, memory: Value, block: TensorType) -> Value:
        """This warp's window of a whole block in shared memory."""
        offsets, per_warp = self.offsets(block), cast(TensorType, per_warp_type(block)).shape
        return memory if per_warp == block.shape else self.exchange.window(memory, offsets, per_warp)


def per_warp_type(type: Type) -> Type:
    """The type of one warp's part; scalars and descriptors stay."""
    if isinstance(type, PointerType) and isinstance(type.pointee, TensorType):
        return PointerType(per_warp_type(type.pointee), type.address_space)
    if isinstance(type, TensorType) and isinstance(type.encoding, Encoding):
        return type.with_shape(type.encoding.per_warp_shape(type.shape))
    return type


def _encoding(type: TensorType) -> Encoding:
    assert isinstance(type.encoding, Encoding), f"{type} has no encoding"
    return type.encoding


def _block(value: Value) -> TensorType:
    """The whole block that an old value is, or points to."""
    type = value.type.pointee if isinstance(value.type, PointerType) else value.type
    return cast(TensorType, type)


def shift_range(d: Distributor, op: tt.MakeRange, operands: list[Value]) -> Sequence[Value]:
    """A range starts at the warp's first element."""
    type = _block(op.result)
    per_warp = cast(TensorType, per_warp_type(type))
    local = d.builder.emit(tt.MakeRange, result_types=[per_warp], start=op.start, end=op.start + per_warp.shape[0])
    (offset,) = d.offsets(type)
    if offset is None:
        return [local]
    return [d.builder.emit(arith.AddI, local, d.builder.emit(tt.Splat, offset, result_types=[per_warp]))]


def shrink_constant(d: Distributor, op: arith.Constant, operands: list[Value]) -> Sequence[Value]:
    """A splat constant shrinks with its type."""
    value = op.value
    type = per_warp_type(op.result.type)
    if not isinstance(value, DenseAttr) or type is op.result.type:
        return d.copy(op, operands)
    if not value.is_splat:
        raise PassError(f"{op.loc}: a constant whose elements differ cannot be cut between warps: {op.result.type}")
    return [d.builder.emit(arith.Constant, value=DenseAttr(value.values, type))]


def shift_block_pointer(d: Distributor, op: tt.MakeTensorPtr, operands: list[Value]) -> Sequence[Value]:
    """The block pointer of the warp's part starts at the warp's first element."""
    return _shift_indices(d, op, operands, len(operands) - len(op.offsets), d.offsets(_block(op.result)))


def shift_descriptor_load(d: Distributor, op: tt.DescriptorLoad, operands: list[Value]) -> Sequence[Value]:
    """Indices move to the warp's first element; the descriptor is the same for every warp."""
    return _shift_indices(d, op, operands, 1, d.offsets(_block(op.result)))


def shift_descriptor_store(d: Distributor, op: tt.DescriptorStore, operands: list[Value]) -> Sequence[Value]:
    """As for a load; one of the warps that hold the same part stores it."""
    type = _block(op.value)
    return by_owner(d, type, lambda: _shift_indices(d, op, operands, 2, d.offsets(type)))


def _shift_indices(
    d: Distributor, op: Operation, operands: list[Value], first: int, offsets: list[Value | None]
) -> Sequence[Value]:
    for dim, offset in enumerate(offsets):
        if offset is not None:
            operands[first + dim] = d.builder.emit(arith.AddI, operands[first + dim], offset)
    return d.copy(op, operands)


def reduce_within_then_across(d: Distributor, op: tt.Reduce, operands: list[Value]) -> Sequence[Value]:
    """Each warp reduces its part; parts along the axis meet in shared memory, and every warp reduces them."""
    source = _block(op.sources[0])
    local = d.copy(op, operands)
    cut = _encoding(source).cut(source.shape)[op.axis]
    parts = cut.parts(source.shape[op.axis])
    if parts == 1:
        return local
    part = d.warp.part(cut, source.shape[op.axis])
    gathered = _gather_parts(d, op.results, local, part, parts)
    types = [_without_first(value) for value in gathered]
    across = d.builder.create(tt.Reduce, gathered, result_types=types, regions=[d.rebuild_region(op.combine)], axis=0)
    return [
        new
        if new.type is per_warp_type(old.type)
        else d.builder.emit(ttg.ConvertLayout, new, result_types=[per_warp_type(old.type)])
        for old, new in zip(op.results, across.results, strict=True)
    ]


def _gather_parts(
    d: Distributor, results: Sequence[Value], local: Sequence[Value], part: Value | None, parts: int
) -> list[Value]:
    """The parts of all results, along a new first dimension; they cross warps together."""
    memories, offsets = list[Value](), list[list[Value | None]]()
    for old, new in zip(results, local, strict=True):
        whole = old.type.shape if isinstance(old.type, TensorType) else ()
        memories.append(d.exchange.memory((parts, *whole), element_type(new.type)))
        offsets.append(d.offsets(old.type) if isinstance(old.type, TensorType) else [])
    d.exchange.barrier()
    for new, memory, at in zip(local, memories, offsets, strict=True):
        d.exchange.store(d.exchange.block_of_one(new), memory, [part, *at])
    d.exchange.barrier()
    types = [d.exchange.local_type((parts, *shape_of(new.type)), element_type(new.type)) for new in local]
    return [
        d.exchange.load(memory, [None, *at], type) for memory, at, type in zip(memories, offsets, types, strict=True)
    ]


def _without_first(value: Value) -> Type:
    type = cast(TensorType, value.type)
    if type.rank == 1:
        return type.element
    return TensorType(type.shape[1:], type.element, SliceEncoding(0, _encoding(type)))


def convert_through_shared_memory(d: Distributor, op: ttg.ConvertLayout, operands: list[Value]) -> Sequence[Value]:
    """Nothing moves where both encodings give a warp the same part; otherwise the block goes through shared memory. So
    do results of matrix instructions whose elements other lanes of the warp want, without a barrier where no other warp
    has the same part.
    """
    source, target = _block(op.source), _block(op.result)
    own = same_cut(_encoding(source), _encoding(target), source.shape)
    moves, encoding = not own, None
    if d.swizzles:
        from mltriton.passes.warp.lane_exchanges import encoding_between, is_spread  # Other targets have no lanes.

        moves = moves or is_spread(source, target)
        encoding = encoding_between(source, target) if moves else None
    if not moves:
        return d.copy(op, operands)
    memory = d.exchange.buffer(source.shape, source.element, encoding)
    d.exchange.store(operands[0], memory, d.offsets(source))
    if not own or parts_of(_encoding(source), source.shape) < d.num_warps:
        d.exchange.barrier()
    return [d.exchange.load(memory, d.offsets(target), cast(TensorType, per_warp_type(target)))]


def window_of_operands(d: Distributor, op: tt.Dot, operands: list[Value]) -> Sequence[Value]:
    """Operands in shared memory are there for all warps: each multiplies the rows of a and the columns of b of its part
    of the result.
    """
    result = _block(op.result)
    *batch, rows, columns = d.offsets(result)
    per_warp = cast(TensorType, per_warp_type(result)).shape
    for index, (operand, offsets) in enumerate(((op.a, (rows, None)), (op.b, (None, columns)))):
        if isinstance(operand.type, MemDescType):
            *_, height, width = operand.type.shape
            size = (*per_warp[:-2], per_warp[-2], width) if index == 0 else (*per_warp[:-2], height, per_warp[-1])
            if size != operand.type.shape:
                operands[index] = d.exchange.window(operands[index], [*batch, *offsets], size)
    return d.copy(op, operands)


def shared_part(d: Distributor, op: ttg.LocalLoad | ttg.LocalStore, operands: list[Value]) -> Sequence[Value]:
    """A warp loads and stores its own part of a block in shared memory."""
    index, block = (0, op.result) if isinstance(op, ttg.LocalLoad) else (1, op.value)
    if isinstance(op, ttg.LocalLoad) or d.num_warps == 1:
        operands[index] = d.part(operands[index], _block(block))
        return d.copy(op, operands)
    d.exchange.barrier()
    operands[index] = d.part(operands[index], _block(block))
    d.copy(op, operands)
    d.exchange.barrier()
    return []


def allocate_then_store(d: Distributor, op: ttg.LocalAlloc, operands: list[Value]) -> Sequence[Value]:
    """All warps fill what is allocated with a value, before anyone reads it."""
    if op.init is None or d.num_warps == 1:
        return d.copy(op, operands)
    memory = d.builder.emit(ttg.LocalAlloc, None, result_types=[op.result.type])
    d.exchange.barrier()
    d.builder.create(ttg.LocalStore, operands[0], d.part(memory, _block(op.init)))
    d.exchange.barrier()
    return [memory]


def copy_part(d: Distributor, op: ttg.AsyncCopyGlobalToLocal, operands: list[Value]) -> Sequence[Value]:
    """A warp copies its own part; where several have the same, one of them does."""
    block = _block(op.ptr)
    operands[1] = d.part(operands[1], block)
    if owner_of(d, block) is None:
        return d.copy(op, operands)
    by_owner(d, block, lambda: d.copy(op, operands))
    return operands[1:2]  # Groups are counted: nobody looks at a token.


def close_group(d: Distributor, op: ttg.AsyncCommitGroup, operands: list[Value]) -> Sequence[Value]:
    """A group has the copies that were started before it, whatever its tokens."""
    return d.builder.create(ttg.AsyncCommitGroup, []).results


def wait_together(d: Distributor, op: ttg.AsyncWait, operands: list[Value]) -> Sequence[Value]:
    """What a warp has waited for is there for the others behind a barrier; what they read before may be written."""
    results = d.builder.create(ttg.AsyncWait, [], num=op.num, own=op.own or None).results
    if d.num_warps > 1 and not op.own:
        d.exchange.barrier()
    return results


def gather_through_shared_memory(d: Distributor, op: tt.Gather, operands: list[Value]) -> Sequence[Value]:
    """A warp gathers by itself where it alone has what it gathers from; otherwise the source goes through shared
    memory once, and every warp finds its elements there.
    """
    source, result = _block(op.source), _block(op.result)
    window = [None if dim == op.axis else offset for dim, offset in enumerate(d.offsets(result))]
    if owner_of(d, source) is None and d.offsets(source) == window:
        return d.copy(op, operands)
    memory = d.exchange.buffer(source.shape, source.element)
    d.exchange.store(operands[0], memory, d.offsets(source))
    d.exchange.barrier()
    per_warp = cast(TensorType, per_warp_type(result)).shape
    rows = d.exchange.window(memory, window, (*per_warp[: op.axis], source.shape[op.axis], *per_warp[op.axis + 1 :]))
    return [d.builder.emit(ttg.LocalGather, rows, operands[1], result_types=[per_warp_type(result)], axis=op.axis)]


def store_by_owner(d: Distributor, op: Operation, operands: list[Value]) -> Sequence[Value]:
    """Of the warps that hold the same part, one stores, prints or asserts.

    In the region of a reduction or scan each warp does so for what it combines.
    """
    if isinstance(op.parent_op, tt.Reduce | tt.Scan):
        return d.copy(op, operands)
    return by_owner(d, op.operands[0].type if operands else I1, lambda: d.copy(op, operands))


def atomic_by_owner(d: Distributor, op: tt.AtomicRMW | tt.AtomicCAS, operands: list[Value]) -> Sequence[Value]:
    """One warp of those that hold the same part does the atomic; the others get its result through shared memory."""
    type = op.result.type
    owner = owner_of(d, type)
    if owner is None:
        return d.copy(op, operands)
    shape = type.shape if isinstance(type, TensorType) else (1,)
    element = type.element if isinstance(type, TensorType) else type
    offsets = d.offsets(type) if isinstance(type, TensorType) else [None]
    memory = d.exchange.buffer(shape, element)
    branch = d.builder.create(scf.If, owner, result_types=[], regions=[Region(), Region([])])
    with d.builder.inside(branch.then.block):
        (done,) = d.copy(op, operands)
        d.exchange.store(done if isinstance(type, TensorType) else d.exchange.block_of_one(done), memory, offsets)
        d.builder.create(scf.Yield, [], result_types=[])
    d.exchange.barrier()
    if isinstance(type, TensorType):
        return [d.exchange.load(memory, offsets, cast(TensorType, per_warp_type(type)))]
    block = d.exchange.load(memory, offsets, d.exchange.local_type((1,), element))
    return [d.builder.emit(tt.Unsplat, block, result_types=[element])]


# How each kind of operation becomes one warp's; whatever is not listed is copied with per-warp types.
RULES: RuleTable = {
    arith.Constant: shrink_constant,
    tt.MakeRange: shift_range,
    tt.MakeTensorPtr: shift_block_pointer,
    tt.DescriptorLoad: shift_descriptor_load,
    tt.DescriptorStore: shift_descriptor_store,
    tt.Reduce: reduce_within_then_across,
    tt.Dot: window_of_operands,
    ttng.WarpGroupDot: window_of_operands,
    ttg.LocalAlloc: allocate_then_store,
    ttg.LocalLoad: shared_part,
    ttg.LocalStore: shared_part,
    ttg.AsyncCopyGlobalToLocal: copy_part,
    ttg.AsyncCommitGroup: close_group,
    ttg.AsyncWait: wait_together,
    **sides.RULES,
    tt.Gather: gather_through_shared_memory,
    ttg.ConvertLayout: convert_through_shared_memory,
    tt.Store: store_by_owner,
    tt.Print: store_by_owner,
    tt.Assert: store_by_owner,
    tt.AtomicRMW: atomic_by_owner,
    tt.AtomicCAS: atomic_by_owner,
}
