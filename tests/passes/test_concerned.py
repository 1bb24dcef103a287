"""Passes that do not concern a program are left out of its compilation: the program is the same as with all of them."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.parser import parse_module
from mltriton.passes import registry

from .kernels import matmul_pointer


@triton.jit
def shifted(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) + 1, i < n)


@triton.jit
def running(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        total += tl.load(x + start + i, start + i < n, other=0.0)
    tl.store(o, tl.sum(total))


@triton.jit
def product_by_sum(a, b, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + i[None, :])
    y = tl.load(b + i[:, None] * N + i[None, :])
    tl.store(o + i[:, None] * N + i[None, :], tl.sum(x[:, :, None] * y[None, :, :], 1))


@triton.jit
def across_warps(x, o):
    i = tl.warp_id() * 32 + tl.arange(0, 32)
    largest = tl.max(tl.load(x + i), axis=0, cross_warp=True)
    tl.store(o + i, tl.load(x + i) - largest)


POINTERS = "*fp32, *fp32, *fp32"
KERNELS = {
    "elementwise": (shifted, "*fp32:16, *fp32:16, i32, 256", {}),
    "loop": (running, "*fp32, *fp32, i32, 64", {}),
    "reduction that may become a product": (product_by_sum, "*fp16, *fp16, *fp32, 16", {}),
    "product": (matmul_pointer, f"{POINTERS}, i32, i32, i32, i32, i32, i32, i32, i32, i32, 32, 32, 32", {}),
    "warp level": (across_warps, "*fp32, *fp32", {"warp_level": True}),
}


@pytest.mark.parametrize("target", ["cpu:avx2", "xe:pvc", "cuda:90"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_program_is_the_same_without_them(name, target, monkeypatch):
    kernel, signature, options = KERNELS[name]
    left_out = triton.compile(kernel, signature, target=target, **options)
    texts = {level: left_out.asm[level] for level in ("tt", "ttg", "warp", "intrinsic")}
    monkeypatch.setattr(registry, "CONCERNS", {})
    with_all = triton.compile(kernel, signature, target=target, **options)
    assert texts == {level: with_all.asm[level] for level in texts}


LOOPS = ["allocate-addresses", "convert-dot-operands", "delay-lane-sums", "demote-sums", "hoist-block-offsets"]
LOOPS += ["keep-loads", "licm", "load-ahead", "merge-reductions", "prefetch-next-rows", "split-uniform-increments"]


@pytest.mark.parametrize(("name", "kept"), [("elementwise", []), ("loop", LOOPS)])
def test_they_are_left_out(name, kept):
    kernel, signature, _ = KERNELS[name]
    module = parse_module(triton.compile(kernel, signature, target="cpu:avx2").asm["tt"])
    concerns = registry.concerned(module)
    assert sorted(name for name in registry.CONCERNS if concerns(name)) == kept
