"""Sums with products: rounded once unless a launch or the kernel asks for two roundings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.language.extra import libdevice
from ptx_emulator.launch import install


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def sums(x, y, z, out, B: tl.constexpr, APART: tl.constexpr):
    i = tl.arange(0, B)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    if APART == "product":
        made = libdevice.mul_rn(a, b) + c
    elif APART == "sum":
        made = libdevice.add_rn(a * b, c)
    elif APART == "difference":
        made = libdevice.sub_rn(a * b, c)
    else:
        made = a * b + c
    tl.store(out + i, made)


def made_by(apart: str, **options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the kernel makes; the sum rounded once and twice."""
    x, y, z = np.random.default_rng(5).standard_normal((3, 128)).astype(np.float32)
    z[:64] = -x[:64] * y[:64]  # where nothing is left but what the product lost
    out = np.empty_like(x)
    sums[(1,)](x, y, z, out, 128, apart, target="cuda:90", **options)
    sign = -1 if apart == "difference" else 1
    once = (x.astype(np.float64) * y + sign * z.astype(np.float64)).astype(np.float32)
    return out, once, x * y + sign * z


@pytest.mark.parametrize("options", [{}, {"enable_fp_fusion": True}], ids=str)
def test_rounded_once(options: dict[str, bool]) -> None:
    out, once, twice = made_by("", **options)
    assert (out == once).all()
    assert (out[:64] != 0).any() and (twice[:64] == 0).all()


@pytest.mark.parametrize("apart", ["product", "sum", "difference"])
def test_kept_apart_by_the_kernel(apart: str) -> None:
    out, _, twice = made_by(apart)
    assert (out == twice).all()


def test_kept_apart_by_the_launch() -> None:
    out, _, twice = made_by("", enable_fp_fusion=False)
    assert (out == twice).all()


def test_elsewhere_nothing_is_fused() -> None:
    """The option is taken, as upstream's are that a target does not have."""
    x, out = np.ones(128, np.float32), np.empty(128, np.float32)
    for fused in (True, False):
        sums[(1,)](x, x, x, out, 128, "", target="cpu", enable_fp_fusion=fused)
        assert (out == 2).all()
