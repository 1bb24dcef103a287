"""tl.map_elementwise, and the checks of integers in debug mode."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import CompilationError, DeviceAssertionError
from mltriton.executor import run


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def selu(x, alpha):
    if x > 0:
        return x
    return alpha * (tl.exp(x) - 1)


@triton.jit
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps, n.to(tl.float32)


@triton.jit
def plain(x, y):
    return x * y + 1, x > y


@triton.jit
def pairs(a0, a1, b0, b1):
    if a0 > a1:
        a0, a1 = a1, a0
    return a0, a1, b0 + b1, b0 - b1


@triton.jit
def apply(x, n, out, steps, M: tl.constexpr, N: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v, k = tl.load(x + i), tl.load(n + i)
    if KIND == "selu":
        tl.store(out + i, tl.map_elementwise(selu, v, 1.5))
    elif KIND == "collatz":
        count, last = tl.map_elementwise(collatz, k)
        tl.store(steps + i, count)
        tl.store(out + i, last)
    elif KIND == "plain":
        total, larger = tl.map_elementwise(plain, v, tl.load(x + tl.arange(0, N))[None, :])
        tl.store(out + i, total)
        tl.store(steps + i, larger.to(tl.int32))
    else:
        low, total = tl.map_elementwise(pairs, v, k, pack=2)
        tl.store(out + i, low)
        tl.store(steps + i, total)


def expected(kind: str, x: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out, steps = np.zeros(x.shape), np.zeros(n.shape, np.int32)
    if kind == "selu":
        out = np.where(x > 0, x, 1.5 * np.expm1(x.astype(np.float64)))
    elif kind == "collatz":
        out[...] = 1
        for at, value in np.ndenumerate(n):
            number = int(value)
            while number != 1:
                number = number // 2 if number % 2 == 0 else 3 * number + 1
                steps[at] += 1
    elif kind == "plain":
        out, steps = x.astype(np.float64) * x[0] + 1, (x > x[0]).astype(np.int32)
    else:
        out = np.sort(x.reshape(-1, 2), 1).reshape(x.shape)
        first, second = n.reshape(-1, 2).T
        steps = np.stack([first + second, first - second], 1).reshape(n.shape)
    return out, steps


KINDS = ["selu", "collatz", "plain", "pairs"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("target", "warps"), [("", 4), ("cpu", 1), ("generic", 4), ("xe:pvc", 4)])
def test_functions_of_elements(kind: str, target: str, warps: int):
    random = np.random.default_rng(0)
    x, n = random.standard_normal((8, 16), np.float32), random.integers(1, 30, (8, 16)).astype(np.int32)

    def check(launch) -> None:
        out, steps = np.zeros((8, 16), np.float32), np.zeros((8, 16), np.int32)
        launch([x, n, out, steps])
        for found, right in zip((out, steps), expected(kind, x, n), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)

    if not target:
        check(lambda arrays: apply[(1,)](*arrays, 8, 16, kind))
        return
    text = f"*fp32, *i32, *fp32, *i32, 8, 16, {kind!r}"
    job = triton.compile(apply, text, target=target, num_warps=warps).job
    for level in ("tt", "ttg", "warp", "intrinsic"):
        check(lambda arrays, level=level: run(job.module(level), [a.ravel() for a in arrays], (1,)))


def test_mistakes(kernel):
    x = kernel.parameter(tl.block_type(tl.float32, (8,)))
    for call, text in [
        (lambda: tl.map_elementwise(plain), "needs a block"),
        (lambda: tl.map_elementwise(plain, x, x, pack=3), "a power of two"),
        (lambda: tl.map_elementwise(plain, x, x, pack=16), "does not divide"),
    ]:
        with pytest.raises(CompilationError, match=text):
            call()


@triton.jit
def overflowing(x, y, out, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    if KIND == "add":
        c = a + b
    elif KIND == "sub":
        c = a - b
    elif KIND == "mul":
        c = a * b
    elif KIND == "unchecked":
        c = tl.add(a, b, sanitize_overflow=False)
    elif KIND == "random":
        c = tl.randint(7, a)
    elif KIND == "sum":
        c = a * 0 + tl.sum(a, 0).to(a.dtype)
    else:
        c = tl.cumsum(a, 0)
    tl.store(out + i, c)


@pytest.mark.parametrize(
    ("kind", "dtype", "a", "b", "overflows"),
    [
        ("add", np.int32, 2**31 - 5, 4, False),
        ("add", np.int32, 2**31 - 5, 5, True),
        ("add", np.int8, -100, -28, False),
        ("add", np.int8, -100, -29, True),
        ("add", np.uint16, 65535, 1, True),
        ("add", np.int64, 2**63 - 1, 1, False),
        ("sub", np.uint32, 3, 4, True),
        ("sub", np.int16, -32768, 0, False),
        ("mul", np.int32, 65536, 32768, True),
        ("mul", np.int32, -65536, 32768, False),
        ("unchecked", np.int32, 2**31 - 1, 1, False),
        ("random", np.int32, 5, 5, False),
        ("sum", np.int32, 2**29, 0, True),
        ("sum", np.int32, 2**20, 0, False),
        ("cumsum", np.int32, 2**29, 0, True),
    ],
)
def test_overflow_is_found_when_debugging(kind: str, dtype, a: int, b: int, overflows: bool):
    x, y, out = np.full(16, a, dtype), np.full(16, b, dtype), np.zeros(16, np.int64)
    for options in ({}, {"debug": True, "sanitize_overflow": False}):
        overflowing[(1,)](x, y, out, kind, 16, **options)
    wrapped = out.copy()
    if overflows:
        name = {"sum": "add", "cumsum": "add"}.get(kind, kind)
        message = f"int{np.dtype(dtype).itemsize * 8} overflow detected for operation {name}"
        with pytest.raises(DeviceAssertionError, match=message):
            overflowing[(1,)](x, y, out, kind, 16, debug=True)
    else:
        overflowing[(1,)](x, y, out, kind, 16, debug=True)
        np.testing.assert_array_equal(out, wrapped)
