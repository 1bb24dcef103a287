"""Operands of dots: read where they lie, or brought to memory in the form that the micro-kernel takes.

Level: warp to intrinsic. How an operand comes to memory, and where, says its `tile.pack`, or the `tile.fill` of a left
one that is stored as other elements than its own. Masks and strides decide here, or when the program runs (an
`scf.if`), whether what may be read where it lies is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mltriton.dialects import arith, scf, tile, tt
from mltriton.errors import TargetError
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import (
    I64,
    PointerType,
    Type,
    bit_width,
    byte_width,
    element_type,
    shape_of,
)
from mltriton.passes.intrinsic.tile_loops import addressing, packing
from mltriton.passes.intrinsic.tile_loops.accesses import compare
from mltriton.passes.intrinsic.tile_loops.addressing import InMemory, NotProvable, Stride
from mltriton.passes.intrinsic.tile_loops.dot_fills import computed_value
from mltriton.passes.intrinsic.tile_loops.dot_kernels import kernel_of, left_kernel
from mltriton.passes.intrinsic.tile_loops.emitter import Scope, refuse
from mltriton.passes.intrinsic.tile_loops.footprints import whole_use
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.members import Fill
from mltriton.passes.intrinsic.tile_loops.packing import Packing, Source
from mltriton.passes.intrinsic.tile_loops.tiles import Tile
from mltriton.records import record
from mltriton.targets.base import MicroKernel

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


@record()
class Direct:
    """An operand read where it lies, if `conditions` hold; `stride` is that of the dimension that is not contiguous."""

    block: InMemory
    stride: Stride
    layout: str
    conditions: list[Value]


@record()
class Ready:
    """An operand that has been brought to memory: its address for an index before the matrix, written in `scope`."""

    pointer: Callable[[Index], Value]
    stride: Value
    layout: str
    scope: Scope
    tile: Tile | None = None
    panel: tuple[int, int] | None = None  # columns of a panel, and elements from one panel to the next


@record()
class Plan:
    """One dot: its micro-kernel, sizes and operands."""

    op: tt.Dot
    kernel: MicroKernel
    batch: tuple[int, ...]
    m: int
    n: int
    k: int


def plan_of(low: Lowering, op: tt.Dot) -> Plan:
    """The micro-kernel for a dot. Raises `TargetError` where the target has none, or none whose sums are as wide."""
    *batch, m, k = shape_of(op.a.type)
    n = shape_of(op.b.type)[-1]
    spec, element, result = low.spec, element_type(op.a.type), element_type(op.result.type)
    kernel = kernel_of(spec, op)
    if kernel is None:
        message, expected = f"the target {spec.name} has no dot of {element} elements", map(str, spec.micro_kernels)
        raise TargetError(message, location=op.loc.in_source, expected=", ".join(expected), found=str(element))
    if bit_width(result) > bit_width(kernel.accumulator):
        message, expected = f"the target {spec.name} sums products of {element} in fewer bits", str(kernel.accumulator)
        raise TargetError(message, location=op.loc.in_source, expected=expected, found=str(result))
    return Plan(op, kernel, tuple(batch), m, n, k)


def pack_before(low: Lowering, op: tile.Pack) -> None:
    """Bring an operand to memory before the loops that do not change it; that of one dot right here is packed when it
    is multiplied.
    """
    dots = [user for user in op.result.users if isinstance(user, tt.Dot) and user.c is not op.result]
    if len(dots) != len(op.result.users):
        raise refuse(op, "what is packed is for dots, on the left or right")
    if all(dot.block is op.block for dot in dots) and len(dots) < 2:
        return
    if op.by_lines:
        from mltriton.passes.intrinsic.tile_loops.indirect_dots import lines_of  # Few dots have so few rows.

        if any(lines_of(low, dot) is not None for dot in dots):
            return
    low.flush()
    found = operand(low, op)
    if isinstance(found, Packing) and dots[0].a is op.result:
        low.packed[op] = _copied(low, found, dots)
    elif isinstance(found, Packing) or (isinstance(found, Direct) and found.conditions):
        low.packed[op] = chosen(low, op, found, ())


def pack_of(op: tt.Dot, value: Value) -> tile.Pack:
    """How an operand of a dot comes to memory."""
    pack = value.defining_op
    if not isinstance(pack, tile.Pack):
        raise refuse(op, "operands of a dot are packed: pack-operands comes before match-target-size")
    return pack


def operand(low: Lowering, op: tile.Pack) -> Direct | Ready | Packing:
    """An operand where it lies, prepared before a loop, or how it is packed."""
    direct = _direct(low, op) if op.in_place else None
    if direct is not None and op.near:
        near = _near_rows(low, direct.stride, op)
        direct = None if near is None else replace(direct, conditions=direct.conditions + near)
    if direct is not None and not direct.conditions:
        return direct
    known = low.packed.get(op)
    return known if known is not None and known.scope in low.e.emitter.scopes else direct or packing_of(op)


def left_operand(low: Lowering, plan: Plan) -> Direct | Ready:
    """The left operand as its pack says, or where a loop nest stored it as other elements than its own. Where lines are
    not read after all, or an operand is not written for them, another micro-kernel than was known takes it: a copy.
    """
    op, kernel, expected = plan.op, plan.kernel, left_kernel(low.spec, plan.op)
    stored = [_stored(low, op.a, known) for known in (kernel, expected) if known is not None]
    if stored[0] is not None:
        return stored[0]
    pack = pack_of(op, op.a) if not any(stored) else None
    if pack is not None and pack.element is kernel.operand and not (pack.by_columns and kernel.needs_rows):
        found = operand(low, pack)
        if isinstance(found, Packing):
            found = low.packed[pack] = _copied(low, found, [op])
        return found
    rank = len(shape_of(op.a.type))
    along_rows = pack is not None and pack.along_rows
    return _copied(low, Packing(op.a, rank - 2, rank - 1, kernel.operand, 1, along_rows=along_rows), [op])


def _copied(low: Lowering, how: Packing, dots: Sequence[tt.Dot]) -> Ready:
    """A copy of a left operand for dots: row by row, as a member of the open loop nest, or packed in another order."""
    if how.along_rows or how.row_dim > how.column_dim:
        low.flush()
        return pack_now(low, how, ())
    made = low.e.scratch.tile(shape_of(how.value.type), how.element)
    served = {use for dot in dots for use in whole_use(dot, dot.a)}
    low.add(Fill(how.value, made, low.e.emitter.loc, defines=False, is_new=True, served=served))
    return _from_tile(low, made, "row")


def _stored(low: Lowering, left: Value, kernel: MicroKernel) -> Ready | None:
    """The tile with the elements of a left operand, or of what it is the transpose of, as those of a micro-kernel."""
    base, transposed = computed_value(left)
    for value, turned in ((base, transposed), (left, False)):
        made, scope = low.packed.get(("filled", value, kernel.operand), (None, None))
        if made is not None and scope in low.e.emitter.scopes and not (turned and kernel.needs_rows):
            return _from_tile(low, made, "column" if turned else "row")
    return None


def _from_tile(low: Lowering, made: Tile, layout: str) -> Ready:
    e, zero = low.e, constant_index(0)
    return Ready(
        lambda prefix: e.arithmetic.scalar(e.address(made, (*prefix, zero, zero))),
        e.emitter.integer(made.strides[-2], I64),
        layout,
        e.emitter.scopes[-1],
        made,
    )


def _near_rows(low: Lowering, stride: Stride, op: tile.Pack) -> list[Value] | None:
    """The conditions under which rows are near each other; None where they never are."""
    limit = op.near // byte_width(op.element)
    if isinstance(stride, int):
        return [] if stride <= limit else None
    known = low.e.arithmetic.wrap(stride)
    return [low.e.arithmetic.scalar(compare(low.e, "sle", known, Affine(stride.type, None, limit, 0), 1))]


def packing_of(op: tile.Pack) -> Packing:
    """How an operand is packed: row by row, in panels, or column by column."""
    row_dim = len(shape_of(op.source.type)) - 2
    if op.by_columns:
        return Packing(op.source, row_dim + 1, row_dim, op.element, 1, along_rows=not op.along_rows)
    return Packing(op.source, row_dim, row_dim + 1, op.element, op.group, op.along_rows, op.panel)


def _direct(low: Lowering, op: tile.Pack) -> Direct | None:
    """An operand where it lies, with its rows, or its columns, running along memory."""
    block = addressing.in_memory(low, op.source)
    if block is None or block.element is not op.element:
        return None
    shape = shape_of(op.source.type)
    strides = addressing.strides_of(low, block, shape)
    along, across = (-2, -1) if op.by_columns else (-1, -2)
    stride = strides[across]
    if stride is None or None in strides or (strides[along] != 1 and shape[along] != 1):
        return None
    try:
        return Direct(block, stride, "column" if op.by_columns else "row", addressing.inside(low, block))
    except NotProvable:
        return None


def pointer_of(low: Lowering, direct: Direct, prefix: Index) -> Value:
    """The address of the matrix at an index of the batch."""
    zero = constant_index(0)
    form = addressing.address(low.e, direct.block.source, direct.block.at((*prefix, zero, zero)), 1)
    return low.e.arithmetic.scalar(form)


def stride_of(low: Lowering, stride: Stride) -> Value:
    """A stride as an i64 scalar."""
    if isinstance(stride, int):
        return low.e.emitter.integer(stride, I64)
    return stride if stride.type is I64 else low.e.emitter.pure(arith.ExtSI, (stride,), I64)


def pack_now(low: Lowering, how: Packing, prefix: Index) -> Ready:
    """Pack one matrix now."""
    e = low.e
    made = packing.allocate(e, how)
    if packing.square(e, how) > 1:
        source = _source(low, how, prefix)
        packing.pack_transposed(e, how, made, source)
    elif low.spec.cheap_masks:
        packing.pack(e, how, made, prefix)
    else:

        def write() -> list[Value]:
            packing.pack(e, how, made, prefix)
            return []

        from mltriton.passes.intrinsic.tile_loops.fast_paths import with_and_without_masks  # Not where masks are cheap.

        with_and_without_masks(low, [op for op, _ in low.reads(how.value).loads], write)
    layout = "column" if how.row_dim > how.column_dim else "row"
    panel = (how.panel, how.panel_stride) if how.panel else None
    stride = e.emitter.integer(how.stride, I64)
    return Ready(lambda _: made.pointer, stride, layout, e.emitter.scopes[-1], made, panel)


def _source(low: Lowering, how: Packing, prefix: Index) -> Source:
    """The memory that a block is packed from: where it lies, or a copy where that reaches outside its masks or does not
    exist.
    """
    block = addressing.in_memory(low, how.value)
    if block is not None:
        strides = addressing.strides_of(low, block, shape_of(how.value.type))
        stride = strides[how.column_dim]
        if stride is not None and None not in strides and strides[how.row_dim] == 1:
            try:
                conditions = addressing.inside(low, block)
            except NotProvable:
                return _copy(low, how, how.element, prefix)
            direct = Direct(block, stride, "row", conditions)
            if not conditions:
                return Source(pointer_of(low, direct, prefix), stride_of(low, stride), block.element)
            pointer, stride = _either(
                low, direct, prefix, block.element, lambda: _copy(low, how, block.element, prefix)
            )
            return Source(pointer, stride, block.element)
    return _copy(low, how, how.element, prefix)


def _copy(low: Lowering, how: Packing, element: Type, prefix: Index) -> Source:
    """The transposed block in a tile."""
    e = low.e
    copy = Packing(how.value, how.column_dim, how.row_dim, element, 1, along_rows=False)
    made = packing.allocate(e, copy)
    packing.pack(e, copy, made, prefix)
    return Source(made.pointer, e.emitter.integer(copy.stride, I64), element)


def _either(
    low: Lowering, direct: Direct, prefix: Index, element: Type, other: Callable[[], Source | Ready]
) -> tuple[Value, Value]:
    """The address and stride of an operand where it lies, if the conditions hold, else of its copy."""
    e = low.e
    condition = addressing.conjunction(e, direct.conditions)
    assert condition is not None
    type = PointerType(element)
    here = [pointer_of(low, direct, prefix), stride_of(low, direct.stride)]
    yes, no = Block(), Block()
    with e.emitter.inside(yes):
        e.emitter.insert(scf.Yield([e.emitter.pure(tt.Bitcast, (here[0],), type), here[1]]))
    with e.emitter.inside(no), e.without(condition):
        copy = other()
        pointer = copy.pointer(prefix) if isinstance(copy, Ready) else copy.pointer
        e.emitter.insert(scf.Yield([e.emitter.pure(tt.Bitcast, (pointer,), type), copy.stride]))
    made = e.emitter.effect(scf.If, [condition], [type, I64], {}, [Region([yes]), Region([no])])
    return made.results[0], made.results[1]


def chosen(low: Lowering, op: tile.Pack, found: Direct | Packing, prefix: Index) -> Ready:
    """An operand packed; or where it lies if that is inside its masks and its rows are near each other, else packed:
    found out when the program runs.
    """
    if isinstance(found, Packing):
        return pack_now(low, found, prefix)
    how = replace(packing_of(op), panel=0)
    pointer, stride = _either(low, found, prefix, op.element, lambda: pack_now(low, how, prefix))
    return Ready(lambda _: pointer, stride, found.layout, low.e.emitter.scopes[-1])


def address_of(low: Lowering, op: tt.Dot, left: Direct | Ready, prefix: Index) -> tuple[Value, Value, str]:
    """Where the left operand of a dot lies: address, stride and layout."""
    if isinstance(left, Direct) and left.conditions:
        left = chosen(low, pack_of(op, op.a), left, prefix)
    if isinstance(left, Direct):
        return pointer_of(low, left, prefix), stride_of(low, left.stride), left.layout
    return left.pointer(prefix), left.stride, left.layout
