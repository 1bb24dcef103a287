"""Blocks of every element type, loaded, converted and stored on Xe, emulated: no wrong byte, and none outside."""

from __future__ import annotations

import random

import numpy as np
import pytest

from .element_moves import LOADS, PITCHES, STORES, TURNED_LOADS, TYPES, Move

pytestmark = pytest.mark.usefixtures("queue")
FORMS = ("simt", "simd")
RNG = np.random.default_rng(11)
BYTES = ("int8", "uint8", "float8e4nv", "float8e5")


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("pitch", ["wide", "odd"])
@pytest.mark.parametrize("kind", BYTES)
def test_bytes_with_32_columns_a_warp(kind: str, pitch: str, codegen: str) -> None:
    """Two neighbours of a row lie in one lane; by block accesses, and where the hardware takes no such matrix."""
    Move(kind, kind, 32, 32, pitch=pitch, codegen=codegen).run(RNG)
    Move(kind, kind, 16, 64, "plain", ragged=True, pitch=pitch, warps=2, codegen=codegen).run(RNG)


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("source", ["int32", "int64", "float32"])
def test_wider_elements_become_bytes_with_32_columns_a_warp(source: str, codegen: str) -> None:
    for rows, columns, warps in ((8, 32, 1), (64, 32, 1), (32, 32, 4)):
        Move(source, "int8", rows, columns, warps=warps, codegen=codegen).run(RNG)


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("kind", TYPES)
def test_every_type(kind: str, codegen: str) -> None:
    """As it is, from integers and to another width; the ways to load and to store change with the type."""
    way = TYPES.index(kind)
    loads, stores = LOADS + TURNED_LOADS, STORES
    for number, (source, target, rows, columns) in enumerate(
        ((kind, kind, 16, 32), ("int32", kind, 8, 16), (kind, "float32", 32, 8))
    ):
        load, store = loads[(way + number) % len(loads)], stores[(way + number) % len(stores)]
        turned, ragged = (way + number) % 3 == 0, (way + number) % 2 == 0
        Move(source, target, rows, columns, load, store, turned, ragged, codegen=codegen).legal().run(RNG)


def test_words_that_not_all_lanes_have() -> None:
    """A transposing load brings words of 32 bits: of 8 columns of two rows half of the lanes would have one."""
    for kind, rows in (("float16", 2), ("float8e5", 4), ("int8", 8)):
        for codegen in FORMS:
            Move(kind, kind, rows, 8, "turned block", "block", pitch="wide", codegen=codegen).run(RNG)


def random_move(rng: random.Random) -> Move:
    """Any type, size and way, of at most 4096 elements."""
    source = rng.choice(TYPES)
    rows, columns = 1 << rng.randrange(7), rng.choice([1, 4, 8, 16, 32, 64, 128])
    return Move(
        source,
        rng.choice(TYPES) if rng.random() < 0.7 else source,
        min(rows, 4096 // columns),
        columns,
        rng.choice(LOADS + TURNED_LOADS),
        rng.choice(STORES),
        turned=rng.random() < 0.25,
        ragged=rng.random() < 0.4,
        pitch=rng.choice(list(PITCHES)),
        warps=rng.choice([1, 1, 1, 2, 4, 8]),
        codegen=rng.choice(FORMS),
    ).legal()


@pytest.mark.parametrize("seed", range(8))
def test_any_block(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        random_move(rng).run(RNG)


# The sweep.


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_blocks(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(40):
        random_move(rng).run(RNG, rng.choice(["xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl"]))


@pytest.mark.slow
@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", TYPES)
def test_every_conversion(source: str, target: str, codegen: str) -> None:
    """All widths of a warp's share by block accesses, by pointers and turned."""
    for columns in (8, 16, 32, 64):
        for rows in (8, 32):
            for load, store, turned in (("descriptor", "descriptor", False), ("masked", "plain", True)):
                Move(source, target, rows, columns, load, store, turned, codegen=codegen).legal().run(RNG)
