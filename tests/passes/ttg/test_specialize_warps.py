"""A producer warp beside the warps that multiply: the same results at every level, and planted mistakes are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from levels import check_levels
from mltriton.dialects import scf, ttg, ttng
from mltriton.executor import Options, run
from mltriton.executor.faults import BarrierDivergence, DataRace, InvalidOperation, Unfinished
from mltriton.executor.machine import Order
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module
from persistent_product import product

OPTIONS: dict[str, Any] = {"target": "cuda:90", "specialize_warps": "all"}


def arrays(m: int, n: int, k: int) -> dict[str, Any]:
    return {"a": f"{m}x{k}:fp16", "b": f"{k}x{n}:fp16", "c": f"{m}x{n}:fp16", "M": m, "N": n, "K": k}


@pytest.mark.parametrize(("k", "stages"), [(16, 2), (80, 2), (112, 3)])
def test_products(k: int, stages: int) -> None:
    blocks = {"BM": 64, "BN": 32, "BK": 16}
    check_levels(product, arrays(136, 40, k) | blocks, (2,), num_warps=4, num_stages=stages, **OPTIONS)


def test_two_groups_of_consumers() -> None:
    check_levels(product, arrays(128, 48, 48) | {"BM": 128, "BN": 32, "BK": 16}, (1,), num_warps=8, **OPTIONS)


@triton.jit
def attend(q, k, v, out, n, keys, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Two loops one after the other over the same rings, the second with a mask; either may have no iteration."""
    queries = tl.make_tensor_descriptor(q, [n, D], [D, 1], [BM, D])
    left = tl.make_tensor_descriptor(k, [keys, D], [D, 1], [BN, D])
    right = tl.make_tensor_descriptor(v, [keys, D], [D, 1], [BN, D])
    to = tl.make_tensor_descriptor(out, [n, D], [D, 1], [BM, D])
    i = tl.program_id(0) * BM
    x = queries.load([i, 0])
    largest, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    whole = keys // BN * BN
    for start in range(0, whole, BN):
        scores = tl.dot(x, left.load([start, 0]).T)
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, alpha = tl.exp2(scores - new[:, None]), tl.exp2(largest - new)
        total = total * alpha + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.float16), right.load([start, 0]), result * alpha[:, None])
        largest = new
    for start in range(whole, keys, BN):
        scores = tl.dot(x, left.load([start, 0]).T)
        scores = tl.where(start + tl.arange(0, BN)[None, :] < keys, scores, -1e30)
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, alpha = tl.exp2(scores - new[:, None]), tl.exp2(largest - new)
        total = total * alpha + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.float16), right.load([start, 0]), result * alpha[:, None])
        largest = new
    to.store([i, 0], (result / total[:, None]).to(tl.float16))


@pytest.mark.parametrize("keys", [20, 32, 104])
@pytest.mark.parametrize(("rows", "warps"), [(64, 4), (128, 8)])
def test_attention(keys: int, rows: int, warps: int) -> None:
    shapes = {"q": "72x32:fp16", "k": f"{keys}x32:fp16", "v": f"{keys}x32:fp16", "out": "72x32:fp16", "n": 72}
    check_levels(
        attend, shapes | {"keys": keys, "D": 32, "BM": rows, "BN": 32}, (2,), num_warps=warps, num_stages=2, **OPTIONS
    )


# Mistakes.


def specialized(level: str) -> Module:
    """The product's program of four iterations on one tile."""
    text = triton.compile(
        product, "*fp16:16,*fp16:16,*fp16:16,i32,i32:16,i32:16,64,32,16,False,False", num_stages=2, **OPTIONS
    )
    return parse_module(text.asm[level])


def launch(module: Module, order: Order = "forward") -> None:
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((64, 96), (96, 32)))
    run(module, [a, b, np.zeros((64, 32), np.float16), 64, 32, 96], (1,), options=Options(order=order))


def within(module: Module, kind: type[Operation], *, partition: bool) -> list[Operation]:
    """The operations of a kind in loops of one side."""
    side = next(op for op in module.walk() if isinstance(op, ttg.WarpSpecialize))
    found = side.partition.block.ops if partition else side.default.block.ops
    return [op for top in found for op in top.walk() if isinstance(op, kind) and isinstance(op.parent_op, scf.For)]


LEVELS = pytest.mark.parametrize("level", ["ttg", "warp", "intrinsic"])
ORDERS = pytest.mark.parametrize("order", ["forward", "backward"])


@LEVELS
@ORDERS
def test_the_program_without_a_mistake(level: str, order: Order) -> None:
    module = specialized(level)
    assert within(module, ttng.ArriveBarrier, partition=False)
    launch(module, order)


@LEVELS
@ORDERS
@pytest.mark.parametrize(
    ("forgotten", "partition", "errors"),
    [
        pytest.param(ttng.ArriveBarrier, False, (BarrierDivergence,), id="a slot is not given back"),
        pytest.param(ttng.WaitBarrier, False, (Unfinished, DataRace, BarrierDivergence), id="a block is not awaited"),
        pytest.param(ttng.WaitBarrier, True, (Unfinished, DataRace, BarrierDivergence), id="a slot is filled unasked"),
    ],
)
def test_what_is_forgotten_in_a_loop(
    level: str, order: Order, forgotten: type[Operation], partition: bool, errors: tuple[type[Exception], ...]
) -> None:
    module = specialized(level)
    for op in within(module, forgotten, partition=partition):
        op.erase()
    with pytest.raises(errors):
        launch(module, order)


def _bring_before(other: Operation, op: Operation) -> None:
    """Move an operation, and what it needs, in front of another of its block."""
    block = other.block
    assert block is not None and op.block is block
    for maker in [value.defining_op for value in op.operands]:
        if maker is not None and maker.block is block and other.is_before(maker):
            _bring_before(other, maker)
    block.ops.remove(op)
    block.insert_before(other, op)


@LEVELS
@ORDERS
def test_a_slot_that_is_given_back_before_its_product_is_done(level: str, order: Order) -> None:
    module = specialized(level)
    for op in within(module, ttng.ArriveBarrier, partition=False):
        block = op.block
        assert block is not None
        dot = next((other for other in block.ops if isinstance(other, ttng.WarpGroupDot)), None)
        if dot is None:
            continue  # Behind the loop the last slot is given back.
        _bring_before(dot, op)
    with pytest.raises(DataRace, match=r"overwrites what warp . may still read"):
        launch(module, order)


@LEVELS
def test_fewer_bytes_than_come(level: str) -> None:
    module = specialized(level)
    for op in within(module, ttng.BarrierExpect, partition=True):
        assert isinstance(op, ttng.BarrierExpect)
        op.size //= 2
    with pytest.raises(InvalidOperation, match="more bytes come to a barrier than it expects"):
        launch(module)
