"""Blocks that Hopper's engine combines with memory, on the PTX emulator: every update and dtype, clipped, several
programs at one place, and what the engine does not do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from ptx_emulator.launch import install

ENGINE = "cp.reduce.async.bulk.tensor"
FUNCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
DTYPES = {"add": ["float16", "float32", "int32", "uint32", "uint64"]}
CASES = [(kind, dtype) for kind in FUNCTIONS for dtype in DTYPES.get(kind, ["int32", "uint32", "int64", "uint64"])]


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def combine(x, y, M, N, S, KIND: tl.constexpr, CLEARS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [S, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [M, N], [S, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    block = source.load(at)
    if CLEARS:
        target.store(at, tl.zeros_like(block))
    if KIND == "add":
        target.atomic_add(at, block)
    elif KIND == "min":
        target.atomic_min(at, block)
    elif KIND == "max":
        target.atomic_max(at, block)
    elif KIND == "and":
        target.atomic_and(at, block)
    elif KIND == "or":
        target.atomic_or(at, block)
    else:
        target.atomic_xor(at, block)


def _blocks(dtype: str) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        return [rng.normal(size=(40, 80)).astype(dtype) for _ in range(2)]
    return [rng.integers(0, 256, (40, 80 * np.dtype(dtype).itemsize), np.uint8).view(dtype) for _ in range(2)]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_every_update(kind: str, dtype: str) -> None:
    x, y = _blocks(dtype)
    wanted = y.copy()
    wanted[:37, :72] = FUNCTIONS[kind](y[:37, :72], x[:37, :72])
    kernel = combine[(2, 2)](x, y, 37, 72, 80, kind, False, 32, 64, target="cuda:90", tensor_maps="all")
    np.testing.assert_array_equal(y, wanted)
    assert f"{ENGINE}.2d.global.shared::cta.{kind}.tile" in kernel.asm["ptx"]


def test_programs_that_add_to_one_block() -> None:
    x, y = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    kernel = combine[(1, 1, 5)](x, y, 32, 64, 64, "add", False, 32, 64, target="cuda:90", tensor_maps="all")
    assert (y == 5).all()
    assert ENGINE in kernel.asm["ptx"]


def test_what_the_program_writes_itself_is_updated_by_lanes() -> None:
    """The engine would not wait for its own stores."""
    x, y = _blocks("float32")
    wanted = y.copy()
    wanted[:32, :64] = x[:32, :64]
    kernel = combine[(1, 1)](x, y, 32, 64, 80, "add", True, 32, 64, target="cuda:90", tensor_maps="all", num_warps=1)
    assert ENGINE not in kernel.asm["ptx"]
    assert "red.relaxed.gpu" in kernel.asm["ptx"]


@pytest.mark.parametrize("stride", [80, 78])
def test_rows_that_the_engine_cannot_describe(stride: int) -> None:
    """78 is no multiple of 16 bytes: that launch runs the kernel without tensor maps."""
    memory = np.zeros(40 * stride, np.float32)
    x, y = np.ones(40 * stride, np.float32), memory[: 40 * stride]
    combine[(1, 1)](x, y, 32, 64, stride, "add", False, 32, 64, target="cuda:90", tensor_maps="all")
    assert y.sum() == 32 * 64
