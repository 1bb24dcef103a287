"""The product of Triton's tutorial, written with blocks of pointers, by 2D block accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.targets.xe import isa
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.ocloc import compile_without_spills, disassemble
from mltriton.targets.xe.spirv.emission import emit

RNG = np.random.default_rng(5)
Array = np.ndarray[Any, Any]


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = GROUP * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BM + tl.arange(0, BM)) % M
    offs_bn = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def strides(*arrays: Array) -> list[int]:
    return [stride // array.itemsize for array in arrays for stride in array.strides]


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("name", "most"), [("pvc", 79), ("bmg", 70)])
def test_the_loop_is_that_of_descriptors(name: str, most: int) -> None:
    """Sizes, strides and base are arguments, so that a launch judges them: there is one loop, without checks."""
    a, b, c = (np.zeros((1024, 1024), np.float16) for _ in range(3))
    constants = {"BM": 256, "BN": 256, "BK": 32, "GROUP": 8, "target": f"xe:{name}", "num_warps": 32}
    kernel = product.warmup(a, b, c, 1024, 1024, 1024, *strides(a, b, c), **constants)
    native = compile_without_spills(emit(kernel.asm["llvm"]), device(name), 32)
    [info] = native.kernels.values()
    [text] = disassemble(native).values()
    [loop] = [loop.instructions for loop in isa.innermost_loops(text) if loop.instructions.operations["dpas"]]
    assert info.spilled == 0
    assert loop.operations["dpas"] == 32
    assert loop.messages["load_block2d"] == 3
    assert loop.messages["prefetch"] == 2
    assert loop.total <= most


def matrix(rows: int, columns: int, room: int) -> Array:
    """Numbers whose products are exact, at a multiple of 64 bytes, the rows `room` elements apart."""
    memory = np.full(2 * rows * room + 64, 99, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + 2 * rows * room].view(np.float16).reshape(rows, room)[:, :columns]
    made[...] = RNG.integers(-4, 5, made.shape)
    return made


@pytest.mark.usefixtures("queue")
def test_odd_sizes() -> None:
    """Rows and columns wrap around, and k ends within a block; one kernel for all."""
    for m, n, k in ((75, 41, 83), (7, 67, 33), (65, 33, 5)):
        a, b, whole = matrix(m, k, 96), matrix(k, n, 80), matrix(m, 80, 80)
        c, outside = whole[:, :n], whole[:, n:].copy()
        blocks = {"BM": 32, "BN": 32, "BK": 32, "GROUP": 2, "target": "xe:pvc", "num_warps": 1}
        product[(triton.cdiv(m, 32) * triton.cdiv(n, 32),)](a, b, c, m, n, k, *strides(a, b, c), **blocks)
        np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))
        np.testing.assert_array_equal(whole[:, n:], outside)
