"""Products of four warps (`wgmma`), which read shared memory by themselves and go on behind the instruction.

Level: intrinsic -> llvm. Sums, and a left operand in registers, lie as `mma.sync` has them; what is in shared memory is
named by descriptors (PTX ISA, "Matrix Descriptor Format"), which all four warps give alike. Guarantees: sums are tied
to the registers they start from, and to the wait for them, so that none moves while a product is under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import cast

from mltriton.dialects import ttg, ttng
from mltriton.errors import BackendError
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import I8, MemDescType, TensorType, Type, byte_width
from mltriton.layouts.shared import NvmmaSharedEncoding
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, I64, Value, constant
from mltriton.targets.nvidia import dot
from mltriton.targets.nvidia.assembly import letter
from mltriton.targets.nvidia.joined import GROUP_ROWS, columns_of, joined_with, starts
from mltriton.targets.simt.context import Emitted, Emitter, Rules
from mltriton.targets.simt.moves import linear

ROWS = 8  # of the smallest matrix in shared memory
STEP_BYTES = 32  # along K that one instruction multiplies
UNIT = 16  # bytes that descriptors count in
SPACE = 0x3FFFF  # addresses that they reach
LOW = (1 << 32) - 1  # of a descriptor: where the block begins and one distance
SWIZZLES = {128: 1, 64: 2, 32: 3}  # descriptors' numbers of them


class Operand(NamedTuple):
    """What instructions say of an operand in shared memory: the descriptor of the first step along K, by how much it
    grows for each of the next, and for each of the instructions below each other, and whether K is not what lies side
    by side.
    """

    descriptor: Value
    steps: Sequence[int]
    below: Sequence[int]
    turned: bool


def _in_shared(e: Emitter, operand: IRValue, index: int, depth: int, count: int = 1) -> Operand:
    """Operand `index` of products of `depth` elements, of which `count` are below each other."""
    type_, block = cast(MemDescType, operand.type), e.shared(operand)
    encoding, f = type_.encoding, e.function
    if not isinstance(encoding, NvmmaSharedEncoding) or block.swizzle is None or encoding.swizzle not in SWIZZLES:
        raise BackendError("an operand of wgmma that does not lie as it is read", found=str(type_))
    size, k = byte_width(type_.element), 1 - index
    images, inner = block.swizzle.images, 0 if encoding.transposed else 1
    outer = 1 - inner
    starts = list(block.swizzle.offsets)
    if index == 0:  # Each warp names its own rows, the instruction those of all four.
        starts[0] = f.and_(starts[0], -GROUP_ROWS * count)
    moved = f.mul(f.add(linear(f, starts[0], images[0]), linear(f, starts[1], images[1])), size)
    if size != 2 and inner != k:
        raise BackendError("wgmma takes elements of other than two bytes along K", found=str(type_))
    if count > 1 and inner != k:
        raise BackendError("rows of several wgmma that lie side by side", found=str(type_))
    strides = _stride(images[outer], ROWS * count) * size, _stride(images[inner], encoding.swizzle // size) * size
    fixed = SWIZZLES[encoding.swizzle] << 62 | strides[0] // UNIT << 32 | max(strides[1] // UNIT, 1) << 16
    place = f.add(_place(e, operand, fixed & LOW), f.lshr(moved, UNIT.bit_length() - 1))
    above = fixed - (fixed & LOW)
    descriptor = f.or_(f.cast("zext", place, I64), constant(I64, above - (1 << 64) if above >> 63 else above))
    steps = [_image(images[k], step) * size // UNIT for step in range(0, type_.shape[k], depth)]
    below = [_stride(images[outer], ROWS) * size // UNIT * number for number in range(count)]
    return Operand(descriptor, steps, below, turned=inner != k)


def _place(e: Emitter, memory: IRValue, more: int) -> Value:
    """Where a block in shared memory begins, by its first elements but for swizzled dimensions, in units, and `more`.
    Units of parts are added up: what does not change in a loop is one of them.
    """
    f, size, moved = e.function, byte_width(cast(MemDescType, memory.type).element), constant(I32, 0)
    while isinstance(op := memory.defining_op, ttg.MemDescSubview | ttg.MemDescTrans):
        memory = op.memory
        if isinstance(op, ttg.MemDescSubview):
            for offset, stride in zip(op.offsets, e.shared(memory).strides, strict=False):
                if stride * size % UNIT:
                    raise BackendError("an operand of wgmma that begins anywhere", found=str(memory.type))
                moved = e.affine.add(moved, e.affine.mul(e.get(offset), constant(I32, stride * size // UNIT)))
    start, first = e.affine.term(e.shared(memory).pointer), e.affine.term(moved)
    assert start.root is not None and start.constant % UNIT == 0
    place = f.lshr(f.and_(f.cast("ptrtoint", start.root, I32), SPACE), UNIT.bit_length() - 1)
    place = place if first.root is None else f.add(place, first.root)
    return f.add(place, first.constant + start.constant // UNIT + more)


def _element(operand: IRValue) -> Type:
    return cast(TensorType | MemDescType, operand.type).element


def _stride(images: Sequence[int], distance: int) -> int:
    """How far an element lies that is so many indices, a power of two, further."""
    bit = distance.bit_length() - 1
    return images[bit] if bit < len(images) else 0


def _image(images: Sequence[int], index: int) -> int:
    return sum(image for bit, image in enumerate(images) if index >> bit & 1)


def _dot(e: Emitter, op: ttng.WarpGroupDot) -> Emitted:
    """All instructions along K, in one group. Those of the product before may have done it (`joined.py`): its group is
    empty then.
    """
    if (done := e.find(op.result)) is not None:
        e.function.assembly("wgmma.commit_group.sync.aligned;", "~{memory}", [])
        return done
    name, products = dot.sums_of(op), joined_with(op, lambda value: e.find(value) is not None)
    sums = [dot.as_sums(e, each, name) for each in products]
    made = iter(_multiply(e, op, name, sum(columns_of(each) for each in products), [x for own in sums for x in own]))
    for each, own in zip(products, sums, strict=True):
        registers = dot.from_sums(e, each, name, [next(made) for _ in own])
        e.put(each.result, e.held(registers, each.result.type))
    return e.any(op.result)


def _multiply(e: Emitter, op: ttng.WarpGroupDot, name: str, columns: int, sums: Sequence[Value]) -> Sequence[Value]:
    """The new sums of a product of so many columns."""
    depth = STEP_BYTES // byte_width(_element(op.a))
    b = _in_shared(e, op.b, 1, depth)
    count = 4 * cast(TensorType, op.result.type).shape[-2] // GROUP_ROWS
    a = _in_shared(e, op.a, 0, depth, count) if isinstance(op.a.type, MemDescType) else None
    words = [] if a is not None else _words(e, op.a)
    descriptors = [] if a is None else [a.descriptor]
    operands = [*words, *descriptors, b.descriptor]
    text = _text(op, name, columns, len(sums), len(words), a, b, count)
    types = [value.type for value in sums]
    before: Sequence[Value] = () if starts(op) else sums  # Sums that start are written only, and by no lane before.
    constraints = [*(f"=&{letter(type_)}" for type_ in types), *(letter(value.type) for value in operands)]
    constraints += [*map(str, range(len(before))), "~{memory}"]
    return e.function.assembly(text, ",".join(constraints), types, *operands, *before)


def _words(e: Emitter, value: IRValue) -> list[Value]:
    """A block in registers as words of 32 bits."""
    lanes = e.lanes(value)
    return list(lanes.values) if not lanes.form.is_plain else dot.words_of(e.function, e.registers(value))


def _text(
    op: ttng.WarpGroupDot, name: str, columns: int, sums: int, words: int, a: Operand | None, b: Operand, count: int
) -> str:
    """The instructions, for each step `count` below each other: `$0`, ... are sums, then come words of `a` or its
    descriptor, and that of `b`.
    """
    left, right = _element(op.a), _element(op.b)
    depth = STEP_BYTES // byte_width(left)
    factors = f"{dot.name_of(left, op.a_unsigned)}.{dot.name_of(right, op.b_unsigned)}"
    steps, shape = len(b.steps), f"m{GROUP_ROWS}n{columns}k{depth}"
    ends = "" if left is I8 else ", 1, 1"
    if byte_width(left) == 2:
        ends += ("" if a is None else f", {int(a.turned)}") + f", {int(b.turned)}"
    lines = ["{ .reg .b64 da, db; wgmma.fence.sync.aligned;"]
    for step, number in product(range(steps), range(count)):
        listed = _listed(number * (sums // count), sums // count)
        first = "da"
        if a is None:
            each = words // steps // count
            first = f"{{{_listed(sums + each * (count * step + number), each)}}}"
        else:
            lines.append(f"add.s64 da, ${sums}, {a.steps[step] + a.below[number]};")
        if number == 0:
            lines.append(f"add.s64 db, ${sums + words + (a is not None)}, {b.steps[step]};")
        adds = int(step > 0 or not starts(op))
        lines.append(f"wgmma.mma_async.sync.aligned.{shape}.{name}.{factors} {{{listed}}}, {first}, db, {adds}{ends};")
    if not op.continues:
        lines.append("wgmma.commit_group.sync.aligned;")
    if not op.is_async:
        lines.append("wgmma.wait_group.sync.aligned 0;")
    return " ".join([*lines, "}"])


def _listed(first: int, count: int) -> str:
    return ", ".join(f"${number}" for number in range(first, first + count))


def _wait(e: Emitter, op: ttng.WarpGroupDotWait) -> list[Emitted]:
    """The results come out of the wait; what nobody takes is only kept until then."""
    taken = [value for value, result in zip(op.inputs, op.results, strict=True) if result.users]
    kept = [value for value, result in zip(op.inputs, op.results, strict=True) if not result.users]
    inputs = [register for value in taken for register in e.registers(value)]
    others = [word for value in kept for word in _words(e, value)]
    constraints = [*(f"={letter(value.type)}" for value in inputs), *(letter(value.type) for value in others)]
    constraints += [*map(str, range(len(inputs))), "~{memory}"]
    text = f"wgmma.wait_group.sync.aligned {op.pendings};"
    types = [value.type for value in inputs]
    made = iter(e.function.assembly(text, ",".join(constraints), types, *others, *inputs))
    return [
        e.held([next(made) for _ in e.registers(value)], value.type) if result.users else e.any(value)
        for value, result in zip(op.inputs, op.results, strict=True)
    ]


def _fence(e: Emitter, op: ttng.FenceAsyncShared) -> None:
    e.function.assembly("fence.proxy.async.shared::cta;", "~{memory}", [])


RULES: Rules = {ttng.WarpGroupDot: _dot, ttng.WarpGroupDotWait: _wait, ttng.FenceAsyncShared: _fence}
