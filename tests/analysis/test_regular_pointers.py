"""Rectangles behind blocks of pointers: where they start and end, and what is none."""

from __future__ import annotations

from typing import Any, cast

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.rectangles import Reason, Rectangle
from mltriton.analysis.regular_pointers import RegularPointers
from mltriton.dialects import tt
from mltriton.frontend.code_generator import generate
from mltriton.frontend.signature import Constant, parse_signature
from mltriton.ir.types import TensorType
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.targets.registry import spec

LIMITS = spec("xe:pvc").block_load


@triton.jit
def kernel(x, z, m, n, k, stride, batch_stride, far, WHICH: tl.constexpr, BLOCK: tl.constexpr, PITCH: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pid, batch = tl.program_id(0), tl.program_id(1)
    rows, columns = pid * BLOCK + at, at
    base = x + batch * batch_stride
    ones = tl.full((BLOCK, BLOCK), 1.0, tl.float16)
    mask = rows[:, None] < m
    kept = (rows[:, None] < m) & (columns[None, :] < n)
    step = BLOCK
    if WHICH == "wraps":
        rows = rows % m
    elif WHICH == "wraps from anywhere":
        rows = (n + at) % m
        kept = (n + at)[:, None] < m
    elif WHICH == "two lower bounds":
        mask = (rows[:, None] >= m) & (rows[:, None] >= n)
    elif WHICH == "backwards":
        step = -BLOCK
    elif WHICH == "negative":
        rows = batch_stride + at
        mask = rows[:, None] < m
    elif WHICH == "far":
        rows = far + at
        mask = rows[:, None] >= 0
    if WHICH == "close rows":
        stride = PITCH
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for i in range(tl.cdiv(k, BLOCK)):
        inside = mask & (columns[None, :] < k - i * BLOCK)
        if WHICH == "wraps":
            inside = columns[None, :] < k - i * BLOCK
        elif WHICH == "backwards":
            inside = mask
        pointers = base + rows[:, None] * stride + (columns + i * step)[None, :]
        a = tl.load(pointers, mask=inside, other=0.0, volatile=WHICH == "volatile")
        acc = tl.dot(a, ones, acc)
    if WHICH == "turned":
        tl.store(z + rows[None, :] * stride + columns[:, None], acc, mask=kept)
    else:
        tl.store(z + rows[:, None] * stride + columns[None, :], acc, mask=kept)


def judged(which: str, pitch: int = 20) -> tuple[Rectangle | Reason, Rectangle | Reason]:
    """What is found of the load and of the store."""
    names = list(kernel.signature.parameters)
    entries = parse_signature("*fp16:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i64", names[:8])
    constants = {"WHICH": Constant(which), "BLOCK": Constant(32), "PITCH": Constant(pitch)}
    module = generate(kernel, {name: constants.get(name) or entries[name] for name in names}, target="generic")
    PassManager(parse_pipeline("canonicalize,cse")).run(module)
    [function] = (op for op in module.body.block.ops if isinstance(op, tt.Func))
    assert LIMITS is not None
    found = RegularPointers(function, LIMITS)
    accesses = [
        op for op in function.walk() if isinstance(op, tt.Load | tt.Store) and isinstance(op.ptr.type, TensorType)
    ]
    load, store = (found.of(op) for op in accesses)
    return load, store


def text(formula: Polynomial) -> str:
    """A formula with the names of the program."""
    terms = sorted((tuple(sorted(v.hint or "?" for v in m)), factor) for m, factor in formula.terms.items())
    return " + ".join("*".join((str(factor), *names)) for names, factor in terms)


def lines(found: Any) -> list[tuple[str, str, list[str]]]:
    """Stride, offset and ends of both dimensions."""
    assert isinstance(found, Rectangle)
    return [(text(line.stride), text(line.offset), [text(end) for end in line.ends]) for line in found.lines]


@pytest.mark.parametrize("which", ["plain", "wraps"])
def test_ends_are_arguments(which: str) -> None:
    """What a loop and programs move is in the offsets; a batch is in the base."""
    load, _ = judged(which)
    assert lines(load) == [("1*stride", "32*pid", ["1*m"]), ("1", "32*iteration", ["1*k"])]
    assert text(cast(Rectangle, load).shift) == "1*batch*batch_stride"


def test_a_store() -> None:
    _, store = judged("plain")
    assert lines(store) == [("1*stride", "32*pid", ["1*m"]), ("1", "", ["1*n"])]


def test_what_may_be_negative_is_asked() -> None:
    load, _ = judged("negative")
    assert [text(line.may_be_negative) for line in cast(Rectangle, load).lines] == ["1*batch_stride", ""]


REASONS = {
    "wraps from anywhere": "the first index is not known to be positive",
    "two lower bounds": "several lower bounds",
    "backwards": "may move backwards",
    "far": "a number of 64 bits",
    "close rows": "rows are 40 bytes apart",
    "volatile": "the access is volatile",
}


@pytest.mark.parametrize("which", REASONS)
def test_what_is_no_rectangle(which: str) -> None:
    load, _ = judged(which)
    assert isinstance(load, Reason)
    assert REASONS[which] in load.why


def test_a_store_that_transposes() -> None:
    _, store = judged("turned")
    assert isinstance(store, Rectangle)
    assert store.contiguous == 0
