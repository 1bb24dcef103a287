"""What programs look for in upstream's errors: its sentence, its attributes, the Python class that it is, too."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.as_triton.compiler import ASTSource
from mltriton.as_triton.compiler import compile as triton_compile
from mltriton.as_triton.utilities import must_use_result
from mltriton.errors import CompilationError
from mltriton.language.aggregates import FieldError


@triton.jit
def of_floats(x, CASE: tl.constexpr):
    value = tl.load(x)
    if CASE == "and":
        tl.store(x, value & value)
    elif CASE == "invert":
        tl.store(x, ~value)
    elif CASE == "negative":
        tl.store(x, -x)
    elif CASE == "pointer":
        tl.store(x + value, 0)
    elif CASE == "axis":
        tl.expand_dims(tl.arange(0, 4), 2)
    elif CASE == "twice":
        tl.expand_dims(tl.arange(0, 4), (0, -3))
    elif CASE == "program":
        tl.program_id(20)
    elif CASE == "slice":
        tl.store(x, tl.arange(0, 4)[1:])


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("and", "invalid operands of type"),
        ("invert", "wrong type argument to unary invert"),
        ("negative", "wrong type argument to unary minus"),
        ("pointer", "invalid operands of type"),
        ("axis", "invalid axis 2. Expected -2 <= axis < 2"),
        ("twice", "duplicate axes, normalized axes = [0, 0]"),
        ("program", "program_id axis must be 0, 1, or 2 but got 20"),
        ("slice", "unsupported tensor index"),
    ],
)
def test_sentences(case, sentence):
    with pytest.raises(CompilationError) as caught:
        of_floats[(1,)](np.zeros(1, np.float32), case)
    error = caught.value
    assert sentence in error.error_message
    assert sentence in str(error)
    assert case not in ("axis", "twice", "program") or sentence in str(error.__cause__)


@triton.jit
def chosen(a, b, first):
    if first:
        return a
    else:
        return b


@triton.jit
def of_two_types(x, first, CALL: tl.constexpr):
    if CALL:
        kind = chosen(x, 1.5, first)
    else:
        if first:
            kind = x
        else:
            kind = 1.5
    tl.store(x, tl.load(kind))


@pytest.mark.parametrize(
    ("call", "sentence"), [(True, "Inconsistent return types"), (False, "Mismatched type for kind between then block")]
)
def test_branches_of_two_types(call, sentence):
    with pytest.raises(CompilationError) as caught:
        of_two_types[(1,)](np.zeros(1, np.float32), 3, call)
    assert sentence in str(caught.value)


def test_python_classes_of_upstreams_errors():
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        of_floats[(1,)](2**64, "none")
    with pytest.raises(AssertionError, match="must be a power of 2"):
        of_floats[(1,)](np.zeros(1), "none", num_warps=3)
    with pytest.raises(TypeError, match=r"JIT functions do not support \*\*kwargs"):

        @triton.jit
        def variadic(**kwargs):
            pass

    @triton.jit(do_not_specialize=["N"])
    def contradictory(N: tl.constexpr):
        pass

    tuned = triton.autotune([triton.Config({})], key=["N"])(triton.heuristics({})(contradictory))  # is imported only
    for kernel in (contradictory, tuned):
        with pytest.raises(CompilationError, match="N marked as constexpr and listed in do_not_specialize"):
            kernel[(1,)](5)
    with pytest.raises(CompilationError, match="N marked as constexpr and listed in do_not_specialize"):
        triton_compile(ASTSource(contradictory, {}, {"N": 5}))


@triton.aggregate
class Point:
    x: tl.constexpr
    y: tl.constexpr


def test_fields_of_aggregates():
    point = Point(1, 2)
    for kind in (AttributeError, FieldError):
        with pytest.raises(kind, match="cannot assign to field 'x' on immutable aggregate"):
            point.x = 3
    with pytest.raises(TypeError, match="has no field 'z'"):
        tl.aggregate_replace(point, z=3)
    with pytest.raises(TypeError, match="expects an aggregate instance"):
        tl.aggregate_replace(3, x=1)
    assert tl.aggregate_replace(point, x=3).x.value == 3


@must_use_result("It has no effect.")
@triton.jit
def doubled(x):
    return 2 * x


@triton.jit
def with_and_without(x, USE: tl.constexpr):
    if USE:
        tl.store(x, doubled(tl.load(x)))
    else:
        doubled(tl.load(x))


def test_results_that_must_be_used():
    x = np.full(1, 3, np.int32)
    with_and_without[(1,)](x, True)
    assert x[0] == 6
    with pytest.raises(CompilationError, match=r"The result of doubled is not being used\.[^$]*It has no effect\."):
        with_and_without[(1,)](x, False)


@triton.jit
def with_an_integer_condition(x):
    tl.store(x, tl.where(tl.load(x), 1, 2))


def test_conditions_of_where_are_booleans(monkeypatch):
    monkeypatch.setenv("MLTRITON_ALWAYS_COMPILE", "1")
    with pytest.warns(UserWarning, match="non-boolean condition"):
        with_an_integer_condition.warmup(np.zeros(1, np.int32), grid=(1,))


def test_tracebacks_of_compile_are_the_programs(monkeypatch):
    monkeypatch.delenv("MLTRITON_FULL_TRACEBACK", raising=False)
    with pytest.raises(CompilationError) as caught:
        triton_compile(ASTSource(of_floats, {"x": "*fp32", "CASE": "constexpr"}, {"CASE": "and"}))
    files = [entry.path for entry in caught.traceback]
    assert all("mltriton/frontend" not in str(file) for file in files), files


def test_tracebacks_of_launches_are_the_programs(monkeypatch):
    monkeypatch.delenv("MLTRITON_FULL_TRACEBACK", raising=False)
    names = {"triton": triton}
    exec("@triton.jit\ndef kernel(x, n):\n    pass\n", names)
    for launch in (lambda: names["kernel"][(1,)](1, 2), lambda: names["kernel"][lambda _: (1,)](1, 2)):
        with pytest.raises(CompilationError, match="cannot be read") as caught:
            launch()
        assert {str(entry.path) for entry in caught.traceback} == {__file__}
