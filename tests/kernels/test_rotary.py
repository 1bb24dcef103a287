"""`rope` against numpy in float64: dtypes, shapes, strides, turned back, mistakes; on the CPU and an emulated GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy import FLOATS, assert_accurate, dtype_of, random, wide
from mltriton.errors import ArgumentError
from mltriton.kernels import rope
from ptx_emulator.launch import install

RNG = np.random.default_rng(8)


def check(x: Any, cos: Any, sin: Any, target: str | None = None) -> None:
    """Both directions; errors are those of the two products."""
    first, second = np.split(wide(x), 2, -1)
    c = wide(cos)[:, None]
    for inverse in (False, True):
        out = rope(x, cos, sin, inverse=inverse, target=target)
        assert type(out) is type(x) and dtype_of(out) == dtype_of(x)
        s = -wide(sin)[:, None] if inverse else wide(sin)[:, None]
        expected = np.concatenate([first * c - second * s, second * c + first * s], -1)
        sizes = np.abs(first * c) + np.abs(second * s), np.abs(second * c) + np.abs(first * s)
        assert_accurate(out, expected, np.concatenate(sizes, -1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes(dtype: str) -> None:
    kind = "torch" if dtype == "bfloat16" else "numpy"
    for of_angles in {dtype, "float32"}:
        check(random(RNG, (2, 5, 3, 24), dtype), *(random(RNG, (5, 12), of_angles, kind) for _ in range(2)))


@pytest.mark.parametrize("shape", [(1, 1, 2), (9, 20, 14), (3, 2, 33, 64), (2, 1, 1, 514)])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_shapes(shape: tuple[int, ...], kind: str) -> None:
    angles = shape[-3], shape[-1] // 2
    check(*(random(RNG, of, kind=kind) for of in (shape, angles, angles)))


def test_any_strides() -> None:
    x, cos = random(RNG, (2, 7, 6, 40)), random(RNG, (14, 30))
    check(x.swapaxes(1, 2), cos[:6, :20], cos[::-2, 10:][:6])
    check(x[..., ::2], cos[:7, ::3], cos.T[:7, :10])
    check(np.broadcast_to(x[:, :, :1], x.shape)[1], cos[::2, :20], cos[1::2, :20])


def test_turned_back() -> None:
    x, angles = random(RNG, (4, 2, 16), "float64"), random(RNG, (4, 8), "float64")
    cos, sin = np.cos(angles), np.sin(angles)
    np.testing.assert_allclose(rope(rope(x, cos, sin), cos, sin, inverse=True), x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("dtype", "shape"), [("float16", (3, 20, 24)), ("float32", (2, 3, 5, 128))])
def test_on_an_emulated_gpu(
    dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    angles = 3, shape[-1] // 2
    check(random(RNG, shape, dtype), random(RNG, angles), random(RNG, angles), "cuda:90")


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "shape"), [("float16", (2, 3, 5, 24)), ("float32", (3, 33, 128))])
def test_on_xe(dtype: str, shape: tuple[int, ...]) -> None:
    pytest.importorskip("dpctl")
    angles = 3, shape[-1] // 2
    check(random(RNG, shape, dtype), random(RNG, angles), random(RNG, angles), "xe:pvc")


def test_nothing_to_compute() -> None:
    for shape in ((0, 3, 4), (3, 0, 4), (0, 3, 5, 4), (3, 5, 0)):
        angles = np.ones((shape[-3], shape[-1] // 2))
        assert rope(np.ones(shape), angles, angles).shape == shape


X, ANGLES = np.ones((5, 3, 8), np.float32), np.ones((5, 4), np.float32)


@pytest.mark.parametrize(
    ("x", "cos", "sin", "message"),
    [
        (X, ANGLES, None, "sin is no array"),
        (X, ANGLES[:4], ANGLES, "cos and sin do not fit x"),
        (X, ANGLES, X, "cos and sin do not fit x"),
        (X[..., :7], ANGLES, ANGLES, "x is not heads of halves"),
        (X[0], ANGLES, ANGLES, "x is not heads of halves"),
        (X.astype(np.int32), ANGLES, ANGLES, "rope: unsupported dtype"),
        (X, ANGLES.astype(bool), ANGLES, "rope: unsupported dtype"),
    ],
)
def test_mistakes(x: Any, cos: Any, sin: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        rope(x, cos, sin)
