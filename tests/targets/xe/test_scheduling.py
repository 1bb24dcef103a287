# pyright: basic
"""What prefetches, barriers in halves and batch folding leave in the ISA, as Intel's compiler has it."""

from __future__ import annotations

from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.targets.target import find_target
from mltriton.targets.xe import isa

pytestmark = pytest.mark.usefixtures("needs_ocloc")
SIGNATURE = dict.fromkeys("ab", "*fp16:16") | {"c": "*fp32:16", "M": "i32", "N": "i32:16", "K": "i32:16"}


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(1) * BM, tl.program_id(0) * BN
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc)


@triton.jit
def batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z = tl.program_id(2)
    m, n = tl.program_id(1) * BM, tl.program_id(0) * BN
    a_desc = tl.make_tensor_descriptor(a, [8, M, K], [M * K, K, 1], [1, BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [8, K, N], [K * N, N, 1], [1, BK, BN])
    c_desc = tl.make_tensor_descriptor(c, [8, M, N], [M * N, N, 1], [1, BM, BN])
    acc = tl.zeros((1, BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([z, m, k]), b_desc.load([z, k, n]), acc)
    c_desc.store([z, m, n], acc)


def fast_loop(kernel: Any, target: str, num_warps: int, **blocks: int) -> tuple[int, isa.Instructions]:
    """Bytes that are spilled, and the loop whose operands come by 2D block loads."""
    compiled = triton.compile(kernel, SIGNATURE, blocks, target, num_warps=num_warps)
    text = find_target(target).texts["isa"](compiled.asm.lowered)
    (loop,) = [x for x in isa.innermost_loops(text) if x.instructions.messages["load_block2d"]]
    return find_target(target).registers(text)[1], loop.instructions


@pytest.mark.parametrize(("target", "most"), [("xe:pvc", 79), ("xe:bmg", 70)])
def test_a_product_is_as_short_as_written_by_hand(target: str, most: int) -> None:
    """With prefetches and a barrier: 32 dpas of a warp's 32x64, one load of A, two of B."""
    spilled, loop = fast_loop(product, target, 32, BM=256, BN=256, BK=32)
    assert spilled == 0
    assert loop.operations["dpas"] == 32
    assert loop.messages == {"load_block2d": 3, "prefetch": 2, "signal": 1}
    assert loop.total <= most


@pytest.mark.parametrize(("rows", "loads"), [(1, 3), (2, 2), (4, 2)])
def test_few_rows(rows: int, loads: int) -> None:
    """A single row comes in two messages: elements of one would be in lanes where the matrix engine has others."""
    spilled, loop = fast_loop(product, "xe:pvc", 4, BM=rows, BN=64, BK=32)
    assert spilled == 0
    assert loop.operations["dpas"] == 2
    assert loop.messages == {"load_block2d": loads, "prefetch": 2}
    assert loop.total <= 45


def test_a_batch_costs_nothing_in_the_loop() -> None:
    of_matrices = fast_loop(product, "xe:pvc", 4, BM=64, BN=64, BK=32)
    of_batches = fast_loop(batched, "xe:pvc", 4, BM=64, BN=64, BK=32)
    assert of_batches[0] == of_matrices[0] == 0
    assert of_batches[1].messages == of_matrices[1].messages
    assert of_batches[1].total <= of_matrices[1].total + 2
