"""tl.dot_scaled against float64: every pair of formats, at every level of every target, and in machine code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.errors import DotShapeError, DotTypeError, OptionError
from mltriton.executor import run
from mltriton.ir.floats import bits_to_float
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
IR = {"e4m3": F8E4M3, "e5m2": F8E5M2, "bf16": BF16, "fp16": F16}
FORMATS = ["e2m1", *IR]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def kernel(
    a, sa, b, sb, o,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr,
    SA: tl.constexpr, SB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    MA: tl.constexpr = M // 2 if FA == "e2m1" and not PA else M
    KA: tl.constexpr = K // 2 if FA == "e2m1" and PA else K
    KB: tl.constexpr = K // 2 if FB == "e2m1" and PB else K
    NB: tl.constexpr = N // 2 if FB == "e2m1" and not PB else N
    x = tl.load(a + tl.arange(0, MA)[:, None] * KA + tl.arange(0, KA)[None, :])
    y = tl.load(b + tl.arange(0, KB)[:, None] * NB + tl.arange(0, NB)[None, :])
    s, t = None, None
    if SA:
        s = tl.load(sa + tl.arange(0, M)[:, None] * (K // SA) + tl.arange(0, K // SA)[None, :])
    if SB:
        t = tl.load(sb + tl.arange(0, N)[:, None] * (K // SB) + tl.arange(0, K // SB)[None, :])
    acc = tl.full((M, N), 1.0, tl.float32)
    r = tl.dot_scaled(x, s, FA, y, t, FB, acc, fast_math=FAST, lhs_k_pack=PA, rhs_k_pack=PB)
    tl.store(o + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], r)


def elements(random: np.random.Generator, format: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random codes of a format that are neither infinite nor NaN, and the numbers that they mean."""
    if format == "e2m1":
        codes = random.integers(0, 16, shape).astype(np.uint8)
        return codes, np.array(E2M1)[codes]
    kind = IR[format]
    table = np.array([bits_to_float(bits, kind) for bits in range(1 << kind.width)])
    usable = np.flatnonzero(np.isfinite(table) & (np.abs(table) < 100))
    codes = usable[random.integers(0, len(usable), shape)]
    return codes.astype(np.uint8 if kind.width == 8 else np.uint16), table[codes]


def packed(codes: np.ndarray, format: str, axis: int) -> np.ndarray:
    """Two e2m1 along an axis as one byte, the first in the low bits."""
    if format != "e2m1":
        return codes
    first, second = (np.take(codes, range(i, codes.shape[axis], 2), axis) for i in (0, 1))
    return np.ascontiguousarray(first | second << 4)


class Case:
    """Operands of a product and what it gives."""

    def __init__(self, fa, fb, ga=32, gb=32, pa=True, pb=True, shape=(32, 16, 64), fast=False, seed=0) -> None:
        random = np.random.default_rng(seed)
        m, n, k = shape
        x, self.x = elements(random, fa, (m, k))
        y, self.y = elements(random, fb, (k, n))
        self.a, self.b = packed(x, fa, 1 if pa else 0), packed(y, fb, 0 if pb else 1)
        self.sa = random.integers(120, 131, (m, k // ga if ga else 1)).astype(np.uint8)
        self.sb = random.integers(120, 131, (n, k // gb if gb else 1)).astype(np.uint8)
        self.out = np.full((m, n), np.nan, np.float32)
        self.constants = (m, n, k, fa, fb, ga, gb, pa, pb, fast)
        self.in_half = "fp16" in (fa, fb)

    def sides(self) -> list[np.ndarray]:
        """The scaled operands in float64, rounded as they are in 16 bits."""
        _, _, _, _, _, ga, gb, *_ = self.constants
        found = []
        for values, scale, group in ((self.x, self.sa, ga), (self.y.T, self.sb, gb)):
            factor = np.repeat(2.0 ** (scale.astype(np.float64) - 127), group, 1) if group else 1.0
            if self.in_half:
                values, factor = (np.float16(number).astype(np.float64) for number in (values, factor))
            made = values * factor
            found.append(np.float16(made).astype(np.float64) if self.in_half else made)
        return found

    def check(self, out: np.ndarray) -> None:
        left, right = self.sides()
        expected, size = 1 + left @ right.T, 1 + np.abs(left) @ np.abs(right).T
        # The products are exact; fp32 sums of K of them are off by at most K roundings of what they add up.
        assert np.all(np.abs(out - expected) <= left.shape[1] * 2.0**-23 * size)

    @property
    def arguments(self) -> list:
        return [self.a, self.sa, self.b, self.sb, self.out]


@pytest.mark.parametrize(("fa", "fb"), list(itertools.product(FORMATS, FORMATS)))
def test_formats(fa: str, fb: str):
    case = Case(fa, fb)
    kernel[(1,)](*case.arguments, *case.constants)
    case.check(case.out)


@each_value(("packs", [(True, False), (False, True), (False, False)]), ("groups", [(0, 32), (32, 0), (16, 16), (0, 0)]))
def test_scales_and_packing(groups: tuple[int, int], packs: tuple[bool, bool]):
    case = Case("e2m1", "e2m1", *groups, *packs, shape=(16, 32, 128), fast=True)
    kernel[(1,)](*case.arguments, *case.constants)
    case.check(case.out)


@each_value(
    ("target, warps", [("generic", 1), ("generic", 4), ("xe:pvc", 4)]),
    ("formats", [("e2m1", "e4m3"), ("fp16", "e2m1"), ("e5m2", "bf16")]),
)
def test_levels(formats: tuple[str, str], target: str, warps: int):
    case = Case(*formats, pa=formats[0] != "e2m1", shape=(32, 32, 64))
    floats = {2: "u16", 1: "u8"}
    signature = [f"*{floats[case.a.itemsize]}", "*u8", f"*{floats[case.b.itemsize]}", "*u8", "*fp32"]
    job = triton.compile(
        kernel, ", ".join([*signature, *map(repr, case.constants)]), target=target, num_warps=warps
    ).job
    for level in ("tt", "ttg", "warp", "intrinsic"):
        case.out[:] = np.nan
        run(job.module(level), [array.ravel() for array in case.arguments], (1,))
        case.check(case.out)


def test_scales_that_are_no_numbers():
    case = Case("e4m3", "bf16")
    case.sa[3, 1] = 255
    kernel[(1,)](*case.arguments, *case.constants)
    assert np.isnan(case.out).all(1).tolist() == [i == 3 for i in range(32)]


@triton.jit
def batched(a, sa, b, o, SHAPE: tl.constexpr):
    i, j, k = tl.arange(0, 2)[:, None, None], tl.arange(0, 16)[:, None], tl.arange(0, 32)
    x = tl.load(a + i * 512 + j * 32 + k[None, :])
    y = tl.load(b + i * 512 + k[:, None] * 16 + tl.arange(0, 16)[None, :])
    s = tl.load(sa + i * 16 + j + tl.arange(0, 1)[None, :])
    r = tl.dot_scaled(x, s, "e4m3", y, None, "e5m2")
    tl.store(o + i * 256 + j * 16 + tl.arange(0, 16)[None, :], r)


def test_batches():
    random = np.random.default_rng(0)
    (x, a), (y, b) = (elements(random, format, (2, 512)) for format in ("e4m3", "e5m2"))
    scale = random.integers(125, 130, (2, 16)).astype(np.uint8)
    out = np.zeros((2, 16, 16), np.float32)
    batched[(1,)](x, scale, y, out, SHAPE=None)
    left = a.reshape(2, 16, 32) * 2.0 ** (scale[..., None].astype(float) - 127)
    np.testing.assert_allclose(out, left @ b.reshape(2, 32, 16), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize(
    ("error", "text", "changes"),
    [
        (OptionError, "NYI: lhs_format int4", {"lhs_format": "int4"}),
        (OptionError, "only mxfp4 inputs can be packed along a dimension different than K", {"lhs_k_pack": False}),
        (DotTypeError, "Unexpected dtype for bf16. Got uint8", {"rhs_format": "bf16"}),
        (DotTypeError, "Only float32 is supported for out_dtype", {"out_dtype": tl.float16}),
        (DotTypeError, "lhs_scale must be uint8 or float8e4nv", {"lhs_scale": 3}),
        (DotShapeError, r"lhs_scale must be a tensor of shape \[..., 32, 1\]. Got \[32, 4\]", {"lhs_scale": "wide"}),
        (DotShapeError, "Reduction dimension should pack the same number of elements", {"rhs_format": "e2m1"}),
    ],
)
def test_mistakes(kernel, error, text: str, changes: dict):
    def block(*shape: int) -> tl.tensor:
        return kernel.parameter(tl.block_type(tl.uint8, shape))

    given = {"lhs": block(32, 32), "lhs_scale": block(32, 1), "lhs_format": "e4m3"}
    given |= {"rhs": block(32, 32), "rhs_scale": block(32, 1), "rhs_format": "e5m2"}
    given |= {name: block(32, 4) if value == "wide" else value for name, value in changes.items()}
    with pytest.raises(error, match=text):
        tl.dot_scaled(**given)
