"""Accesses to matrices that only a running kernel can judge: code with 2D block accesses, and code without.

Level: intrinsic -> llvm. What a launch can judge is judged there (`surfaces.py`), and one answer is emitted. The rest
is asked as soon as all numbers are there: what follows in the same body, up to the last access concerned, is written
twice. Guarantees: no loop asks what is known before it; the second version is right for every matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from mltriton.analysis.block_io import BlockOperation
from mltriton.dialects.tt.memory import is_block_pointer
from mltriton.ir.operation import Block, Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import MemDescType, TensorDescType
from mltriton.targets.llvm.types import I1, Value, constant
from mltriton.targets.simt.lanes import BlockPointer, Carried, parts_of, with_parts
from mltriton.targets.xe.block_limits import X_BYTES, Guard
from mltriton.targets.xe.llvm import block_io
from mltriton.targets.xe.llvm.surfaces import KernelGuard

if TYPE_CHECKING:
    from mltriton.targets.xe.llvm.emit.context import XeEmitter


def emit(e: XeEmitter, ops: Sequence[Operation]) -> None:
    """Emit operations that follow each other in a block."""
    inside = {op: guards for op in ops if (guards := list(_guards(e, op)))}
    number = 0
    while number < len(ops):
        op = ops[number]
        if not any(_can_ask(e, guard) for guard in inside.get(op, ())):
            e.operation(op)
            number += 1
            continue
        asked = [guard for later in ops[number:] for guard in inside.get(later, ()) if _can_ask(e, guard)]
        asked = list(dict.fromkeys(asked))
        last = max(i for i in range(number, len(ops)) if not set(asked).isdisjoint(inside.get(ops[i], ())))
        if any(isinstance(value.type, MemDescType) for value in _used_later(ops[number : last + 1])):
            last = len(ops) - 1  # Blocks in shared memory are places, not values that two versions could give.
        _emit_versions(e, ops[number : last + 1], asked)
        number = last + 1


def _guards(e: XeEmitter, op: Operation) -> Iterator[KernelGuard]:
    """What the accesses of an operation, and of those inside it, leave to the kernel."""
    for inner in op.walk():
        if isinstance(inner, BlockOperation) and _is_block_access(inner):
            yield from e.answers.surfaces.expected(inner).kernel


def _is_block_access(op: BlockOperation) -> bool:
    pointer = op.operands[0].type
    return isinstance(pointer, TensorDescType) or is_block_pointer(pointer)


def _can_ask(e: XeEmitter, guard: KernelGuard) -> bool:
    """Whether a guard is open, and all that it asks about is there."""
    if guard in e.answers.decided or any(limit.field == "x" for limit in guard.limits):
        return False
    maker = guard.maker
    return all(e.ensure(value) for value in (maker.base, *maker.shape, *maker.strides, *guard.columns))


def _emit_versions(e: XeEmitter, ops: Sequence[Operation], guards: Sequence[KernelGuard]) -> None:
    holds = constant(I1, 1)
    for guard in guards:
        holds = e.function.and_(_asked(e, guard), holds)
    needed = [value for value in _used_later(ops) if not e.ensure(value)]
    answers, decided = e.answers, e.answers.decided
    made: list[list[Carried]] = []

    def version(answer: bool) -> Callable[[], Sequence[Value]]:
        def build() -> Sequence[Value]:
            answers.decided = decided | dict.fromkeys(guards, answer)
            with e.scope():
                emit(e, ops)
                made.append([cast(Carried, e.any(value)) for value in needed])
                return [part for value in needed for part in e.flat(value)]

        return build

    flat = e.function.choose(holds, version(answer=True), version(answer=False), "surfaces")
    answers.decided = decided
    for value, found in zip(needed, made[0], strict=True):
        size = len(parts_of(found))
        e.put(value, with_parts(found, flat[:size]))
        flat = flat[size:]


def _asked(e: XeEmitter, guard: KernelGuard) -> Value:
    maker = guard.maker
    base, *rest = (e.get(value) for value in (maker.base, *maker.shape, *maker.strides))
    rank = len(maker.shape)
    pointer = BlockPointer(base, rest[:rank], rest[rank:], ())
    holds = block_io.asked(e, pointer, guard.size, guard.limits, transposed=guard.transposed)
    for limit in guard.limits:
        if limit.field == "base":  # The matrices of a tensor start so many bytes apart.
            holds = e.function.and_(_all_multiples(e, pointer.strides[:-2], guard.size, limit), holds)
    for column in guard.columns:
        step = max(1, X_BYTES // guard.size)
        holds = e.function.and_(e.function.icmp("eq", e.function.and_(e.get(column), step - 1), 0), holds)
    return holds


def _all_multiples(e: XeEmitter, numbers: Sequence[Value], size: int, limit: Guard) -> Value:
    """Whether a limit that asks for a multiple holds for so many elements of `size` bytes."""
    f, holds = e.function, constant(I1, 1)
    for number in numbers:
        of_bytes = f.and_(e.affine.mul(number, constant(number.type, size)), cast(int, limit.bound) - 1)
        holds = f.and_(f.icmp("eq", of_bytes, 0), holds)
    return holds


def _used_later(ops: Sequence[Operation]) -> list[IRValue]:
    """Results that operations behind these, or their block's terminator, use."""
    own, block = set(ops), ops[0].block
    return [r for op in ops for r in op.results if any(_in_block(user, block) not in own for user in r.users)]


def _in_block(op: Operation, block: Block | None) -> Operation:
    """The operation of `block` that an operation is, or is inside of."""
    while op.block is not block:
        parent = op.block.parent_op if op.block is not None else None
        assert parent is not None
        op = parent
    return op
