"""What products of an iteration read, in two places by turns: no race, and planted ones are found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import gpu, scf, ttg
from mltriton.executor import Options, run
from mltriton.executor.faults import DataRace
from mltriton.executor.machine import Order
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module

ORDERS = pytest.mark.parametrize("order", ["forward", "backward"])


@triton.jit
def add_products(x, y, out, count, turns, BLOCK: tl.constexpr):
    """out = a sum of x (y k) for k < count, of which each product halves what was there before, so often."""
    rows, columns, between = tl.arange(0, 128)[:, None], tl.arange(0, BLOCK)[None, :], tl.arange(0, 64)
    left = tl.load(x + rows * 64 + between[None, :])
    right = tl.load(y + between[:, None] * BLOCK + columns)
    total = tl.zeros([128, BLOCK], tl.float32)
    for _ in range(turns):
        for k in range(count):
            total = total * 0.5 + tl.dot(left, right * k.to(tl.float16))
    tl.store(out + rows * BLOCK + columns, total)


@cache
def text() -> str:
    signature = "*fp16:16,*fp16:16,*fp32:16,i32,i32,16"
    return triton.compile(add_products, signature, target="cuda:90", num_warps=8).asm["intrinsic"]


def launch(module: Module, order: Order) -> None:
    """Twice three iterations: the first of a turn writes where the last one of the turn before has written."""
    numbers = np.random.default_rng(0)
    x, y = (numbers.standard_normal(shape).astype(np.float16) for shape in ((128, 64), (64, 16)))
    out = np.zeros((128, 16), np.float32)
    run(module, [x, y, out, 3, 2], (1,), options=Options(order=order))
    wanted = np.zeros((128, 16))
    for k in (0, 1, 2, 0, 1, 2):
        wanted = wanted * 0.5 + x.astype(np.float64) @ (y * np.float16(k)).astype(np.float64)
    assert np.linalg.norm(out - wanted) < 1e-3 * np.linalg.norm(wanted)


def loop_of(module: Module) -> scf.For:
    """The inner loop."""
    return [op for op in module.walk() if isinstance(op, scf.For)][-1]


def barriers_in(loop: scf.For) -> list[Operation]:
    return [op for op in loop.body.block.ops if isinstance(op, gpu.Barrier)]


@ORDERS
def test_warps_meet_once_in_an_iteration(order: Order) -> None:
    module = parse_module(text())
    assert len(barriers_in(loop_of(module))) == 1
    launch(module, order)


@ORDERS
def test_a_race_without_the_meeting_in_an_iteration(order: Order) -> None:
    module = parse_module(text())
    barriers_in(loop_of(module))[0].erase()
    with pytest.raises(DataRace):
        launch(module, order)


@ORDERS
def test_a_race_without_the_meeting_in_front_of_the_loop(order: Order) -> None:
    module = parse_module(text())
    loop = loop_of(module)
    assert loop.block is not None
    before = loop.block.ops[: loop.block.position(loop)]
    [op for op in before if isinstance(op, gpu.Barrier)][-1].erase()
    with pytest.raises(DataRace):
        launch(module, order)


@ORDERS
def test_a_race_with_one_place_only(order: Order) -> None:
    module = parse_module(text())
    loop = loop_of(module)
    place = next(op for op in loop.body.block.ops if isinstance(op, ttg.MemDescSubview) and len(op.offsets) == 3)
    place.set_operand(1, loop.lower)
    with pytest.raises(DataRace):
        launch(module, order)
