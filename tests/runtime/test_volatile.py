"""Volatile loads: done each time, where they stand; what is loaded behind one is not taken from before."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

MOST = 2**31 - 1  # rounds until a program stops waiting: seconds


@triton.jit
def wait_for_one(x, y, flag, most, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.load(x + i)
    tl.store(y + i, before - 1)
    rounds = 0
    while (tl.load(flag, volatile=True) == 0) & (rounds < most):
        rounds += 1
    tl.store(y + i, tl.load(x + i) - before)


@triton.jit
def wait_for_all(x, y, flag, most, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.load(x + i)
    tl.store(y + i, before - 1)
    rounds = 0
    while (tl.sum(tl.load(flag + i, mask=i < BLOCK - 1, other=0, volatile=True), 0) == 0) & (rounds < most // 16):
        rounds += 1
    tl.store(y + i, tl.load(x + i) - before)


@triton.jit
def multiply_what_comes(x, y, flag, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        while tl.load(flag + k, volatile=True) == 0:
            pass
        block = tl.load(x + k * BLOCK * BLOCK + at)
        total = tl.dot(block, block, total)
    tl.store(y + at, total)


@pytest.mark.parametrize("kernel", [wait_for_one, wait_for_all])
def test_a_program_sees_what_another_thread_stores(kernel: triton.JITFunction):
    x, y, flag = np.zeros(32, np.float32), np.zeros(32, np.float32), np.zeros(32, np.int32)
    kernel.warmup(x, y, flag, MOST, BLOCK=32, grid=(1,))

    def store() -> None:
        for _ in range(2000):
            if y[0] != 0:  # The program has begun.
                break
            time.sleep(0.001)
        x.fill(5)
        flag.fill(1)

    other = threading.Thread(target=store)
    other.start()
    kernel[(1,)](x, y, flag, MOST, BLOCK=32)
    other.join()
    assert set(y.tolist()) == {5}


UNCACHED = r"lsc\.load\.stateless\.v16i32\S*\(<16 x i1> <[^>]*>, i8 0, i8 1, [^\n]*\n(?:  %[^\n]*\n)*"


@pytest.mark.parametrize(
    ("target", "level", "text", "options"),
    [
        ("cuda:90", "ptx", r"ld\.volatile\.global", {}),
        ("xe:pvc", "llvm", r"load volatile i32", {}),
        ("xe:pvc", "llvm", UNCACHED + r"  call void @llvm\.genx\.fence", {"codegen": "simd"}),
        ("cpu", "llvm", "~{memory}", {}),
    ],
)
def test_machine_code_loads_in_the_loop(target: str, level: str, text: str, options: dict[str, str]):
    signature = "*fp32:16, *fp32:16, *i32, i32, 16"
    made = triton.compile(wait_for_one, signature=signature, target=target, **options).asm[level]
    head = re.split(r"while\.head\d*:|\$L__BB0_\d+:", made, maxsplit=1)[1]
    assert re.search(text, head)


def test_copies_ahead_do_not_pass_a_volatile_load():
    signature = "*fp16:16, *fp32:16, *i32, i32, 64"
    made = triton.compile(multiply_what_comes, signature=signature, target="cuda:90").asm["ttg"]
    before, inside = made.split("scf.while")
    assert "x" in before and "async" not in before
    assert "tt.load" in inside
