"""Calls: of functions written in the language (inlined), of builtins, of functions that run when compiling."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import CompilationError, ConstexprError, TypeMismatchError
from mltriton.frontend.function import constexpr_function
from mltriton.runtime.jit import jit

from .kernels import error_of, marked, module_of, scalar, text_of, values


@jit
def scaled(x, factor=2, *, offset=0):
    return x * factor + offset


@jit
def both(a, b):
    return a + b, a - b


@jit
def joined(a, b):
    return a * 10 + b


@constexpr_function
def halved(n):
    return n // 2


def test_a_call_is_inlined():
    def caller(out, x):
        tl.store(out, scaled(x))

    text = text_of(caller, out="*i32", x="i32")
    assert "tt.call" not in text
    assert text.count("tt.func") == 1
    assert scalar(caller, 5) == 10


def test_arguments_by_position_keyword_and_default():
    def caller(out, x):
        tl.store(out + 0, scaled(x, 3))
        tl.store(out + 1, scaled(factor=4, x=x))
        tl.store(out + 2, scaled(x, offset=1))
        tl.store(out + 3, scaled(*(x, 5)))

    assert values(caller, 7).tolist()[:4] == [21, 28, 15, 35]


def test_star_parameters():
    @jit
    def total(first, *rest):
        for x in rest:
            first += x
        return first

    def caller(out, x):
        tl.store(out, total(x, 1, 2, 3))

    assert scalar(caller, 10) == 16


@constexpr_function
def type_of(x):
    return x.dtype if isinstance(x, tl.tensor_descriptor) else x.dtype.element_ty if x.type.is_ptr() else x.type


@constexpr_function
def plus_one(x):
    return x + 1


def test_a_function_that_runs_when_compiling_may_ask_for_types():
    def caller(out, x):
        kind: tl.constexpr = type_of(out)
        block = tl.make_tensor_descriptor(out, [8, 8], [8, 1], [4, 8])
        tl.static_assert(type_of(block) == kind and type_of(x) == tl.int32)
        tl.store(out, x.to(kind) + type_of(x[None] + 1).shape[0])

    assert scalar(caller, 5) == 6

    def wrong(out, x):
        tl.store(out, plus_one(x))

    error = error_of(wrong, out="*i32", x="i32")
    assert isinstance(error, ConstexprError) and "plus_one runs when compiling and must give a constant" in str(error)


def test_several_results():
    def caller(out, x, y):
        a, b = both(x, y)
        tl.store(out, a)
        tl.store(out + 1, b)

    assert values(caller, 7, 3).tolist()[:2] == [10, 4]


def test_calls_of_calls():
    @jit
    def twice(x):
        return scaled(scaled(x))

    def caller(out, x):
        tl.store(out, twice(x))

    assert scalar(caller, 3) == 12


def test_a_called_function_has_its_own_variables():
    @jit
    def hides(x):
        y = x * 100
        return y

    def caller(out, x):
        y = 1
        hides(x)
        tl.store(out, y)

    assert scalar(caller, 3) == 1


def test_constants_stay_constants_in_calls():
    @jit
    def filled(out, SIZE: tl.constexpr, value):
        tl.store(out + tl.arange(0, SIZE), value)

    def caller(out):
        filled(out, 4, 9)

    assert values(caller).tolist() == [9] * 4 + [-1] * 4


def test_recursion_that_a_constant_ends():
    @jit
    def power(x, N: tl.constexpr):
        if N == 0:
            return 1
        return x * power(x, N - 1)

    def caller(out, x):
        tl.store(out, power(x, 5))

    assert scalar(caller, 3) == 243


def test_recursion_that_nothing_ends():
    @jit
    def forever(x):
        return forever(x)

    def caller(out, x):
        tl.store(out, forever(x))

    error = error_of(caller, out="*i32", x="i32")
    assert isinstance(error, CompilationError)
    assert "calls itself" in str(error)


def test_functions_as_arguments():
    @jit
    def applied(f: tl.constexpr, x):
        return f(x)

    def caller(out, x):
        tl.store(out, applied(scaled, x))

    assert scalar(caller, 5) == 10


def test_functions_run_when_compiling():
    def caller(out, N: tl.constexpr):
        tl.store(out + tl.arange(0, halved(N)), 1)

    assert values(caller, N=8).tolist() == [1] * 4 + [-1] * 4

    def with_tensor(out, x):
        tl.store(out, halved(x))

    error = error_of(with_tensor, out="*i32", x="i32")
    assert isinstance(error, ConstexprError)
    assert marked(error) == "halved(x))"


def test_a_user_function_combines_a_reduction():
    def reduced(out):
        x = tl.arange(0, 4) + 1
        tl.store(out, tl.reduce(x, 0, joined_first))

    @jit
    def joined_first(a, b):
        return a * b

    assert scalar(reduced) == 24


def test_a_user_function_combines_a_scan():
    @jit
    def product(a, b):
        return a * b

    def scanned(out):
        tl.store(out + tl.arange(0, 4), tl.associative_scan(tl.arange(0, 4) + 1, 0, product))

    assert values(scanned).tolist()[:4] == [1, 2, 6, 24]


def test_locations_say_where_a_call_came_from():
    def caller(out, x):
        tl.store(out, scaled(x))

    module = module_of(caller, out="*i32", x="i32")
    multiplication = next(op for op in module.walk() if op.name == "arith.muli")
    first_line = caller.__code__.co_firstlineno
    inner, outer = multiplication.loc.callee, multiplication.loc.caller
    assert inner.line == scaled.fn.__code__.co_firstlineno + 2
    assert outer.line == first_line + 1
    store = next(op for op in module.walk() if op.name == "tt.store")
    assert (store.loc.file, store.loc.line, store.loc.column) == (__file__, first_line + 1, 8)


def test_an_error_in_a_called_function_says_how_it_was_reached():
    @jit
    def inner(x):
        return tl.expand_dims(x, 5)

    @jit
    def middle(x):
        return inner(x)

    def caller(out, x):
        middle(tl.arange(0, 8))

    error = error_of(caller, out="*i32", x="i32")
    assert marked(error) == "tl.expand_dims(x, 5)"
    lines = [place.line for place in error.calls]
    assert lines == [middle.fn.__code__.co_firstlineno + 2, caller.__code__.co_firstlineno + 1]
    assert str(error).count("called from") == 2


def test_an_error_in_a_combine_function_says_how_it_was_reached():
    @jit
    def wrong(a, b):
        return a + undefined  # noqa: F821

    def caller(out):
        tl.reduce(tl.arange(0, 4), 0, wrong)

    error = error_of(caller, out="*i32")
    assert marked(error) == "undefined"
    assert [place.line for place in error.calls] == [caller.__code__.co_firstlineno + 1]


@pytest.mark.parametrize("kind", ["missing", "too many", "unknown", "twice", "builtin", "builtin keyword"])
def test_wrong_arguments(kind):
    @jit
    def needs(x, SIZE: tl.constexpr):
        return x

    def missing(out, x):
        needs(x)

    def too_many(out, x):
        needs(x, 1, 2)

    def unknown(out, x):
        needs(x, SIZE=1, size=2)

    def twice(out, x):
        needs(x, 1, x=2)

    def builtin(out, x):
        tl.store(out)

    def builtin_keyword(out, x):
        tl.load(out, masc=True)

    cases = {
        "missing": (missing, TypeMismatchError, "needs(x)", "missing a required argument: 'SIZE'"),
        "too many": (too_many, TypeMismatchError, "needs(x, 1, 2)", "too many positional arguments"),
        "unknown": (unknown, TypeMismatchError, "needs(x, SIZE=1, size=2)", "are x, SIZE"),
        "twice": (twice, TypeMismatchError, "needs(x, 1, x=2)", "multiple values for argument 'x'"),
        "builtin": (builtin, TypeMismatchError, "tl.store(out)", "missing a required argument"),
        "builtin keyword": (builtin_keyword, TypeMismatchError, "tl.load(out, masc=True)", "Did you mean mask?"),
    }
    kernel, error_class, where, message = cases[kind]
    error = error_of(kernel, out="*i32", x="i32")
    assert type(error) is error_class
    assert marked(error) == where
    assert message in str(error)


def test_a_constexpr_parameter_of_a_called_function_takes_a_tensor():
    @jit
    def ramp(x, SIZE: tl.constexpr):
        return x + tl.arange(0, SIZE)

    @jit
    def shifted(x, OFFSETS: tl.constexpr):
        return x + OFFSETS

    def caller(out, x):
        tl.store(out + tl.arange(0, 4), shifted(ramp(x, 4), tl.arange(0, 4)))

    assert values(caller, 5).tolist()[:5] == [5, 7, 9, 11, -1]

    def runtime(out, x):
        tl.store(out, ramp(x, x))

    error = error_of(runtime, out="*i32", x="i32")
    assert isinstance(error, ConstexprError)
    assert marked(error) == "tl.arange(0, SIZE)"


def test_options_of_jit_for_called_functions():
    @jit(noinline=True)
    def separate(x):
        return x + 1

    def caller(out, x):
        tl.store(out, separate(x))

    assert scalar(caller, 3) == 4


def test_cdiv_and_next_power_of_2_of_the_package():
    def caller(out, n, N: tl.constexpr):
        size: tl.constexpr = triton.next_power_of_2(N) // 2
        tl.store(out + tl.arange(0, size), triton.cdiv(n, 4) + triton.cdiv(N, 2))

    assert values(caller, 9, N=7).tolist()[:5] == [7, 7, 7, 7, -1]

    def of_a_tensor(out, n):
        tl.store(out, triton.next_power_of_2(n))

    error = error_of(of_a_tensor, out="*i32", n="i32")
    assert isinstance(error, ConstexprError)
    assert marked(error) == "triton.next_power_of_2(n))"
