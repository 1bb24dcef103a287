"""fp8e4b8, fp8e4b15 and fp8e5b16: every code read, and numbers rounded, as their definitions say."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import TritonError
from mltriton.executor import run

# Bias, bits of the mantissa, whether 0x80 is NaN.
FORMATS = {tl.float8e4b8: (8, 3, True), tl.float8e4b15: (15, 3, False), tl.float8e5b16: (16, 2, True)}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


def table(kind: tl.dtype) -> np.ndarray:
    """The numbers of all codes."""
    bias, mantissa, has_nan = FORMATS[kind]
    codes = np.arange(128)
    exponent, fraction = codes >> mantissa, (codes & ((1 << mantissa) - 1)) / (1 << mantissa)
    positive = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - float(bias)))
    values = np.concatenate([positive, -positive])
    values[128] = np.nan if has_nan else values[128]
    return values


@triton.jit
def convert(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def both(compiled, x: np.ndarray, out: np.ndarray) -> list[np.ndarray]:
    """The result, and the executor's."""
    again = np.zeros_like(out)
    run(compiled.job.module("tt"), [x, again], (1,))
    return [out, again]


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("wide", [np.float32, np.float16, np.float64, np.int32])
def test_every_code(kind: tl.dtype, wide):
    codes, out = np.arange(256, dtype=np.uint8), np.zeros(256, wide)
    compiled = convert[(1,)](triton.reinterpret(codes, kind), out, 256)
    expected = table(kind)
    is_number = np.isfinite(expected)
    for found in both(compiled, codes, out):
        np.testing.assert_array_equal(found[is_number], expected[is_number].astype(wide))
        assert wide is np.int32 or np.isnan(found[~is_number]).all()


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("wide", [np.float32, np.float16])
def test_rounding(kind: tl.dtype, wide):
    numbers = table(kind)
    finite = np.sort(np.abs(numbers[np.isfinite(numbers)]))
    middles = (finite[1:] + finite[:-1]) / 2
    random = np.random.default_rng(0)
    x = np.concatenate([middles, finite, random.uniform(0, finite[-1] * 1.2, 200), [1e4, np.inf]])
    with np.errstate(over="ignore"):
        x = np.resize(x * random.choice([-1, 1], len(x)), 1024).astype(wide)
    out = np.zeros(1024, np.uint8)
    compiled = convert[(1,)](x, triton.reinterpret(out, kind), 1024)
    positive = numbers[:128]
    for found in both(compiled, x, out):
        size = np.minimum(np.abs(x.astype(np.float64)), positive[-1])
        distance = np.abs(size[:, None] - positive[None, :])
        nearest = distance.min(1)
        code = found & 0x7F
        np.testing.assert_array_equal(np.abs(size - positive[code]), nearest)
        is_tie = (distance == nearest[:, None]).sum(1) > 1
        assert not np.any(code[is_tie] & 1)
        negative = (found >> 7).astype(bool)
        np.testing.assert_array_equal(negative, np.signbit(x) & ((code > 0) | (kind is tl.float8e4b15)))
    out = np.zeros(16, np.uint8)
    nan = np.full(16, np.nan, wide)
    nan.view(f"u{nan.itemsize}")[::2] = np.iinfo(f"i{nan.itemsize}").max  # as NVIDIA's GPUs write it
    convert[(1,)](nan, triton.reinterpret(out, kind), 16)
    assert set(out & 0x7F if kind is tl.float8e4b15 else out) == {0x7F if kind is tl.float8e4b15 else 0x80}


@triton.jit
def computed(x, out, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    tl.store(
        out + i, (v + v).to(tl.float32) + tl.full((16,), 1.5, KIND).to(tl.float32) + tl.zeros_like(v).to(tl.float32)
    )
    tl.store(out + 16, v.to(tl.uint8, bitcast=True).to(tl.float32).sum())


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_arithmetic_is_that_of_fp16(kind: tl.dtype):
    codes, out = np.arange(32, 48, dtype=np.uint8), np.zeros(17, np.float32)
    computed[(1,)](triton.reinterpret(codes, kind), out, kind)
    np.testing.assert_array_equal(out[:16], (2 * table(kind)[32:48] + 1.5).astype(np.float32))
    assert out[16] == codes.sum()


def test_arrays_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, -2.5, 300.0, 0.0]).repeat(4)
    for dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        out = torch.zeros(16).to(dtype)
        convert[(1,)](x, out, 16)
        assert out.float().tolist() == x.clamp(-240, 240).to(dtype).float().tolist() or dtype is torch.float8_e5m2fnuz
        back = torch.zeros(16)
        convert[(1,)](out, back, 16)
        assert back.tolist() == out.float().tolist()


def test_a_scalar_of_such_a_type_is_refused():
    with pytest.raises(TritonError):
        triton.compile(convert, "*fp32, fp8e4b9, 16")
