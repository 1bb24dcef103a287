"""Region moves between the LLVM values of a block: which values take part in one call, and the call.

Level: intrinsic -> llvm. A block is several values, each a run of bytes of the warp's registers. `calls_of` splits the
moves of a whole block (`layouts/region_moves.py`) so that each call takes and gives few values. In a lane's program a
call is that of a function that is only declared, with what it does among the module's `meanings`: the SPIR-V module has
inline assembly in its place (`spirv/assembly.py`), emulation a function in plain LLVM IR
(`emulation/region_shuffles.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, Value, poison, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.lanes import Form
from mltriton.targets.xe.block_limits import SUB_GROUP
from mltriton.targets.xe.layouts.region_moves import RegionMoves, Stage, fewest_moves
from mltriton.targets.xe.llvm.lanes import LONGEST_VECTOR


class Call(NamedTuple):
    """Moves from the values number `inputs` of the source, one after the other, to those number `outputs`."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    moves: RegionMoves


class Sizes(NamedTuple):
    """Bytes of a value in all lanes together, and how many of them one call may have."""

    bytes: int
    most: int


def sizes(form: Form) -> Sizes:
    """Those of a block held in that form."""
    return Sizes(form.type.bytes * SUB_GROUP, max(1, LONGEST_VECTOR // form.type.lanes))


@cache
def calls_of(moves: RegionMoves, source: Sizes, target: Sizes) -> tuple[Call, ...] | None:
    """The calls for all moves of a block; None where one needs more values than it may have."""
    origin, run = moves.source_of(0), max(stage.run for stage in moves.stages)
    images = [moves.source_of(1 << bit) ^ origin for bit in range(_bits(moves.result_bytes))]
    inside, source_bits = _bits(max(target.bytes, run)), _bits(source.bytes)
    joined = {bit for image in images[:inside] for bit in _set(image) if bit >= source_bits}
    free = 1 << source_bits
    together = list(range(_bits(target.bytes), inside))
    if 1 << len(joined) > source.most or 1 << len(together) > target.most:
        return None
    for bit in range(inside, len(images)):
        there = images[bit] < free or set(_set(images[bit])) <= joined | set(range(source_bits))
        if there and 2 << len(together) <= target.most:
            together.append(bit)
    apart = [bit for bit in range(inside, len(images)) if bit not in together]
    order = sorted(joined)

    def inner(position: int) -> int:
        """A byte of the source as one of the inputs."""
        high = sum(1 << source_bits + number for number, bit in enumerate(order) if position >> bit & 1)
        return position & free - 1 | high

    inner_images = tuple(inner(images[bit]) for bit in (*range(inside), *(b for b in together if b >= inside)))
    made: list[Call] = []
    for number in range(1 << len(apart)):
        position = _spread(number, apart)
        start = moves.source_of(position)
        first = start & ~(free - 1)
        for bit in order:
            first &= ~(1 << bit)
        inputs = tuple((first | _spread(i, order)) >> source_bits for i in range(1 << len(order)))
        outputs = tuple((position | _spread(i, together)) >> _bits(target.bytes) for i in range(1 << len(together)))
        inside_call = fewest_moves(inner_images, inner(start))
        if inside_call is None:
            return None
        made.append(Call(inputs, outputs, inside_call))
    return tuple(made)


def symbol(moves: RegionMoves, source: Type, result: Type) -> str:
    """The name of the function that does these moves: another one for all that differ."""
    return ".".join(("region_moves", *map(_stage_name, moves.stages), source.suffix, result.suffix))


def _stage_name(stage: Stage) -> str:
    bases = "".join(f"_{base}" for base in stage.bases)
    return f"{stage.unit}x{stage.length}s{stage.stride}from{stage.start}{bases}"


def moved(f: Function, inputs: Sequence[Value], moves: RegionMoves, type_: Type, count: int) -> list[Value]:
    """`count` values of `type_` in a lane's program."""
    whole = _joined(f, [f.bitcast(value, _integers(value.type)) for value in inputs])
    held = _integers(type_)
    result = held.with_lanes(held.lanes * count)
    name = symbol(moves, whole.type, result)
    f.module.meanings[name] = moves
    made = f.pure_call(name, result, whole)
    if count == 1:
        return [f.bitcast(made, type_)]
    starts = range(0, result.lanes, held.lanes)
    parts = [
        f.shuffle(made, poison(result), range(at, at + held.lanes)) if held.lanes > 1 else f.extract(made, at)
        for at in starts
    ]
    return [f.bitcast(part, type_) for part in parts]


def _joined(f: Function, values: Sequence[Value]) -> Value:
    """Values after each other as one vector."""
    first = values[0].type
    if len(values) == 1:
        return values[0]
    if not first.is_vector:
        return f.joined(values)
    half = len(values) // 2
    low, high = _joined(f, values[:half]), _joined(f, values[half:])
    return f.shuffle(low, high, range(2 * low.type.lanes))


def _integers(type_: Type) -> Type:
    return vector(f"i{type_.bits}", type_.lanes)


def _spread(number: int, bits: Sequence[int]) -> int:
    """The bits of a number in these positions."""
    return sum(1 << position for bit, position in enumerate(bits) if number >> bit & 1)


def _set(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def _bits(size: int) -> int:
    return size.bit_length() - 1
