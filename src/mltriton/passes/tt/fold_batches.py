"""fold-batches: leading dimensions of size 1 leave the blocks; where they stand in memory goes into base pointers.

Level: tt, inlined. A block of 1xMxN becomes MxN everywhere in a function, loops included: 2D block accesses take
matrices, and a dot of matrices needs no batch. A block pointer or descriptor of such blocks points to the matrix that
its leading offsets choose; where they are outside, the index in it is before its first row (or column), so that nothing
is inside, and the matrix needs no size of its own. Guarantees: all blocks of a function are
folded, or it stays as it is: where an operation moves a leading dimension, or a block pointer along one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import cast

from mltriton.analysis.block_io import OUTSIDE
from mltriton.analysis.block_pointer_roots import origins
from mltriton.analysis.effects import is_pure
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.rewriting import Rewriter, RuleTable, keep
from mltriton.ir.types import I64, PointerType, TensorDescType, TensorType, Type, block_of


class FoldBatches(Pass):
    """Make matrices of blocks with leading dimensions of size 1."""

    name = "fold-batches"

    def run(self, module: Module) -> Module:
        made = Module.empty(module.attributes, module.loc)
        for op in list(module.body.block.ops):
            if isinstance(op, tt.Func) and _has_batches(op) and _is_foldable(op):
                folder = _Folder(any(True in _checked(inner) for inner in op.walk()), _unmoved(op))
                regions = [folder.rebuild_region(region) for region in op.regions]
                op = tt.Func((), (), op.attributes, regions, op.loc)
            made.body.block.append(op)
        return made


class _Folder(Rewriter):
    """Rebuilds one function. `checked`: accesses through block pointers give nothing outside leading dimensions;
    `unmoved`: the dimensions of each block pointer's matrix, the last one is -1, that say so.
    """

    def __init__(self, checked: bool, unmoved: Mapping[tt.MakeTensorPtr, Sequence[int]]) -> None:
        super().__init__(RULES, fold_type)
        self.checked = checked
        self.unmoved = unmoved


def fold_type(type: Type) -> Type:
    """A type without leading dimensions of size 1, but for two dimensions; descriptors stay, for others are made."""
    if isinstance(type, PointerType) and isinstance(type.pointee, TensorType):
        return PointerType(fold_type(type.pointee), type.address_space)
    return type.with_shape(type.shape[_leading(type) :]) if isinstance(type, TensorType) else type


def _leading(type: TensorType) -> int:
    """How many dimensions leave a block."""
    count = 0
    while type.rank - count > 2 and type.shape[count] == 1:
        count += 1
    return count


# Whether a function can be folded.


def _blocks(values: Iterable[Value]) -> list[TensorType]:
    return [block for value in values if (block := block_of(value.type)) is not None]


def _block(value: Value) -> TensorType:
    block = block_of(value.type)
    assert block is not None
    return block


def _has_batches(function: Operation) -> bool:
    return any(_leading(block) for op in function.walk() for block in _blocks(op.results))


def _is_foldable(function: Operation) -> bool:
    checks = {check for op in function.walk() for check in _checked(op)}
    return len(checks) <= 1 and all(_takes_matrices(op) for op in function.walk() if op is not function)


def _checked(op: Operation) -> set[bool]:
    """Whether an access through a block pointer checks its leading dimensions; where it does, the next one as well,
    for it says then what is inside.
    """
    if not isinstance(op, tt.Load | tt.Store) or not is_block_pointer(op.ptr.type):
        return set()
    count = _leading(_block(op.ptr))
    found = {dim in op.boundary_check for dim in range(count)}
    return found | {count in op.boundary_check} if True in found else found


def _unmoved(function: Operation) -> dict[tt.MakeTensorPtr, list[int]]:
    """Of each block pointer the last two dimensions, those along which nothing advances it and every access checks."""
    found: dict[tt.MakeTensorPtr, list[int]] = {}
    for op in function.walk():
        if isinstance(op, tt.MakeTensorPtr):
            found[op] = [-2, -1]
        elif isinstance(op, tt.Load | tt.Store | tt.Advance) and is_block_pointer(op.ptr.type):
            rank = _block(op.ptr).rank
            for maker in origins(op.ptr, tt.MakeTensorPtr):
                found[maker] = [dim for dim in found[maker] if _keeps(op, rank + dim)]
    return found


def _keeps(op: tt.Load | tt.Store | tt.Advance, dim: int) -> bool:
    return splat_of(op.offsets[dim]) == 0 if isinstance(op, tt.Advance) else dim in op.boundary_check


def _takes_matrices(op: Operation) -> bool:
    """Whether the operation can do without its leading dimensions."""
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        return isinstance(op.desc.defining_op, tt.MakeTensorDesc)
    blocks = _blocks([*op.operands, *op.results])
    if not any(map(_leading, blocks)):
        return True
    if isinstance(op, tt.Advance):
        return all(splat_of(offset) == 0 for offset in op.offsets[: _leading(blocks[0])])
    if isinstance(op, tt.Trans):
        count = _leading(blocks[0])
        return _leading(blocks[-1]) == count and list(op.order[:count]) == list(range(count))
    return op.elementwise or type(op) in RULES


# How operations are rewritten.


def _constant(f: _Folder, op: arith.Constant, operands: list[Value]) -> Sequence[Value]:
    value = op.value
    if not isinstance(value, DenseAttr):
        return f.copy(op, operands)
    return [f.builder.emit(arith.Constant, value=DenseAttr(value.values, fold_type(op.result.type)))]


def _make_pointer(f: _Folder, op: tt.MakeTensorPtr, operands: list[Value]) -> Sequence[Value]:
    count, rank = _leading(_block(op.result)), len(op.shape)
    base, (shape, strides, offsets) = operands[0], (operands[1 + i * rank :][:rank] for i in range(3))
    if count:
        base = _moved(f.builder, base, offsets[:count], strides[:count])
        if f.checked:
            inside = _inside(f.builder, offsets[:count], shape[:count])
            if f.unmoved[op]:
                dim = f.unmoved[op][0]
                offsets[dim] = _chosen(f.builder, inside, offsets[dim], OUTSIDE)
            else:
                shape[count] = _chosen(f.builder, inside, shape[count], 0)
    order = [dim - count for dim in op.order if dim >= count]
    parts = (shape[count:], strides[count:], offsets[count:])
    return [f.builder.emit(tt.MakeTensorPtr, base, *parts, result_types=[fold_type(op.result.type)], order=order)]


def _advance(f: _Folder, op: tt.Advance, operands: list[Value]) -> Sequence[Value]:
    return [f.builder.emit(tt.Advance, operands[0], operands[1 + _leading(_block(op.ptr)) :])]


def _access(f: _Folder, op: tt.Load | tt.Store, operands: list[Value]) -> Sequence[Value]:
    made = f.copy(op, operands)
    if op.boundary_check:
        count, copy = _leading(_block(op.ptr)), f.builder.block.ops[-1]
        assert isinstance(copy, tt.Load | tt.Store)
        copy.boundary_check = tuple(dim - count for dim in op.boundary_check if dim >= count)
    return made


def _descriptor(f: _Folder, op: tt.DescriptorLoad | tt.DescriptorStore, operands: list[Value]) -> Sequence[Value]:
    block = _block(op.result if isinstance(op, tt.DescriptorLoad) else op.value)
    count, first = _leading(block), len(operands) - len(op.indices)
    if not count:
        return f.copy(op, operands)
    maker = cast(tt.MakeTensorDesc, op.desc.defining_op)
    shape, strides = (list(map(f.map, values)) for values in (maker.shape, maker.strides))
    leading, offsets = operands[first:][:count], operands[first + count :]
    # The offsets that stay in the loop around, so that the choice leaves it.
    dim = -1 if _changes(op.indices[-2], op) and not _changes(op.indices[-1], op) else -2
    offsets[dim] = _chosen(f.builder, _inside(f.builder, leading, shape[:count]), offsets[dim], OUTSIDE)
    base = _moved(f.builder, f.map(maker.base), leading, strides[:count])
    type = TensorDescType(cast(TensorType, fold_type(block)))
    made = f.builder.emit(
        tt.MakeTensorDesc, base, shape[count:], strides[count:], result_types=[type], padding=maker.padding
    )
    kept = [made, *operands[1:first], *offsets]
    types = [fold_type(result.type) for result in op.results]
    segments = None if op.segments is None else (*op.segments[:-1], len(op.indices) - count)
    return f.builder.insert(cast(Operation, op).__class__(kept, types, op.attributes, (), op.loc, segments)).results


def _moved(builder: Builder, base: Value, offsets: Sequence[Value], strides: Sequence[Value]) -> Value:
    """The address of the matrix that leading offsets (i32) choose."""
    for offset, stride in zip(offsets, strides, strict=True):
        wide = builder.emit(arith.ExtSI, offset, result_types=[I64])
        base = builder.emit(tt.AddPtr, base, builder.emit(arith.MulI, wide, stride))
    return base


def _changes(value: Value, access: Operation) -> bool:
    """Whether a scalar may differ from one iteration of the innermost loop around an access to the next."""
    loop = access.ancestor(scf.For, scf.While)
    return loop is not None and _changes_in(value, loop)


def _changes_in(value: Value, loop: Operation) -> bool:
    op = value.defining_op
    if not is_defined_inside(value, loop):
        return False
    return op is None or not is_pure(op) or any(_changes_in(operand, loop) for operand in op.operands)


def _inside(builder: Builder, offsets: Sequence[Value], shape: Sequence[Value]) -> Value:
    """Whether all leading offsets are inside."""
    found: list[Value] = []
    for offset, extent in zip(offsets, shape, strict=True):
        at = offset if extent.type is offset.type else builder.emit(arith.ExtSI, offset, result_types=[extent.type])
        # A negative offset is a large one.
        found.append(builder.emit(arith.CmpI, at, extent, predicate="ult"))
    return reduce(partial(builder.emit, arith.AndI), found)


def _chosen(builder: Builder, inside: Value, value: Value, otherwise: int) -> Value:
    return builder.emit(arith.Select, inside, value, arith.integer(builder, otherwise, value.type))


def _expand(f: _Folder, op: tt.ExpandDims, operands: list[Value]) -> Sequence[Value]:
    source, result = cast(TensorType, operands[0].type), cast(TensorType, fold_type(op.result.type))
    axis = op.axis - _leading(_block(op.result))
    if source.shape != result.shape and axis >= 0 and result.rank == source.rank + 1:
        return [f.builder.emit(tt.ExpandDims, operands[0], axis=axis)]
    return [_as_shape(f.builder, operands[0], result)]


def _broadcast(f: _Folder, op: tt.Broadcast, operands: list[Value]) -> Sequence[Value]:
    source, result = operands[0], cast(TensorType, fold_type(op.result.type))
    while cast(TensorType, source.type).rank < result.rank:
        source = f.builder.emit(tt.ExpandDims, source, axis=0)
    if source.type is result:
        return [source]
    return [f.builder.emit(tt.Broadcast, source, result_types=[result])]


def _reshape(f: _Folder, op: tt.Reshape, operands: list[Value]) -> Sequence[Value]:
    return [_as_shape(f.builder, operands[0], cast(TensorType, fold_type(op.result.type)))]


def _as_shape(builder: Builder, value: Value, type: TensorType) -> Value:
    """The same elements in another shape, by new dimensions of size 1 in front if these are all."""
    while cast(TensorType, value.type).shape == type.shape[1:] and type.shape[0] == 1:
        value = builder.emit(tt.ExpandDims, value, axis=0)
    return value if value.type is type else builder.emit(tt.Reshape, value, result_types=[type])


def _trans(f: _Folder, op: tt.Trans, operands: list[Value]) -> Sequence[Value]:
    count = _leading(_block(op.source))
    return [f.builder.emit(tt.Trans, operands[0], order=[dim - count for dim in op.order[count:]])]


def _reduce(f: _Folder, op: tt.Reduce, operands: list[Value]) -> Sequence[Value]:
    """Along a leading dimension there is nothing to combine."""
    axis, types = op.axis - _leading(_block(op.sources[0])), [fold_type(result.type) for result in op.results]
    if axis >= 0:
        regions = [f.rebuild_region(region) for region in op.regions]
        operands = list(f.builder.create(tt.Reduce, operands, regions=regions, axis=axis).results)
    shaped = zip(operands, types, strict=True)
    return [_as_shape(f.builder, x, type) if isinstance(type, TensorType) else x for x, type in shaped]


RULES: RuleTable = {
    arith.Constant: _constant,
    tt.MakeTensorPtr: _make_pointer,
    tt.Advance: _advance,
    tt.Load: _access,
    tt.Store: _access,
    tt.DescriptorLoad: _descriptor,
    tt.DescriptorStore: _descriptor,
    tt.ExpandDims: _expand,
    tt.Broadcast: _broadcast,
    tt.Reshape: _reshape,
    tt.Trans: _trans,
    tt.Reduce: _reduce,
    tt.Splat: keep,
    tt.Dot: keep,
    tt.AtomicRMW: keep,
    tt.AtomicCAS: keep,
    scf.For: keep,
    scf.If: keep,
    scf.While: keep,
    scf.Yield: keep,
    scf.Condition: keep,
}
