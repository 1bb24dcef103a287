"""`cross_entropy` and its gradients against numpy in float64: dtypes, lengths, labels, extremes, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy import FLOATS, assert_accurate, dtype_of, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import cross_entropy, cross_entropy_backward, cross_entropy_with_gradient
from ptx_emulator.launch import install

RNG = np.random.default_rng(9)
IGNORED = -7


def check(logits: Any, labels: Any, dloss: Any, target: str | None = None) -> None:
    """Errors of losses are those of sums of logits' sizes; of probabilities those of exponents."""
    values, at = wide(logits), np.asarray(labels)
    is_used = at != IGNORED
    largest = values.max(-1, keepdims=True)
    norm = np.log(np.exp(values - largest).sum(-1, keepdims=True)) + largest
    hot = np.arange(values.shape[-1]) == at[..., None]
    expected = np.where(is_used, norm[..., 0] - np.where(hot, values, 0).sum(-1), 0)
    exponents = 4 + np.abs(np.where(np.isfinite(values), values, 0)).max(-1, keepdims=True)
    given = {"ignore_index": IGNORED, "target": target}
    loss, gradient = cross_entropy_with_gradient(logits, labels, **given)
    assert type(loss) is type(gradient) is type(logits)
    assert dtype_of(loss) == ("float64" if dtype_of(logits) == "float64" else "float32")
    assert dtype_of(gradient) == dtype_of(logits)
    assert_accurate(loss, expected, exponents[..., 0])
    np.testing.assert_array_equal(wide(loss), wide(cross_entropy(logits, labels, **given)))
    shares = np.exp(values - norm)
    exact, size = ((shares - sign * hot) * is_used[..., None] for sign in (1, -1))
    assert_accurate(gradient, exact, size * exponents)
    scale = wide(dloss)[..., None]
    found = cross_entropy_backward(dloss, logits, labels, **given)
    assert dtype_of(found) == dtype_of(logits)
    assert_accurate(found, exact * scale, size * exponents * np.abs(scale))


def labels_of(shape: tuple[int, ...], kind: str = "numpy", dtype: str = "int64") -> Any:
    labels = RNG.integers(shape[-1], size=shape[:-1]).astype(dtype)
    labels[..., -1:] = IGNORED
    return labels if kind == "numpy" else pytest.importorskip("torch").from_numpy(labels)


@each_value(("columns", [77, 9001]), ("dtype", FLOATS))
def test_dtypes(dtype: str, columns: int) -> None:
    kind = "torch" if dtype == "bfloat16" else "numpy"
    labels = labels_of((4, columns), kind, "int32")
    check(random(RNG, (4, columns), dtype), labels, random(RNG, (4,), "float32", kind))


@each_value(("kind", ["numpy", "torch"]), ("shape", [(2, 1), (2, 35, 513), (3, 4097), (1, 2, 3, 7)]))
def test_shapes(shape: tuple[int, ...], kind: str) -> None:
    check(random(RNG, shape, kind=kind), labels_of(shape, kind), random(RNG, shape[:-1], kind=kind))


def test_one_row() -> None:
    logits = random(RNG, (50,))
    loss, gradient = cross_entropy_with_gradient(logits, np.array(7))
    assert (loss.shape, gradient.shape) == ((), (50,))
    np.testing.assert_allclose(loss, np.log(np.exp(wide(logits)).sum()) - logits[7], rtol=1e-5)


def test_any_strides() -> None:
    logits, labels, dloss = random(RNG, (300, 60)), labels_of((60, 70)), random(RNG, (60, 2))
    check(logits[::3, 5:25].T[:, :80], labels[:20], dloss[:20, 1])
    check(logits[::5, ::-1], labels_of((120, 50))[::2], dloss[::-1, 0])


def test_logits_that_are_masked_or_large() -> None:
    """Blocks of -inf alone, before and after the others."""
    logits = 500 * random(RNG, (3, 14_000))
    logits[:, :5000] = logits[1, 9000:] = -np.inf
    logits[2, 5001:] = -np.inf
    check(logits, np.array([5002, 7000, 5000]), random(RNG, (3,)))


@pytest.mark.parametrize(("dtype", "shape"), [("float16", (2, 300)), ("float32", (1, 66_000))])
def test_on_an_emulated_gpu(
    dtype: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A row that a multiprocessor has to itself; a label that is no column."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    labels = RNG.integers(shape[1], size=shape[0])
    check(random(RNG, shape, dtype), labels, random(RNG, shape[:1]), "cuda:90")


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "columns"), [("float16", 300), ("float32", 1), ("float32", 9000), ("float64", 5000)])
def test_on_xe(dtype: str, columns: int) -> None:
    pytest.importorskip("dpctl")
    check(random(RNG, (3, columns), dtype), labels_of((3, columns)), random(RNG, (3,)), "xe:pvc")


def test_nothing_to_compute() -> None:
    loss, gradient = cross_entropy_with_gradient(np.ones((0, 5)), np.ones(0, np.int64))
    assert (loss.shape, gradient.shape) == ((0,), (0, 5))
    assert not cross_entropy(np.ones((3, 5)), np.full(3, -100)).any()


X, AT = np.ones((3, 4), np.float32), np.array([0, 3, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_entropy(X, AT[:2]), "cross_entropy: the shapes do not fit"),
        (lambda: cross_entropy(X[:, :0], AT), "cross_entropy: the shapes do not fit|no column"),
        (lambda: cross_entropy(X, X[:, 0]), "cross_entropy: unsupported labels"),
        (lambda: cross_entropy(X.astype(int), AT), "cross_entropy: unsupported dtype"),
        (lambda: cross_entropy(X, [0, 3, 1]), "labels is no array"),
        (lambda: cross_entropy(X, AT + 1), "a label is no column"),
        (lambda: cross_entropy(X, AT, ignore_index=1.5), "ignore_index must be an integer"),
        (lambda: cross_entropy_backward(X, X, AT), "cross_entropy_backward: the shapes do not fit"),
        (lambda: cross_entropy_backward(AT, X, AT), "cross_entropy_backward: unsupported dtype"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_labels_are_checked_each_time() -> None:
    cross_entropy(X, AT)
    with pytest.raises(ArgumentError, match="a label is no column"):
        cross_entropy(X, AT - 1)
