"""Operands of dots: read where they lie, or brought to memory in the form that the micro-kernel takes.

Level: warp to intrinsic. The left operand is read where it lies (a tile, or a load that is row-major or column-major
and inside its masks, which an `scf.if` finds out) or filled into a tile, as part of the open loop nest. How the right
one comes to memory, and where, says its `tile.pack`; masks and strides decide here, or when the program runs, whether
it may be read where it lies. Left operands that a loop does not change are prepared before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, scf, tile, tt
from mltriton.errors import TargetError
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import (
    I64,
    PointerType,
    TensorType,
    Type,
    bit_width,
    byte_width,
    element_type,
    shape_of,
)
from mltriton.passes.intrinsic.tile_loops import addressing, packing
from mltriton.passes.intrinsic.tile_loops.accesses import compare
from mltriton.passes.intrinsic.tile_loops.addressing import InMemory, NotProvable, Stride
from mltriton.passes.intrinsic.tile_loops.dot_fills import computed_value, fill_together, filled_before
from mltriton.passes.intrinsic.tile_loops.dot_kernels import kernel_of, may_use_lines
from mltriton.passes.intrinsic.tile_loops.emitter import Scope, refuse
from mltriton.passes.intrinsic.tile_loops.fast_paths import with_and_without_masks
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.indirect_dots import lines_of
from mltriton.passes.intrinsic.tile_loops.operations import LOADS
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


def prepare_left(low: Lowering, op: tt.Dot) -> None:
    """Bring a left operand that the coming loop does not change into its final form."""
    plan = plan_of(low, op)
    if may_use_lines(low.spec, op):
        low.force(op.a)  # in which form the dot wants it is not known before its right operand is
        return
    if plan.batch:
        return
    left = left_operand(low, plan)
    if isinstance(left, Direct) and left.conditions:
        low.flush()
        low.packed["left", op.a, plan.kernel] = chosen_left(low, plan, left, ())


def pack_before(low: Lowering, op: tile.Pack) -> None:
    """Bring a right operand to memory before the loops that do not change it; that of one dot right here is packed when
    it is multiplied.
    """
    dots = [user for user in op.result.users if isinstance(user, tt.Dot)]
    if len(dots) != len(op.result.users):
        raise refuse(op, "what is packed is for dots, on the right")
    if all(dot.block is op.block for dot in dots) and len(dots) < 2:
        return
    if op.by_lines and any(lines_of(low, dot) is not None for dot in dots):
        return
    low.flush()
    right = right_operand(low, op)
    if isinstance(right, Packing) or (isinstance(right, Direct) and right.conditions):
        low.packed["right", op] = _choose_right(low, op, right)


def known_operand(low: Lowering, *key: object) -> Ready | None:
    """An operand that was prepared before."""
    found = low.packed.get(key)
    return found if found is not None and found.scope in low.e.emitter.scopes else None


def left_operand(low: Lowering, plan: Plan) -> Direct | Ready:
    """The left operand where it lies, or a tile that the open loop nest (or a nest of its own) fills."""
    value, kernel = plan.op.a, plan.kernel
    direct = _direct(low, value, kernel.operand, (-1,) if kernel.needs_rows else (-1, -2))
    if direct is not None and not direct.conditions:
        return direct
    known = known_operand(low, "left", value, kernel)
    if known is not None or direct is not None:
        return known or cast(Direct, direct)
    made = low.packed["left", value, kernel] = brought_to_memory(low, plan)
    return made


def brought_to_memory(low: Lowering, plan: Plan) -> Ready:
    """The left operand in a tile, or packed."""
    value, kernel = plan.op.a, plan.kernel
    base, transposed = computed_value(value)
    filled = filled_before(low, base, kernel.operand)
    if filled is not None and not (transposed and kernel.needs_rows):
        return _from_tile(low, filled, "column" if transposed else "row")
    filled = filled_before(low, value, kernel.operand)
    if filled is not None:
        return _from_tile(low, filled, "row")
    if _runs_along_m(low, plan):
        is_computed = transposed and not isinstance(base.defining_op, LOADS)
        return _left_transpose(low, plan, base) if is_computed else _left_pack(low, plan)
    return _from_tile(low, fill_together(low, plan.op, value if transposed else base, kernel.operand), "row")


def _runs_along_m(low: Lowering, plan: Plan) -> bool:
    """Whether the memory from which the left operand is computed runs along its rows' dimension."""
    return plan.m > 1 and not plan.batch and addressing.contiguous_dim(low, plan.op.a) == 0


def _left_pack(low: Lowering, plan: Plan) -> Ready:
    low.flush()
    return pack_now(low, _left_packing(plan, "row" if plan.kernel.needs_rows else "column", along_columns=True), ())


def _left_transpose(low: Lowering, plan: Plan, base: Value) -> Ready:
    """The left operand from a tile of what it is the transpose of: read by columns, or packed from there."""
    if not plan.kernel.needs_rows:
        return _from_tile(low, fill_together(low, plan.op, base, plan.kernel.operand), "column")
    if cast(TensorType, base.type).element is plan.kernel.operand:
        fill_together(low, plan.op, base, plan.kernel.operand)
    return _left_pack(low, plan)


def _from_tile(low: Lowering, made: Tile, layout: str) -> Ready:
    e, zero = low.e, constant_index(0)
    return Ready(
        lambda prefix: e.arithmetic.scalar(e.address(made, (*prefix, zero, zero))),
        e.emitter.integer(made.strides[-2], I64),
        layout,
        e.emitter.scopes[-1],
        made,
    )


def right_of(op: tt.Dot) -> tile.Pack:
    """How the right operand of a dot comes to memory."""
    pack = op.b.defining_op
    if not isinstance(pack, tile.Pack):
        raise refuse(op, "the right operand of a dot is packed: pack-operands comes before match-target-size")
    return pack


def right_operand(low: Lowering, op: tile.Pack) -> Direct | Ready | Packing:
    """The right operand where it lies, prepared before a loop, or how it is packed."""
    direct = _direct(low, op.source, op.element, (-1,)) if op.in_place else None
    if direct is not None and op.near:
        near = _near_rows(low, direct.stride, op)
        direct = None if near is None else replace(direct, conditions=direct.conditions + near)
    if direct is not None and not direct.conditions:
        return direct
    return known_operand(low, "right", op) or direct or right_packing(op)


def _near_rows(low: Lowering, stride: Stride, op: tile.Pack) -> list[Value] | None:
    """The conditions under which rows are near each other; None where they never are."""
    limit = op.near // byte_width(op.element)
    if isinstance(stride, int):
        return [] if stride <= limit else None
    known = low.e.arithmetic.wrap(stride)
    return [low.e.arithmetic.scalar(compare(low.e, "sle", known, Affine(stride.type, None, limit, 0), 1))]


def right_packing(op: tile.Pack) -> Packing:
    """How the right operand is packed: in panels, along which its memory runs."""
    rank = len(shape_of(op.source.type))
    return Packing(op.source, rank - 2, rank - 1, op.element, op.group, op.along_k, op.panel)


def _left_packing(plan: Plan, layout: str, *, along_columns: bool) -> Packing:
    """The left operand row by row, or in a "column" layout step by step of k; `along_columns`: memory runs along m."""
    rank = len(plan.batch) + 2
    if layout == "column":
        return Packing(plan.op.a, rank - 1, rank - 2, plan.kernel.operand, 1, along_rows=not along_columns)
    return Packing(plan.op.a, rank - 2, rank - 1, plan.kernel.operand, 1, along_rows=along_columns)


def _direct(low: Lowering, value: Value, element: Type, contiguous: tuple[int, ...]) -> Direct | None:
    """The operand where it lies, with one of the dimensions in `contiguous` (from the end) running along memory."""
    block = addressing.in_memory(low, value)
    if block is None or block.element is not element:
        return None
    shape = shape_of(value.type)
    strides = addressing.strides_of(low, block, shape)
    for dim in contiguous:
        stride = strides[-3 - dim]
        if stride is None or None in strides or (strides[dim] != 1 and shape[dim] != 1):
            continue
        try:
            conditions = addressing.inside(low, block)
        except NotProvable:
            return None
        return Direct(block, stride, "row" if dim == -1 else "column", conditions)
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


def chosen_left(low: Lowering, plan: Plan, direct: Direct, prefix: Index) -> Ready:
    """The left operand where it lies if that is inside its masks, else packed: found out when the program runs."""
    how = _left_packing(plan, direct.layout, along_columns=direct.layout == "column")
    pointer, stride = _either(low, direct, prefix, plan.kernel.operand, lambda: pack_now(low, how, prefix))
    return Ready(lambda _: pointer, stride, direct.layout, low.e.emitter.scopes[-1])


def _choose_right(low: Lowering, op: tile.Pack, right: Direct | Packing) -> Ready:
    """The right operand where it lies if that is inside its masks and its rows are near each other, else packed: found
    out when the program runs.
    """
    how = right_packing(op)
    if isinstance(right, Packing):
        return pack_now(low, how, ())
    how = replace(how, panel=0)
    pointer, stride = _either(low, right, (), op.element, lambda: pack_now(low, how, ()))
    return Ready(lambda _: pointer, stride, "row", low.e.emitter.scopes[-1])


def address_of(low: Lowering, plan: Plan, left: Direct | Ready, prefix: Index) -> tuple[Value, Value, str]:
    """Where the left operand lies: address, stride and layout."""
    if isinstance(left, Direct) and left.conditions:
        left = chosen_left(low, plan, left, prefix)
    if isinstance(left, Direct):
        return pointer_of(low, left, prefix), stride_of(low, left.stride), left.layout
    return left.pointer(prefix), left.stride, left.layout
