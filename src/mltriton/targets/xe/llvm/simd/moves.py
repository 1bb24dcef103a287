"""Brings elements to the lanes and registers where another layout has them, for registers that are vectors.

Level: intrinsic -> llvm. Which lane of which register has the element of each lane of a result is known when compiling.
A result whose lanes are a regular pattern of one register is one region of it; otherwise each register that takes part
is shuffled to its lanes, and they are put together by shuffles of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, read

Sources = tuple[tuple[int, int], ...]  # for each lane the register and the lane it comes from


@cache
def sources(source: LinearLayout, wanted: LinearLayout, origin: tuple[int, ...]) -> tuple[Sources, ...]:
    """For each register of the result where its lanes come from."""
    back = source.inverse()
    register, lane = (back.outputs.index(name) for name in ("register", "lane"))
    made: list[Sources] = []
    for number in range(wanted.count("register")):
        row: list[tuple[int, int]] = []
        for of in range(LANES):
            at_ = [a ^ b for a, b in zip(wanted.at(register=number, lane=of), origin, strict=True)]
            found = back.at(**dict(zip(source.outputs, at_, strict=True)))
            row.append((found[register], found[lane]))
        made.append(tuple(row))
    return tuple(made)


def move(
    f: Function, registers: Sequence[Value], source: LinearLayout, wanted: LinearLayout, origin: tuple[int, ...]
) -> list[Value]:
    """The registers at the elements of `wanted`, moved by `origin`, of a block with layout `source`."""
    return [_one(f, registers, row) for row in sources(source, wanted, origin)]


def _one(f: Function, registers: Sequence[Value], row: Sources) -> Value:
    used = list(dict.fromkeys(register for register, _ in row))
    if len(used) == 1:
        return pick(f, registers[used[0]], [lane for _, lane in row])
    made, first = registers[used[0]], used[0]
    mask = [lane if register == first else -1 for register, lane in row]
    for other in used[1:]:
        chosen = [LANES + lane if register == other else at for (register, lane), at in zip(row, mask, strict=True)]
        made = f.shuffle(made, registers[other], [max(0, at) for at in chosen])
        # What is there already stays where it is.
        mask = [at if taken < 0 else at_ for at_, (at, taken) in enumerate(zip(mask, chosen, strict=True))]
    return made


def pick(f: Function, value: Value, lanes: Sequence[int]) -> Value:
    """The elements with these numbers."""
    if value.literal is not None or list(lanes) == list(range(value.type.lanes)):
        return value
    if len(set(lanes)) == 1:
        return f.splat(f.extract(value, lanes[0]), len(lanes))
    stride = lanes[1] - lanes[0]
    if stride > 0 and list(lanes) == list(range(lanes[0], lanes[0] + stride * len(lanes), stride)):
        return read(f, value, lanes[0], len(lanes), stride)
    return f.shuffle(value, value, lanes)
