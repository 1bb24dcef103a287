"""What an atomic update gives, used at places other than its own: through new dimensions, reductions, transposes."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import run


@triton.jit
def as_index(counter, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    old = tl.atomic_cas(counter + i, i * 3, i) if CAS else tl.atomic_add(counter + i, i)
    tl.store(out + (old // 3).to(tl.uint32) * COLUMNS + j, old + j)


@triton.jit
def as_row(counter, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAS: tl.constexpr):
    j = tl.arange(0, COLUMNS)
    old = tl.atomic_cas(counter + j, j * 3, j) if CAS else tl.atomic_add(counter + j, j)
    i = tl.arange(0, ROWS)
    tl.store(out + i[:, None] * COLUMNS + j[None, :], old[None, :] + i[:, None])


@triton.jit
def transposed(counter, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    places = counter + i * COLUMNS + j
    old = tl.atomic_cas(places, 3 * (i * COLUMNS + j), j) if CAS else tl.atomic_add(places, j)
    total = tl.sum(old, 1)
    turned = tl.trans(old) + total[None, :] + tl.max(old)
    tl.store(out + tl.arange(0, COLUMNS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :], turned)


def expected(kernel, before: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if kernel is transposed:
        old = before[: rows * columns].reshape(rows, columns)
        return (old.T + old.sum(1)[None, :] + old.max()).ravel()
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    return ((before[:rows][:, None] + j) if kernel is as_index else before[:columns][None, :] + i).ravel()


@pytest.mark.parametrize("kernel", [as_index, as_row, transposed], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (16, 4), (4, 64), (64, 32)], ids=str)
@pytest.mark.parametrize("cas", [False, True], ids=["rmw", "cas"])
@pytest.mark.parametrize("level", ["", "intrinsic"])
def test_results_of_atomics(kernel, shape: tuple[int, int], cas: bool, level: str, tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    rows, columns = shape
    counter = np.arange(rows * columns + columns, dtype=np.int32) * 3
    before, out = counter.copy(), np.full(rows * columns, -1, np.int32)
    compiled = kernel[(1,)](counter, out, rows, columns, cas)
    if level:
        counter, out = before.copy(), np.full(rows * columns, -1, np.int32)
        run(compiled.job.module(level), [counter, out], (1,))
    np.testing.assert_array_equal(out, expected(kernel, before, rows, columns))
    assert (counter != before).any() == (max(shape) > 1)


@triton.jit
def chosen_rows(x, table, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    best = tl.argmax(tl.load(x + i[:, None] * COLUMNS + j[None, :]), 1)
    row = tl.load(table + best[:, None] + j[None, :] * COLUMNS)
    tl.store(out + best[:, None] * COLUMNS + j[None, :], row)


def test_results_of_reductions_as_indices(tmp_path, monkeypatch):
    """The same for what a reduction gives: its loop is still open when the store asks which way memory runs."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    random = np.random.default_rng(0)
    x, table = random.standard_normal((8, 16), np.float32), random.standard_normal((16, 16), np.float32)
    out, expected = np.zeros((2, 16, 16), np.float32)
    chosen_rows[(1,)](x, table, out, ROWS=8, COLUMNS=16)
    for best in x.argmax(1):
        expected[best] = table[:, best]
    np.testing.assert_array_equal(out, expected)
