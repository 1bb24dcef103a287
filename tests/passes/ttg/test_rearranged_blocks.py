"""Blocks that are rearranged, then combined along an axis, cut between one to 16 warps: every level agrees."""

from __future__ import annotations

import math
import random
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import mltriton as triton
from combinations import each_value
from levels import check_levels

from ..rearranging_kernels import rearranged

LARGEST = {1: 9, 2: 5, 3: 4, 4: 3}  # binary logarithm of the sizes of a block, by rank
ENDS = ("none", "sum", "sum_keep", "max", "argmax", "argmin", "cumsum", "scan", "sort", "reduce_twice")
DTYPES = (np.int32, np.float32, np.int16)
BATCH = 100  # cases a slow test

Shape = tuple[int, ...]


class Move(NamedTuple):
    """A shape operation: what it does to a block of `shape`."""

    shape: Shape
    to: Any
    result: Shape


def _none(shape: Shape, rng: random.Random) -> Move:
    return Move(shape, None, shape)


def _reshape(shape: Shape, rng: random.Random) -> Move:
    to = [1] * rng.randrange(1, 5)
    for _ in range(int(math.log2(math.prod(shape)))):
        to[rng.randrange(len(to))] *= 2
    return Move(shape, tuple(to), tuple(to))


def _permute(shape: Shape, rng: random.Random) -> Move:
    order = tuple(rng.sample(range(len(shape)), len(shape)))
    return Move(shape, order, tuple(shape[dim] for dim in order))


def _along(shape: Shape, rng: random.Random) -> Move:
    return Move(shape, rng.randrange(len(shape)), shape)


def _topk(shape: Shape, rng: random.Random) -> Move:
    count = 1 << rng.randrange(shape[-1].bit_length())
    return Move(shape, count, (*shape[:-1], count))


def _join(shape: Shape, rng: random.Random) -> Move:
    return Move(shape[:3], None, (*shape[:3], 2))


def _interleave(shape: Shape, rng: random.Random) -> Move:
    return Move(shape, None, (*shape[:-1], 2 * shape[-1]))


def _cat(shape: Shape, rng: random.Random) -> Move:
    return Move(shape, None, (2 * shape[0], *shape[1:]))


def _split(shape: Shape, rng: random.Random) -> Move:
    return Move((*shape[:3], 2), None, shape[:3])


def _broadcast(shape: Shape, rng: random.Random) -> Move:
    result = (1 << rng.randrange(4), *shape[:3])
    return Move(shape[:3], result, result)


MOVES = {
    "none": _none,
    "reshape": _reshape,
    "permute": _permute,
    "flip": _along,
    "gather": _along,
    "sort": _none,
    "topk": _topk,
    "join": _join,
    "interleave": _interleave,
    "cat": _cat,
    "split": _split,
    "broadcast": _broadcast,
}


def _check(seed: int, target: str, move: str | None = None) -> None:
    """A random block, operation, combination and number of warps."""
    rng = random.Random(seed)
    rank = rng.randrange(1, 5)
    shape = tuple(1 << rng.randrange(LARGEST[rank]) for _ in range(rank))
    name = move or rng.choice(list(MOVES))
    made = MOVES[name](shape, rng)
    elements = np.random.default_rng(seed).integers(-50, 50, math.prod(made.shape)).astype(rng.choice(DTYPES))
    args = {
        "x": elements,
        "out": np.full(math.prod(made.result), -7, np.float32),
        "SHAPE": made.shape,
        "MOVE": name,
        "TO": made.to,
        "END": rng.choice(ENDS),
        "AXIS": rng.randrange(len(made.result)),
    }
    check_levels(rearranged, args, (1,), target=target, num_warps=rng.choice((1, 2, 4, 8, 16)))


@each_value(("move", MOVES), ("seed", range(4)))
def test_levels_agree(move: str, seed: int) -> None:
    _check(seed, "generic", move)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("shape", "to"), [((8, 8), (32, 2)), ((16, 64), (2, 512)), ((64, 16), (8, 128))])
def test_machine_code_of_a_reduction_of_a_reshaped_block(shape: Shape, to: Shape, axis: int) -> None:
    pytest.importorskip("dpctl")
    size = math.prod(shape)
    args = {"x": np.arange(size, dtype=np.int32), "out": np.zeros(size, np.float32), "SHAPE": shape}
    args |= {"MOVE": "reshape", "TO": to, "END": "sum", "AXIS": axis}
    check_levels(rearranged, args, (1,), target="xe:pvc", num_warps=8)


@pytest.mark.parametrize(
    ("shape", "move", "axis"),
    [((16, 1, 4, 32), "flip", 0), ((16, 1, 4, 32), "flip", 3), ((2048,), "flip", 0), ((4, 512), "gather", 1)],
)
def test_warps_exchange_each_element_once(shape: Shape, move: str, axis: int) -> None:
    """Whatever is replicated between 32 warps."""
    arguments = {"x": np.arange(2048, dtype=np.int32), "out": np.zeros(2048, np.float32), "SHAPE": shape}
    arguments |= {"MOVE": move, "TO": axis, "END": "none", "AXIS": 0}
    check_levels(rearranged, arguments, (1,), target="generic", num_warps=32)
    kernel = triton.compile(
        rearranged, {"x": "*i32", "out": "*fp32"}, dict(list(arguments.items())[2:]), "generic", num_warps=32
    )
    allocated = re.findall(r"ttg.local_alloc : .*?memdesc<([\dx]+)x", kernel.asm["warp"])
    assert sum(math.prod(map(int, sizes.split("x"))) for sizes in allocated) <= 2048


@pytest.mark.parametrize("shape", [(16, 1, 4, 32), (2048,)])
def test_a_flip_fits_in_the_shared_memory_of_xe(shape: Shape) -> None:
    constants = {"SHAPE": shape, "MOVE": "flip", "TO": 0, "END": "none", "AXIS": 0}
    kernel = triton.compile(rearranged, {"x": "*i32", "out": "*fp32"}, constants, "xe:pvc", num_warps=32)
    assert kernel.metadata.shared <= 3 * 4 * 2048


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 3000, BATCH))
def test_levels_agree_on_many(first: int) -> None:
    for seed in range(first, first + BATCH):
        _check(seed, "generic")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_machine_code_agrees_on_many(first: int) -> None:
    pytest.importorskip("dpctl")
    for seed in range(first, first + BATCH):
        _check(seed, "xe:pvc")
