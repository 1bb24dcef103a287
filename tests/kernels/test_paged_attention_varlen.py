"""`paged_attention_varlen` against numpy in float64: chunks, pages, heads, windows, options, devices, mistakes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy import assert_accurate, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import paged_attention_varlen
from mltriton.kernels.arrays import Array
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.attention_paged_varlen import paged_varlen_launch
from ptx_emulator.launch import install

RNG = np.random.default_rng(5)
# Units of 2^-20: roundings of scores and weights in f32; 16-bit weights are rounded before they are multiplied.
SLACK = {"float32": 8, "float16": 2**10, "bfloat16": 2**12}


@dataclass(frozen=True)
class Problem:
    """Sequences as (new queries, all keys), and sizes."""

    sequences: tuple[tuple[int, int], ...] = ((70, 70), (1, 90), (0, 7), (33, 150), (0, 0))
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    page: int = 16
    dtype: str = "float32"
    kind: str = "numpy"

    def arrays(self) -> dict[str, Any]:
        """Random arguments: pages in any order, not-a-numbers in slots that no key lies in, entries that are no page
        behind a sequence's last one.
        """
        counts, lens = (np.array(numbers, np.int32) for numbers in zip(*self.sequences, strict=True))
        most = max(1, -(-int(lens.max()) // self.page))
        pages = len(lens) * most + 1
        table = RNG.permutation(pages)[:-1].astype(np.int32).reshape(len(lens), most)
        holes = np.ones((pages, self.page), bool)
        for row, length in zip(table, lens, strict=True):
            keys = np.arange(int(length))
            holes[row[keys // self.page], keys % self.page] = False
            row[-(-length // self.page) :] = -7
        caches = {}
        for name in ("k_cache", "v_cache"):
            caches[name] = random(RNG, (pages, self.page, self.kv_heads, self.dim), self.dtype, self.kind)
            caches[name][self.native(holes)] = float("nan")
        q = random(RNG, (int(counts.sum()), self.heads, self.dim), self.dtype, self.kind)
        tables = {"block_table": table, "seq_lens": lens, "query_starts": np.cumsum([0, *counts]).astype(np.int32)}
        return {"q": q, **caches, **{name: self.native(x) for name, x in tables.items()}}

    def native(self, x: np.ndarray) -> Any:
        return x if self.kind == "numpy" and self.dtype != "bfloat16" else pytest.importorskip("torch").from_numpy(x)


def reference(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, query_starts: Any, sm_scale: float | None,
    window: int | None, alibi_slopes: Any, soft_cap: float | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """softmax(q k^T) v, and the same with |v|: what the bound of the error grows with."""
    q, k_cache, v_cache, starts = wide(q), wide(k_cache), wide(v_cache), np.asarray(query_starts)
    o, size = np.zeros_like(q), np.zeros_like(q)
    group = q.shape[1] // k_cache.shape[2]
    for sequence, length in enumerate(map(int, seq_lens)):
        own, keys = slice(int(starts[sequence]), int(starts[sequence + 1])), np.arange(length)
        pages, slots = np.asarray(block_table)[sequence, keys // k_cache.shape[1]], keys % k_cache.shape[1]
        apart = keys - (length - (own.stop - own.start) + np.arange(own.stop - own.start))[:, None]
        hidden = (apart > 0) | (False if window is None else apart <= -window)
        for head in range(q.shape[1] if own.stop > own.start else 0):
            k, v = (cache[pages, slots, head // group] for cache in (k_cache, v_cache))
            scores = q[own, head] @ k.T * (q.shape[2] ** -0.5 if sm_scale is None else sm_scale)
            if soft_cap is not None:
                scores = soft_cap * np.tanh(scores / soft_cap)
            if alibi_slopes is not None:
                scores = scores + wide(alibi_slopes)[head] * apart
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            o[own, head], size[own, head] = weights @ v, weights @ np.abs(v)
    return o, size


def check(
    arrays: dict[str, Any], *, sm_scale: float | None = None, window: int | None = None, alibi_slopes: Any = None,
    soft_cap: float | None = None, target: str | None = None,
) -> Array:  # fmt: skip
    options: dict[str, Any] = {"sm_scale": sm_scale, "window": window}
    options |= {"alibi_slopes": alibi_slopes, "soft_cap": soft_cap}
    o = paged_attention_varlen(**arrays, **options, target=target)
    assert type(o) is type(arrays["q"]) and o.dtype == arrays["q"].dtype
    expected, size = reference(**arrays, **options)
    assert_accurate(o, expected, SLACK[str(o.dtype).removeprefix("torch.")] * size)
    return o


@each_value(("page", [1, 12, 16, 64]), ("dtype", ["float32", "float16", "bfloat16"]))
def test_dtypes_and_pages(page: int, dtype: str) -> None:
    check(Problem(page=page, dtype=dtype).arrays())


@pytest.mark.parametrize("window", [1, 20, 128, 1000])
def test_windows(window: int) -> None:
    check(Problem(((70, 70), (1, 300), (33, 290), (0, 4)), page=24).arrays(), window=window)


@pytest.mark.parametrize("heads, kv_heads", [(4, 4), (6, 2), (7, 1), (17, 1), (36, 1)])
def test_heads(heads: int, kv_heads: int) -> None:
    check(Problem(heads=heads, kv_heads=kv_heads).arrays())


@pytest.mark.parametrize("dim", [1, 40, 128, 256])
def test_dimensions(dim: int) -> None:
    check(Problem(dim=dim).arrays())


def test_many_sequences() -> None:
    """More than are looked at together; most of them decode, some have nothing to do."""
    counts = RNG.choice([0, 1, 1, 1, 9, 40], 300)
    check(Problem(tuple((int(n), int(n + RNG.integers(30))) for n in counts), dim=16).arrays())


def test_options() -> None:
    arrays = Problem(heads=6).arrays()
    slopes = 2.0 ** -np.arange(1, 7, dtype=np.float32)
    check(arrays, sm_scale=0.7)
    check(arrays, sm_scale=0.0)
    check(arrays, soft_cap=1.5)
    check(arrays, alibi_slopes=slopes)
    check(arrays, alibi_slopes=slopes, soft_cap=20.0, sm_scale=-0.3, window=50)


def test_chunks_equal_one_prompt() -> None:
    """Bit for bit where chunks begin at blocks of queries; in any case to rounding."""
    arrays = Problem(((300, 300),)).arrays()
    whole, found = check(arrays), list[Array]()
    for first, last in ((0, 128), (128, 256), (256, 261), (261, 262), (262, 300)):
        starts, lens = np.array([0, last - first], np.int32), np.array([last], np.int32)
        chunk = arrays | {"q": arrays["q"][first:last], "seq_lens": lens, "query_starts": starts}
        found.append(check(chunk))
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-5, atol=1e-6)


def test_strides_and_torch() -> None:
    """Heads outside of pages, dimensions and numbers of tables that are not next to each other."""
    arrays = Problem(kind="torch", dtype="bfloat16").arrays()
    check(arrays)
    twice = {name: x.repeat_interleave(2, -1)[..., ::2] for name, x in arrays.items()}
    check(twice | {"k_cache": arrays["k_cache"].swapaxes(1, 2).contiguous().swapaxes(1, 2)})


def test_queries_of_no_sequence() -> None:
    """In front of the first sequence and behind the last: as many sequences as a graph was captured for."""
    arrays = Problem(((5, 5), (20, 30))).arrays()
    q = np.concatenate([arrays["q"][:3], arrays["q"], arrays["q"]])
    alone = check(arrays)
    arrays |= {"q": q, "query_starts": arrays["query_starts"] + 3}
    np.testing.assert_array_equal(paged_attention_varlen(**arrays)[3:28], alone)


def test_nothing_to_do() -> None:
    arrays = Problem(((0, 7), (0, 0))).arrays()
    assert paged_attention_varlen(**arrays).shape == (0, 4, 32)
    arrays |= {name: arrays[name][:0] for name in ("block_table", "seq_lens")}
    arrays["query_starts"] = arrays["query_starts"][:1]
    assert paged_attention_varlen(**arrays).shape == (0, 4, 32)


def test_on_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    problem = Problem(((40, 70), (1, 90), (0, 7), (0, 0)), dim=64, dtype="float16")
    check(problem.arrays(), target="cuda:90")
    check(replace(problem, page=12).arrays(), target="cuda:90", window=33)


@pytest.mark.parametrize(
    ("dim", "page", "blocks", "window"),
    [(64, 64, Blocks(128, 64, 8, stages=3), 33), (128, 64, Blocks(128, 64, 8, stages=3), None)],
    ids=["window", "producer"],
)
def test_pages_by_the_engine(
    dim: int, page: int, blocks: Blocks, window: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What lies in a page behind a sequence's last key comes along, and counts for nothing, whatever it is."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    arrays = Problem(((70, 190), (1, 90), (0, 7), (0, 0)), 2, 1, dim, page, "float16").arrays()
    o = np.full_like(arrays["q"], np.nan)
    launch = paged_varlen_launch("cuda:90", **arrays, o=o, window=window, blocks=blocks)
    assert launch.constants["BOX"]
    assert launch.run().asm["ttg"].count("warp_specialize") == (dim == 128)
    expected, size = reference(**arrays, sm_scale=None, window=window, alibi_slopes=None, soft_cap=None)
    assert_accurate(o, expected, SLACK["float16"] * size)


def test_on_xe() -> None:
    """Emulated where there is no GPU."""
    pytest.importorskip("dpctl")
    check(Problem(((20, 40), (1, 30)), dim=64, dtype="float16").arrays(), target="xe:pvc")


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_later_calls_look_at_their_own_tables(kind: str) -> None:
    """The second call of a kind is made as the first was: with other chunks, pages and lengths, and still checked."""
    problem = Problem(((40, 100), (3, 90)), page=24, kind=kind)
    for sequences in (problem.sequences, ((40, 98), (3, 77)), ((1, 100), (42, 91))):
        arrays = replace(problem, sequences=sequences).arrays()
        assert arrays["block_table"].shape == (2, 5)
        check(arrays)
    arrays["query_starts"][1] = 44
    with pytest.raises(ArgumentError, match="query_starts are out of range"):
        check(arrays)


GOOD = Problem(((20, 20), (5, 9)))


def _with(**arrays: Any) -> Any:
    return lambda: GOOD.arrays() | {name: np.array(x, np.int32) for name, x in arrays.items()}


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "rank": (lambda: GOOD.arrays() | {"q": np.zeros((4, 32), np.float32)}, {}, "wrong rank"),
    "dtype": (lambda: replace(GOOD, dtype="float64").arrays(), {}, "unsupported dtype"),
    "starts-dtype": (lambda: GOOD.arrays() | {"query_starts": np.zeros(3)}, {}, "wrong query_starts"),
    "starts-rank": (_with(query_starts=[[0, 20, 25]]), {}, "wrong query_starts"),
    "no-starts": (_with(query_starts=[]), {}, "wrong query_starts"),
    "starts-number": (_with(query_starts=[0, 25]), {}, "paged_attention_varlen: the tables do not fit"),
    "starts-order": (_with(query_starts=[0, 26, 25]), {}, "query_starts are out of range"),
    "starts-end": (_with(query_starts=[0, 20, 26]), {}, "query_starts are out of range"),
    "starts-begin": (_with(query_starts=[-1, 20, 25]), {}, "query_starts are out of range"),
    "few-keys": (_with(seq_lens=[20, 4]), {}, r"fewer keys than queries.*seq_lens\[1\] of 5"),
    "too-long": (_with(seq_lens=[33, 9]), {}, "length is out of range"),
    "page": (_with(block_table=[[0, 1], [5, 0]]), {}, r"found 5 at block_table\[1, 0\]"),
    "window": (GOOD.arrays, {"window": 0}, "window must be positive"),
    "soft-cap": (GOOD.arrays, {"soft_cap": -1.0}, "soft_cap must be positive"),
    "slopes": (GOOD.arrays, {"alibi_slopes": np.zeros(3, np.float32)}, "alibi_slopes do not fit"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, options, message = MISTAKES[name]
    with pytest.raises(ArgumentError, match=f"(?s){message}"):
        paged_attention_varlen(**make(), **options)


def test_gradients_are_refused() -> None:
    arrays = replace(GOOD, kind="torch").arrays()
    arrays["q"].requires_grad_()
    with pytest.raises(ArgumentError, match="cannot be differentiated"):
        paged_attention_varlen(**arrays)
