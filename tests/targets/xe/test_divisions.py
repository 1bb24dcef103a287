"""Integer division by constant powers of two on Xe, which shifts and masks do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

RNG = np.random.default_rng(11)


@triton.jit
def by_powers_of_two(x, quotients, remainders, n, BITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + (0 if BLOCK == 1 else tl.arange(0, BLOCK))
    a = tl.load(x + at)
    for exponent in tl.static_range(BITS - 1):
        tl.store(quotients + exponent * n + at, a // (1 << exponent))
        tl.store(remainders + exponent * n + at, a % (1 << exponent))


# dtype, elements of a program, form of the code.
CASES = [
    (np.int8, 64, "simt"),
    (np.int8, 256, "simd"),
    (np.int32, 1, "simt"),
    (np.int32, 64, "simd"),
    (np.int64, 16, "simt"),
]


@pytest.mark.parametrize(("dtype", "block", "codegen"), CASES)
def test_powers_of_two_divide_exactly(dtype: Any, block: int, codegen: str) -> None:
    """Every number of 8 bits; of more the extremes and random ones; numbers that all lanes share, too (block 1)."""
    pytest.importorskip("dpctl")
    limits = np.iinfo(dtype)
    x = RNG.integers(limits.min, limits.max, 256, dtype=dtype, endpoint=True)
    x[:6] = (limits.min, limits.min + 1, -1, 0, 1, limits.max)
    if dtype is np.int8:
        x = np.arange(-128, 128).astype(np.int8)
    bits = 8 * x.itemsize
    found = np.zeros((2, bits - 1, x.size), dtype)
    options = {"target": "xe:pvc", "num_warps": 1, "codegen": codegen}
    by_powers_of_two[(x.size // block,)](x, *found, x.size, BITS=bits, BLOCK=block, **options)
    powers = np.array([[1 << exponent] for exponent in range(bits - 1)], dtype)
    np.testing.assert_array_equal(found[1], np.fmod(x, powers))
    np.testing.assert_array_equal(found[0], (x - np.fmod(x, powers)) // powers)


@triton.jit
def add_up_rows(x, y, first, last, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(first, last):
        total += tl.load(x + row // 4 * 64 + row % 4 * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + tl.arange(0, BLOCK), total)


def test_a_loop_that_divides_has_no_branch() -> None:
    """LLVM's SPIR-V back end would pass divisions on, of which Intel's compiler makes branches."""
    compiled = triton.compile(add_up_rows, "*fp32:16, *fp32:16, i32, i32, 64", target="xe:pvc", num_warps=1)
    text = compiled.asm["llvm"]
    assert "ashr" in text and "sdiv" not in text and "srem" not in text
