"""Paged attention in both forms against numpy in float64: dtypes, pages, heads, lengths, options, splits, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from accuracy import assert_accurate, random, wide
from aligned_arrays import aligned
from combinations import each_pair, each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import paged_attention
from mltriton.kernels.attention_paged import (
    Form,
    choose_block_form,
    choose_form,
    choose_splits,
    has_blocks,
    paged_attention_launches,
)
from mltriton.kernels.launch import block_limits

RNG = np.random.default_rng(9)
FORMS = pytest.mark.parametrize("warp_level", [True, False], ids=["warps", "workgroup"])
UNUSED = -7  # in table entries behind a sequence's last page


@dataclass(frozen=True)
class Problem:
    """Sizes; `reference` gives the right result and the size of what is summed."""

    lens: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 2
    dim: int = 64
    page: int = 16
    dtype: str = "float32"
    kind: str = "numpy"

    def arrays(self) -> dict[str, Any]:
        """Random arguments: pages in any order, not-a-numbers in slots that no key lies in."""
        most = max(1, *(-(-length // self.page) for length in self.lens))
        pages = len(self.lens) * most + 1
        table = RNG.permutation(pages)[:-1].astype(np.int32).reshape(len(self.lens), most)
        holes = np.ones((pages, self.page), bool)
        for row, length in zip(table, self.lens, strict=True):
            keys = np.arange(length)
            holes[row[keys // self.page], keys % self.page] = False
            row[-(-length // self.page) :] = UNUSED
        caches = {}
        for name in ("k_cache", "v_cache"):
            caches[name] = random(RNG, (pages, self.page, self.kv_heads, self.dim), self.dtype, self.kind)
            caches[name][self._native(holes, caches[name])] = float("nan")
        q = random(RNG, (len(self.lens), self.heads, self.dim), self.dtype, self.kind)
        tables = {"block_table": self._native(table, q), "seq_lens": self._native(np.array(self.lens, np.int32), q)}
        return {"q": q, **caches, **tables}

    @staticmethod
    def _native(x: np.ndarray, like: Any) -> Any:
        return x if isinstance(like, np.ndarray) else pytest.importorskip("torch").from_numpy(x)


def reference(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, scale: float | None = None,
    alibi_slopes: Any = None, soft_cap: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """softmax(q k^T) v, and the same with |v|: what the bound of the error grows with."""
    q, k_cache, v_cache = wide(q), wide(k_cache), wide(v_cache)
    o, size = np.zeros_like(q), np.zeros_like(q)
    group = q.shape[1] // k_cache.shape[2]
    for sequence, length in enumerate(map(int, seq_lens)):
        keys = np.arange(length)
        pages, slots = np.asarray(block_table)[sequence, keys // k_cache.shape[1]], keys % k_cache.shape[1]
        for head in range(q.shape[1] if length else 0):
            k, v = (cache[pages, slots, head // group] for cache in (k_cache, v_cache))
            scores = k @ q[sequence, head] * (q.shape[2] ** -0.5 if scale is None else scale)
            if soft_cap is not None:
                scores = soft_cap * np.tanh(scores / soft_cap)
            if alibi_slopes is not None:
                scores = scores + wide(alibi_slopes)[head] * (keys - (length - 1))
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            o[sequence, head], size[sequence, head] = weights @ v, weights @ np.abs(v)
    return o, size


# Units of 2^-20: roundings of scores and weights in f32; 16-bit weights are rounded before they are multiplied.
SLACK = {"float32": 8, "float16": 2**10, "bfloat16": 2**12}


def check(arrays: dict[str, Any], warp_level: bool, splits: int | None = None, **options: Any) -> None:
    o = paged_attention(**arrays, **options, warp_level=warp_level, splits=splits)
    options["scale"] = options.pop("sm_scale", None)
    expected, size = reference(**arrays, **options)
    assert type(o) is type(arrays["q"]) and o.dtype == arrays["q"].dtype
    dtype = str(o.dtype).removeprefix("torch.")
    assert_accurate(o, expected, SLACK[dtype] * size)


LENGTHS = (100, 0, 1, 64, 333)


@each_pair(("page", [16, 32, 64]), ("dtype", ["float32", "float16", "bfloat16"]), ("warp_level", [True, False]))
def test_dtypes_and_pages(page: int, dtype: str, warp_level: bool) -> None:
    check(Problem(LENGTHS, page=page, dtype=dtype).arrays(), warp_level)


@each_pair(("dim", [1, 40, 96, 128, 256]), ("dtype", ["float32", "bfloat16"]), ("warp_level", [True, False]))
def test_dimensions(dim: int, dtype: str, warp_level: bool) -> None:
    check(Problem((70, 300), dim=dim, dtype=dtype).arrays(), warp_level)


@each_value(("heads, kv_heads", [(4, 4), (6, 1), (16, 1), (32, 8), (9, 3), (3, 3)]), ("warp_level", [True, False]))
def test_heads(heads: int, kv_heads: int, warp_level: bool) -> None:
    check(Problem((70, 300), heads, kv_heads).arrays(), warp_level)


@FORMS
@pytest.mark.parametrize("splits", [1, 2, 5, 100])
def test_lengths_and_splits(splits: int, warp_level: bool) -> None:
    """Around page ends, blocks, one block for each warp, and splits without any key."""
    lens = (0, 1, 15, 16, 17, 255, 256, 257, 512, 1023, 1024, 1025, 1500)
    check(Problem(lens, dim=32).arrays(), warp_level, splits)


@FORMS
def test_no_keys_at_all(warp_level: bool) -> None:
    arrays = Problem((0, 0)).arrays()
    assert (paged_attention(**arrays, warp_level=warp_level) == 0).all()
    arrays["block_table"] = arrays["block_table"][:, :0]
    assert (paged_attention(**arrays, warp_level=warp_level) == 0).all()


@FORMS
def test_nothing_to_do(warp_level: bool) -> None:
    arrays = {name: array[:0] for name, array in Problem((3,)).arrays().items()}
    assert paged_attention(**arrays, warp_level=warp_level).shape == (0, 4, 64)


@FORMS
def test_sequences_that_share_pages(warp_level: bool) -> None:
    """A common prompt; and a sequence that has one page twice."""
    arrays = Problem((90, 90, 90)).arrays()
    arrays["block_table"][1, :4] = arrays["block_table"][0, :4]
    arrays["block_table"][2, 1] = arrays["block_table"][2, 0]
    check(arrays, warp_level)


@FORMS
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_strides(kind: str, warp_level: bool) -> None:
    """Heads outside of pages, dimensions that are not next to each other, columns of tables."""
    arrays = Problem((33, 80), kind=kind).arrays()
    twice = {name: np.repeat(np.asarray(array), 2, -1) for name, array in arrays.items()}
    if kind == "torch":
        twice = {name: pytest.importorskip("torch").from_numpy(array) for name, array in twice.items()}
    check({name: array[..., ::2] for name, array in twice.items()}, warp_level)
    cache = arrays["k_cache"]
    by_head = cache.swapaxes(1, 2)
    by_head = (by_head.contiguous() if kind == "torch" else np.ascontiguousarray(by_head)).swapaxes(1, 2)
    check({**arrays, "k_cache": by_head}, warp_level)


@each_value(("dtype", ["float32", "bfloat16"]), ("warp_level", [True, False]))
def test_options(dtype: str, warp_level: bool) -> None:
    arrays = Problem((70, 0, 300), heads=6, dtype=dtype).arrays()
    slopes = Problem._native(2.0 ** -np.arange(1, 7, dtype=np.float32), arrays["q"])
    check(arrays, warp_level, sm_scale=0.7)
    check(arrays, warp_level, soft_cap=1.5)
    check(arrays, warp_level, alibi_slopes=slopes)
    check(arrays, warp_level, 2, alibi_slopes=slopes, soft_cap=20.0, sm_scale=-0.3)


@FORMS
def test_large_scores(warp_level: bool) -> None:
    """Scores of some thousands, whose exponentials only exist relative to the largest one."""
    arrays = Problem((300, 40)).arrays()
    arrays["q"] *= 1000
    o, (expected, size) = paged_attention(**arrays, warp_level=warp_level, splits=2), reference(**arrays)
    assert np.abs(o - expected).max() <= 2e-2 * size.max()


@FORMS
def test_torch(warp_level: bool) -> None:
    check(Problem(LENGTHS, kind="torch").arrays(), warp_level)


def test_forms_agree_bit_for_bit_on_one_block() -> None:
    arrays = Problem((120, 7)).arrays()
    forms = [paged_attention(**arrays, warp_level=warp_level, splits=1) for warp_level in (True, False)]
    np.testing.assert_array_equal(*forms)


@pytest.mark.parametrize("warps", [1, 2, 16])
def test_numbers_of_warps(warps: int) -> None:
    """Fewer and more warps than blocks, blocks of keys smaller than a page and larger."""
    arrays = Problem((0, 1, 17, 130, 200), page=32).arrays()
    expected, size = reference(**arrays)
    for keys in (16, 64):
        o = np.full_like(arrays["q"], np.nan)
        (launch,) = paged_attention_launches(**arrays, o=o, form=Form(True, 1, keys))
        launch._replace(constants=launch.constants | {"num_warps": warps}).run()
        assert_accurate(o, expected, SLACK["float32"] * size)


@each_value(
    (
        "problem, sizes",
        [
            (Problem((0, 1, 17, 130, 200), page=32, dtype="float16"), (2, 32, 32)),
            (Problem((65, 200), 5, 1, 40, page=48), (2, 32, 16)),
            (Problem((33, 90), 4, 4, 80, page=16, dtype="float16"), (1, 64, 16)),
            (Problem((0, 33, 90), 6, 2, 80, page=8, dtype="float16"), (4, 64, 8)),
            (Problem((1, 66), 4, 1, 40, page=12), (4, 32, 4)),
            (Problem((0, 1, 17, 100), 3, 3, 33, page=1, dtype="float16"), (1, 64, 1)),
            (Problem((19, 90), 4, 2, 96, page=7), (2, 16, 1)),
        ],
    ),
    ("warp_level", [True, False]),
)
def test_pages_as_blocks_of_a_matrix(problem: Problem, sizes: tuple[int, int, int], warp_level: bool) -> None:
    """Several blocks in a page and several pages in a step; a head's queries in parts; not-a-numbers behind a head and
    behind a sequence; slopes, a cap, splits.
    """
    arrays = problem.arrays()
    options = {"alibi_slopes": RNG.uniform(0.0, 0.1, problem.heads).astype(np.float32), "soft_cap": 4.0}
    expected, size = reference(**arrays, **options)
    o = np.full_like(arrays["q"], np.nan)
    for launch in paged_attention_launches(**arrays, o=o, **options, form=Form(warp_level, *sizes), splits=2):
        launch.run()
    assert_accurate(o, expected, SLACK[problem.dtype] * size)


@FORMS
def test_pages_by_head_as_blocks(warp_level: bool) -> None:
    """Caches whose heads lie behind each other, so that a head moves rows and not columns."""
    arrays = Problem((40, 90)).arrays()
    expected, size = reference(**arrays)
    for name in ("k_cache", "v_cache"):
        arrays[name] = np.ascontiguousarray(arrays[name].swapaxes(1, 2)).swapaxes(1, 2)
    o = np.full_like(arrays["q"], np.nan)
    (launch,) = paged_attention_launches(**arrays, o=o, form=Form(warp_level, 2, 32, 16))
    launch.run()
    assert_accurate(o, expected, SLACK["float32"] * size)


@pytest.mark.parametrize(
    ("problem", "warp_level", "block"),
    [
        (Problem((0, 70, 300), 6, 1, 40, page=32, dtype="float16"), True, 32),
        (Problem((17, 100), 2, 2, page=16, dtype="float16"), False, 16),
        (Problem((0, 1, 75), 2, 2, 32, page=24, dtype="float16"), True, 8),
        (Problem((0, 9, 75), 2, 1, 24, page=5, dtype="float16"), True, 1),
    ],
)
def test_blocks_on_xe(problem: Problem, warp_level: bool, block: int) -> None:
    """Emulated where there is no GPU, through the library's function: pages that are rectangles, pages of several, and
    keys with an address each.
    """
    pytest.importorskip("dpctl")
    arrays = problem.arrays()
    for name in ("k_cache", "v_cache"):
        arrays[name] = aligned(arrays[name], 16)  # as numpy does
    limits = block_limits("xe:pvc")
    assert limits is not None
    form = choose_block_form(arrays["q"], arrays["k_cache"], arrays["v_cache"], warp_level, limits)
    assert form.block == block
    expected, size = reference(**arrays)
    o = paged_attention(**arrays, warp_level=warp_level, target="xe:pvc")
    assert_accurate(o, expected, SLACK[problem.dtype] * size)


def test_addresses_on_xe() -> None:
    """Emulated: a cache whose dimensions are not contiguous, with everything around the scores."""
    pytest.importorskip("dpctl")
    arrays = Problem((0, 30), 2, 1, 16, page=12, dtype="float16").arrays()
    for name in ("k_cache", "v_cache"):
        arrays[name] = np.repeat(arrays[name], 2, 3)[..., ::2]
    options = {"alibi_slopes": RNG.uniform(0.0, 0.1, 2).astype(np.float32), "soft_cap": 4.0}
    expected, size = reference(**arrays, **options)
    o = paged_attention(**arrays, **options, warp_level=False, target="xe:pvc")
    assert_accurate(o, expected, SLACK["float16"] * size)


def test_the_largest_blocks() -> None:
    """Strides that make no matrix, rows that are no multiple of what the hardware takes, pages of any size."""
    limits = block_limits("xe:pvc")
    assert limits is not None

    def form(problem: Problem, change: Callable[[np.ndarray], np.ndarray] = lambda cache: cache) -> Form:
        arrays = problem.arrays()
        k_cache, v_cache = (change(aligned(arrays[name])) for name in ("k_cache", "v_cache"))
        return choose_block_form(arrays["q"], k_cache, v_cache, True, limits)

    assert form(Problem((64,))) == Form(True, 2, 32, 16)
    assert form(Problem((64,), 8, 1, dim=256, dtype="float16")) == Form(True, 4, 32, 16)
    assert [form(Problem((64,), page=page)).block for page in (24, 12, 6, 7)] == [8, 4, 1, 1]
    assert form(Problem((64,), dim=33)).block == 1
    assert form(Problem((64,)), lambda cache: cache[..., ::2][..., :32]).block == 1
    assert block_limits("cpu") is None and block_limits(None) is None


def test_blocks_start_where_launches_copy_them() -> None:
    """Arrays in main memory at multiples of 16 bytes, those on a GPU at multiples of 64."""
    limits, cache = block_limits("xe:pvc"), Problem((64,)).arrays()["k_cache"]
    assert limits is not None
    assert [has_blocks(aligned(cache, beyond), limits) for beyond in (0, 16, 8)] == [True, True, False]

    class OnGpu(np.ndarray):
        device = "xpu:0"

    assert [has_blocks(aligned(cache, beyond).view(OnGpu), limits) for beyond in (0, 16)] == [True, False]


def test_values_alone_as_blocks() -> None:
    """Keys that are no matrix have an address each."""
    arrays = Problem((64,)).arrays()
    v_cache, limits = aligned(arrays["v_cache"]), block_limits("xe:pvc")
    assert limits is not None
    arrays["k_cache"] = np.repeat(arrays["k_cache"], 2, 3)[..., ::2]
    assert choose_block_form(arrays["q"], arrays["k_cache"], v_cache, True, limits).block == 8
    o = np.full_like(arrays["q"], np.nan)
    expected, size = reference(**arrays)
    (launch,) = paged_attention_launches(**arrays, o=o, form=Form(True, 2, 32, 8))
    launch.run()
    assert_accurate(o, expected, SLACK["float32"] * size)


def test_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough programs for the threads, no split of few keys; heads together as memory has them."""
    many, few = Problem((64,) * 64, 8, 8).arrays(), Problem((4096,), 8, 8).arrays()
    short = Problem((64,), 8, 8).arrays()
    form = choose_form(few["k_cache"], warp_level=True)
    assert form.heads == 8 and choose_form(Problem((1,), 12, 12).arrays()["k_cache"], warp_level=True).heads == 4

    def splits(arrays: dict[str, Any]) -> int:
        return choose_splits(arrays["q"], arrays["k_cache"], arrays["block_table"], form)

    assert splits(many) == splits(short) == 1 < splits(few) <= 8
    monkeypatch.setattr("mltriton.kernels.attention_paged.num_threads", lambda: 16)
    assert splits(few) == 4096 // 256
    (launch,) = paged_attention_launches(**short, o=np.empty_like(short["q"]), form=form)
    assert launch.constants["num_warps"] == 1  # of which one thread does the work


# Mistakes

NUMPY = Problem((20, 5))


def with_shape(name: str, *shape: int) -> dict[str, Any]:
    arrays = NUMPY.arrays()
    return arrays | {name: np.zeros(shape, arrays[name].dtype)}


MISTAKES: dict[str, tuple[Any, str]] = {
    "rank": (lambda: with_shape("q", 4, 64), "wrong rank"),
    "cache-rank": (lambda: with_shape("v_cache", 5, 16, 128), "wrong rank"),
    "caches-differ": (lambda: with_shape("v_cache", 5, 16, 1, 64), "shapes do not fit"),
    "dim": (lambda: with_shape("q", 2, 4, 32), "shapes do not fit"),
    "heads": (lambda: with_shape("q", 2, 5, 64), "kv_heads must divide heads"),
    "no-kv-heads": (lambda: NUMPY.arrays() | _caches(5, 16, 0, 64), "kv_heads must divide heads"),
    "no-slots": (lambda: NUMPY.arrays() | _caches(5, 0, 2, 64), "unsupported size"),
    "wide": (lambda: replace(NUMPY, dim=300).arrays(), "unsupported size"),
    "dtype": (lambda: replace(NUMPY, dtype="float64").arrays(), "unsupported dtype"),
    "dtypes": (lambda: NUMPY.arrays() | {"q": np.zeros((2, 4, 64), np.float16)}, "differ in kind or dtype"),
    "table-shape": (lambda: with_shape("block_table", 3, 2), "tables do not fit"),
    "lens-shape": (lambda: with_shape("seq_lens", 2, 1), "tables do not fit"),
    "table-dtype": (lambda: NUMPY.arrays() | {"block_table": np.zeros((2, 2), np.int64)}, "wrong dtype of a table"),
    "lens-dtype": (lambda: NUMPY.arrays() | {"seq_lens": np.zeros(2)}, "wrong dtype of a table"),
    "table-kind": (lambda: NUMPY.arrays() | {"block_table": [[0]]}, "block_table is no array"),
    "too-long": (lambda: NUMPY.arrays() | {"seq_lens": np.array([33, 1], np.int32)}, "length is out of range"),
    "negative-length": (lambda: NUMPY.arrays() | {"seq_lens": np.array([-1, 1], np.int32)}, "length is out of range"),
    "page": (lambda: NUMPY.arrays() | {"block_table": np.array([[0, 5], [1, -1]], np.int32)}, "a page that the cache"),
    "negative-page": (
        lambda: NUMPY.arrays() | {"block_table": np.array([[0, 1], [-1, 0]], np.int32)},
        r"found -1 at block_table\[1, 0\]",
    ),
    "slopes": (lambda: NUMPY.arrays() | {"alibi_slopes": np.zeros(3, np.float32)}, "alibi_slopes do not fit"),
    "slopes-dtype": (lambda: NUMPY.arrays() | {"alibi_slopes": np.zeros(4)}, "alibi_slopes do not fit"),
    "slopes-stride": (
        lambda: NUMPY.arrays() | {"alibi_slopes": np.zeros(8, np.float32)[::2]},
        "alibi_slopes must be contiguous",
    ),
    "soft-cap": (lambda: NUMPY.arrays() | {"soft_cap": 0.0}, "soft_cap must be positive"),
    "soft-cap-text": (lambda: NUMPY.arrays() | {"soft_cap": "x"}, "soft_cap must be a number"),
    "scale": (lambda: NUMPY.arrays() | {"sm_scale": [1.0, 2.0]}, "sm_scale must be a number"),
    "splits": (lambda: NUMPY.arrays() | {"splits": 0}, "splits must be positive"),
    "splits-float": (lambda: NUMPY.arrays() | {"splits": 1.5}, "splits must be an integer"),
}


def _caches(*shape: int) -> dict[str, Any]:
    return dict.fromkeys(("k_cache", "v_cache"), np.zeros(shape, np.float32))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, message = MISTAKES[name]
    with pytest.raises(ArgumentError, match=message):
        paged_attention(**make())


@FORMS
def test_later_calls_look_at_their_own_tables(warp_level: bool) -> None:
    """The second call of a kind is made as the first was: with other pages and lengths, and still checked."""
    arrays = Problem((600, 1200), 8, 2).arrays()
    for cache in ("k_cache", "v_cache"):
        np.nan_to_num(arrays[cache], copy=False)  # other tables reach slots that no key lay in
    check(arrays, warp_level, splits=2)
    arrays["block_table"] = arrays["block_table"][:, ::-1].copy()
    arrays["seq_lens"] = np.array([1200, 77], np.int32)
    arrays["block_table"][arrays["block_table"] < 0] = 0
    check(arrays, warp_level, splits=2)
    arrays["block_table"][0, 3] = len(arrays["k_cache"])
    with pytest.raises(ArgumentError, match=r"block_table\[0, 3\]"):
        check(arrays, warp_level, splits=2)
    arrays["block_table"][0, 3], arrays["seq_lens"][0] = 0, -1
    with pytest.raises(ArgumentError, match="length is out of range"):
        check(arrays, warp_level, splits=2)


def test_its_name_is_that_of_no_module() -> None:
    """Whoever imports modules first, `mltriton.kernels.paged_attention` is the function."""
    import mltriton.kernels

    assert mltriton.kernels.paged_attention is paged_attention
