"""Brings elements to the lanes and registers where another layout has them.

Level: intrinsic -> llvm. A change of layout, and every operation that only rearranges elements, asks for each register
of each lane of its result for one position in its source; both are linear in the bits of the position. Names of
registers cost nothing, another register in other lanes is a choice (`select`), another lane is a shuffle: each register
is chosen before it is sent, so that the receiving lane takes what it needs, and put into its place afterwards.
Guarantees: at most as many shuffles as the result has registers where the elements are spread over lanes and registers
without repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from mltriton.errors import BackendError
from mltriton.layouts.conversions import conversion
from mltriton.layouts.linear import LinearLayout
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.machine import Calls

Bits = tuple[int, ...]  # the images of the bits 1, 2, 4, ... of an index


class Plan(NamedTuple):
    """How the `size` registers of a result are fetched.

    Register i of lane l is virtual register i ^ last(l). Virtual register t of lane l comes from lane
    start[1] ^ lanes(t) ^ across(l), from register start[0] ^ registers(t) ^ first(that lane) ^ between(l).
    """

    size: int
    start: tuple[int, int]
    registers: Bits
    lanes: Bits
    across: Bits
    first: Bits
    between: Bits
    last: Bits

    @property
    def shuffles(self) -> int:
        """Shuffles for each register of the result."""
        return 1 << _rank(self.between)


@cache
def names(source: LinearLayout, wanted: LinearLayout, origin: tuple[int, ...]) -> tuple[int, ...] | None:
    """For each register of the result the one of the source that it is in every lane; None where lanes differ."""
    plan = plan_of(source, wanted, origin)
    lanes_stay = plan.across == _own(len(plan.across)) and plan.start[1] == 0 and not any(plan.lanes)
    if not lanes_stay or any((*plan.first, *plan.between, *plan.last)):
        return None
    return tuple(plan.start[0] ^ _image(plan.registers, number) for number in range(plan.size))


def move(
    calls: Calls,
    f: Function,
    registers: Sequence[Value],
    source: LinearLayout,
    wanted: LinearLayout,
    origin: tuple[int, ...] | None = None,
) -> list[Value]:
    """The registers of a block in which position p has the element `wanted(p)`, moved by `origin`, of a block with
    layout `source`.
    """
    origin = origin or (0,) * len(source.outputs)
    renamed = names(source, wanted, origin)
    if renamed is not None:
        return [registers[number] for number in renamed]
    plan = plan_of(source, wanted, origin)
    virtual = [_virtual_register(calls, f, plan, registers, number) for number in range(plan.size)]
    return _choices(calls, f, virtual, plan.last, range(plan.size))


def _virtual_register(calls: Calls, f: Function, plan: Plan, registers: Sequence[Value], number: int) -> Value:
    lane = plan.start[1] ^ _image(plan.lanes, number)
    register = plan.start[0] ^ _image(plan.registers, number)
    steps = sorted({_image(plan.between, position) for position in range(1 << len(plan.between))})
    received: dict[int, Value] = {}
    for step in steps:
        [sent] = _choices(calls, f, registers, plan.first, [register ^ step])
        received[step] = _received(calls, f, sent, lane, plan.across)
    return received[0] if len(steps) == 1 else _choose(calls, f, received.__getitem__, plan.between, 0)


def _received(calls: Calls, f: Function, sent: Value, lane: int, across: Bits) -> Value:
    """The value of lane `lane` ^ across(own lane)."""
    if sent.literal is not None:
        return sent
    if across == _own(len(across)):
        return sent if lane == 0 else calls.shuffle_xor(f, sent, lane)
    return calls.shuffle(f, sent, linear(f, calls.lane(f), across, lane))


def _choices(
    calls: Calls, f: Function, registers: Sequence[Value], by_lane: Bits, wanted: Sequence[int]
) -> list[Value]:
    """For each number of `wanted` the register with that number ^ by_lane(own lane)."""
    return [_choose(calls, f, registers.__getitem__, by_lane, number) for number in wanted]


def _choose(calls: Calls, f: Function, at: Callable[[int], Value], by_lane: Bits, number: int, bit: int = 0) -> Value:
    while bit < len(by_lane) and by_lane[bit] == 0:
        bit += 1
    if bit == len(by_lane):
        return at(number)
    there = _choose(calls, f, at, by_lane, number ^ by_lane[bit], bit + 1)
    return f.select(lane_bit(calls, f, bit), there, _choose(calls, f, at, by_lane, number, bit + 1))


def lane_bit(calls: Calls, f: Function, bit: int) -> Value:
    """Whether a bit of the lane's number is set."""
    return f.icmp("ne", f.and_(calls.lane(f), 1 << bit), 0)


def linear(f: Function, index: Value, images: Bits, start: int = 0) -> Value:
    """`start` ^ the images of the bits that are set in `index` (i32); bits that move together are moved at once."""
    by_shift: dict[int, int] = {}
    for bit, image in enumerate(images):
        for position in range(image.bit_length()):
            if image >> position & 1:
                by_shift[position - bit] = by_shift.get(position - bit, 0) | 1 << bit
    result = constant(I32, start)
    for shift, mask in by_shift.items():
        part = index if mask == (1 << len(images)) - 1 else f.and_(index, mask)
        result = f.xor(f.shl(part, shift) if shift >= 0 else f.lshr(part, -shift), result)
    return result


@cache
def plan_of(source: LinearLayout, wanted: LinearLayout, origin: tuple[int, ...]) -> Plan:
    """How the positions of `wanted`, moved by `origin`, get their elements of a block with layout `source`."""
    fetch = conversion(source, wanted).fetch
    if any(vector[2] for vectors in fetch.bases for vector in vectors):
        raise BackendError("elements of a block of the intrinsic level cross from warp to warp")
    back = source.inverse()
    position = dict(zip(back.outputs, back.at(**dict(zip(source.outputs, origin, strict=True))), strict=True))
    start = position.get("register", 0), position.get("lane", 0)
    registers, lanes = (tuple(vector[part] for vector in fetch.vectors("register")) for part in (0, 1))
    by_lane, across = (tuple(vector[part] for vector in fetch.vectors("lane")) for part in (0, 1))
    direct = _finished(start, registers, lanes, by_lane, across, (0,) * len(across))
    if direct.shuffles == 1:
        return direct
    return _finished(start, registers, lanes, by_lane, across, _detours(lanes, across))


def _detours(lanes: Bits, across: Bits) -> Bits:
    """For each bit of the lane the register that its lanes receive in place of another, so that they ask different
    lanes.
    """
    span = _Span()
    kept = [span.add(column) for column in across]
    made: list[int] = []
    for independent in kept:
        bit = next((1 << b for b, lane in enumerate(lanes) if not independent and span.add(lane)), 0)
        made.append(bit)
    return tuple(made)


def _finished(start: tuple[int, int], registers: Bits, lanes: Bits, by_lane: Bits, across: Bits, last: Bits) -> Plan:
    """The plan with the registers that are chosen before and after a shuffle worked out."""
    asked = tuple(column ^ _image(lanes, detour) for column, detour in zip(across, last, strict=True))
    chosen = tuple(column ^ _image(registers, detour) for column, detour in zip(by_lane, last, strict=True))
    span = _Span()
    for column, register in zip(asked, chosen, strict=True):
        span.add(column, register)
    between = tuple(register ^ span.image(column) for column, register in zip(asked, chosen, strict=True))
    for bit in range(len(across)):
        span.add(1 << bit, 0)
    first = tuple(span.image(1 << bit) for bit in range(len(across)))
    # A lane is asked for what it chooses by its own number: what depends on the constant part is taken out here.
    moved_registers = tuple(r ^ _image(first, lane) for r, lane in zip(registers, lanes, strict=True))
    moved_start = start[0] ^ _image(first, start[1]), start[1]
    return Plan(1 << len(registers), moved_start, moved_registers, lanes, asked, first, between, last)


class _Span:
    """Vectors over two elements with an image each; the images are linear."""

    def __init__(self) -> None:
        self._pivots: dict[int, tuple[int, int]] = {}

    def _reduced(self, vector: int, image: int) -> tuple[int, int]:
        while vector and (pivot := self._pivots.get(vector.bit_length())) is not None:
            vector, image = vector ^ pivot[0], image ^ pivot[1]
        return vector, image

    def add(self, vector: int, image: int = 0) -> bool:
        """Take a vector in; whether it was not in the span yet (otherwise its image stays as it is)."""
        vector, image = self._reduced(vector, image)
        if vector:
            self._pivots[vector.bit_length()] = (vector, image)
        return bool(vector)

    def image(self, vector: int) -> int:
        """The image of a vector of the span."""
        return self._reduced(vector, 0)[1]


def _image(images: Bits, index: int) -> int:
    result = 0
    for bit, image in enumerate(images):
        if index >> bit & 1:
            result ^= image
    return result


def _own(bits: int) -> Bits:
    return tuple(1 << bit for bit in range(bits))


def _rank(vectors: Bits) -> int:
    span = _Span()
    return sum(span.add(vector) for vector in vectors)
