"""How each kind of operation is split into pieces: the rule table of the register form of match-target-size.

Level: warp to intrinsic. A rule gets the splitter and the operation and returns, for each result, a `Pieces` (a
block) or a value (a scalar). It asks the splitter for its operands' pieces. Source: ML-Triton paper, section 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, scf, tt, ttg, ttig, ttng
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType, Type, block_of, byte_width
from mltriton.layouts.conversions import change_cost
from mltriton.layouts.encodings import Encoding, Shape
from mltriton.layouts.hardware import warp_layout
from mltriton.passes.intrinsic.split_registers.dots import dot, group_dot, group_dot_wait
from mltriton.passes.intrinsic.split_registers.pieces import Grid, Pieces
from mltriton.passes.intrinsic.split_registers.shared_memory import async_copy, local_load, local_store

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.split_registers.driver import Splitter

Split = Value | Pieces
Load = tt.Load | tt.DescriptorLoad
Access = tt.Load | tt.Store | tt.AtomicRMW | tt.AtomicCAS | ttig.Prefetch


def each_piece(s: Splitter, op: Operation) -> Sequence[Split]:
    """One operation for each piece: arithmetic, advances."""
    grid = s.grid_of(op)
    if grid is None:
        return s.copy(op, [s.scalar(value) for value in op.operands])
    made = [
        s.copy(op, [s.piece(value, origin, grid.piece) for value in op.operands], grid.piece)
        for origin in grid.origins()
    ]
    columns = zip(*made, strict=True)
    return [s.pieces_of(old.type, grid, values) for old, values in zip(op.results, columns, strict=True)]


def access(s: Splitter, op: Access) -> Sequence[Split]:
    """One access for each part of a block that the target takes at a time."""
    block = block_of(op.ptr.type)
    if block is None:
        return s.copy(op, [s.scalar(value) for value in op.operands])
    part = s.sizes.access(op.ptr.type)
    return _in_parts(s, op, Grid(block.shape, part), lambda origin: [s.piece(v, origin, part) for v in op.operands])


def _in_parts(
    s: Splitter, op: Operation, grid: Grid, operands_at: Callable[[Shape], Sequence[Value]]
) -> Sequence[Split]:
    """One operation for each part; results are put together to pieces as their encoding says."""
    made = [s.copy(op, operands_at(origin), grid.piece) for origin in grid.origins()]
    return [
        s.pieces_of(result.type, grid, values).cut(s.builder, s.sizes.piece_of(result.type))
        for result, *values in zip(op.results, *made, strict=True)
    ]


def constant(s: Splitter, op: arith.Constant) -> Sequence[Split]:
    """A splat block constant is one piece, used everywhere."""
    grid = s.grid_of(op)
    value = op.value
    if grid is None:
        return s.copy(op, [])
    assert isinstance(value, DenseAttr)
    piece = s.builder.emit(arith.Constant, value=DenseAttr(value.values, s.piece_type(op.result.type, grid.piece)))
    return [s.pieces_of(op.result.type, grid, [piece] * len(grid.origins()))]


def splat(s: Splitter, op: tt.Splat) -> Sequence[Split]:
    """A splat is one piece, used everywhere."""
    grid = s.grid_of(op)
    assert grid is not None
    piece = s.builder.emit(tt.Splat, s.scalar(op.source), result_types=[s.piece_type(op.result.type, grid.piece)])
    return [s.pieces_of(op.result.type, grid, [piece] * len(grid.origins()))]


def make_range(s: Splitter, op: tt.MakeRange) -> Sequence[Split]:
    """Each piece is the range of its own elements."""
    grid = s.grid_of(op)
    assert grid is not None
    (size,) = grid.piece
    type = s.piece_type(op.result.type, grid.piece)
    starts = [op.start + first for (first,) in grid.origins()]
    made = [s.builder.emit(tt.MakeRange, result_types=[type], start=start, end=start + size) for start in starts]
    return [s.pieces_of(op.result.type, grid, made)]


def expand_dims(s: Splitter, op: tt.ExpandDims) -> Sequence[Split]:
    """A piece of the result comes from the source's piece without the axis."""
    return _moved(s, op, lambda origin: _erase(origin, op.axis), lambda piece: _erase(piece, op.axis))


def broadcast(s: Splitter, op: tt.Broadcast) -> Sequence[Split]:
    """A piece of the result comes from the source's piece with 0 along repeated dimensions; a piece of the same shape
    needs no operation.
    """
    shape = _block(op.source).shape
    return _moved(
        s,
        op,
        lambda origin: tuple(0 if extent == 1 else start for start, extent in zip(origin, shape, strict=True)),
        lambda piece: tuple(min(size, extent) for size, extent in zip(piece, shape, strict=True)),
    )


def trans(s: Splitter, op: tt.Trans) -> Sequence[Split]:
    """A piece of the result is a transposed piece of the source."""
    inverse = tuple(op.order.index(dim) for dim in range(len(op.order)))

    def permute(shape: Shape) -> Shape:
        return tuple(shape[dim] for dim in inverse)

    return _moved(s, op, permute, permute, keeps_elements=False)


def part(s: Splitter, op: ttig.Extract) -> Sequence[Split]:
    """The pieces of a part of a block are parts of the block's pieces, or some of them."""
    grid = s.grid_of(op)
    assert grid is not None
    start = Grid(_block(op.source).shape, grid.shape).origins()[op.index]
    origins = (tuple(map(add, start, origin)) for origin in grid.origins())
    return [s.pieces_of(op.result.type, grid, [s.piece(op.source, origin, grid.piece) for origin in origins])]


def _moved(
    s: Splitter,
    op: Operation,
    origin_of: Callable[[Shape], Shape],
    piece_of: Callable[[Shape], Shape],
    keeps_elements: bool = True,
) -> Sequence[Split]:
    """`keeps_elements`: a piece of the same shape is the same piece."""
    grid = s.grid_of(op)
    assert grid is not None
    type = s.piece_type(op.results[0].type, grid.piece)
    values: list[Value] = []
    for origin in grid.origins():
        source = s.piece(op.operands[0], origin_of(origin), piece_of(grid.piece))
        values.append(source if keeps_elements and source.type is type else s.copy(op, [source], grid.piece)[0])
    return [s.pieces_of(op.results[0].type, grid, values)]


def convert_layout(s: Splitter, op: ttg.ConvertLayout) -> Sequence[Split]:
    """Every warp has the same part before and after. Where lanes do not matter only the cut may change; where they do,
    one conversion for each window that is made of whole pieces of both sides. What takes instructions and was loaded
    is converted as it comes, message by message.
    """
    source = s.pieces(op.source)
    if not s.sizes.has_lanes:
        return [source]
    piece = s.sizes.piece_of(op.result.type)
    window = tuple(map(max, source.grid.piece, piece))
    arrives = s.piece_type(op.result.type, source.grid.piece)
    loaded = all(isinstance(value.defining_op, Load) for value in source.values)
    as_it_comes = loaded and _moves_lanes(_block(source.values[0]), cast(TensorType, arrives))
    if as_it_comes:
        window = source.grid.piece
    grid, type = Grid(source.grid.shape, window), s.piece_type(op.result.type, window)
    parts = [source.at(s.builder, origin, window) for origin in grid.origins()]
    builders = [_behind(s.builder, part) if as_it_comes else s.builder for part in parts]
    made = [
        part if part.type is type else builder.emit(ttg.ConvertLayout, part, result_types=[type])
        for part, builder in zip(parts, builders, strict=True)
    ]
    return [s.pieces_of(op.result.type, grid, made).cut(s.builder, piece)]


def _moves_lanes(source: TensorType, target: TensorType) -> bool:
    """Whether a conversion is more than other names, between pieces of which each lane has elements of its own."""
    ends = cast(Encoding, source.encoding), cast(Encoding, target.encoding)
    if not all(all(map(any, warp_layout(end, source.shape).vectors("lane"))) for end in ends):
        return False
    return change_cost(ends[0], ends[1], source.shape, byte_width(source.element)) > 0


def _behind(builder: Builder, value: Value) -> Builder:
    """Inserts right behind a load of the block that is being filled, elsewhere where the builder is."""
    load, block = value.defining_op, builder.block
    if load is None or load.block is not block or block.ops[-1] is load:
        return builder
    behind = Builder().before(block.ops[block.position(load) + 1])
    behind.loc = builder.loc
    return behind


def reduce(s: Splitter, op: tt.Reduce) -> Sequence[Split]:
    """Pieces along the axis are combined element by element, then each is reduced."""
    source = s.pieces(op.sources[0]).grid
    span = source.piece[op.axis]
    outer = Grid(_erase(source.shape, op.axis), _erase(source.piece, op.axis))
    reduced: list[list[Value]] = []
    for origin in outer.origins():
        starts = [(*origin[: op.axis], first, *origin[op.axis :]) for first in range(0, source.shape[op.axis], span)]
        columns = [[s.piece(value, start, source.piece) for value in op.sources] for start in starts]
        combined = columns[0]
        for column in columns[1:]:
            combined = s.inline_on_blocks(op.combine, [*combined, *column])
        types: list[Type] = [s.reduced_piece(result.type, outer.piece) for result in op.results]
        one = s.builder.create(tt.Reduce, combined, result_types=types, regions=[s.clone(op.combine)], axis=op.axis)
        reduced.append(list(one.results))
    results = [list(values) for values in zip(*reduced, strict=True)]
    return [
        s.pieces_of(result.type, outer, values) if isinstance(result.type, TensorType) else values[0]
        for result, values in zip(op.results, results, strict=True)
    ]


def make_tensor_ptr(s: Splitter, op: tt.MakeTensorPtr) -> Sequence[Split]:
    """One block pointer for each piece, at the piece's offset."""
    grid = s.grid_of(op)
    assert grid is not None
    operands = [s.scalar(value) for value in op.operands]
    first = len(operands) - len(op.offsets)
    made = [s.copy(op, _shifted(s, operands, first, origin), grid.piece)[0] for origin in grid.origins()]
    return [s.pieces_of(op.result.type, grid, made)]


def descriptor_load(s: Splitter, op: tt.DescriptorLoad) -> Sequence[Split]:
    """One load for each part, at its offset."""
    block = block_of(op.result.type)
    assert block is not None
    operands = [s.scalar(value) for value in op.operands]
    grid = Grid(block.shape, s.sizes.block_access(block, stores=False))
    return _in_parts(s, op, grid, lambda origin: _shifted(s, operands, 1, origin))


def descriptor_store(s: Splitter, op: tt.DescriptorStore) -> Sequence[Split]:
    """One store for each part, at its offset."""
    block = block_of(op.value.type)
    assert block is not None
    indices = [s.scalar(value) for value in op.indices]
    grid = Grid(block.shape, s.sizes.block_access(block, stores=True))

    def operands_at(origin: Shape) -> Sequence[Value]:
        return _shifted(s, [s.scalar(op.desc), s.piece(op.value, origin, grid.piece), *indices], 2, origin)

    return _in_parts(s, op, grid, operands_at)


def _shifted(s: Splitter, operands: list[Value], first: int, origin: Shape) -> list[Value]:
    shifted = list(operands)
    for dim, start in enumerate(origin):
        if start:
            offset = arith.integer(s.builder, start)
            shifted[first + dim] = s.builder.emit(arith.AddI, shifted[first + dim], offset)
    return shifted


def whole(s: Splitter, op: Operation) -> Sequence[Split]:
    """Operations that move elements between positions, or show them in order, work on all of a warp's part, glued
    before and cut after.
    """
    operands = [s.pieces(v).whole(s.builder) if isinstance(v.type, TensorType) else s.scalar(v) for v in op.operands]
    results = s.copy(op, operands, None)
    return [
        s.cut(old, new) if isinstance(old.type, TensorType) else new
        for old, new in zip(op.results, results, strict=True)
    ]


def loop(s: Splitter, op: scf.For) -> Sequence[Split]:
    """The loop carries pieces."""
    bounds = [s.scalar(value) for value in (op.lower, op.upper, op.step)]
    inits = [s.flat(value) for value in op.inits]
    body = s.region(op.body)
    types = [value.type for values in inits for value in values]
    made = s.builder.create(
        scf.For, *bounds, [v for values in inits for v in values], result_types=types, regions=[body]
    )
    made.attributes |= op.attributes
    return s.unflatten(op.results, made.results)


def branch(s: Splitter, op: scf.If) -> Sequence[Split]:
    """Both branches yield pieces."""
    regions = [s.region(region) for region in op.regions]
    types = [type for result in op.results for type in s.flat_types(result)]
    made = s.builder.create(scf.If, s.scalar(op.condition), result_types=types, regions=regions)
    return s.unflatten(op.results, made.results)


def while_loop(s: Splitter, op: scf.While) -> Sequence[Split]:
    """The loop carries pieces."""
    inits = [piece for value in op.inits for piece in s.flat(value)]
    regions = [s.region(region) for region in op.regions]
    types = [type for result in op.results for type in s.flat_types(result)]
    made = s.builder.create(scf.While, inits, result_types=types, regions=regions)
    return s.unflatten(op.results, made.results)


def specialized(s: Splitter, op: ttg.WarpSpecialize) -> Sequence[Split]:
    """Both sides by themselves."""
    made = s.builder.create(ttg.WarpSpecialize, result_types=[], regions=[s.region(region) for region in op.regions])
    made.attributes |= op.attributes
    return []


def terminator(s: Splitter, op: Operation) -> Sequence[Split]:
    """Yields and conditions pass on pieces."""
    groups = [s.flat(value) for value in op.operands]
    operands = [value for values in groups for value in values]
    segments = (1, len(operands) - 1) if isinstance(op, scf.Condition) else (len(operands),)
    s.builder.insert(type(op)(operands, (), op.attributes, (), op.loc, segments))
    return []


def _block(value: Value) -> TensorType:
    block = block_of(value.type)
    assert block is not None
    return block


def _erase(values: Shape, index: int) -> Shape:
    return (*values[:index], *values[index + 1 :])


RULES: dict[type[Operation], Callable[..., Sequence[Split]]] = {
    arith.Constant: constant,
    **dict.fromkeys((tt.Load, tt.Store, tt.AtomicRMW, tt.AtomicCAS, ttig.Prefetch), access),
    tt.Splat: splat,
    tt.MakeRange: make_range,
    tt.ExpandDims: expand_dims,
    tt.Broadcast: broadcast,
    tt.Trans: trans,
    ttig.Extract: part,
    tt.Dot: dot,
    ttng.WarpGroupDot: group_dot,
    ttng.WarpGroupDotWait: group_dot_wait,
    tt.Reduce: reduce,
    tt.MakeTensorPtr: make_tensor_ptr,
    tt.DescriptorLoad: descriptor_load,
    tt.DescriptorStore: descriptor_store,
    tt.Cat: whole,
    tt.Scan: whole,
    ttg.ConvertLayout: convert_layout,
    ttg.LocalLoad: local_load,
    ttg.LocalStore: local_store,
    ttg.AsyncCopyGlobalToLocal: async_copy,
    scf.For: loop,
    scf.If: branch,
    scf.While: while_loop,
    scf.Yield: terminator,
    scf.Condition: terminator,
    ttg.WarpSpecialize: specialized,
}


def rule_of(op: Operation) -> Callable[..., Sequence[Split]]:
    """How an operation is cut: as its table says, whole where pieces need more than pieces, or else piece by piece."""
    declared = op.encodings
    return RULES.get(type(op)) or (whole if declared and (declared.whole or declared.free) else each_piece)
