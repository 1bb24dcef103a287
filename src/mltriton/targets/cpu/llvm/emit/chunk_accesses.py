"""Loads and stores: through scalar pointers, chunks of pointers (gather, scatter) and contiguous chunks.

Level: intrinsic -> llvm. Guarantees: a masked-off element is never touched and loads as `other`, or 0; i1 is a byte, 0
or 1, in memory.
"""

from __future__ import annotations

from mltriton.dialects import tile, tt
from mltriton.errors import BackendError
from mltriton.ir.operation import Value as IRValue
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I1, I8, PTR, VOID, Type, Value, constant

NONTEMPORAL = ", !nontemporal !0"


def _load(e: Emitter, op: tt.Load) -> Value:
    f, type_, pointer = e.function, e.result_type(op), e.get(op.ptr)
    stored = in_memory(type_)
    mask, other = e.optional(op.mask), _other(e, op.other, stored)
    _keep_apart(e, op)
    if not pointer.type.is_vector:
        return from_memory(e, _load_one(e, stored, pointer, mask, other), type_)
    if mask is None:
        mask = f.true(type_.lanes)
    name = f"llvm.masked.gather.{stored.suffix}.v{type_.lanes}p0"
    f.module.declare(name, stored, [pointer.type, mask.type, stored])
    align = stored.scalar.bytes
    gathered = f.emit(f"call {stored} @{name}({pointer.type} align {align} {pointer.text}, {mask}, {other})", stored)
    return from_memory(e, gathered, type_)


def _keep_apart(e: Emitter, op: tt.Load | tile.Load) -> None:
    """LLVM may not take what was in memory before a volatile load for what it finds."""
    if op.volatile:
        e.function.assembly("", "~{memory}", ())


def _load_one(e: Emitter, type_: Type, pointer: Value, mask: Value | None, other: Value) -> Value:
    f = e.function
    if mask is None:
        return f.load(type_, pointer)
    return f.choose(mask, lambda: [f.load(type_, pointer)], lambda: [other], "load")[0]


def _other(e: Emitter, other: IRValue | None, type_: Type) -> Value:
    return constant(type_, 0) if other is None else to_memory(e, e.get(other))


def _store(e: Emitter, op: tt.Store) -> None:
    f, pointer, value = e.function, e.get(op.ptr), to_memory(e, e.get(op.value))
    mask = e.optional(op.mask)
    if not pointer.type.is_vector:
        with f.when(mask if mask is not None else constant(I1, 1), "store"):
            f.store(value, pointer)
        return
    if mask is None:
        mask = f.true(value.type.lanes)
    name = f"llvm.masked.scatter.{value.type.suffix}.v{value.type.lanes}p0"
    f.module.declare(name, VOID, [value.type, pointer.type, mask.type])
    f.line(f"call void @{name}({value}, {pointer.type} align {value.type.scalar.bytes} {pointer.text}, {mask})")


def _tile_load(e: Emitter, op: tile.Load) -> Value:
    f, type_, pointer = e.function, e.result_type(op), e.get(op.ptr)
    stored, mask = in_memory(type_), e.optional(op.mask)
    flags = NONTEMPORAL if op.nontemporal else ""
    _keep_apart(e, op)
    if mask is None or mask.literal:
        return from_memory(e, f.load(stored, pointer, op.align, flags), type_)
    other = _other(e, op.other, stored)
    if not stored.is_vector:
        return from_memory(e, _load_one(e, stored, pointer, mask, other), type_)
    if e.features.masks_by_sign:
        mask = _unknown(e, mask, pointer)
    return from_memory(e, f.masked_load(stored, pointer, mask, other, op.align), type_)


def _unknown(e: Emitter, mask: Value, pointer: Value) -> Value:
    """The mask, of which LLVM knows no lane to be off: for AVX2 LLVM 22 reads all lanes of a register whose lanes it
    knows to be masked off (or fails), where the mask has other users.
    """
    is_null = e.function.icmp("eq", pointer, Value(PTR, "null"))
    return e.function.or_(mask, e.function.splat(is_null, mask.type.lanes))


def _tile_store(e: Emitter, op: tile.Store) -> None:
    f, pointer, value = e.function, e.get(op.ptr), to_memory(e, e.get(op.value))
    mask = e.optional(op.mask)
    if mask is None or mask.literal:
        is_aligned = (op.align or 0) >= value.type.bytes
        f.store(value, pointer, op.align, NONTEMPORAL if op.nontemporal and is_aligned else "")
    elif value.type.is_vector:
        f.masked_store(value, pointer, mask, op.align)
    else:
        with f.when(mask, "store"):
            f.store(value, pointer)


def _scratch(e: Emitter, op: tile.Scratch) -> Value:
    if "offset" not in op.attributes:
        raise BackendError("a part of scratch memory has no place", hint="Run allocate-scratch first.")
    return e.function.gep(e.scratch, op.offset, I8)


def _prefetch(e: Emitter, op: tile.Prefetch) -> None:
    """Into all levels of the data cache."""
    e.function.prefetch(e.get(op.ptr), write=op.write)


RULES: Rules = {
    tt.Load: _load,
    tt.Store: _store,
    tile.Load: _tile_load,
    tile.Store: _tile_store,
    tile.Scratch: _scratch,
    tile.Prefetch: _prefetch,
}
