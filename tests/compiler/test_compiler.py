"""The way down: levels, options, failures that leave a reproducer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import Job, Options, compile_job, constant_key
from mltriton.errors import BackendError, ConstexprError, InternalError, OptionError, PassError, TargetError
from mltriton.frontend import expressions
from mltriton.frontend.signature import parse_signature
from mltriton.ir.parser import parse_module
from mltriton.ir.passes import Pass
from mltriton.passes import registry
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.generic.target import GenericTarget


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + (start + k[:, None]) * BN + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], acc)


SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 64, 32"


def test_every_level_parses_and_says_what_it_is():
    compiled = triton.compile(gemm, SIGNATURE, target="generic", num_warps=4)
    assert list(compiled.asm) == ["tt", "ttg", "warp", "intrinsic"]
    for level in ("tt", "ttg", "warp"):
        module = parse_module(compiled.asm[level])
        assert module.attributes["mltriton.level"].value == level
        assert module.attributes["ttg.num-warps"].value == 4
    assert set(compiled.metadata.timings) == {"front end", "tt", "ttg", "warp", "intrinsic"}
    assert compiled.metadata.written == ("c_ptr",)


def test_a_target_without_machine_code():
    compiled = triton.compile(gemm, SIGNATURE, target="generic")
    with pytest.raises(KeyError):
        compiled.asm["llvm"]
    a, b, c = (np.zeros((64, 64), dtype) for dtype in (np.float16, np.float16, np.float32))
    with pytest.raises(triton.TritonError):
        gemm[(1,)](a, b, c, 64, BM=64, BN=64, BK=32, target="generic")


@pytest.mark.parametrize("option", [{"num_warps": 3}, {"num_warps": 0}, {"num_stages": -1}, {"num_ctas": 3}])
def test_options_that_cannot_be(option):
    with pytest.raises(OptionError):
        triton.compile(gemm, SIGNATURE, target="generic", **option)


def test_an_unknown_target_names_those_there_are():
    with pytest.raises(TargetError, match="Did you mean cpu:avx2"):
        triton.compile(gemm, SIGNATURE, target="cpu:avx3")


@dataclass(frozen=True)
class Explode(Pass):
    """A pass that fails."""

    name: ClassVar[str] = "explode"

    def run(self, module):
        raise ValueError("boom")


class Broken(GenericTarget):
    """A target with a pass, or a lowering, that fails."""

    name = "broken"
    can_run = True

    def __init__(self, pipeline):
        self._pipeline = pipeline

    @property
    def spec(self):
        return TargetSpec("broken", Storage.REGISTERS, 16, pipeline=self._pipeline)

    def lower(self, module):
        raise KeyError("no rule")


def job(pipeline):
    return Job(gemm, parse_signature(SIGNATURE, gemm.arg_names), Broken(pipeline), Options())


def test_a_failing_pass_leaves_a_reproducer(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(registry.PASSES, "explode", f"{__name__}:Explode")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Explode.__module__])
    with pytest.raises(PassError, match="pass explode failed: ValueError: boom") as raised:
        compile_job(job(("canonicalize", "cse,explode", "", "")))
    text = raised.value.reproducer.read_text()
    assert "// pipeline: explode" in text
    assert "tt.dot" in text
    assert str(raised.value.reproducer) in str(raised.value)


def test_a_failing_lowering_leaves_a_reproducer(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    with pytest.raises(BackendError, match="lowering gemm for broken failed: KeyError") as raised:
        compile_job(job(("", "", "", "")))
    assert "tt.dot" in raised.value.reproducer.read_text()
    assert raised.value.file == __file__


def test_a_failure_of_the_front_end_has_a_place(monkeypatch):
    def fails(frame, node):
        raise ZeroDivisionError("oops")

    monkeypatch.setitem(expressions.EXPRESSIONS, expressions.ast.BinOp, fails)
    with pytest.raises(InternalError, match="the front end failed: ZeroDivisionError: oops") as raised:
        triton.compile(gemm, SIGNATURE, target="generic")
    assert raised.value.file == __file__


def test_constants_are_identified_across_processes():
    assert constant_key(1) != constant_key(True) != constant_key(1.0)
    assert constant_key((1, "a")) == constant_key((1, "a"))
    assert constant_key(tl.float32) == constant_key(tl.float32)
    assert constant_key(gemm) == constant_key(gemm)
    assert constant_key(object) != constant_key(object)


@triton.jit
def scaled(x, s, C: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(x + i * s[1], tl.load(x + i * s[1]) * s[0] + C)


def test_a_kernel_is_compiled_for_a_tuple_and_runs() -> None:
    x = np.arange(32, dtype=np.float32)
    triton.compile(scaled, "*fp32:16, (fp32, i32), 3", target="cpu")[(1,)](x, (2.0, 2))
    expected = np.where(np.arange(32) % 2, np.arange(32), np.arange(32) * 2.0 + 3)
    np.testing.assert_array_equal(x, expected)


def test_a_tuple_is_no_constant() -> None:
    with pytest.raises(ConstexprError, match=r"(?s)C of scaled is a tl.constexpr.*\(1, 2\)"):
        triton.compile(scaled, "*fp32:16, (fp32, i32), (1, 2)", target="cpu")
