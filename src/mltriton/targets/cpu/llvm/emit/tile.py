"""`tile`: transposes, interleaves, lanes and dots.

Level: intrinsic -> llvm. A dot becomes a call of a function of `llvm/dot.py`; the pointers' types say which.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tile
from mltriton.errors import BackendError
from mltriton.ir.types import BF16, F16, F32, F64, I8, I32, FloatType, IntegerType, pointee
from mltriton.ir.types import Type as IRType
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.types import I64, VOID, Value

# (type of a and b, group) -> dtype of the multiplication
_DTYPES: dict[tuple[IRType, int], str] = {
    (F32, 1): "f32",
    (F64, 1): "f64",
    (I32, 1): "i32",
    (BF16, 2): "bf16",
    (F16, 2): "f16",
    (I8, 4): "i8",
}


def _transpose(e: Emitter, op: tile.Transpose) -> Sequence[Value]:
    """Neighbours that move together are one wide lane."""
    from mltriton.targets.cpu.llvm.transpose import transpose  # Few kernels transpose in registers.

    f, rows = e.function, [e.get(row) for row in op.rows]
    type_ = rows[0].type
    group = type_.lanes // len(rows)
    if group == 1:
        return transpose(f, rows)
    wide = type_.with_lanes(len(rows)).with_element(f"i{type_.bits * group}")
    return [f.bitcast(row, type_) for row in transpose(f, [f.bitcast(row, wide) for row in rows])]


def _interleave(e: Emitter, op: tile.Interleave) -> Value:
    """Small elements are put together by shifts in wider lanes, which x86 does faster than shuffles of small
    elements."""
    f, parts = e.function, [e.get(part) for part in op.parts]
    type_ = parts[0].type
    width = type_.bits * len(parts)
    if type_.is_float or type_.element == "ptr" or width > 64:
        return _interleave_by_shuffles(e, parts)
    wide = type_.with_element(f"i{width}")
    total = f.cast("zext", parts[0], wide)
    for i, part in enumerate(parts[1:], 1):
        total = f.or_(total, f.shl(f.cast("zext", part, wide), i * type_.bits))
    return f.bitcast(total, type_.with_lanes(type_.lanes * len(parts)))


def _interleave_by_shuffles(e: Emitter, parts: Sequence[Value]) -> Value:
    """Even and odd parts first, then the two results, so that every shuffle has two operands."""
    if len(parts) > 2:
        parts = [_interleave_by_shuffles(e, parts[first::2]) for first in (0, 1)]
    a, b = parts
    lanes = a.type.lanes
    if lanes == 1:
        return e.function.insert(e.function.splat(a, 2), b, 1)
    return e.function.shuffle(a, b, [lane + source for lane in range(lanes) for source in (0, lanes)])


def _lane(e: Emitter, op: tile.Lane) -> Value:
    index = e.get(op.index)
    return e.function.extract(e.get(op.source), index if index.literal is None else int(index.literal))


def _dot(e: Emitter, op: tile.Dot) -> None:
    from mltriton.targets.cpu.llvm.dot import UNROLL, DotShape, call_dot  # Only products need it.

    f = e.function
    a, b, c = (pointee(pointer.type) for pointer in (op.a, op.b, op.c))
    dtype = _DTYPES.get((a, op.group))
    if dtype is None or a is not b or c is not _accumulator(a):
        raise BackendError(
            "the CPU has no dot of these types",
            location=op.loc.in_source,
            expected=", ".join(f"{type_} in groups of {group}" for type_, group in _DTYPES),
            found=f"{a} and {b} in groups of {op.group}, accumulated in {c}",
        )
    a_stride, b_stride, c_stride, k = (
        f.cast("sext", e.get(number), I64) for number in (op.a_stride, op.b_stride, op.c_stride, op.k)
    )
    has_rest = k.literal is None or int(k.literal) % UNROLL != 0
    unsigned = "a" * op.a_unsigned + "b" * op.b_unsigned
    steps = int(k.literal) if k.literal is not None and a_stride.literal is None else 0
    shape = DotShape(dtype, op.m, op.n, op.a_layout, op.panel, op.panel_stride, has_rest, unsigned, steps)
    arguments = (e.get(op.a), a_stride, e.get(op.b), b_stride, e.get(op.c), c_stride, k, e.get(op.accumulate))
    try:
        if dtype in e.features.matrix_tiles and k.literal is not None:
            from mltriton.targets.cpu.llvm.matrix_tiles import tile_dot_function  # Only AMX.

            f.call(tile_dot_function(e.module, shape, int(k.literal)), VOID, *arguments)
        else:
            call_dot(f, e.features, shape, *arguments)
    except (KeyError, ValueError) as error:
        raise BackendError(str(error.args[0]), location=op.loc.in_source) from error


def _indirect_dot(e: Emitter, op: tile.IndirectDot) -> None:
    from mltriton.targets.cpu.llvm.indirect_dot import IndirectShape, indirect_dot_function  # Only products need it.

    f, left = e.function, pointee(op.a.type)
    try:
        shape = IndirectShape(str(left), str(op.element), op.m, op.n, op.k, op.b_layout, op.batch, op.chunk, op.ahead)
        name = indirect_dot_function(e.module, e.features, shape)
    except ValueError as error:
        raise BackendError(str(error.args[0]), location=op.loc.in_source) from error
    f.call(name, VOID, *map(e.get, op.operands))


def _accumulator(type_: IRType) -> IRType:
    """What products of `type_` are summed in."""
    if isinstance(type_, IntegerType):
        return I32
    return F64 if type_ is F64 else F32 if isinstance(type_, FloatType) else type_


RULES: Rules = {
    tile.Transpose: _transpose,
    tile.Interleave: _interleave,
    tile.Lane: _lane,
    tile.Dot: _dot,
    tile.IndirectDot: _indirect_dot,
}
