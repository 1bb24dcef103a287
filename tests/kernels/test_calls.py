"""Calls of the library that were made before: later ones give what a first one would, and what may not be kept is not.

Every comparison is with numpy in float64, on data that differ from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mltriton import kernels
from mltriton.kernels import calls
from mltriton.kernels.arrays import addresses, dtype_name, empty
from mltriton.runtime.native.launcher import describe_tensors

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_PLANS", {})


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def normalized(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def softmax_gradient(dy: Any, y: Any) -> Any:
    return y * (dy - (y * dy).sum(-1, keepdims=True))


def linear(x: Any, weight: Any, bias: Any) -> Any:
    return kernels.matmul(x, weight, bias=bias, activation="relu")


def of_powers(x: Any, weight: Any) -> Any:
    return kernels.matmul(x, weight, prologue="exp")


def grouped(*arrays: Any) -> Any:
    return kernels.grouped_gemm(arrays[:2], arrays[2:])[1]


Reference = Callable[..., Any]
CASES: dict[str, tuple[Callable[..., Any], Reference, list[tuple[int, ...]]]] = {
    "softmax": (kernels.softmax, softmax, [(2, 3, 20)]),
    "layer_norm": (kernels.layer_norm, normalized, [(5, 20), (20,), (20,)]),
    "rms_norm": (kernels.rms_norm, lambda x, w: x / np.sqrt((x**2).mean(-1, keepdims=True)) * w, [(5, 20), (20,)]),
    "softmax_backward": (kernels.softmax_backward, softmax_gradient, [(3, 20)] * 2),
    "matmul": (kernels.matmul, np.matmul, [(20, 30), (30, 10)]),
    "one row": (kernels.matmul, np.matmul, [(1, 30), (30, 10)]),
    "batches": (kernels.matmul, np.matmul, [(2, 20, 30), (2, 30, 10)]),
    "bias": (linear, lambda x, w, bias: np.maximum(x @ w + bias, 0), [(20, 30), (30, 10), (10,)]),
    "added": (lambda x, w, y: kernels.matmul(x, w, add=y), lambda x, w, y: x @ w + y, [(20, 30), (30, 10), (20, 10)]),
    "prologue": (of_powers, lambda x, w: np.exp(x) @ w, [(20, 30), (30, 10)]),
    "prologue, two launches": (of_powers, lambda x, w: np.exp(x) @ w, [(20, 30), (30, 1500)]),
    "long sum": (kernels.matmul, np.matmul, [(16, 300), (300, 16)]),
    "grouped": (grouped, lambda _a, a, _b, b: a @ b, [(5, 20), (7, 30), (20, 10), (30, 12)]),
    "attention": (kernels.flash_attention, attention, [(1, 2, 20, 16)] * 3),
}


def random(shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_later_calls(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mltriton.kernels.gemm.REPEATED", 0)
    function, reference, shapes = CASES[name]
    give = pytest.importorskip("torch").from_numpy if kind == "torch" else np.asarray
    for times in range(3):
        arrays = random(shapes)
        found = function(*map(give, arrays))
        np.testing.assert_allclose(
            np.asarray(found), reference(*(x.astype(np.float64) for x in arrays)), rtol=2e-4, atol=2e-5
        )
        assert len(calls._PLANS) == 1, times


def test_gradients_and_options() -> None:
    q, k, v, do = random([(1, 2, 20, 16)] * 4)
    for causal in (False, True):
        first, second = (_gradients(q, k, v, do, causal) for _ in range(2))
        assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))
    assert len(calls._PLANS) == 4
    other = _gradients(*random([(1, 2, 20, 16)] * 4), False)
    assert not any(np.array_equal(x, y) for x, y in zip(first, other, strict=True))
    calls._PLANS.clear()
    assert all(np.array_equal(x, y) for x, y in zip(first, _gradients(q, k, v, do, True), strict=True))


def _gradients(q: Any, k: Any, v: Any, do: Any, causal: bool) -> list[Any]:
    o, lse = kernels.flash_attention_with_lse(q, k, v, causal)
    return [o, lse, *kernels.flash_attention_backward(do, q, k, v, o, lse, causal)]


def _product(x: Any, y: Any) -> Any:
    """In float64: numpy's own f32 product warns of divisions by zero on AArch64."""
    return np.asarray(x).astype(np.float64) @ np.asarray(y).astype(np.float64)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_one_array_twice_says_nothing_about_two(kind: str) -> None:
    give = pytest.importorskip("torch").from_numpy if kind == "torch" else np.asarray
    for times in range(2):
        a, b = map(give, random([(20, 20)] * 2))
        for x, y in ((a, a), (a, b), (b, a), (b, b), (a, a.T), (a, b.T)):
            np.testing.assert_allclose(kernels.matmul(x, y), _product(x, y), rtol=1e-4, atol=1e-5)
        # numpy's views are new objects: that they begin where another array does is not in the key.
        assert len(calls._PLANS) == (4 if kind == "torch" else 3), times


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_which_arrays_are_one_is_told_apart(kind: str) -> None:
    give = pytest.importorskip("torch").from_numpy if kind == "torch" else np.asarray
    for _ in range(2):
        q, k, v = map(give, random([(1, 2, 20, 16)] * 3))
        for arrays in ((q, q, q), (q, q, v), (q, k, q), (q, k, k), (q, k, v)):
            expected = attention(*(np.asarray(x).astype(np.float64) for x in arrays))
            np.testing.assert_allclose(kernels.flash_attention(*arrays), expected, rtol=2e-4, atol=2e-5)
        assert len(calls._PLANS) == 5


def test_what_is_added_is_the_calls_own() -> None:
    """A vector that is added to each row is no array that a plan knows, and each product has functions of its own."""
    for times in range(2):
        x, w, row, y = random([(20, 30), (30, 10), (10,), (20, 10)])
        for around, added in (({"add": row}, row), ({"add": y}, y), ({"bias": row}, row), ({}, 0.0 * row)):
            for activation, function in ((None, np.asarray), ("relu", lambda z: np.maximum(z, 0))):
                found = kernels.matmul(x, w, **around, activation=activation)
                np.testing.assert_allclose(found, function(x @ w + added), rtol=1e-4, atol=1e-4)
        assert len(calls._PLANS) == 6, times


def test_what_is_copied_first_is_not_kept() -> None:
    x = random([(2, 3, 40)])[0][..., ::2]
    for _ in range(2):
        np.testing.assert_allclose(kernels.softmax(x), softmax(x), rtol=1e-4)
        x = x + 1.0 * RNG.standard_normal(x.shape).astype(np.float32)
        x = np.repeat(x, 2, -1)[..., ::2]
    assert not calls._PLANS


def test_shapes_strides_and_types_are_told_apart() -> None:
    a, b = random([(16, 16)] * 2)
    for x, y in ((a, b), (a.T, b), (a, b.T), (a.astype(np.float16), b.astype(np.float16)), (a[:8], b)):
        np.testing.assert_allclose(kernels.matmul(x, y), _product(x, y), rtol=1e-2, atol=1e-2)
    assert len(calls._PLANS) == 5


def test_no_memory_is_kept() -> None:
    import gc
    import weakref

    a, b = random([(20, 30), (30, 10)])
    seen = weakref.ref(a)
    kernels.matmul(a, b)
    assert calls._PLANS
    del a
    gc.collect()
    assert seen() is None


def test_torch_records_as_at_first() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(1, 2, 20, 16) for _ in range(3))
    kernels.flash_attention(q, k, v)
    q.requires_grad_()
    assert kernels.flash_attention(q, k, v).requires_grad
    with torch.no_grad():
        assert not kernels.flash_attention(q, k, v).requires_grad


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", [None, "float16"])
def test_large_arrays_lie_in_their_pages_as_what_they_are_made_for(kind: str, dtype: str | None) -> None:
    for offset in (0, 3, 1000):
        like: Any = np.zeros(5000, np.float32)[offset:][:100]
        like = pytest.importorskip("torch").from_numpy(like) if kind == "torch" else like
        made = empty((1500, 1000, 2), like, dtype)
        assert type(made) is type(like)
        assert (tuple(made.shape), dtype_name(made)) == ((1500, 1000, 2), dtype or "float32")
        start, other = addresses([made, like])
        assert start % 4096 == other % 4096 // 64 * 64
        made[...] = 1.0
        assert made.reshape(-1)[-1] == 1.0


def test_parameters_are_tensors() -> None:
    """A module's weights, and tensors that require a gradient where torch does not record, are described alike."""
    torch = pytest.importorskip("torch")
    x, weight = torch.randn(3, 8), torch.randn(8)
    parameter = torch.nn.Parameter(weight)
    key = calls.key_of(kernels.rms_norm, (x, weight), 1e-6)
    assert calls.key_of(kernels.rms_norm, (x, parameter), 1e-6) is None
    with torch.no_grad():
        assert calls.key_of(kernels.rms_norm, (x, parameter), 1e-6) == key
        assert describe_tensors()(x, parameter) == describe_tensors()(x, weight)
        expected = kernels.rms_norm(x, weight)
        for _ in range(2):
            assert torch.equal(kernels.rms_norm(x, parameter), expected)
    assert describe_tensors()(x, parameter) is NotImplemented
