"""What an operation of the intrinsic level may have on a target: dot shapes, block sizes, chunk lanes.

Level: intrinsic. `limits_of` gives the check that `passes/levels.py` applies to each operation of a module that names
its target; every number comes from the `TargetSpec`. Raises `OperationError`s that state the found and the allowed
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from mltriton.dialects import tile, tt, ttg, ttig, ttng
from mltriton.errors import TargetError
from mltriton.ir.attributes import string_in
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import MemDescType, PointerType, TensorType, Type, block_of, byte_width, pointee
from mltriton.layouts.encodings import MatrixEncoding, MessageEncoding
from mltriton.targets.base import Home, MicroKernel, Storage, TargetSpec
from mltriton.targets.registry import spec
from mltriton.targets.target import names

Check = Callable[[TargetSpec, Any], None]


def lanes_matter(module: Module) -> bool:
    """Whether the module names a target whose pieces have encodings."""
    name = string_in(module.attributes, "ttg.target", "")
    return name in names() and spec(name).has_lanes


def limits_of(module: Module) -> Callable[[Operation], None] | None:
    """The check of one operation against the table of the module's target; None where the module names no target."""
    name = string_in(module.attributes, "ttg.target", None)
    if name is None:
        return None
    try:
        target = spec(name)
    except TargetError:
        reject(module, "unknown target", expected=", ".join(names()), found=name)
    limits = _LIMITS[target.storage]

    def check(op: Operation) -> None:
        limits.check(target, op)

    return check


@dataclass(frozen=True)
class _Limits:
    """The rules of one kind of storage: dialects that have no place there, checks by operation, and one for all other
    operations.
    """

    foreign: tuple[str, ...]
    checks: Mapping[type[Operation], Check]
    default: Check

    def check(self, target: TargetSpec, op: Operation) -> None:
        """One operation."""
        if op.name.partition(".")[0] in self.foreign or op.name in self.foreign:
            storage = target.storage.name.lower()
            reject(op, f"the target {target.name} holds blocks in {storage}: the operation does not exist there")
        self.checks.get(type(op), self.default)(target, op)


# Registers: pieces of what one instruction takes.


def _dot(target: TargetSpec, op: tt.Dot) -> None:
    """One dot instruction; it may have fewer rows where the table says so, and dimensions of 1 before the matrix."""
    a, b = (cast(TensorType | MemDescType, operand.type) for operand in (op.a, op.b))
    size = target.dot.get(a.element)
    if size is None:
        found, known = str(a.element), ", ".join(map(str, target.dot))
        reject(op, f"the target {target.name} has no dot of these elements", expected=known, found=found)
    result = cast(TensorType, op.result.type).encoding
    size = size.acting(result.together if isinstance(result, MatrixEncoding) else 1)
    *batch, m, k = a.shape
    n = b.shape[-1]
    whole = k % size.k == 0 if isinstance(op, ttng.WarpGroupDot) else k == size.k
    fits = m in (*size.fewer_rows, size.rows) and n in (*size.fewer_columns, size.n) and whole
    if prod(batch) != 1 or not fits:
        rows = " or ".join(map(str, (*size.fewer_rows, size.rows)))
        columns = " or ".join(map(str, (*size.fewer_columns, size.n)))
        found = "x".join(map(str, (*batch, m, n, k)))
        wanted = f"M x N x K = {rows} x {columns} x {size.k} for {a.element}"
        reject(op, f"the target {target.name} has no dot of this size", expected=wanted, found=found)
    for operand, home, name in zip((a, b), size.homes, "ab", strict=True):
        if home is not Home.EITHER and isinstance(operand, MemDescType) != (home is Home.SHARED):
            wanted, found = f"in {home.name.lower()}", str(operand)
            reject(op, f"the target {target.name} takes operand {name} elsewhere", expected=wanted, found=found)


def _load(target: TargetSpec, op: tt.Load | ttig.Prefetch) -> None:
    _access(target, op, op.ptr, stores=False)


def _store(target: TargetSpec, op: tt.Store) -> None:
    _access(target, op, op.ptr, stores=True)


def _atomic(target: TargetSpec, op: tt.AtomicRMW | tt.AtomicCAS) -> None:
    _access(target, op, op.ptr, stores=True)


def _descriptor_load(target: TargetSpec, op: tt.DescriptorLoad) -> None:
    _block(target, op, cast(TensorType, op.result.type), stores=False)


def _descriptor_store(target: TargetSpec, op: tt.DescriptorStore) -> None:
    _block(target, op, cast(TensorType, op.value.type), stores=True)


def _access(target: TargetSpec, op: Operation, pointer: Value, *, stores: bool) -> None:
    """An access through a block pointer is one 2D block; through a block of pointers, it is limited in bytes."""
    block = block_of(pointer.type)
    if block is None:
        return
    if isinstance(pointer.type, PointerType):
        _block(target, op, block, stores=stores)
    else:
        _bytes(target, op, block, pointee(block))


def _bytes(target: TargetSpec, op: Operation, block: TensorType, element: Type) -> None:
    size = block.size * byte_width(element)
    if size > target.vector_bytes and not target.has_lanes:
        found = f"{block.size} x {element}, {size} bytes"
        message = f"the target {target.name} accesses fewer bytes at a time"
        reject(op, message, expected=f"at most {target.vector_bytes} bytes", found=found)


def _block(target: TargetSpec, op: Operation, block: TensorType, *, stores: bool) -> None:
    """One block of rows and bytes per row; a vector of bytes. Where lanes matter only what a message moves is a block
    for the hardware; lanes access others one by one.
    """
    if target.has_lanes and not isinstance(block.encoding, MessageEncoding):
        return
    if block.rank == 1:
        _bytes(target, op, block, block.element)
        return
    limits = target.block_load
    if limits is None:
        reject(op, f"the target {target.name} has no 2D block accesses", found=str(block))
    *outer, rows, columns = block.shape
    if isinstance(op, ttig.Prefetch) and isinstance(block.encoding, MessageEncoding):
        next_to_each_other = block.encoding.fastest  # other orders say how a load packs rows in registers
        rows, columns = (rows, columns) if next_to_each_other == block.rank - 1 else (columns, rows)
    width = columns * byte_width(block.element)
    most_rows = limits.store_rows if stores else limits.max_rows
    if prod(outer) != 1 or rows > most_rows or width > limits.max_row_bytes:
        wanted = f"at most {most_rows} rows of {limits.max_row_bytes} bytes"
        found = f"{block}, rows of {width} bytes"
        kind = "stores" if stores else "loads"
        reject(op, f"the target {target.name} {kind} smaller blocks", expected=wanted, found=found)


def _shared(target: TargetSpec, op: ttg.LocalAlloc) -> None:
    buffer = cast(MemDescType, op.result.type)
    size = prod(buffer.shape) * byte_width(buffer.element)
    if size > target.shared_bytes:
        message = f"the target {target.name} has less shared memory"
        reject(op, message, expected=f"at most {target.shared_bytes} bytes", found=f"{size} bytes")


def _anything(target: TargetSpec, op: Operation) -> None:
    """Pieces of other operations have any size: their code is a loop over registers."""


# Memory: scalars and chunks of at most so many lanes, dots by micro-kernels.


def _chunks(target: TargetSpec, op: Operation) -> None:
    """What an operation defines are scalars and chunks."""
    arguments = [argument for block in op.blocks for argument in block.arguments]
    for value in (*op.results, *arguments):
        _chunk(target, op, block_of(value.type), target.lanes)


def _chunk(target: TargetSpec, op: Operation, block: TensorType | None, lanes: int) -> None:
    if block is not None and (block.rank != 1 or block.size > lanes):
        wanted = f"scalars and chunks of at most {lanes} lanes"
        reject(op, f"the target {target.name} works on smaller chunks", expected=wanted, found=str(block))


def _grouped(target: TargetSpec, op: Operation) -> None:
    """Chunks, and as many lanes more as a micro-kernel has in a group."""
    for value in op.results:
        chunk = block_of(value.type)
        groups = [kernel.group for kernel in _kernels(target) if chunk is not None and kernel.operand is chunk.element]
        _chunk(target, op, chunk, target.lanes * max(groups, default=1))


def _interleave(target: TargetSpec, op: tile.Interleave) -> None:
    """The groups that a micro-kernel multiplies, as many chunks as it has in a group; two halves of any chunk."""
    part = cast(TensorType, op.parts[0].type)
    _chunk(target, op, part, target.lanes)
    if len(op.parts) == 2 and 2 * part.size <= target.lanes:
        return
    groups = sorted({kernel.group for kernel in _kernels(target) if kernel.operand is part.element} - {1})
    if len(op.parts) not in groups:
        wanted = f"groups of {' or '.join(map(str, groups))} for {part.element}" if groups else None
        found = f"{len(op.parts)} chunks of {part.element}"
        reject(op, f"the target {target.name} has no dot of such groups", expected=wanted, found=found)


def _micro_kernel(target: TargetSpec, op: tile.Dot) -> None:
    """Types, group, columns and panels of one of the micro-kernels."""
    a, b, c = (pointee(pointer.type) for pointer in (op.a, op.b, op.c))
    kernels = _kernels(target)
    fitting = [kernel for kernel in kernels if _multiplies(kernel, a, b, c, op.group)]
    if not fitting:
        wanted = ", ".join(dict.fromkeys(f"{k.operand} in groups of {k.group} to {k.accumulator}" for k in kernels))
        found = f"{a} and {b} in groups of {op.group} to {c}"
        reject(op, f"the target {target.name} has no dot of these types", expected=wanted, found=found)
    if not any(_takes(kernel, op) for kernel in fitting):
        wanted = " or ".join(f"columns in multiples of {k.column_multiple}, panels of {k.panel}" for k in fitting)
        panels = f"panels of {op.panel}, {op.panel_stride} apart" if "panel" in op.attributes else "no panels"
        found = f"{op.n} columns, {panels}"
        reject(op, f"the target {target.name} has no dot of these columns", expected=wanted, found=found)


def _indirect_dot(target: TargetSpec, op: tile.IndirectDot) -> None:
    """Types, rows and length of the lines of one of the indirect dots."""
    a, c = (pointee(pointer.type) for pointer in (op.a, op.c))
    how = target.indirect_dots.get((op.element, op.b_layout))
    if how is None or a is not how.left or c is not how.accumulator:
        wanted = f"{how.left} to {how.accumulator}" if how is not None else None
        found = f"{a} and {op.b_layout}s of {op.element} to {c}"
        reject(op, f"the target {target.name} has no indirect dot of these types", expected=wanted, found=found)
    length = op.n if op.b_layout == "row" else op.k
    if op.m > how.rows or length % how.length:
        wanted = f"at most {how.rows} rows, lines of a multiple of {how.length} elements"
        found = f"{op.m} rows, lines of {length}"
        reject(op, f"the target {target.name} has no indirect dot of this size", expected=wanted, found=found)


def _kernels(target: TargetSpec) -> list[MicroKernel]:
    return list(dict.fromkeys(kernel for kernels in target.micro_kernels.values() for kernel in kernels))


def _multiplies(kernel: MicroKernel, a: Type, b: Type, c: Type, group: int) -> bool:
    return a is b is kernel.operand and c is kernel.accumulator and group == kernel.group


def _takes(kernel: MicroKernel, op: tile.Dot) -> bool:
    """Whether the columns fit; panels are whole and do not overlap."""
    if "panel" not in op.attributes:
        return op.n % kernel.column_multiple == 0
    return op.panel == kernel.panel and op.n % op.panel == 0 and op.panel_stride >= op.panel * op.group


_LIMITS: dict[Storage, _Limits] = {
    Storage.REGISTERS: _Limits(
        foreign=("tile",),
        checks={
            tt.Dot: _dot,
            ttng.WarpGroupDot: _dot,
            tt.Load: _load,
            ttig.Prefetch: _load,
            tt.Store: _store,
            tt.AtomicRMW: _atomic,
            tt.AtomicCAS: _atomic,
            tt.DescriptorLoad: _descriptor_load,
            tt.DescriptorStore: _descriptor_store,
            ttg.LocalAlloc: _shared,
        },
        default=_anything,
    ),
    Storage.MEMORY: _Limits(
        foreign=("ttg", "ttig", "gpu", "tt.dot"),
        checks={
            tile.Dot: _micro_kernel,
            tile.IndirectDot: _indirect_dot,
            tile.Interleave: _interleave,
            tile.Load: _grouped,
            tile.Transpose: _grouped,
        },
        default=_chunks,
    ),
}
