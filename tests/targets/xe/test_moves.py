"""Moves of elements between lanes: what a plan fetches is what the layouts ask for, and how many shuffles it takes."""

from __future__ import annotations

import random
from functools import reduce
from operator import xor

import pytest

from mltriton.layouts.linear import LinearLayout
from mltriton.targets.simt.moves import Bits, Plan, plan_of

LANES = 4  # bits


def image(images: Bits, index: int) -> int:
    return reduce(xor, (image for bit, image in enumerate(images) if index >> bit & 1), 0)


def fetched(plan: Plan, register: int, lane: int) -> tuple[int, int]:
    """The register and lane from which the plan's shuffles and selects bring an element."""
    virtual = register ^ image(plan.last, lane)
    source = plan.start[1] ^ image(plan.lanes, virtual) ^ image(plan.across, lane)
    chosen = plan.start[0] ^ image(plan.registers, virtual) ^ image(plan.first, source) ^ image(plan.between, lane)
    return chosen, source


def random_layout(numbers: random.Random, rows: int, columns: int, spare: int) -> LinearLayout:
    """Every element somewhere; `spare` bits repeat what others hold."""
    vectors = [(1 << bit, 0) for bit in range(rows)] + [(0, 1 << bit) for bit in range(columns)]
    vectors += [(0, 0)] * spare
    numbers.shuffle(vectors)
    mixed = list(vectors)
    for i in range(len(mixed)):
        j = numbers.randrange(len(mixed))
        if i != j and numbers.random() < 0.3:
            mixed[i] = (mixed[i][0] ^ mixed[j][0], mixed[i][1] ^ mixed[j][1])
    bases = {"register": mixed[LANES:], "lane": mixed[:LANES]}
    layout = LinearLayout.of(bases, {"dim0": 1 << rows, "dim1": 1 << columns})
    return (
        layout
        if layout.is_surjective
        else LinearLayout.of(
            {"register": vectors[LANES:], "lane": vectors[:LANES]}, {"dim0": 1 << rows, "dim1": 1 << columns}
        )
    )


@pytest.mark.parametrize("seed", range(60))
def test_every_place_gets_its_element(seed: int) -> None:
    numbers = random.Random(seed)
    rows, columns = numbers.randrange(2, 5), numbers.randrange(2, 5)
    source = random_layout(numbers, rows, columns, numbers.randrange(3))
    wanted = random_layout(numbers, rows, columns, numbers.randrange(3))
    origin = (numbers.randrange(1 << rows), numbers.randrange(1 << columns))
    plan = plan_of(source, wanted, origin)
    for register in range(wanted.count("register")):
        for lane in range(1 << LANES):
            element = tuple(x ^ y for x, y in zip(wanted.at(register=register, lane=lane), origin, strict=True))
            chosen, from_lane = fetched(plan, register, lane)
            assert source.at(register=chosen, lane=from_lane) == element


def test_a_transposition_in_registers_takes_one_shuffle_for_each_register() -> None:
    rows = [(1 << bit, 0) for bit in range(4)]
    columns = [(0, 1 << bit) for bit in range(4)]
    sizes = {"dim0": 16, "dim1": 16}
    source = LinearLayout.of({"register": rows, "lane": columns}, sizes)
    wanted = LinearLayout.of({"register": columns, "lane": rows}, sizes)
    plan = plan_of(source, wanted, (0, 0))
    assert plan.size == 16
    assert plan.shuffles == 1


def test_a_broadcast_from_each_lane_takes_no_selects() -> None:
    bits = [(1 << bit,) for bit in range(4)]
    source = LinearLayout.of({"register": [], "lane": bits}, {"dim0": 16})
    wanted = LinearLayout.of({"register": bits, "lane": [(0,)] * 4}, {"dim0": 16})
    plan = plan_of(source, wanted, (0,))
    assert plan.shuffles == 1
    assert not any((*plan.first, *plan.last, *plan.between))
