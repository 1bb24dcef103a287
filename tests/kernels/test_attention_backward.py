"""Gradients of `flash_attention` on the CPU against numpy in float64: lengths, dimensions, heads, masks, strides,
splits, torch's automatic differentiation, mistakes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from accuracy import ROUNDING, assert_accurate, dtype_of, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import (
    attention_backward_sizes,
    flash_attention,
    flash_attention_backward,
    flash_attention_with_lse,
)
from mltriton.kernels.attention_backward import backward_launches
from mltriton.kernels.attention_backward_sizes import BackwardBlocks, choose_warp_blocks

RNG = np.random.default_rng(7)
FLOATS = ("float32", "float16", "bfloat16")


def probabilities(
    q: Any, k: Any, causal: bool, scale: float, window: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The weights and the log-sum-exp, with as many heads of k as of q."""
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window is not None:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    return weights / total, (largest + np.log(total))[..., 0]


def reference(
    do: Any, q: Any, k: Any, v: Any, causal: bool, scale: float, window: int | None = None
) -> list[tuple[np.ndarray, Any]]:
    """dq, dk, dv, each with the sum of the sizes of what is added up: the measure of errors."""
    do, q, k, v = map(wide, (do, q, k, v))
    batch, kv_heads, n_keys, dim = k.shape
    share = q.shape[1] // kv_heads
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    p, _ = probabilities(q, k, causal, scale, window)
    dp = do @ v.swapaxes(-1, -2)
    delta = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - delta) * scale
    size = p * (np.abs(do) @ np.abs(v).swapaxes(-1, -2) + np.abs(delta)) * abs(scale)
    size *= 1 + abs(scale) * np.abs(q) @ np.abs(k).swapaxes(-1, -2)
    p_size = p * (1 + abs(scale) * np.abs(q) @ np.abs(k).swapaxes(-1, -2))

    def group(x: np.ndarray) -> np.ndarray:
        return x.reshape(batch, kv_heads, share, n_keys, dim).sum(2)

    return [
        (ds @ k, size @ np.abs(k)),
        (group(ds.swapaxes(-1, -2) @ q), group(size.swapaxes(-1, -2) @ np.abs(q))),
        (group(p.swapaxes(-1, -2) @ do), group(p_size.swapaxes(-1, -2) @ np.abs(do))),
    ]


def assert_gradients(
    found: Any, do: Any, q: Any, k: Any, v: Any, causal: bool, scale: float | None, window: int | None = None
) -> None:
    """Errors are roundings of what is added up: of f32 for sums, of the arrays' dtype for p, ds and o (in delta)."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    extra = 0 if dtype_of(q) == "float32" else 4 * ROUNDING[dtype_of(q)] / 2.0**-20
    for array, (gradient, size), like in zip(
        found, reference(do, q, k, v, causal, scale, window), (q, k, v), strict=True
    ):
        assert type(array) is type(like)
        assert dtype_of(array) == dtype_of(like)
        assert_accurate(array, gradient, size * (1 + extra))


def check(
    do: Any, q: Any, k: Any, v: Any, causal: bool = False, sm_scale: float | None = None, target: str | None = None
) -> None:
    """Differentiate what the forward pass gives."""
    o, lse = flash_attention_with_lse(q, k, v, causal, sm_scale)
    found = flash_attention_backward(do, q, k, v, o, lse, causal, sm_scale, target=target)
    assert_gradients(found, do, q, k, v, causal, sm_scale)


def arrays(batch: int, heads: int, queries: int, dim: int, keys: int = 0, kv_heads: int = 0, dtype: str = "float32"):
    """do, q, k and v; as many keys as queries and as many heads where nothing is said."""
    of_q, of_k = (batch, heads, queries, dim), (batch, kv_heads or heads, keys or queries, dim)
    return [random(RNG, shape, dtype) for shape in (of_q, of_q, of_k, of_k)]


@each_value(("dtype", ["float32", "float16", "bfloat16"]), ("causal", [False, True]))
def test_dtypes(dtype: str, causal: bool) -> None:
    check(*arrays(2, 3, 150, 64, dtype=dtype), causal)


@pytest.mark.parametrize(
    "dim", [1, 16, 40, 128, 256, *(pytest.param(n, marks=pytest.mark.slow) for n in (24, 80, 160))]
)
def test_head_dimensions(dim: int) -> None:
    check(*arrays(1, 2, 70, dim), causal=dim % 3 == 1)


@each_value(
    (
        "queries, keys",
        [(1, 1), (1, 300), (17, 17), (37, 1), (128, 128), (129, 257), (257, 129), (200, 100), (512, 512)],
    ),
    ("causal", [False, True]),
)
def test_lengths(queries: int, keys: int, causal: bool) -> None:
    check(*arrays(1, 1, queries, 32, keys=keys), causal)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_more_keys_than_queries_that_see_them(dtype: str) -> None:
    do, q, k, v = arrays(1, 2, 17, 32, keys=300, dtype=dtype)
    o, lse = flash_attention_with_lse(q, k, v, causal=True)
    _, dk, dv = flash_attention_backward(do, q, k, v, o, lse, causal=True)
    assert not wide(dk)[:, :, 17:].any()
    assert not wide(dv)[:, :, 17:].any()
    check(do, q, k, v, causal=True)


@each_value(("causal", [False, True]), ("heads, kv_heads", [(6, 2), (8, 1)]))
def test_grouped_queries(heads: int, kv_heads: int, causal: bool) -> None:
    check(*arrays(2, heads, 50, 32, kv_heads=kv_heads), causal)


@pytest.mark.parametrize(
    ("window", "queries", "keys", "dtype"),
    [
        (1, 70, 70, "float32"),
        (5, 333, 333, "float16"),
        (64, 300, 310, "float32"),
        (200, 520, 520, "float16"),
        (99, 80, 90, "float32"),
        (30, 150, 400, "bfloat16"),
    ],
)
def test_sliding_windows(window: int, queries: int, keys: int, dtype: str) -> None:
    """Less than a block, as many as all keys, no block beyond the diagonal; keys that no query sees."""
    do, q, k, v = arrays(1, 4, queries, 32, keys=keys, kv_heads=2, dtype=dtype)
    o, lse = flash_attention_with_lse(q, k, v, causal=True, window=window)
    found = flash_attention_backward(do, q, k, v, o, lse, causal=True, window=window)
    assert_gradients(found, do, q, k, v, True, None, window)


def test_windows_with_keys_in_rows() -> None:
    window = 20
    do, q, k, v = arrays(1, 2, 100, 24, keys=110, dtype="float16")
    o, lse = flash_attention_with_lse(q, k, v, causal=True, window=window)
    found = [x * 0 + 7 for x in (q, k, v)]
    blocks = BackwardBlocks(16, 32, 2, warps=4)
    for launch in backward_launches(do, q, k, v, o, lse, *found, True, blocks=blocks, window=window):
        launch.run()
    assert_gradients(found, do, q, k, v, True, None, window)


@each_value(("dtype", ["float32", "bfloat16"]), ("splits", [1, 2, 3, 5]))
def test_splits(dtype: str, splits: int) -> None:
    do, q, k, v = arrays(1, 2, 70, 24, keys=150, dtype=dtype)
    o, lse = flash_attention_with_lse(q, k, v, causal=True)
    found = [x * 0 + 7 for x in (q, k, v)]
    for launch in backward_launches(do, q, k, v, o, lse, *found, causal=True, blocks=BackwardBlocks(16, 32, splits)):
        launch.run()
    assert_gradients(found, do, q, k, v, True, None)


@each_value(("dtype, part", [("float32", 16), ("float16", 0)]), ("causal", [False, True]))
def test_keys_in_rows(dtype: str, part: int, causal: bool) -> None:
    """The form in which warps share out keys, several heads on one, sizes that no block divides."""
    do, q, k, v = arrays(2, 4, 70, 24, kv_heads=2, keys=90, dtype=dtype)
    o, lse = flash_attention_with_lse(q, k, v, causal)
    found = [x * 0 + 7 for x in (q, k, v)]
    blocks = BackwardBlocks(16, 32, 2, warps=4, part=part)
    for launch in backward_launches(do, q, k, v, o, lse, *found, causal, blocks=blocks):
        launch.run()
    assert_gradients(found, do, q, k, v, causal, None)


def test_blocks_for_many_warps() -> None:
    """As many shares as there are blocks, where they do not fill a GPU; a larger dimension has smaller blocks."""
    assert choose_warp_blocks(100, 2, 64, 2) == BackwardBlocks(32, 32, 4, 4)
    assert choose_warp_blocks(1 << 20, 8, 80, 2) == BackwardBlocks(16, 32, 8, 8)
    assert choose_warp_blocks(100, 2, 64, 4) == BackwardBlocks(16, 32, 4, 4, 32)


@pytest.mark.parametrize("threads, splits", [(1, 1), (2, 2), (8, 6)])
def test_every_thread_has_something_to_do(monkeypatch: pytest.MonkeyPatch, threads: int, splits: int) -> None:
    monkeypatch.setattr(attention_backward_sizes, "num_threads", lambda: threads)
    assert attention_backward_sizes.choose_backward_blocks(4096, 4096, 3, causal=True).splits == splits
    assert attention_backward_sizes.choose_backward_blocks(4096, 128, 3, causal=False).splits == 1


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_heads_inside_of_the_sequence(kind: str) -> None:
    check(*(random(RNG, (2, 90, 4, 40), "float32", kind).swapaxes(1, 2) for _ in range(4)), causal=True)


def test_any_strides() -> None:
    q, k = random(RNG, (1, 2, 32, 70)).swapaxes(2, 3), random(RNG, (1, 2, 70, 64))[..., ::2]
    do, _, v, _ = arrays(1, 2, 70, 32)
    check(np.broadcast_to(do[:, :, :1], do.shape), q, k, v[:, :, ::-1])
    o, lse = flash_attention_with_lse(q, k, v)
    wider = np.stack([lse, lse], -1)[..., 0]
    assert_gradients(flash_attention_backward(do, q, k, v, o, wider), do, q, k, v, False, None)


@pytest.mark.parametrize("sm_scale", [0.0, 1.0, -0.3])
def test_scales(sm_scale: float) -> None:
    check(*arrays(1, 1, 200, 32), causal=True, sm_scale=sm_scale)


def test_low_scores_do_not_overflow_in_keys_that_are_not_there() -> None:
    do, q, k, v = arrays(1, 1, 100, 32)
    k[:] = -50 * q[:, :, :1]
    q[:] = q[:, :, :1]
    check(do, q, k, v)


@pytest.mark.parametrize("causal", [False, True])
def test_log_sum_exp(causal: bool) -> None:
    _, q, k, v = arrays(2, 3, 70, 40)
    o, lse = flash_attention_with_lse(q, k, v, causal)
    np.testing.assert_array_equal(o, flash_attention(q, k, v, causal))
    assert_accurate(lse, probabilities(wide(q), wide(k), causal, 40**-0.5)[1], 8.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_differentiates(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    do, *inputs = arrays(1, 4, 129, 32, keys=100, kv_heads=2, dtype=dtype)
    do, *inputs = (torch.as_tensor(x) for x in (do, *inputs))
    leaves = [x.requires_grad_() for x in inputs]
    o = flash_attention(*leaves, True, 0.2, target="cpu")
    (o * do).sum().backward()
    assert_gradients([x.grad for x in leaves], do, *(x.detach() for x in leaves), True, 0.2)
    with torch.no_grad():
        assert not flash_attention(*leaves).requires_grad
    q, k, v = (x.detach() for x in leaves)
    assert flash_attention(q, k, v.requires_grad_()).requires_grad
    assert not flash_attention(q, k, v.detach()).requires_grad


def test_torch_differentiates_once() -> None:
    torch = pytest.importorskip("torch")
    q = torch.ones(1, 1, 16, 16, requires_grad=True)
    (first,) = torch.autograd.grad(flash_attention(q, q, q).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_no_queries() -> None:
    do, q, k, v = arrays(1, 2, 4, 16)
    do, q = do[:, :, :0], q[:, :, :0]
    dq, dk, dv = flash_attention_backward(do, q, k, v, q, np.zeros((1, 2, 0), np.float32))
    assert dq.shape == q.shape
    assert not dk.any()
    assert not dv.any()


XE_CASES = [(dim, dtype, causal) for dim in (16, 40, 64) for dtype in FLOATS for causal in (False, True)]


@pytest.mark.parametrize(
    ("dim", "dtype", "causal"),
    [pytest.param(*case, marks=[] if case == (16, "bfloat16", True) else [pytest.mark.slow]) for case in XE_CASES],
)
def test_gradients_on_xe(dim: int, dtype: str, causal: bool) -> None:
    """Emulated: two heads on one, lengths that no block divides."""
    pytest.importorskip("dpctl")
    target = ["xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl"][XE_CASES.index((dim, dtype, causal)) % 4]
    check(*arrays(1, 4, 45, dim, keys=37, kv_heads=2, dtype=dtype), causal, target=target)


QKV, LSE = np.ones((1, 4, 8, 16), np.float32), np.ones((1, 4, 8), np.float32)


@pytest.mark.parametrize(
    "do, k, o, lse, message",
    [
        (None, QKV, QKV, LSE, "do is no array"),
        (QKV, QKV[..., :8], QKV, LSE, "the shapes do not fit"),
        (QKV[:, :1], QKV, QKV, LSE, "flash_attention_backward: the shapes do not fit"),
        (QKV, QKV, QKV[..., :8], LSE, "flash_attention_backward: the shapes do not fit"),
        (QKV.astype(np.float16), QKV, QKV, LSE, "the arrays differ in kind or dtype"),
        (QKV, QKV, QKV, LSE[..., :4], "wrong lse"),
        (QKV, QKV, QKV, LSE.astype(np.float64), "wrong lse"),
        (QKV, QKV, QKV, None, "lse is no array"),
    ],
)
def test_mistakes(do: Any, k: Any, o: Any, lse: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        flash_attention_backward(do, QKV, k, k, o, lse)
