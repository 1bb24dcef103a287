"""Atomic loads, stores and waiting, and what descriptors do element by element: in machine code and at every level."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_pair, each_value
from mltriton.errors import CompilationError
from mltriton.executor import run


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def copy(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.atomic_load(x + i, mask=i < n)
    tl.atomic_store(out + i, value, mask=i < n, sem="relaxed")
    tl.atomic_store(out + N, tl.atomic_load(x, sem="relaxed"))


@pytest.mark.parametrize("dtype", ["i1", "i1", "i2", "i4", "i8", "u4", "u8", "f2", "f4", "f8"])
def test_atomic_loads_and_stores(dtype: str):
    x = (np.arange(16) * 5 - 20).astype(dtype)
    out = np.full(17, 99, dtype)
    compiled = copy[(1,)](x, out, 11, N=16)
    again = np.full(17, 99, dtype)
    run(compiled.job.module("tt"), [x.copy(), again, 11], (1,))
    for found in (out, again):
        assert found.tolist() == [*x[:11].tolist(), *[99] * 5, x[0].item()]


@triton.jit
def chain(flags, out, N: tl.constexpr, BLOCK: tl.constexpr):
    """Each program waits for the one before it."""
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    seen = tl.atomic_poll(flags + p * BLOCK + i, p)
    total = tl.atomic_load(out)
    tl.atomic_store(out, total * 3 + tl.sum(seen.to(tl.int32)))
    tl.atomic_store(flags + (p + 1) * BLOCK + i, i * 0 + p + 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_programs_wait_for_those_before_them(dtype):
    flags, out = np.full((9, 4), 77, dtype), np.zeros(1, np.int64)
    flags[0] = 0
    chain[(8,)](flags, out, 8, 4)
    expected = 0
    for _ in range(8):
        expected = expected * 3 + 4
    assert out[0] == expected


@triton.jit
def impatient(flags, out, timeout):
    tl.store(out, tl.atomic_poll(flags, 3, timeout_ns=timeout).to(tl.int32))
    i = tl.arange(0, 4)
    tl.store(out + 1 + i, tl.atomic_poll(flags + i, 5, timeout_ns=100).to(tl.int32))


@pytest.mark.parametrize("timeout", [0, 1000])
def test_waiting_ends(timeout: int):
    flags, out = np.array([5, 3, 5, 1], np.int16), np.full(5, -1, np.int32)
    impatient[(1,)](flags, out, timeout)
    assert out.tolist() == [0, 1, 0, 1, 0]


def test_mistakes_of_atomic_accesses(kernel):
    p = kernel.parameter(tl.pointer_type(tl.float32))
    for call, text in [
        (lambda: tl.atomic_load(p, sem="release"), "atomic_load only supports acquire and relaxed semantics"),
        (lambda: tl.atomic_store(p, 1, sem="acquire"), "atomic_store only supports release and relaxed semantics"),
        (lambda: tl.atomic_poll(p, 1), "atomic_poll only supports integer elements"),
        (lambda: tl.atomic_poll(tl.cast(p, tl.pi32_t), 1, timeout_ns=-1), "timeout_ns must be non-negative"),
        (lambda: tl.atomic_load(3), "Unsupported ptr type in `tl.atomic_load`"),
    ]:
        with pytest.raises(CompilationError, match=text):
            call()


@triton.jit
def rows(x, index, out, M, N, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SCATTER: tl.constexpr):
    i = tl.load(index + tl.arange(0, ROWS))
    j = tl.arange(0, COLUMNS)
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, COLUMNS])
    places = out + tl.arange(0, ROWS)[:, None] * COLUMNS + j[None, :]
    if SCATTER:
        d.scatter(tl.load(places), i, column)
    else:
        tl.store(places, d.gather(i, column))


@each_pair(("dtype", [np.float32, np.int8]), ("target", ["cpu", "xe:pvc"]), ("level", ["", "tt", "warp", "intrinsic"]))
def test_rows_of_a_descriptor(level: str, target: str, dtype):
    random = np.random.default_rng(0)
    m, n, count, columns = 20, 48, 8, 32
    index = random.permutation(22)[:count].astype(np.int32) - 1  # Some lie outside.
    for column in (0, 24, -8):
        for scatter in (False, True):
            x = random.integers(-100, 100, (m, n)).astype(dtype)
            out = random.integers(-100, 100, (count, columns)).astype(dtype)
            wide = np.zeros((m + 64, n + 128), dtype)
            wide[32 : 32 + m, 64 : 64 + n] = x
            expected_x, expected_out = x.copy(), out.copy()
            for r, i in enumerate(index):
                for c in range(columns):
                    j = column + c
                    if scatter and 0 <= i < m and 0 <= j < n:
                        expected_x[i, j] = out[r, c]
                    elif not scatter:
                        expected_out[r, c] = wide[32 + i, 64 + j]
            constants = (count, columns, scatter)
            if level:
                name = {np.float32: "fp32", np.int8: "i8"}[dtype]
                text = f"*{name}, *i32, *{name}, i32, i32, i32, {count}, {columns}, {scatter}"
                module = triton.compile(rows, text, target=target).job.module(level)
                run(module, [x.ravel(), index, out.ravel(), m, n, column], (1,))
            elif target == "cpu":
                rows[(1,)](x, index, out, m, n, column, *constants)
            else:
                pytest.skip("runs in the executor only")
            np.testing.assert_array_equal(x, expected_x)
            np.testing.assert_array_equal(out, expected_out)


@triton.jit
def updates(x, M, N, KIND: tl.constexpr, VALUE: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [8, 16])
    value = tl.full((8, 16), VALUE, x.dtype.element_ty) + tl.arange(0, 16)[None, :].to(x.dtype.element_ty)
    i, j = tl.program_id(0) * 8, tl.program_id(1) * 16
    if KIND == "add":
        d.atomic_add([i, j], value)
    elif KIND == "min":
        d.atomic_min([i, j], value)
    elif KIND == "max":
        d.atomic_max([i, j], value)
    elif KIND == "and":
        d.atomic_and([i, j], value)
    elif KIND == "or":
        d.atomic_or([i, j], value)
    else:
        d.atomic_xor([i, j], value)


@each_value(
    ("dtype", [np.int32, np.uint32, np.uint64, np.float32]), ("kind", ["add", "min", "max", "and", "or", "xor"])
)
def test_atomic_updates_through_a_descriptor(kind: str, dtype):
    x = np.random.default_rng(0).integers(0, 100, (13, 40)).astype(dtype)
    value = (3 + np.arange(48) % 16)[:40].astype(dtype)
    if dtype is np.float32 and kind != "add":
        with pytest.raises(CompilationError, match="Unsupported dtype"):
            updates[(2, 3)](x, 13, 40, kind, 3)
        return
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum}
    functions |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    expected = functions[kind](x, value)
    updates[(2, 3)](x, 13, 40, kind, 3)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    ("text", "block", "count", "shape"),
    [
        (r"descriptor block must have 1 row, but got \[8, 32\]", (8, 32), 8, None),
        ("must have at least 8 rows, but got 4", (1, 32), 4, None),
        ("of fp32 must have at least 8 columns, but got 4", (1, 4), 8, None),
        (r"expected value shape \[8, 32\], got \[4, 32\]", (1, 32), 8, (4, 32)),
    ],
)
def test_mistakes_of_rows(kernel, text: str, block, count: int, shape):
    p = kernel.parameter(tl.pointer_type(tl.float32))
    descriptor = tl.make_tensor_descriptor(p, [64, 64], [64, 1], list(block))
    with pytest.raises(CompilationError, match=text):
        if shape is None:
            descriptor.gather(tl.arange(0, count), 0)
        else:
            descriptor.scatter(tl.zeros(shape, tl.float32), tl.arange(0, count), 0)
