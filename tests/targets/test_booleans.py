"""Blocks of int1 on every target: binary operations, comparisons, casts, reductions and scans."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import DeviceError
from mltriton.targets.xe import driver
from ptx_emulator.launch import install

B = 64


@triton.jit
def _xor(a, b):
    return a ^ b


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def operations(x, y, out, total, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i) != 0, tl.load(y + i) != 0
    tl.store(out + i, (a + b).to(tl.int32))
    tl.store(out + B + i, (a - b).to(tl.int32))
    tl.store(out + 2 * B + i, (a * b).to(tl.int32))
    tl.store(out + 3 * B + i, (a < b).to(tl.int32))
    tl.store(out + 4 * B + i, (a <= b).to(tl.int32))
    tl.store(out + 5 * B + i, (a > b).to(tl.int32))
    tl.store(out + 6 * B + i, (a >= b).to(tl.int32))
    tl.store(out + 7 * B + i, (a == b).to(tl.int32))
    tl.store(out + 8 * B + i, tl.minimum(a, b).to(tl.int32))
    tl.store(out + 9 * B + i, tl.maximum(a, b).to(tl.int32))
    tl.store(out + 10 * B + i, (~a).to(tl.float32).to(tl.int32))
    tl.store(out + 11 * B + i, tl.where(a, b, ~b).to(tl.int32))
    tl.store(out + 12 * B + i, tl.associative_scan(a.to(tl.int1), 0, _or).to(tl.int32))
    tl.store(out + 13 * B + i, tl.associative_scan(a.to(tl.int1), 0, _xor).to(tl.int32))
    tl.store(out + 14 * B + i, (a // (b | ~b)).to(tl.int32))
    tl.store(out + 15 * B + i, (a % (b | ~b)).to(tl.int32))
    tl.store(out + 16 * B + i, (a << (b & ~b)).to(tl.int32))
    tl.store(out + 17 * B + i, (a >> (b & ~b)).to(tl.int32))
    tl.store(total, tl.sum(a, 0).to(tl.int32))
    tl.store(total + 1, tl.max(a, 0).to(tl.int32))
    tl.store(total + 2, tl.min(a, 0).to(tl.int32))
    tl.store(total + 3, tl.reduce(a, 0, _xor).to(tl.int32))
    tl.store(total + 4, tl.xor_sum(a.to(tl.int32), 0))


@pytest.fixture(params=["cpu", "cuda:90", "xe:pvc simd", "xe:pvc simt"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    install(monkeypatch)
    name, _, form = request.param.partition(" ")
    if form:
        try:
            driver.queue()
        except DeviceError as error:
            pytest.skip(f"{error.message}: pip install 'mltriton[xe]'")
    return {"target": name, **({"codegen": form} if form else {})}


def test_booleans(target: dict[str, str]) -> None:
    x, y = np.arange(B, dtype=np.int32) % 3, np.arange(B, dtype=np.int32) // 2 % 2
    x[5] = 0  # an odd number of them holds
    out, total = np.full((18, B), -99, np.int32), np.full(5, -99, np.int32)
    operations[(1,)](x, y, out, total, B=B, **target)
    a, b = x != 0, y != 0
    arithmetic = [a ^ b, a ^ b, a & b, a < b, a <= b, a > b, a >= b, a == b, a & b, a | b]
    choices = [~a, np.where(a, b, ~b)]
    scans = [np.logical_or.accumulate(a), np.logical_xor.accumulate(a)]
    by_ones = [a, a & ~a, a, a]
    for number, (found, wanted) in enumerate(zip(out, arithmetic + choices + scans + by_ones, strict=True)):
        np.testing.assert_array_equal(found, wanted, err_msg=f"operation {number}")
    assert total.tolist() == [a.sum(), 1, 0, 1, 1]
