"""`flash_attention` on the CPU against numpy in float64: lengths, dimensions, heads, masks, strides, mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from accuracy import assert_accurate, dtype_of, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import attention_blocks, flash_attention, flash_attention_with_lse
from mltriton.kernels.attention import attention_launch
from mltriton.kernels.attention_blocks import (
    Blocks,
    choose_blocks,
    choose_blocks_of_warps,
    choose_narrow_blocks,
    parts_of_dim,
)
from mltriton.kernels.attention_rows import rows_launch
from processors import ROUGH_POWERS

RNG = np.random.default_rng(2)

# Probabilities are rounded to the arrays' dtype before they are multiplied with v: so many roundings of max |v|.
ROUNDED = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def reference(q: Any, k: Any, v: Any, causal: bool, scale: float, window: int | None = None) -> np.ndarray:
    q, k, v = map(wide, (q, k, v))
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window is not None:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def check(
    q: Any, k: Any, v: Any, causal: bool = False, sm_scale: float | None = None, target: str | None = None,
    window: int | None = None,
) -> None:  # fmt: skip
    """Attend; errors of scores and sums are measured by the largest |v| and the largest score."""
    o = flash_attention(q, k, v, causal, sm_scale, target=target, window=window)
    assert type(o) is type(q)
    assert dtype_of(o) == dtype_of(q)
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else sm_scale
    norms = [np.linalg.norm(wide(x), axis=-1).max() for x in (q, k)]
    largest, scores = np.abs(wide(v)).max(), 1 + abs(scale) * norms[0] * norms[1]
    extra = ROUNDED[dtype_of(q)] * largest / 2.0**-20
    if ROUGH_POWERS and target is not None and target.startswith("xe"):
        extra += 1e-4 * largest / 2.0**-20
    assert_accurate(o, reference(q, k, v, causal, scale, window), largest * scores + extra)


def arrays(batch: int, heads: int, queries: int, dim: int, keys: int = 0, kv_heads: int = 0, dtype: str = "float32"):
    """q, k and v; as many keys as queries and as many heads where nothing is said."""
    kv = (batch, kv_heads or heads, keys or queries, dim)
    return [random(RNG, shape, dtype) for shape in ((batch, heads, queries, dim), kv, kv)]


@each_value(("dtype", ["float32", "float16", "bfloat16"]), ("causal", [False, True]))
def test_dtypes(dtype: str, causal: bool) -> None:
    check(*arrays(2, 3, 150, 64, dtype=dtype), causal)


@pytest.mark.parametrize("dim", [1, 16, 24, 40, 80, 96, 128, 160, 192, 256])
def test_head_dimensions(dim: int) -> None:
    check(*arrays(1, 2, 70, dim), causal=dim % 3 == 1)


@each_value(
    ("queries, keys", [(1, 1), (1, 300), (7, 7), (37, 1), (128, 128), (129, 257), (257, 129), (200, 130), (512, 512)]),
    ("causal", [False, True]),
)
def test_lengths(queries: int, keys: int, causal: bool) -> None:
    check(*arrays(1, 1, queries, 32, keys=keys), causal)


@each_value(("causal", [False, True]), ("heads, kv_heads", [(6, 2), (8, 1), (4, 4)]))
def test_grouped_queries(heads: int, kv_heads: int, causal: bool) -> None:
    check(*arrays(2, heads, 50, 32, kv_heads=kv_heads), causal)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_heads_inside_of_the_sequence(kind: str) -> None:
    q, k, v = (random(RNG, (2, 90, 4, 40), kind=kind).swapaxes(1, 2) for _ in range(3))
    check(q, k, v, causal=True)


def test_one_array_for_q_k_and_v() -> None:
    qkv = random(RNG, (2, 60, 3, 4, 32))  # batch, sequence, which, head, dim
    check(*(qkv[:, :, i].swapaxes(1, 2) for i in range(3)))


def test_any_strides() -> None:
    q, k, v = random(RNG, (1, 2, 32, 70)).swapaxes(2, 3), random(RNG, (1, 2, 70, 64))[..., ::2], arrays(1, 2, 70, 32)[2]
    check(q, k, v[:, :, ::-1])


@pytest.mark.parametrize("sm_scale", [0.0, 1.0, -0.3])
def test_scales(sm_scale: float) -> None:
    check(*arrays(1, 1, 200, 32), causal=True, sm_scale=sm_scale)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = arrays(1, 1, 150, 32)
    check(30 * q, 30 * k, v)


def test_weights_sum_to_one() -> None:
    q, k, v = arrays(1, 2, 333, 64)
    np.testing.assert_allclose(flash_attention(q, k, np.ones_like(v), causal=True), 1.0, rtol=3e-6)


def test_causal_queries_do_not_see_later_keys() -> None:
    q, k, v = arrays(1, 1, 200, 32)
    before = flash_attention(q, k, v, causal=True)
    k[:, :, 150:], v[:, :, 150:] = 1e4, np.nan
    np.testing.assert_array_equal(flash_attention(q, k, v, causal=True)[:, :, :128], before[:, :, :128])


@each_value(
    ("window, queries, keys", [(1, 70, 70), (5, 333, 333), (64, 300, 310), (200, 520, 520), (99, 80, 90)]),
    ("dtype", ["float32", "float16"]),
)
def test_sliding_windows(window: int, queries: int, keys: int, dtype: str) -> None:
    q, k, v = arrays(1, 4, queries, 32, keys, 2, dtype)
    v[:, :, ::7] *= 3
    o = flash_attention(q, k, v, causal=True, window=window)
    wanted = reference(q, k, v, True, 32**-0.5, window)
    assert_accurate(o, wanted, 100.0 + ROUNDED[dtype] * np.abs(wide(v)).max() / 2.0**-20)


def test_queries_do_not_see_what_lies_before_their_window() -> None:
    q, k, v = arrays(1, 1, 300, 32)
    before = flash_attention(q, k, v, causal=True, window=40)
    k[:, :, :100] = 1e4
    np.testing.assert_array_equal(flash_attention(q, k, v, causal=True, window=40)[:, :, 160:], before[:, :, 160:])


@pytest.mark.parametrize(("causal", "window", "keys"), [(False, 4, 8), (True, 0, 8), (True, -1, 8), (True, 4, 6)])
def test_windows_that_do_not_fit(causal: bool, window: int, keys: int) -> None:
    with pytest.raises(ArgumentError, match="the window does not fit"):
        flash_attention(QKV, QKV[:, :, :keys], QKV[:, :, :keys], causal, window=window)


def test_no_queries() -> None:
    q, k, v = arrays(1, 2, 4, 16)
    assert flash_attention(q[:, :, :0], k, v).shape == (1, 2, 0, 16)


QKV = np.ones((1, 4, 8, 16), np.float32)


@pytest.mark.parametrize(
    "q, k, v, message",
    [
        (QKV, QKV, None, "v is no array"),
        (QKV[0], QKV[0], QKV[0], "wrong rank"),
        (QKV, QKV, QKV[..., :8], "the shapes do not fit"),
        (QKV, QKV[..., :8], QKV[..., :8], "the shapes do not fit"),
        (QKV, QKV[:, :3], QKV[:, :3], "kv_heads must divide heads"),
        (QKV, QKV[:, :, :0], QKV[:, :, :0], "unsupported size"),
        (*[np.ones((1, 1, 8, 257), np.float32)] * 3, "unsupported size"),
        (*[QKV.astype(np.float64)] * 3, "unsupported dtype"),
        (QKV, QKV.astype(np.float16), QKV, "the arrays differ in kind or dtype"),
    ],
)
def test_mistakes(q: Any, k: Any, v: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        flash_attention(q, k, v)


def test_scores_are_summed_over_parts_of_the_dimension() -> None:
    q, k, v = arrays(1, 4, 70, 40, keys=50, kv_heads=2)
    o = q * 0
    attention_launch(q, k, v, o, causal=True, blocks=Blocks(32, 16, part=16)).run()
    assert_accurate(o, reference(q, k, v, True, 40**-0.5), 100.0)


@each_value(("dtype", ["float32", "bfloat16"]), ("causal, window", [(False, None), (True, None), (True, 30)]))
def test_warps_take_turns_at_rows_of_a_block(dtype: str, causal: bool, window: int | None) -> None:
    """Lengths that nothing divides, both masks, and the logarithms of the sums."""
    q, k, v = arrays(1, 4, 150, 40, keys=170, kv_heads=2, dtype=dtype)
    o, lses = q * 0, [random(RNG, (1, 4, 150), "float32") for _ in range(2)]
    whole, parted = (attention_launch(q, k, v, o, causal, None, Blocks(64, 32), lse, window) for lse in lses)
    whole.run()
    rows_launch(parted, 16).run()
    np.testing.assert_allclose(*map(wide, lses), rtol=1e-5)
    largest = np.abs(wide(v)).max()
    assert_accurate(o, reference(q, k, v, causal, 40**-0.5, window), largest * 2.0**13)


@pytest.mark.parametrize("dim", [64, 80, 96, 128])
@pytest.mark.parametrize(
    ("queries", "keys", "causal", "window"),
    [(77, 1100, False, None), (300, 301, False, None), (301, 301, True, None), (530, 600, True, 40)],
)
def test_rows_of_odd_sizes(dim: int, queries: int, keys: int, causal: bool, window: int | None) -> None:
    q, k, v = arrays(1, 2, queries, dim, keys=keys, kv_heads=1, dtype="bfloat16")
    check(q, k, v, causal, window=window)


def test_full_attention_of_narrow_elements_is_done_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are enough programs for threads that are not equally fast, and more queries than a few."""
    for threads, sequences, blocks in (
        (1, 1, Blocks(512, 1024, rows=16, apart=True)),
        (16, 2, Blocks(128, 1024, rows=16, apart=True)),
        (16, 1, Blocks(128, 1024, rows=16, apart=True)),
        (32, 1, Blocks(64, 1024, rows=16, apart=True)),
        (16, 64, Blocks(512, 1024, rows=16, apart=True)),
    ):
        monkeypatch.setattr(attention_blocks, "num_threads", lambda threads=threads: threads)
        assert choose_narrow_blocks(4096, 4096, sequences, False, 128) == blocks
        assert choose_narrow_blocks(4096, 4096, sequences, False, 256) == blocks._replace(keys=512)
        assert choose_narrow_blocks(4096, 100, sequences, False, 128).keys == 128
    monkeypatch.setattr(attention_blocks, "num_threads", lambda: 1)
    assert choose_narrow_blocks(40, 4096, 4, False, 64) == Blocks(64, 1024, rows=16, apart=True)
    assert choose_narrow_blocks(20, 4096, 4, False, 64) == choose_blocks(20, 4096, 4, False)._replace(apart=True)


def test_causal_attention_of_narrow_elements_is_done_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for short sequences, longer ones of narrow heads, and small windows in these."""
    monkeypatch.setattr(attention_blocks, "num_threads", lambda: 1)
    for length, dim, window, blocks in (
        (4096, 128, None, Blocks(512, 512, rows=16, apart=True)),
        (2048, 64, None, Blocks(256, 256, rows=16, apart=True)),
        (1024, 96, None, Blocks(256, 256, rows=16, apart=True)),
        (4096, 128, 4000, Blocks(256, 256, rows=16, apart=True)),
        (512, 128, None, Blocks(256, 256, rows=16, apart=True)),
        (511, 96, None, Blocks(128, 128, apart=True)),
        (4096, 128, 500, Blocks(256, 256, rows=16, apart=True)),
        (1024, 64, None, Blocks(128, 128, apart=True)),
        (4096, 64, 512, Blocks(256, 128, apart=True)),
    ):
        assert choose_narrow_blocks(length, length, 1, True, dim, window) == blocks
    assert choose_narrow_blocks(4096, 100, 1, True, 96) == Blocks(512, 128, rows=16, apart=True)
    monkeypatch.setattr(attention_blocks, "num_threads", lambda: 16)
    assert choose_narrow_blocks(4096, 4096, 2, True, 128) == Blocks(256, 512, rows=16, apart=True)


@pytest.mark.parametrize(
    ("dim", "parts"),
    [(1, (16, 0)), (40, (64, 0)), (64, (64, 0)), (65, (64, 16)), (80, (64, 16)), (96, (64, 32)), (97, (128, 0)),
     (128, (128, 0)), (160, (128, 32)), (192, (128, 64)), (200, (256, 0)), (256, (256, 0))],
)  # fmt: skip
def test_wide_heads_are_two_blocks_where_one_would_be_filled_up(dim: int, parts: tuple[int, int]) -> None:
    assert parts_of_dim(dim) == parts


@pytest.mark.parametrize(
    ("queries", "dim", "item_bytes", "blocks"),
    [
        (1000, 64, 2, Blocks(128, 64, 8)),
        (1000, 100, 2, Blocks(128, 64, 16)),
        (40, 64, 2, Blocks(64, 64, 4)),
        (1, 16, 4, Blocks(8, 32, 1)),
        (100, 256, 4, Blocks(128, 16, 16, 64)),
    ],
)
def test_blocks_for_many_warps(queries: int, dim: int, item_bytes: int, blocks: Blocks) -> None:
    """Few queries have few warps, each with as many queries as otherwise."""
    assert choose_blocks_of_warps(queries, dim, item_bytes) == blocks


def test_attention_on_xe() -> None:
    """Emulated where there is no GPU, through the library's function."""
    pytest.importorskip("dpctl")
    q, k, v = arrays(1, 2, 20, 15, keys=70, kv_heads=1, dtype="float16")
    found, lse = flash_attention_with_lse(q, k, v, True, target="xe:pvc")
    expected, logarithms = flash_attention_with_lse(q, k, v, True)
    np.testing.assert_allclose(wide(found), wide(expected), atol=4e-3)
    np.testing.assert_allclose(lse, logarithms, atol=2e-4 if ROUGH_POWERS else 1e-5)


XE_CASES = [
    (dim, dtype, causal)
    for dim in (16, 32, 64, 96, 256)
    for dtype in ("float32", "float16", "bfloat16")
    for causal in (False, True)
]
QUICK = {(16, "float32", False), (96, "bfloat16", True)}


@pytest.mark.parametrize(
    ("dim", "dtype", "causal"),
    [pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow]) for case in XE_CASES],
)
def test_dimensions_and_dtypes_on_xe(dim: int, dtype: str, causal: bool) -> None:
    """Emulated: grouped heads inside of the sequence, few and many queries, lengths that no block divides."""
    pytest.importorskip("dpctl")
    case = XE_CASES.index((dim, dtype, causal))
    heads, kv_heads = [(4, 2), (3, 1), (2, 2)][case // 6 % 3]
    q = random(RNG, (2, [1, 17, 40, 133][case % 4], heads, dim), dtype)
    k, v = (random(RNG, (2, 70, kv_heads, dim), dtype) for _ in range(2))
    target = ["xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl"][case // 2 % 4]
    check(*(x.swapaxes(1, 2) for x in (q, k, v)), causal, target=target)


@pytest.mark.slow
def test_lengths_strides_and_large_scores_on_xe() -> None:
    pytest.importorskip("dpctl")
    for queries, keys, causal in [(1, 1, True), (5, 1, False), (130, 3, True), (3, 130, True), (64, 64, True)]:
        check(*arrays(1, 1, queries, 32, keys=keys, dtype="float16"), causal, target="xe:pvc")
    q, k = random(RNG, (1, 2, 32, 70)).swapaxes(2, 3), random(RNG, (1, 2, 70, 64))[..., ::2]
    q, k, v = (x.astype(np.float16) for x in (q, k, arrays(1, 2, 70, 32)[2]))
    check(q, np.repeat(k, 2, 3)[..., ::2], v[:, :, ::-1], target="xe:bmg")
    q, k, v = arrays(1, 1, 50, 32)
    check(30 * q, 30 * k, v, target="xe:pvc")
