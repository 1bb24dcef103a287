"""`matmul` on the CPU against numpy in float64: dtypes, forms, odd sizes, strides, batches, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import assert_accurate, dtype_of, random, wide
from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import grouped_gemm, matmul, split_k_matmul, stream_k_matmul
from mltriton.kernels.gemm import Form, choose_tile
from mltriton.kernels.gemm_resident import STEP, Share, choose_share, resident_launch
from mltriton.kernels.gemm_tiles import WARP_SHARES, choose_warp_tiles
from mltriton.kernels.products import product_of
from processors import ROUGH_POWERS

FORMS: list[Form] = ["pointer", "block_pointer", "descriptor"]
RNG = np.random.default_rng(1)


def check(a: Any, b: Any, form: Form = "auto") -> Any:
    """Multiply; the errors of sums are measured by |a| |b|. Returns the product."""
    c = matmul(a, b, form=form)
    assert type(c) is type(a)
    assert dtype_of(c) == dtype_of(a)
    assert_accurate(c, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))
    return c


@each_value(("dtype", ["float32", "float64", "float16", "bfloat16"]), ("form", FORMS))
def test_every_form_and_dtype(dtype: str, form: Form) -> None:
    check(random(RNG, (65, 150), dtype), random(RNG, (150, 47), dtype), form)


@pytest.mark.parametrize("form", FORMS)
def test_int8_is_exact_and_wraps_around(form: Form) -> None:
    a, b = random(RNG, (33, 300), "int8"), random(RNG, (300, 70), "int8")
    exact = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(matmul(a, b, form=form), exact.astype(np.int8))


@pytest.mark.parametrize(("of_a", "of_b"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "uint8")])
def test_unsigned_bytes(of_a: str, of_b: str) -> None:
    """Exact as int32, wrapped around as the dtype of a; with a bias of their own, and stored as floats."""
    a, b = random(RNG, (33, 300), of_a), random(RNG, (300, 70), of_b)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(matmul(a, b, out_dtype="int32"), exact)
    np.testing.assert_array_equal(matmul(a, b), exact.astype(of_a))
    bias = random(RNG, (70,), "uint8")
    np.testing.assert_array_equal(matmul(a, b, bias=bias, out_dtype="float32"), exact + bias)


@pytest.mark.parametrize("kinds", [("float8_e4m3fn",) * 2, ("float8_e5m2", "float8_e4m3fn")])
def test_floats_of_8_bits(kinds: tuple[str, str]) -> None:
    """Of torch alone; both kinds in one product, sums in f32, results rounded to the dtype of a."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    a, b = (torch.randn(size).to(getattr(torch, kind)) for size, kind in zip(((37, 70), (70, 50)), kinds, strict=True))
    c, rounded = matmul(a, b, activation="relu", out_dtype="float32"), matmul(a, b)
    exact = a.double() @ b.double()
    torch.testing.assert_close(c.double(), exact.relu(), rtol=1e-5, atol=1e-5)
    assert rounded.dtype == a.dtype
    assert (rounded.float() == matmul(a, b, out_dtype="float32").to(a.dtype).float()).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "float16", "bfloat16"])
def test_torch_agrees_on_kind_and_dtype(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = random(RNG, (20, 30), dtype, "torch"), random(RNG, (30, 40), dtype, "torch")
    c = matmul(a, b)
    assert c.dtype == (a @ b).dtype
    assert isinstance(c, torch.Tensor)
    assert c.is_contiguous()
    if dtype in ("int8", "uint8"):
        assert torch.equal(c, a @ b)


@pytest.mark.parametrize(
    "m, n, k",
    [(1, 1, 1), (1, 100, 33), (100, 1, 33), (3, 5, 1), (16, 16, 16), (129, 257, 65), (300, 200, 513), (256, 512, 256)],
)
def test_sizes(m: int, n: int, k: int) -> None:
    check(random(RNG, (m, k)), random(RNG, (k, n)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("m, n, k", [(128, 64, 64), (200, 70, 33), (323, 300, 510), (128, 40, 1), (260, 65, 1000)])
def test_columns_that_stay_packed(m: int, n: int, k: int, dtype: str) -> None:
    """By two programs, of which the last has fewer rows and columns, and by one; B as it is and transposed."""
    for b in (random(RNG, (k, n), dtype), random(RNG, (n, k), dtype).T):
        a = random(RNG, (m, k), dtype)
        for rows in (m // 2 // STEP * STEP + STEP, 512):
            c = np.zeros((m, n), "float32" if dtype != "int8" else "int32")
            resident_launch(a[None], b[None], c[None], Share(rows, 64)).run()
            if dtype == "int8":
                np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
            else:
                assert_accurate(c, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("item", [1, 2])
def test_shares_fit(item: int, threads: int) -> None:
    """Packed columns fit in the second-level cache, and every thread has rows; wide elements have other kernels."""
    for m, n, k in ((1024, 1024, 1024), (300, 300, 300), (5000, 70, 2048), (1 << 30, 64, 8)):
        share = choose_share(m, n, k, item, 1, threads)
        if share is not None:
            assert share.columns * k * item <= 1 << 20
            assert share.rows % STEP == 0
            assert -(-m // share.rows) * -(-n // share.columns) >= threads // 2
    assert choose_share(1024, 1024, 1024, item, 1, threads) is not None
    assert choose_share(1024, 1024, 1024, 4, 1, threads) is None
    assert choose_share(8, 1024, 1024, item, 1, threads) is None
    assert choose_share(1024, 1024, 4096, item, 1, threads) is None


STRIDED = {
    "a transposed": lambda: (random(RNG, (90, 70)).T, random(RNG, (90, 50))),
    "b transposed": lambda: (random(RNG, (70, 90)), random(RNG, (50, 90)).T),
    "both transposed": lambda: (random(RNG, (90, 70)).T, random(RNG, (50, 90)).T),
    "parts of larger arrays": lambda: (random(RNG, (99, 200))[5:75, 7:97], random(RNG, (100, 80))[3:93, 11:61]),
    "every third column": lambda: (random(RNG, (70, 270))[:, ::3], random(RNG, (90, 150))[:, ::3]),
    "backwards": lambda: (random(RNG, (70, 90))[::-1], random(RNG, (90, 50))[::-1, ::-1]),
    "one row for all": lambda: (np.broadcast_to(random(RNG, (1, 90)), (70, 90)), random(RNG, (90, 50))),
}


@each_value(("case", STRIDED), ("form", ["pointer", "block_pointer", "auto"]))
def test_any_strides(case: str, form: Form) -> None:
    check(*STRIDED[case](), form)


def test_torch_views() -> None:
    a, b = random(RNG, (60, 40), "bfloat16").T, random(RNG, (60, 99), "bfloat16")[:, 1:90:2]
    check(a, b)


BATCHES = [
    ((3, 20, 30), (3, 30, 25)),
    ((3, 20, 30), (30, 25)),
    ((20, 30), (3, 30, 25)),
    ((4, 1, 20, 30), (3, 30, 25)),
    ((2, 1, 3, 20, 30), (5, 1, 30, 25)),
    ((1, 1, 20, 30), (1, 30, 25)),
]


@pytest.mark.parametrize("a_shape, b_shape", BATCHES)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_batches_broadcast(a_shape: tuple[int, ...], b_shape: tuple[int, ...], kind: str) -> None:
    check(random(RNG, a_shape, kind=kind), random(RNG, b_shape, kind=kind))


def test_batches_of_a_transposed_stack() -> None:
    check(random(RNG, (20, 5, 30)).swapaxes(0, 1), random(RNG, (25, 30, 5)).transpose(2, 1, 0))


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((4, 5), (5, 0)), ((2, 0, 5), (5, 3)), ((0, 4, 5), (5, 3))])
def test_nothing_to_compute(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    assert matmul(a, b).shape == (a @ b).shape


def test_an_empty_sum_is_zero() -> None:
    np.testing.assert_array_equal(matmul(np.ones((3, 0), np.float32), np.ones((0, 4), np.float32)), np.zeros((3, 4)))


def test_not_a_number_stays_in_its_row() -> None:
    a, b = random(RNG, (70, 40)), random(RNG, (40, 50))
    a[66, 3] = np.nan
    c = matmul(a, b)
    assert np.isnan(c[66]).all()
    assert np.isfinite(np.delete(c, 66, 0)).all()


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 150),
    n=st.integers(1, 150),
    k=st.integers(1, 300),
    dtype=st.sampled_from(["float32", "float64", "float16"]),
    order=st.tuples(st.sampled_from("CF"), st.sampled_from("CF")),
    form=st.sampled_from(["pointer", "block_pointer", "auto"]),
)
def test_random_problems(m: int, n: int, k: int, dtype: str, order: tuple[str, str], form: Form) -> None:
    rng = np.random.default_rng(m * 1000 + n)
    a, b = (np.asarray(random(rng, shape, dtype), order=o) for shape, o in (((m, k), order[0]), ((k, n), order[1])))
    check(a, b, form)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([1, 2, 4, 8]))
def test_tiles_are_powers_of_two_that_a_descriptor_takes(m: int, n: int, k: int, item: int) -> None:
    tile = choose_tile(m, n, k, item)
    assert all(size & (size - 1) == 0 for size in tile[:3])
    assert tile.n * item >= 16
    assert tile.k * item >= 16


def test_one_thread_takes_larger_blocks_than_several() -> None:
    """Several blocks share work between threads; one packs B once."""
    assert choose_tile(512, 512, 512, 4, threads=1)[:2] == (512, 512)
    assert choose_tile(512, 512, 512, 4, threads=2)[:2] == (256, 256)


ONES = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    "a, b, message",
    [
        (ONES, [[1.0]], "b is no array"),
        (ONES, ONES.astype(np.float64), "the arrays differ in kind or dtype"),
        (ONES.astype(np.int32), ONES.astype(np.int32), "matmul: unsupported dtype"),
        (ONES, ONES[0], "matmul: the shapes do not fit"),
        (ONES, ONES[:3], "matmul: the shapes do not fit"),
        (np.ones((2, 4, 4)), np.ones((3, 4, 4)), "matmul: the batch dimensions do not broadcast"),
    ],
)
def test_mistakes(a: Any, b: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        matmul(a, b)


def test_a_descriptor_needs_unit_strides() -> None:
    with pytest.raises(ArgumentError, match="a descriptor needs last strides of 1"):
        matmul(random(RNG, (20, 30)).T, random(RNG, (20, 10)), form="descriptor")


def test_numpy_and_torch_do_not_mix() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match="the arrays differ in kind or dtype"):
        matmul(ONES, torch.ones(4, 4))


@pytest.mark.parametrize("item_bytes", [1, 2, 4])
@pytest.mark.parametrize("shape", [(4096, 4096), (1, 8000), (100, 200), (16, 16), (9000, 64)])
@pytest.mark.parametrize(("family", "most"), [("xe", 32), ("cuda", 8)])
def test_blocks_of_many_warps(item_bytes: int, shape: tuple[int, int], family: str, most: int) -> None:
    """Large matrices get the largest block, small ones enough programs; no warp gets more than registers hold."""
    (rows, columns, group_k, _), warps = choose_warp_tiles(*shape, item_bytes, family=family)
    share_rows, share_columns, depth = WARP_SHARES[family][item_bytes]
    assert group_k == depth and 1 <= warps <= most
    assert max(1, rows // share_rows) * (columns // share_columns) == warps
    assert rows <= max(8, 2 * shape[0])
    if shape == (4096, 4096):
        assert rows * columns == most * share_rows * share_columns


@pytest.mark.parametrize("dtype", [pytest.param("float16", marks=pytest.mark.slow), "float32"])
def test_products_on_xe(dtype: str) -> None:
    """Emulated where there is no GPU: ragged sizes, with everything around the product."""
    pytest.importorskip("dpctl")
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((40, 72), (72, 88)))
    bias, add = rng.standard_normal(88).astype(dtype), rng.standard_normal((40, 88)).astype(dtype)
    c = matmul(a, b, bias=bias, add=add, activation="relu", out_dtype="float32", target="xe:pvc")
    wide = [x.astype(np.float64) for x in (a, b, bias, add)]
    expected = np.maximum(wide[0] @ wide[1] + wide[2] + wide[3], 0)
    np.testing.assert_allclose(c, expected, atol=3e-4)


@pytest.mark.parametrize(("n", "splits"), [(40, None), (1, None), (40, 2)])
def test_prologues_on_xe(n: int, splits: int | None) -> None:
    """Emulated where there is no GPU: rounded to the dtype of a, as on the CPU."""
    pytest.importorskip("dpctl")
    a, b = random(RNG, (2, 70, 96), "float16"), random(RNG, (96, n), "float16")
    arguments = {"prologue": "gelu_tanh", "split_k": splits, "out_dtype": "float32"}
    found, expected = (matmul(a, b, target=target, **arguments) for target in ("xe:pvc", None))
    np.testing.assert_allclose(found, expected, atol=1e-2 if ROUGH_POWERS else 1e-3)


def test_other_products_on_xe() -> None:
    """Emulated where there is no GPU. Of grouped products some are empty; a launch sees none of the operands."""
    pytest.importorskip("dpctl")
    rng = np.random.default_rng(6)
    sizes = [(40, 64, 72), (5, 24, 0), (17, 80, 33), (0, 16, 8)]
    a = [rng.standard_normal((m, k)).astype(np.float16) for m, _, k in sizes]
    b = [rng.standard_normal((n, k)).astype(np.float16).T for _, n, k in sizes]
    found = grouped_gemm(a, b, out_dtype="float32", target="xe:pvc")
    for x, y, c in zip(a, b, found, strict=True):
        assert c.flags.c_contiguous
        np.testing.assert_allclose(c, x.astype(np.float64) @ y.astype(np.float64), atol=1e-4)
    left, right = rng.standard_normal((20, 170), np.float32), rng.standard_normal((170, 40), np.float32)
    for product in (split_k_matmul, stream_k_matmul):
        np.testing.assert_allclose(product(left, right, 3, target="xe:pvc"), left @ right, atol=1e-4)


@pytest.mark.parametrize("turned", [False, True])
def test_a_product_that_is_asked_for_again_is_computed_anew(turned: bool) -> None:
    """The second one takes a shorter way, which must see other values, strides, dtypes of the result and shapes."""
    rng = np.random.default_rng(5)
    for seed in range(3):
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((37, 40), (40, 29)))
        b = np.asfortranarray(b) if turned else b
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for dtype, tolerance in ((None, 1e-5), ("float64", 1e-5), ("float16", 5e-3)):
            found = matmul(a, b, out_dtype=dtype)
            assert found.dtype == np.dtype(dtype or "float32")
            np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance * 10, err_msg=str(seed))
        np.testing.assert_allclose(matmul(a[:20], b[:, 3:]), exact[:20, 3:], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_batches_by_one_matrix_are_one_product(kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((2, 3, 4, 40), (40, 24), (24,)))
    add = rng.standard_normal((3, 4, 24), np.float32)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        a, b, bias, add = map(torch.from_numpy, (a, b, bias, add))
    sparse = a[..., ::2][:, :, :, :20]
    for left, right, rows in ((a, b, 24), (a, b[None, None], 24), (a[:, 1:2], b, None), (sparse, b[:20], 24)):
        product = product_of(left, right)
        assert tuple(product.a.shape[:2]) == ((1, rows) if rows else (2, 4))
        assert product.out.shape == (*product.a.shape[:2], 24)
        for how in ({}, {"bias": bias, "activation": "relu"}, {"split_k": 2}):
            exact = np.asarray(left, np.float64) @ np.asarray(right, np.float64)
            exact = np.maximum(exact + np.asarray(bias), 0) if "bias" in how else exact
            np.testing.assert_allclose(np.asarray(matmul(left, right, **how)), exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        np.asarray(matmul(a, b, add=add)), np.asarray(a) @ np.asarray(b) + np.asarray(add), rtol=1e-4, atol=1e-4
    )
