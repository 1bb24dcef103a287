"""tl.inline_asm_elementwise: x86 assembly and text in LLVM's language, as machine code and in the executor."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import AssemblyError, OptionError, ShapeMismatchError, TypeMismatchError
from mltriton.executor import run

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the fragments are x86 assembly")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def apply(out, x, y, n, TEXT: tl.constexpr, RULES: tl.constexpr, LANGUAGE: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b = tl.load(x + i, i < n), tl.load(y + i, i < n)
    kind = out.dtype.element_ty
    tl.store(out + i, tl.inline_asm_elementwise(TEXT, RULES, [a, b], kind, True, 1, language=LANGUAGE), i < n)


@triton.jit
def swap(first, second, x, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.inline_asm_elementwise(
        """
        movl $2, $0
        bswapl $0
        movl $2, $1
        notl $1
        """,
        "=&r,=&r,r",
        [tl.load(x + i)],
        dtype=(tl.int8, tl.int8),
        is_pure=True,
        pack=4,
    )
    tl.store(first + i, a)
    tl.store(second + i, b)


@triton.jit
def pairs(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    text: tl.constexpr = """%s = insertvalue {half, half} poison, half %1, 0
        %t = insertvalue {half, half} %s, half %0, 1
        ret {half, half} %t"""
    tl.store(out + i, tl.inline_asm_elementwise(text, "", [tl.load(x + i)], tl.float16, True, 2, "llvm"))


@triton.jit
def scalar(out, x):
    made = tl.inline_asm_elementwise("movl $$41, $0", "=r", [], tl.int32, True, 1)
    tl.store(out, tl.inline_asm_elementwise("leal 1($1), $0", "=r,r", [made], tl.int32, True, 1) + tl.load(x))


@triton.jit
def rows(out, x, y, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    column = tl.load(y + tl.arange(0, M))[:, None]
    added = tl.inline_asm_elementwise("addl $2, $0", "=r,0,r", [tl.load(x + at), column], tl.int32, True, 1)
    tl.store(out + at, tl.sum(added, 1)[:, None] + added)


def both(kernel, grid, out, *arguments):
    """What machine code gives, and the executor."""
    compiled = kernel[grid](out, *arguments)
    again = np.zeros_like(out)
    arrays = [value for value in arguments if not isinstance(value, str | bool) and np.ndim(value)]
    scalars = [value for value in arguments if isinstance(value, int)][:1] if kernel is apply else []
    run(compiled.job.module("tt"), [again, *arrays, *scalars], grid)
    np.testing.assert_array_equal(again, out)
    return out


@x86
@pytest.mark.parametrize(
    ("dtype", "text", "rules", "expected"),
    [
        (np.int32, "leal 5($1,$2), $0", "=r,r,r", lambda x, y: x + y + 5),
        (np.int64, "leaq ($1,$2,2), $0", "=r,r,r", lambda x, y: x + 2 * y),
        (np.int16, "movw $1, $0\n subw $2, $0", "=&r,r,r", lambda x, y: x - y),
        (np.float32, "addss $2, $0", "=x,0,x", lambda x, y: x + y),
        (np.float64, "mulsd $2, $0", "=x,0,x", lambda x, y: x * y),
    ],
)
def test_assembly(dtype, text, rules, expected):
    x, y = ((RNG.standard_normal(1000) * 1000).astype(dtype) for _ in range(2))
    found = both(apply, (8,), np.zeros_like(x), x, y, 1000, text, rules, "assembly", 128)
    np.testing.assert_array_equal(found, expected(x, y).astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "name", "add"),
    [(np.float32, "float", "fadd"), (np.float64, "double", "fadd"), (np.int32, "i32", "add"), (np.int8, "i8", "add")],
)
def test_llvm(dtype, name, add):
    x, y = ((RNG.standard_normal(1000) * 20).astype(dtype) for _ in range(2))
    text = f"%s = {add} {name} %0, %1\n ret {name} %s"
    found = both(apply, (8,), np.zeros_like(x), x, y, 1000, text, "", "llvm", 128)
    np.testing.assert_array_equal(found, x + y)


@x86
def test_packed_bytes_and_several_results():
    x = RNG.integers(-128, 128, 64).astype(np.int8)
    first, second = np.zeros_like(x), np.zeros_like(x)
    compiled = swap[(1,)](first, second, x, 64)
    for _ in range(2):
        np.testing.assert_array_equal(first.reshape(-1, 4), x.reshape(-1, 4)[:, ::-1])
        np.testing.assert_array_equal(second, ~x)
        first[:], second[:] = 0, 0
        run(compiled.job.module("tt"), [first, second, x], (1,))


def test_pairs_of_halves():
    x = RNG.standard_normal(64).astype(np.float16)
    np.testing.assert_array_equal(both(pairs, (1,), np.zeros_like(x), x, 64).reshape(-1, 2), x.reshape(-1, 2)[:, ::-1])


@x86
def test_scalars_and_broadcast():
    assert both(scalar, (1,), np.zeros(1, np.int32), np.full(1, 8, np.int32)) == 50
    x, y = (RNG.integers(-99, 99, n).astype(np.int32) for n in (16 * 32, 16))
    added = x.reshape(16, 32) + y[:, None]
    found = both(rows, (1,), np.zeros_like(x), x, y, 16, 32)
    np.testing.assert_array_equal(found.reshape(16, 32), added + added.sum(1)[:, None])


@pytest.mark.parametrize(
    ("text", "rules", "language", "error", "said"),
    [
        ("mul.rn.f32 $0, $1, $2;", "=r,r,r", "assembly", AssemblyError, "this is no assembly of the machine"),
        ("nop", "=r,r", "assembly", AssemblyError, "does not match"),
        ("ret i7 %0", "", "llvm", AssemblyError, "LLVM does not take this text"),
        ("nop", "=r,r,r", "ptx", OptionError, "assembly or llvm"),
        (5, "=r,r,r", "assembly", TypeMismatchError, "expected a string"),
    ],
)
def test_mistakes(text, rules, language, error, said):
    x = np.ones(16, np.float32)
    with pytest.raises(error, match=said) as caught:
        apply[(1,)](np.zeros_like(x), x, x, 16, text, rules, language, 16)
    assert "test_assembly.py" in str(caught.value)


@triton.jit
def count(counters, out, B: tl.constexpr):
    """Nobody takes the first three; the others are alike."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    text: tl.constexpr = """movl $$1, $0
        lock xaddl $0, ($1)"""
    rules: tl.constexpr = "=&r,r,~{memory}"
    before = tl.load(counters + i)
    for _ in range(3):
        tl.inline_asm_elementwise(text, rules, [counters + i], tl.int32, is_pure=False, pack=1)
    a = tl.inline_asm_elementwise(text, rules, [counters + i], tl.int32, is_pure=False, pack=1)
    b = tl.inline_asm_elementwise(text, rules, [counters + i], tl.int32, is_pure=False, pack=1)
    tl.store(out + i, 1000 * before + 100 * a + 10 * b + tl.load(counters + i))


@triton.jit
def count_alone(counter):
    tl.inline_asm_elementwise("lock incl ($1)", "=r,r,~{memory}", [counter], tl.int32, is_pure=False, pack=1)


@x86
def test_a_fragment_that_is_not_pure_runs_each_time_and_in_order():
    counters, out = np.ones(256, np.int32), np.zeros(256, np.int32)
    count[(2,)](counters, out, 128)
    np.testing.assert_array_equal(counters, 6)
    np.testing.assert_array_equal(out, 1000 + 400 + 50 + 6)
    counters[0] = 0
    count_alone[(7,)](counters)
    assert counters[0] == 7


@triton.jit
def volatile_pairs(first, second, x, B: tl.constexpr):
    i = tl.arange(0, B)
    text: tl.constexpr = """movl $2, $0
        notl $0
        leal 1($2), $1"""
    a, b = tl.inline_asm_elementwise(
        text, "=&r,=&r,r", [tl.load(x + i)], dtype=(tl.int32, tl.int32), is_pure=False, pack=1
    )
    tl.store(first + i, a)
    tl.store(second + i, tl.sum(b, 0) + b)


@x86
def test_a_fragment_that_is_not_pure_gives_all_its_results():
    x = RNG.integers(-99, 99, 64).astype(np.int32)
    second = np.zeros_like(x)
    np.testing.assert_array_equal(both(volatile_pairs, (1,), np.zeros_like(x), second, x, 64), ~x)
    np.testing.assert_array_equal(second, (x + 1).sum() + x + 1)


@triton.jit
def packed(out, x, KIND: tl.constexpr, PACK: tl.constexpr):
    tl.store(out, tl.inline_asm_elementwise("nop", "=r,r", [tl.load(x)], KIND, True, PACK))


@pytest.mark.parametrize(
    ("kind", "pack", "error"),
    [(tl.int32, 3, OptionError), (tl.int32, 2, ShapeMismatchError), (tl.int1, 1, TypeMismatchError)],
)
def test_packs_and_types(kind, pack, error):
    x = np.ones(16, np.int32)
    with pytest.raises(error):
        packed[(1,)](x, x, kind, pack)
