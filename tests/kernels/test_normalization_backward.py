"""`rms_norm` and the gradients of the norms and of softmax against numpy in float64: dtypes, strides, mistakes.

On the CPU, on the emulated GPU with small sizes; the levels of `generic` are compared in `test_levels`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy import FLOATS, assert_accurate, dtype_of, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import layer_norm_backward, rms_norm, rms_norm_backward, softmax_backward
from mltriton.kernels.normalization import LONGEST_BLOCK
from ptx_emulator.launch import install

RNG = np.random.default_rng(6)
EPS = 1e-4


def check_rms_norm(x: Any, weight: Any, target: str | None = None) -> None:
    y = rms_norm(x, weight, EPS, target=target)
    assert type(y) is type(x) and dtype_of(y) == dtype_of(x)
    values = wide(x)
    expected = values / np.sqrt((values**2).mean(-1, keepdims=True) + EPS) * wide(weight)
    assert_accurate(y, expected, 4 * np.abs(expected))


def check_norm_backward(dy: Any, x: Any, weight: Any, target: str | None = None) -> None:
    """Both norms; errors are those of a row's greatest terms, and of sums of as many terms as there are rows."""
    values, w, given = wide(x), wide(weight), wide(dy)
    for is_centred, function in enumerate((rms_norm_backward, layer_norm_backward)):
        found = function(dy, x, weight, EPS, target=target)
        again = function(dy, x, weight, EPS, target=target)
        centred = values - values.mean(-1, keepdims=True) * is_centred
        scale = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS)
        hat = centred * scale
        less = hat * (hat * w * given).mean(-1, keepdims=True)
        less += is_centred * (w * given).mean(-1, keepdims=True)
        size = (
            8 * scale * (1 + np.abs(hat).max(-1, keepdims=True)) ** 2 * (1 + np.abs(w * given).max(-1, keepdims=True))
        )
        rows = tuple(range(x.ndim - 1))
        terms = np.abs(given) * (1 + np.abs(hat).max(-1, keepdims=True))
        expected = ((w * given - less) * scale, (given * hat).sum(rows), given.sum(rows))
        for y, other, exact, most in zip(found, again, expected, (size, *[4 * terms.sum(rows)] * 2), strict=False):
            assert type(y) is type(x) and dtype_of(y) == dtype_of(x)
            assert_accurate(y, exact, most)
            np.testing.assert_array_equal(wide(y), wide(other))
        assert len(found) == 2 + is_centred


def check_softmax_backward(dy: Any, y: Any, target: str | None = None) -> None:
    dx = softmax_backward(dy, y, target=target)
    assert type(dx) is type(y) and dtype_of(dx) == dtype_of(y)
    given, values = wide(dy), wide(y)
    total = (values * given).sum(-1, keepdims=True)
    sizes = np.abs(given) + np.abs(values * given).sum(-1, keepdims=True)
    assert_accurate(dx, values * (given - total), np.abs(values) * sizes)


def check(dy: Any, x: Any, weight: Any, target: str | None = None) -> None:
    check_rms_norm(x, weight, target)
    check_norm_backward(dy, x, weight, target)
    check_softmax_backward(dy, x, target)


@each_value(("dtype", FLOATS), ("columns", [77, LONGEST_BLOCK + 99]))
def test_dtypes(dtype: str, columns: int) -> None:
    check(random(RNG, (3, columns), dtype), random(RNG, (3, columns), dtype), random(RNG, (columns,), dtype))


@each_value(("kind", ["numpy", "torch"]), ("shape", [(3, 1), (7,), (2, 35, 513), (1, 4097), (70, 40)]))
def test_shapes(shape: tuple[int, ...], kind: str) -> None:
    check(*(random(RNG, of, kind=kind) for of in (shape, shape, shape[-1:])))


def test_sums_in_memory() -> None:
    """More rows than programs, each in blocks."""
    x, dy, weight = random(RNG, (34, LONGEST_BLOCK + 1)), random(RNG, (1, LONGEST_BLOCK + 1)), random(RNG, (200_000,))
    check_norm_backward(np.broadcast_to(dy, x.shape), x, weight[: LONGEST_BLOCK + 1])


def test_any_strides() -> None:
    x, dy, weight = random(RNG, (30, 200)), random(RNG, (90, 10)), random(RNG, (180,))
    check(dy.T, x[::3, 5:95], weight[::2])
    check(x[:10, ::-2][:, :90], np.broadcast_to(x[0, :90], (10, 90)), weight[89::-1])


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (2, 0, 3)])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_nothing_to_compute(shape: tuple[int, ...], kind: str) -> None:
    dy, x, weight = (random(RNG, of, kind=kind) for of in (shape, shape, shape[-1:]))
    assert rms_norm(x, weight).shape == softmax_backward(dy, x).shape == x.shape
    dx, *sums = layer_norm_backward(dy, x, weight)
    assert dx.shape == x.shape
    assert all(y.shape == weight.shape and not wide(y).any() for y in (*sums, rms_norm_backward(dy, x, weight)[1]))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("float32", (3, 77)),
        ("float16", (5, 1300)),
        pytest.param("float64", (2, 8200), marks=pytest.mark.slow),
    ],
)
def test_on_an_emulated_gpu(
    dtype: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Four rows at once, one, and rows in pieces."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    check(*(random(RNG, of, dtype) for of in (shape, shape, shape[1:])), "cuda:90")


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "columns"), [("float16", 300), ("float32", 1), ("float32", 8200), ("float64", 5000)])
def test_on_xe(dtype: str, columns: int) -> None:
    """Emulated: rows of one block, and in pieces."""
    pytest.importorskip("dpctl")
    check(*(random(RNG, of, dtype) for of in ((3, columns), (3, columns), (columns,))), "xe:pvc")


X, ONE = np.ones((3, 4), np.float32), np.ones(4, np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rms_norm(X, ONE[:3]), "rms_norm: weight does not fit x"),
        (lambda: rms_norm(X, ONE.astype(np.float64)), "the arrays differ in kind or dtype"),
        (lambda: rms_norm(*[np.ones(4, np.int8)] * 2), "rms_norm: unsupported dtype"),
        (lambda: rms_norm(X, ONE, "much"), "eps must be a number"),
        (lambda: layer_norm_backward(X[:2], X, ONE), "layer_norm_backward: weight and dy do not fit x"),
        (lambda: rms_norm_backward(X, X, X), "rms_norm_backward: weight and dy do not fit x"),
        (lambda: rms_norm_backward(X, X, None), "weight is no array"),
        (lambda: softmax_backward(X[:2], X), "softmax_backward: dy does not fit y"),
        (lambda: softmax_backward(*[np.array(1.0)] * 2), "softmax_backward needs an axis"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
