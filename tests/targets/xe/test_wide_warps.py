"""Warps of 32 lanes: which programs have them, and that they compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.parser import parse_module
from mltriton.runtime.native.params import ParamSpec
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.emulation import image_of
from mltriton.targets.xe.launch import XeKernel
from mltriton.targets.xe.llvm.emit.kernel import emit_kernel
from mltriton.targets.xe.spirv.emission import emit

TARGET = "xe:pvc"
RNG = np.random.default_rng(5)


@triton.jit
def scaled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 3, mask=at < n)


@triton.jit
def multiplied(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + at).to(tl.float16)
    tl.store(y + at, tl.dot(value, value))


@triton.jit
def described(x, y, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    there = tl.make_tensor_descriptor(y, [n, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    there.store([0, 0], source.load([0, 0]) * 3)


@triton.jit
def described_row(x, y, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    there = tl.make_tensor_descriptor(y, [n], [1], [BLOCK])
    there.store([0], source.load([0]) * 3)


@pytest.mark.parametrize(
    ("kernel", "block", "warps", "codegen", "lanes"),
    [
        (scaled, 1024, 4, "simt", 32),
        (scaled, 128, 4, "simt", 32),
        (scaled, 64, 4, "simt", 16),
        (scaled, 1024, 32, "simt", 32),
        (scaled, 4096, 64, "simt", 16),
        (scaled, 1024, 4, "simd", 16),
        (multiplied, 64, 4, "simt", 16),
        (described, 64, 4, "simt", 16),
        (described_row, 1024, 4, "simt", 32),
    ],
)
def test_who_has_wide_warps(kernel: Any, block: int, warps: int, codegen: str, lanes: int) -> None:
    """Neither products nor accesses to matrices have them, nor who has no element for each lane."""
    x = np.zeros(1 << 12, np.float32)
    compiled = kernel.warmup(x, x, 1 << 12, block, grid=(1,), num_warps=warps, codegen=codegen, target=TARGET)
    assert f'"ttg.threads-per-warp" = {lanes} ' in compiled.asm["ttg"]
    items = 1 if codegen == "simd" else lanes
    assert re.search(rf"^!\d+ = !{{i32 {items * warps}, i32 1, i32 1}}", compiled.asm["llvm"], re.MULTILINE)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("warps", [1, 8, 32])
def test_sizes_of_programs(warps: int) -> None:
    x, y = RNG.standard_normal(3001).astype(np.float32), np.full(3001, 9, np.float32)
    scaled[(3,)](x, y, 3000, 1024, num_warps=warps, target=TARGET)
    assert (y[:3000] == 3 * x[:3000]).all()
    assert y[3000] == 9


@triton.jit
def mixed(x, sums, ordered, ranks, found, seen, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = row[:, None] * COLUMNS + column[None, :]
    value = tl.load(x + at)
    tl.store(sums + column, tl.sum(value, 0))
    tl.store(ordered + at, tl.sort(value, 1))
    tl.store(ranks + at, tl.cumsum(value.to(tl.int32), 1))
    tl.store(found + row, tl.argmax(value, 1))
    tl.atomic_add(seen + (value.to(tl.int32) & 15), 1)


@pytest.mark.usefixtures("queue")
def test_what_moves_between_lanes() -> None:
    """Lanes 16 to 31 take part in reductions, sorts, scans and atomic updates."""
    x = RNG.permuted(np.arange(1, 513, dtype=np.float32)).reshape(8, 64)
    sums, ordered, ranks = np.zeros(64, np.float32), np.zeros_like(x), np.zeros((8, 64), np.int32)
    found, seen = np.zeros(8, np.int32), np.zeros(16, np.int32)
    mixed[(1,)](x, sums, ordered, ranks, found, seen, 8, 64, num_warps=1, target=TARGET)
    assert (sums == x.sum(0)).all()
    assert (ordered == np.sort(x, 1)).all()
    assert (ranks == x.astype(np.int32).cumsum(1)).all()
    assert (found == x.argmax(1)).all()
    assert (seen == 32).all()


def test_constants_of_each_lane(queue: Queue) -> None:
    """SPIR-V has no vectors of 32 elements."""
    numbers = RNG.integers(1, 100, 64).astype(np.int32)
    lanes = "#lanes = #ttg.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>"
    text = f"""{lanes}
module attributes {{"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "xe:pvc",
                   mltriton.level = "intrinsic"}} {{
  tt.func public @kernel(%a: !tt.ptr<i32>) {{
    %range = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #lanes>
    %base = tt.splat %a : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #lanes>
    %at = tt.addptr %base, %range : tensor<64x!tt.ptr<i32>, #lanes>, tensor<64xi32, #lanes>
    %numbers = arith.constant dense<[{", ".join(map(str, numbers))}]> : tensor<64xi32, #lanes>
    tt.store %at, %numbers : tensor<64x!tt.ptr<i32>, #lanes>
    tt.return
  }}
}}
"""
    pvc = device("pvc")
    kernel = emit_kernel(parse_module(text), pvc)
    image = image_of(kernel.function, pvc) if queue.emulated else emit(kernel.text)
    made = np.zeros(64, np.int32)
    XeKernel(queue, lambda *_: image, "kernel", 32).launcher([ParamSpec.tensor(made.dtype)])(1, 1, 1, made)
    assert (made == numbers).all()
