"""Numbers that are too large for fp8: as literals, in the executor and in machine code alike."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import run
from ptx_emulator.launch import install

VALUES = [448.0, 464.0, 465.0, -1e9, 57344.0, 61440.0, -61441.0, float("inf"), float("-inf"), float("nan"), 0.3, 1e-9]


@triton.jit
def narrow(out, literal, x, VALUE: tl.constexpr, KIND: tl.constexpr):
    tl.store(out, tl.load(x).to(KIND))
    tl.store(literal, tl.full((), VALUE, KIND))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", [tl.float8e4nv, tl.float8e5], ids=str)
def test_literals_and_conversions_agree(kind, value, tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    x = np.array([value], np.float32)
    outs = [np.zeros(1, np.uint8) for _ in range(4)]
    wrapped = [triton.reinterpret(out, kind) for out in outs[:2]]
    compiled = narrow[(1,)](*wrapped, x, value, kind)
    module = compiled.job.module("tt")
    assert str(module).count("tt.fp_to_fp") == 1
    run(module, [outs[2], outs[3], x], (1,))
    nan = {"fp8e4nv": 0x7F, "fp8e5": 0x7D}[kind.short]  # and above: there are three in fp8e5
    assert len({min(int(out[0]) & 0x7F, nan) | int(out[0]) & 0x80 * np.isfinite(value) for out in outs}) == 1, outs
    largest = {"fp8e4nv": 448.0, "fp8e5": 57344.0}[kind.short]
    if abs(value) >= largest and (kind is tl.float8e4nv or np.isfinite(value)):
        assert outs[0][0] & 0x7F == {"fp8e4nv": 0x7E, "fp8e5": 0x7B}[kind.short]


CODES = np.arange(256, dtype=np.uint8)
FORMATS = {  # bias, bits of the mantissa
    tl.float8e4nv: (7, 3),
    tl.float8e5: (15, 2),
    tl.float8e4b8: (8, 3),
    tl.float8e5b16: (16, 2),
    tl.float8e4b15: (15, 3),
}


def numbers(kind: tl.dtype) -> np.ndarray:
    """What every code stands for."""
    bias, mantissa = FORMATS[kind]
    magnitude = CODES & 0x7F
    exponent, fraction = (magnitude >> mantissa).astype(float), (magnitude & ((1 << mantissa) - 1)) / (1 << mantissa)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if kind is tl.float8e5:
        values = np.where(magnitude == 0x7C, np.inf, np.where(magnitude > 0x7C, np.nan, values))
    if kind is tl.float8e4nv:
        values = np.where(magnitude == 0x7F, np.nan, values)
    values = np.where(CODES > 0x7F, -values, values)
    return np.where(CODES == 0x80, np.nan, values) if kind in (tl.float8e4b8, tl.float8e5b16) else values


@triton.jit
def choose(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i % 256), tl.load(x + (i * 37 + i // 256) % 256)
    tl.store(out + i, -a)
    tl.store(out + B + i, tl.abs(a))
    tl.store(out + 2 * B + i, tl.maximum(a, b))
    tl.store(out + 3 * B + i, tl.minimum(a, b))
    tl.store(out + 4 * B + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 5 * B + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 6 * B + i, tl.where(a < b, a, b))
    tl.store(out + 7 * B + i, tl.clamp(a, -2.0, 3.0))
    tl.store(out + 8 * B + i, tl.clamp(a, -2.0, 3.0, propagate_nan=tl.PropagateNan.ALL))
    infinity = tl.full((B,), 0x7C, tl.uint8).to(tl.float8e5, bitcast=True)
    tl.store(out + 9 * B + i, -infinity)
    tl.store(out + 10 * B + i, tl.maximum(tl.abs(infinity), tl.full((B,), 1.0, tl.float8e5)))


@pytest.mark.parametrize(
    ("target", "kind"),
    [("cpu", kind) for kind in FORMATS]
    + [(target, kind) for target in ("interpreter", "cuda:90") for kind in (tl.float8e5, tl.float8e4b8)],
    ids=str,
)
def test_choices_of_all_codes_are_exact(target, kind, tmp_path, monkeypatch):
    """Infinity among them: of fp8e4b8 and fp8e5b16 there is no -0, whose code is their NaN."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    out = np.zeros((11, 1024), np.float32)
    choose[(1,)](triton.reinterpret(CODES.copy(), kind), out, B=1024, target=target)
    values = numbers(kind)
    i = np.arange(1024)
    a, b = values[i % 256], values[(i * 37 + i // 256) % 256]
    wanted = [-a, np.abs(a), np.fmax(a, b), np.fmin(a, b), np.maximum(a, b), np.minimum(a, b), np.where(a < b, a, b)]
    wanted += [np.fmin(np.fmax(a, -2), 3), np.minimum(np.maximum(a, -2), 3), *np.full((2, 1024), np.inf) * [[-1], [1]]]
    np.testing.assert_array_equal(out, np.array(wanted, np.float32))
