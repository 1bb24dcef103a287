"""Rules of upstream's language that programs rely on, each shown by a kernel that runs on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ConstexprError, DeviceAssertionError, OptionError, PointerError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Values rounded to bf16, as their bits."""
    return (values.astype(np.float32).view(np.uint32) + 0x8000 >> 16).astype(np.uint16)


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@triton.jit
def running(x, out, N: tl.constexpr, PRODUCT: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumprod(v, 0, REVERSE) if PRODUCT else tl.cumsum(v, 0, REVERSE))


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_bfloat16_accumulate_in_float32(product: bool, reverse: bool):
    random = np.random.default_rng(0)
    bits = bfloat16(random.uniform(0.97, 1.03, 1024) if product else random.standard_normal(1024))
    out = np.empty(1024, np.float32)
    running[(1,)](triton.reinterpret(bits, tl.bfloat16), out, N=1024, PRODUCT=product, REVERSE=reverse)
    values = widened(bits).astype(np.float64)[:: -1 if reverse else 1]
    expected = (np.cumprod if product else np.cumsum)(values)[:: -1 if reverse else 1]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)  # A sum in bf16 is off by 0.5.


@triton.jit
def extremes(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.maximum(a, b) * 1.001)
    tl.store(out + N + i, tl.minimum(a, 0.3) * 1.001)
    tl.store(out + 2 * N + i, tl.clamp(a, -0.5, b) * 1.001)


def test_extremes_of_bfloat16_go_on_in_float32():
    random = np.random.default_rng(1)
    x, y = (bfloat16(random.standard_normal(64)) for _ in range(2))
    out = np.empty((3, 64), np.float32)
    extremes[(1,)](triton.reinterpret(x, tl.bfloat16), triton.reinterpret(y, tl.bfloat16), out, N=64)
    a, b = widened(x).astype(np.float64), widened(y).astype(np.float64)
    expected = [np.maximum(a, b), np.minimum(a, 0.3), np.minimum(np.maximum(a, -0.5), b)]
    np.testing.assert_allclose(out, np.array(expected) * 1.001, rtol=2e-7)


@triton.jit
def constants(out, A: tl.constexpr, B: tl.constexpr):
    tl.store(out, min(A, B))
    tl.store(out + 1, max(A, B))


def test_extremes_of_constants():
    out = np.empty(2, np.float32)
    constants[(1,)](out, 2.5, -1)
    assert out.tolist() == [-1, 2.5]


@pytest.mark.parametrize("value", [float("nan"), -0.0])
@pytest.mark.parametrize("first", [False, True])
def test_extremes_of_constants_that_have_no_order(value: float, first: bool):
    pair = (value, 1.0) if first else (1.0, value)
    what = "negative zero" if value == 0 else "NaN values"
    with pytest.raises(ConstexprError, match=f"constexpr min does not support {what}"):
        constants[(1,)](np.empty(2, np.float32), *pair)


@triton.jit
def through_const(x: tl.const, out, KIND: tl.constexpr):
    value = tl.load(x)
    if KIND == "store":
        tl.store(x, value)
    elif KIND == "moved":
        tl.store(x + tl.arange(0, 4), value)
    elif KIND == "atomic":
        tl.atomic_add(x, value)
    tl.store(out, value)


def test_const_pointers_are_read_only():
    x, out = np.full(4, 3, np.int32), np.zeros(1, np.int32)
    through_const[(1,)](x, out, "load")
    assert out[0] == 3
    for kind in ("store", "moved", "atomic"):
        with pytest.raises(PointerError, match="Cannot store to a constant pointer"):
            through_const[(1,)](x, out, kind)


@triton.jit
def asserting(x, out):
    value = tl.load(x)
    tl.device_assert(value > 0, "boom")
    assert value > 0, "bang"
    tl.store(out, value)


def test_assertions_are_checked_when_debugging(monkeypatch):
    x, out = np.array([-5], np.int32), np.zeros(1, np.int32)
    asserting[(1,)](x, out)
    assert out[0] == -5
    with pytest.raises(RuntimeError, match="boom"):
        asserting[(1,)](x, out, debug=True)
    for name in ("MLTRITON_DEBUG", "TRITON_DEBUG"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            with pytest.raises(DeviceAssertionError, match="boom"):
                triton.jit(asserting.fn)[(1,)](x, out)


@triton.jit
def unpacking(out):
    a, b = tl.program_id(0), 7, tl.program_id(1)
    tl.store(out, a + b)


def test_more_values_than_names_are_left_out():
    out = np.zeros(1, np.int32)
    unpacking[(1,)](out)
    assert out[0] == 7


def test_unknown_knobs():
    assert getattr(triton.knobs.runtime, "kernel_load_start_hook", "default") == "default"
    assert not hasattr(triton.knobs.runtime, "nothing")
    with pytest.raises(OptionError, match="there is no knob"):
        _ = triton.knobs.runtime.nothing
