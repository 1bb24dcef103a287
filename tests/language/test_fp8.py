"""Numbers that are too large for fp8: as literals, in the executor and in machine code alike."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import run

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
