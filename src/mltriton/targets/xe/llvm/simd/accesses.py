"""Accesses of a warp to memory with an address for each lane, several registers at a time where they are neighbours.

Level: intrinsic -> llvm. Takes for each register of a block a vector of addresses and, where there are masks, a vector
of i1; registers whose addresses are seen to follow each other are one message of up to 16 bytes a lane. Guarantees: a
masked-off element is never touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I1, I32, Type, Value, constant
from mltriton.targets.simt.accesses import Run, as_before, in_memory_order, reordered, runs
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, gather, joined, read, scatter

WORD = 4  # bytes that elements take in registers at least


class Message(NamedTuple):
    """`elements` of `size` bytes for each lane, `displaced` bytes behind `address`; in them are so many `registers`,
    from number `start` on.
    """

    start: int
    address: Value
    displaced: int
    size: int
    elements: int
    registers: int


def messages(e: WarpEmitter, pointers: Sequence[Value], element: Type, masks: Sequence[Value] | None) -> list[Message]:
    """What is sent for the registers of a block."""
    found = runs(e, pointers, element)
    if masks is not None and not all(len(set(masks[run.start : run.start + run.width])) == 1 for run in found):
        found = [Run(number, 1, element.bytes) for number in range(len(pointers))]
    addresses = _addresses(e, pointers)
    return [message for run in found for message in _of_run(run, addresses, element.bytes)]


def _addresses(e: WarpEmitter, pointers: Sequence[Value]) -> list[tuple[Value, int]]:
    """Each register's address as one that several of them share, which takes no registers for each, and a distance
    from it, which is not negative.
    """
    terms = [e.affine.term(pointer) for pointer in pointers]
    uses = Counter(root for root, _ in terms)
    first = {root: (root, 0) for root in uses}
    for pointer, (root, distance) in zip(pointers, terms, strict=True):
        if distance < first[root][1]:
            first[root] = pointer, distance
    return [
        (pointer, 0) if root is None or uses[root] == 1 else (first[root][0] or root, distance - first[root][1])
        for pointer, (root, distance) in zip(pointers, terms, strict=True)
    ]


def _of_run(run: Run, addresses: Sequence[tuple[Value, int]], size: int) -> list[Message]:
    """Words where addresses are aligned to them, else one element after the other."""
    whole = run.width * size
    if size >= WORD or (run.align >= WORD and whole >= WORD):
        unit = max(size, WORD)
        return [Message(run.start, *addresses[run.start], unit, whole // unit, run.width)]
    return [Message(number, *addresses[number], size, 1, 1) for number in range(run.start, run.start + run.width)]


def load(
    e: WarpEmitter, element: Type, pointers: Sequence[Value], masks: Sequence[Value] | None, others: Sequence[Value]
) -> list[Value]:
    """Load each register; where its mask does not hold it is that of `others`."""
    order = in_memory_order(e, pointers)
    pointers, masks, others = reordered(order, pointers, masks, others)
    return as_before(order, _load(e, element, pointers, masks, others))


def _load(
    e: WarpEmitter, element: Type, pointers: Sequence[Value], masks: Sequence[Value] | None, others: Sequence[Value]
) -> list[Value]:
    made: list[Value] = []
    for message in messages(e, pointers, element, masks):
        mask = _mask(masks, message)
        shape = message.size, message.elements, message.displaced
        loaded = gather(e.function, message.address, mask, *shape, e.cached)
        made += _registers(e, loaded, element, message)
    if masks is None or all(mask.literal for mask in masks):
        return made
    return [e.function.select(mask, *pair) for mask, *pair in zip(masks, made, others, strict=True)]


def _mask(masks: Sequence[Value] | None, message: Message) -> Value:
    return constant(I1.with_lanes(LANES), 1) if masks is None else masks[message.start]


def _registers(e: WarpEmitter, loaded: Value, element: Type, message: Message) -> list[Value]:
    """What was loaded as vectors of elements."""
    f, per_word = e.function, message.registers // message.elements
    words = [read(f, loaded, number * LANES, LANES) for number in range(message.elements)]
    if per_word == 1:
        bits = element.with_element(f"i{element.bits}").with_lanes(LANES)
        return [e.bits_as(f.cast("trunc", word, bits), element.with_lanes(LANES)) for word in words]
    parts = [f.bitcast(word, element.with_lanes(per_word * LANES)) for word in words]
    return [read(f, part, number, LANES, per_word) for part in parts for number in range(per_word)]


def store(e: WarpEmitter, pointers: Sequence[Value], masks: Sequence[Value] | None, values: Sequence[Value]) -> None:
    """Store each register where its mask holds."""
    pointers, masks, values = reordered(in_memory_order(e, pointers), pointers, masks, values)
    for message in messages(e, pointers, values[0].type.scalar, masks):
        data = _data(e, values[message.start : message.start + message.registers], message)
        mask = _mask(masks, message)
        shape = message.size, message.elements, message.displaced
        scatter(e.function, message.address, mask, data, *shape, e.cached)


def _data(e: WarpEmitter, values: Sequence[Value], message: Message) -> Value:
    """Vectors of elements as words, all lanes' first words first."""
    f, per_word = e.function, message.registers // message.elements
    bits = values[0].type.bits
    integers = [e.bits_as(value, value.type.with_element(f"i{bits}")) for value in values]
    words: list[Value] = []
    for start in range(0, len(integers), per_word):
        word = f.cast("zext", integers[start], I32.with_lanes(LANES)) if bits < I32.bits else integers[start]
        for number in range(1, per_word):
            part = f.cast("zext", integers[start + number], I32.with_lanes(LANES))
            word = f.or_(word, f.shl(part, number * bits))
        words.append(word)
    return joined(f, words)
