"""Shared memory as NVIDIA's GPUs access it: `ldmatrix` for operands of products, `stmatrix` for results, copies that go
on by themselves.

Level: intrinsic -> llvm. `ldmatrix` brings up to four matrices of 8 rows of 16 bytes, of which each lane gives the
address of a row, and `stmatrix` takes them back; `.trans` turns matrices of 2-byte elements. What they cannot move is
moved lane by lane. Guarantees: a copy (`cp.async`) writes 0 where its mask does not hold; what cannot be copied by 4, 8
or 16 bytes is loaded and stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import ttg
from mltriton.ir.types import TensorType, byte_width, pointee
from mltriton.layouts.encodings import DotOperandEncoding
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.nvidia import NvidiaMmaEncoding
from mltriton.records import NamedTuple
from mltriton.targets.llvm.emit.booleans import in_memory, to_memory
from mltriton.targets.llvm.types import I32, Type, Value, constant, vector
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.calls import from_integer
from mltriton.targets.nvidia.dot import words_of
from mltriton.targets.nvidia.machine import NvidiaMachine
from mltriton.targets.nvidia.spec import COPY_BYTES
from mltriton.targets.simt import accesses, shared, swizzles
from mltriton.targets.simt.accesses import Run
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted, Swizzle, element_name, layout_of

ROW_BYTES, ROWS = 16, 8  # of a matrix of `ldmatrix`
WORD_BYTES = 4
MOST = 2  # matrices of one instruction, as a power of two


class Matrices(NamedTuple):
    """What `ldmatrix` brings and `stmatrix` takes: the indices of the rows that lanes name, for each instruction
    (`register`), and of how many matrices they are each. `turned`: rows of matrices are columns of memory.
    """

    rows: LinearLayout
    each: int
    turned: bool


def matrices_of(type_: TensorType, swizzle: Swizzle | None) -> Matrices | None:
    """The matrices of a piece of an operand or a result; None where lanes access it element by element."""
    encoding, size = type_.encoding, byte_width(type_.element)
    width, k = 2, type_.rank - 1  # of a result, whose words have neighbours of a row
    if isinstance(encoding, DotOperandEncoding):
        width, k = encoding.k_width, k - encoding.op_idx
        encoding = encoding.parent
    if swizzle is None or not isinstance(encoding, NvidiaMmaEncoding) or width * size != WORD_BYTES:
        return None
    layout = layout_of(type_)
    fastest = next((dim for dim, images in enumerate(swizzle.images) if images[:1] == (1,)), None)
    along = ROW_BYTES // size
    if fastest is None or swizzle.images[fastest][: along.bit_length() - 1] != _powers(along):
        return None
    if sum(image % along for images in swizzle.images for image in images) != along - 1:  # All rows are aligned.
        return None
    turned = fastest != k
    if type_.rank != 2 or (turned and (size != 2 or layout.sizes[k] < ROWS)):
        return None
    in_words = width.bit_length() - 1
    words = list(layout.vectors("register")[in_words:])
    rows = [_along(k, step) for step in (1, 2, 4)] if turned else list(layout.vectors("lane")[2:])
    lanes = [*rows, *words[:MOST], *[(0, 0)] * (MOST - len(words))]
    sizes = {f"dim{dim}": size for dim, size in enumerate(layout.sizes)}
    addresses = LinearLayout.of({"register": words[MOST:], "lane": lanes}, sizes)
    return Matrices(addresses, 1 << min(MOST, len(words)), turned)


def _powers(end: int) -> tuple[int, ...]:
    return tuple(1 << bit for bit in range(end.bit_length() - 1))


def _along(dim: int, step: int) -> tuple[int, int]:
    return (step, 0) if dim == 0 else (0, step)


def _load(e: Emitter, op: ttg.LocalLoad) -> Emitted:
    type_, block = cast(TensorType, op.result.type), e.shared(op.memory)
    found = matrices_of(type_, block.swizzle)
    if found is None or block.swizzle is None:
        return shared.load(e, op)
    element = vector(element_name(type_.element), 1)
    addresses = swizzles.addresses(e, block.pointer, block.swizzle, found.rows, vector(f"i{element.bits}", 1))
    shared.touch(e, op.memory, writes=False)
    words = [word for address in addresses for word in _matrices(e, address, found)]
    return e.held([part for word in words for part in _parts(e, word, element)], type_)


def _matrices(e: Emitter, address: Value, found: Matrices) -> list[Value]:
    """The words of one instruction."""
    listed = ", ".join(f"${number}" for number in range(found.each))
    turned = ".trans" if found.turned else ""
    text = f"ldmatrix.sync.aligned.m8n8.x{found.each}{turned}.shared.b16 {{{listed}}}, [${found.each}];"
    return ptx(e.function, text, [I32] * found.each, address)


def _store(e: Emitter, op: ttg.LocalStore) -> None:
    type_, block = cast(TensorType, op.value.type), e.shared(op.memory)
    stores = cast(NvidiaMachine, e.machine).device.matrix_stores
    found = matrices_of(type_, block.swizzle) if stores else None
    if found is None or block.swizzle is None:
        shared.store(e, op)
        return
    element = vector(f"i{8 * byte_width(type_.element)}", 1)
    addresses = swizzles.addresses(e, block.pointer, block.swizzle, found.rows, element)
    shared.touch(e, op.memory, writes=True)
    words = words_of(e.function, [to_memory(e, register) for register in e.registers(op.value)])
    listed = ", ".join(f"${number + 1}" for number in range(found.each))
    turned = ".trans" if found.turned else ""
    text = f"stmatrix.sync.aligned.m8n8.x{found.each}{turned}.shared.b16 [$0], {{{listed}}};"
    for number, address in enumerate(addresses):
        ptx(e.function, text, [], address, *words[found.each * number : found.each * (number + 1)])


def _parts(e: Emitter, word: Value, element: Type) -> list[Value]:
    """The elements in a word."""
    f, each = e.function, I32.bits // element.bits
    if each == 1:
        return [from_integer(f, word, element)]
    parts = f.bitcast(word, vector(f"i{element.bits}", each))
    return [f.extract(parts, number) for number in range(each)]


# Copies.


def _copy(e: Emitter, op: ttg.AsyncCopyGlobalToLocal) -> Value:
    type_ = cast(TensorType, op.ptr.type)
    pointers, element = e.registers(op.ptr), in_memory(vector(element_name(pointee(type_)), 1))
    masks = None if op.mask is None else e.registers(op.mask)
    targets = shared.addresses(e, type_.with_element(pointee(type_)), e.shared(op.memory))
    shared.touch(e, op.memory, writes=True, under_way=True)
    order = accesses.in_memory_order(e, pointers)
    pointers, masks, targets = accesses.reordered(order, pointers, masks, targets)
    for run in accesses.runs(e, pointers, element):
        for part in _copied(e, run, targets, masks, element):
            _copy_run(e, part, pointers, masks, targets, element)
    return constant(I32, 0)


def _copied(e: Emitter, run: Run, targets: Sequence[Value], masks: accesses.Masks, element: Type) -> list[Run]:
    """A run cut into parts that lie next to each other in shared memory, too, and have one mask."""
    if run.width == 1:
        return [run]
    size, numbers = run.width * element.bytes, range(run.start, run.start + run.width)
    first, *others = (e.affine.term(targets[number]) for number in numbers)
    follow = all(o == first._replace(constant=first.constant + element.bytes * i) for i, o in enumerate(others, 1))
    agree = masks is None or len({masks[number] for number in numbers}) == 1
    aligned = min(run.align, e.affine.divisor(targets[run.start])) >= size
    if follow and agree and aligned and size in COPY_BYTES:
        return [run]
    half = run.width // 2
    halves = (Run(run.start + at, half, min(run.align, half * element.bytes)) for at in (0, half))
    return [part for each in halves for part in _copied(e, each, targets, masks, element)]


def _copy_run(
    e: Emitter, run: Run, pointers: Sequence[Value], masks: accesses.Masks, targets: Sequence[Value], element: Type
) -> None:
    """Neighbours by one copy, or one element by a load and a store."""
    f, size, at = e.function, run.width * element.bytes, slice(run.start, run.start + run.width)
    if size not in COPY_BYTES or run.align < size or e.affine.divisor(targets[run.start]) < size:
        allowed = None if masks is None else masks[at]
        loaded = accesses.load(e, element, pointers[at], allowed, [constant(element, 0)] * run.width)
        accesses.store(e, targets[at], None, loaded)
        return
    kind = "cg" if size == COPY_BYTES[-1] else "ca"
    text = f"cp.async.{kind}.shared.global [$0], [$1], {size}"
    if masks is None or masks[run.start].literal:
        ptx(f, f"{text};", [], targets[run.start], pointers[run.start])
        return
    read = f.select(masks[run.start], constant(I32, size), constant(I32, 0))
    ptx(f, f"{text}, $2;", [], targets[run.start], pointers[run.start], read)


def _commit(e: Emitter, op: ttg.AsyncCommitGroup) -> Value:
    ptx(e.function, "cp.async.commit_group;", [])
    return constant(I32, 0)


def _wait(e: Emitter, op: ttg.AsyncWait) -> Value:
    ptx(e.function, f"cp.async.wait_group {op.num};", [])
    e.shared_accesses.forget(met=False)
    return constant(I32, 0)


RULES: Rules = {
    ttg.LocalLoad: _load,
    ttg.LocalStore: _store,
    ttg.AsyncCopyGlobalToLocal: _copy,
    ttg.AsyncCommitGroup: _commit,
    ttg.AsyncWait: _wait,
}
