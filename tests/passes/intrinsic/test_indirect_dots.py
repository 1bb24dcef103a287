"""Dots of few rows read their right operand line by line: where, and with what results at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_pair, each_value
from levels import check_levels
from mltriton.compiler import compile
from processors import WIDTHS

RNG = np.random.default_rng(11)
TARGETS = ["cpu", *WIDTHS]


@triton.jit
def gathered_rows(
    a_ptr, b_ptr, table_ptr, c_ptr, n_rows, width,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """c = a b, or a b^T, where row i of b is row table[i] of an array; rows from n_rows on and columns from width on
    are zeros.
    """
    rows, columns = tl.arange(0, N if TRANSPOSED else K), tl.arange(0, K if TRANSPOSED else N)
    places = tl.load(table_ptr + rows, rows < n_rows, 0)
    inside = (rows < n_rows)[:, None] & (columns < width)[None, :]
    b = tl.load(b_ptr + places[:, None] * width + columns[None, :], inside, 0.0)
    a = tl.load(a_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    c = tl.dot(a, tl.trans(b) if TRANSPOSED else b, input_precision="ieee")
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], c)


def arguments(m: int, n: int, k: int, dtype: str, transposed: bool, rows: int, width: int) -> dict[str, Any]:
    table = RNG.integers(0, 200, n if transposed else k).astype(np.int32)
    given = {"a_ptr": f"{m}x{k}:{dtype}", "b_ptr": f"200x{width}:{dtype}", "table_ptr": table, "c_ptr": f"{m}x{n}:fp32"}
    return given | {"n_rows": rows, "width": width, "M": m, "N": n, "K": k, "TRANSPOSED": transposed}


@each_pair(("transposed", [False, True]), ("dtype", ["fp32", "bf16", "fp16"]), ("target", TARGETS))
def test_gathered_rows(transposed: bool, dtype: str, target: str) -> None:
    for m, lines, length in ((4, 32, 64), (1, 128, 32)):
        n, k = (lines, length) if transposed else (length, lines)
        given = arguments(m, n, k, dtype, transposed, rows=lines - 5, width=length)
        check_levels(gathered_rows, given, (1,), target=target, uninitialised=True)


@pytest.mark.parametrize("m", [1, 2, 8, 16])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_and_cut_lines(transposed: bool, m: int) -> None:
    """A mask along the lines fails: they are copied."""
    check_levels(gathered_rows, arguments(m, 64, 64, "fp32", transposed, 50, 41), (1,), uninitialised=True)


def test_where_lines_are_used() -> None:
    """Up to eight rows; a matrix that runs along its rows is read as it is."""
    signature = "*fp32:16, *fp32:16, *i32:16, *fp32:16, i32, i32, {}, 64, 64, {}"

    def dots(m: int, transposed: bool) -> str:
        text = signature.format(m, transposed)
        return compile(gathered_rows, signature=text, target="cpu").asm["intrinsic"]

    for transposed in (False, True):
        few = dots(8, transposed)
        assert "tile.indirect_dot" in few
        assert ("b_layout" in few) == transposed
        assert "tile.indirect_dot" not in dots(16, transposed)


@triton.jit
def batch(a_ptr, b_ptr, c_ptr, stride_b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, B: tl.constexpr):
    """c[i] += a[i] b[i]^T for a batch whose matrices lie interleaved."""
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + n[None, :, None] * stride_b + i[:, None, None] * K + k[None, None, :])
    places = c_ptr + i[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :]
    c = tl.dot(a, tl.trans(b, 0, 2, 1), tl.load(places), input_precision="ieee")
    tl.store(places, c)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_batch(dtype: str) -> None:
    given: dict[str, Any] = {"a_ptr": f"4x2x32:{dtype}", "b_ptr": f"64x4x32:{dtype}", "c_ptr": "4x2x64:fp32"}
    given |= {"stride_b": 128, "M": 2, "N": 64, "K": 32, "B": 4}
    check_levels(batch, given, (1,), uninitialised=True)


@triton.jit
def block_pointers(a_ptr, b_ptr, c_ptr, n, k, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One row block of a times b^T, b [n, k] through a block pointer, with steps along k."""
    a = tl.make_block_ptr(a_ptr, (M, k), (k, 1), (0, 0), (M, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (1, k), (0, tl.program_id(0) * BN), (BK, BN), (0, 1))
    c = tl.make_block_ptr(c_ptr, (M, n), (n, 1), (0, tl.program_id(0) * BN), (M, BN), (1, 0))
    acc = tl.zeros([M, BN], tl.float32)
    for _ in range(0, k, BK):
        left, right = tl.load(a, boundary_check=(1,)), tl.load(b, boundary_check=(0, 1))
        acc = tl.dot(left, right, acc, input_precision="ieee")
        a, b = tl.advance(a, (0, BK)), tl.advance(b, (BK, 0))
    tl.store(c, acc.to(c_ptr.dtype.element_ty), boundary_check=(1,))


@each_value(("n, k", [(128, 128), (100, 96), (70, 75)]), ("dtype", ["fp32", "bf16"]))
def test_block_pointers(n: int, k: int, dtype: str) -> None:
    given = {"a_ptr": f"4x{k}:{dtype}", "b_ptr": f"{n}x{k}:{dtype}", "c_ptr": f"4x{n}:{dtype}", "n": n, "k": k}
    given |= {"M": 4, "BN": 64, "BK": 32}
    check_levels(block_pointers, given, ((n + 63) // 64,), uninitialised=True)


@triton.jit
def short_lines(
    a_ptr, b_ptr, table_ptr, c_ptr,
    M: tl.constexpr, LINES: tl.constexpr, LENGTH: tl.constexpr, WIDTH: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """c += a b, or a b^T, where lines of b are rows of an array [200, WIDTH] and zeros up to LENGTH."""
    rows, columns = tl.load(table_ptr + tl.arange(0, LINES)), tl.arange(0, LENGTH)
    b = tl.load(b_ptr + rows[:, None] * WIDTH + columns[None, :], (columns < WIDTH)[None, :], 0.0)
    b = tl.trans(b) if TRANSPOSED else b
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, b.shape[0])[None, :], tl.arange(0, b.shape[1])[None, :]
    places = c_ptr + m * b.shape[1] + n
    a = tl.load(a_ptr + m * b.shape[0] + k)
    tl.store(places, tl.dot(a, b, tl.load(places), input_precision="ieee"))


@each_pair(("transposed", [False, True]), ("width", [96, 41]), ("dtype", ["fp32", "bf16"]))
def test_lines_that_are_known_to_end_early(transposed: bool, width: int, dtype: str) -> None:
    """They are read up to their end where that is a whole number of registers, and copied otherwise."""
    m, lines, length = 4, 32, 128
    n, k = (lines, length) if transposed else (length, lines)
    given: dict[str, Any] = {"a_ptr": f"{m}x{k}:{dtype}", "b_ptr": f"200x{width}:{dtype}", "c_ptr": f"{m}x{n}:fp32"}
    given |= {"table_ptr": RNG.integers(0, 200, lines).astype(np.int32), "M": m, "LINES": lines, "LENGTH": length}
    given |= {"WIDTH": width, "TRANSPOSED": transposed}
    check_levels(short_lines, given, (1,), uninitialised=True)
    signature = f"*{dtype}:16, *{dtype}:16, *i32:16, *fp32:16, {m}, {lines}, {length}, {width}, {transposed}"
    text = compile(short_lines, signature=signature, target="cpu:avx512").asm["intrinsic"]
    assert (f"{'k' if transposed else 'n'} = 96 : i32" in text) == (width == 96)


@triton.jit
def two_dots(
    q_ptr, k_ptr, v_ptr, table_ptr, o_ptr, n_keys, STORES: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """o = (q k^T) v, where key i and value i are rows table[i] of two arrays; the table is written between the two."""
    keys, dims = tl.arange(0, N), tl.arange(0, D)
    inside = keys < n_keys
    q = tl.load(q_ptr + tl.arange(0, M)[:, None] * D + dims[None, :])
    rows = tl.load(table_ptr + keys, inside, 0)
    k = tl.load(k_ptr + rows[:, None] * D + dims[None, :], inside[:, None], 0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee")
    if STORES:
        tl.store(table_ptr + keys, rows + 1, inside)
    rows = tl.load(table_ptr + keys, inside, 0)
    v = tl.load(v_ptr + rows[:, None] * D + dims[None, :], inside[:, None], 0.0)
    tl.store(o_ptr + tl.arange(0, M)[:, None] * D + dims[None, :], tl.dot(s, v, input_precision="ieee"))


@pytest.mark.parametrize("stores", [False, True])
def test_first_lines_of_the_next_dot(stores: bool) -> None:
    """They stand behind those of the dot before it, unless memory changes between the two."""
    m, n, d = 4, 32, 64
    given: dict[str, Any] = {"q_ptr": f"{m}x{d}:fp32", "k_ptr": f"200x{d}:fp32", "v_ptr": f"200x{d}:fp32"}
    given |= {"table_ptr": RNG.integers(0, 199, n).astype(np.int32), "o_ptr": f"{m}x{d}:fp32", "n_keys": n - 5}
    given |= {"STORES": stores, "M": m, "N": n, "D": d}
    check_levels(two_dots, given, (1,), uninitialised=True)
    signature = f"*fp32:16, *fp32:16, *fp32:16, *i32:16, *fp32:16, i32, {stores}, {m}, {n}, {d}"
    before, _, _ = compile(two_dots, signature=signature, target="cpu").asm["intrinsic"].partition("tile.indirect_dot")
    assert before.count("tt.addptr %v_ptr") == (not stores)
