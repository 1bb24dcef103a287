"""`if`, the ternary and early returns: what differs between branches, against the same code in Python."""

from __future__ import annotations

import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, NameNotFoundError, SyntaxNotSupportedError, TypeMismatchError
from mltriton.runtime.jit import jit

from .kernels import error_of, marked, scalar, text_of, values


def classify(out, x):
    if x < 0:
        y = -1
    elif x == 0:
        y = 0
    else:
        y = 1
    tl.store(out, y)


@pytest.mark.parametrize(("x", "expected"), [(-5, -1), (0, 0), (7, 1)])
def test_elif(x, expected):
    assert scalar(classify, x) == expected


def test_a_condition_known_when_compiling_leaves_one_branch():
    def chosen(out, x, FLAG: tl.constexpr):
        if FLAG:
            y = x + 1
        else:
            y = tl.undefined_name(x)
        tl.store(out, y)

    assert "scf.if" not in text_of(chosen, out="*i32", x="i32", FLAG=True)
    assert scalar(chosen, 4, FLAG=True) == 5


def test_only_what_differs_is_a_result():
    def some(out, x):
        a = x + 1
        b = x + 2
        if x > 3:
            a = x * 2
        tl.store(out, a + b)

    text = text_of(some, out="*i32", x="i32")
    assert "-> (i32) {" in text
    assert scalar(some, 5) == 17
    assert scalar(some, 2) == 7


def test_an_if_without_results_has_no_else():
    def stores(out, x):
        if x > 3:
            tl.store(out, x)

    text = text_of(stores, out="*i32", x="i32")
    assert "else" not in text
    assert scalar(stores, 4) == 4
    assert scalar(stores, 3) == -1


def test_branches_may_differ_in_constants():
    def differ(out, x):
        if x > 3:
            y = 10
        else:
            y = 20
        tl.store(out, y)

    assert [scalar(differ, x) for x in (4, 3)] == [10, 20]


def test_a_number_is_a_condition():
    def nonzero(out, x):
        tl.store(out, 1 if x else 0)

    assert [scalar(nonzero, x) for x in (7, 0, -1)] == [1, 0, 1]


def test_and_or_not_of_scalars():
    def inside(out, x):
        if x > 0 and not x > 5 or x == 9:
            tl.store(out, 1)
        else:
            tl.store(out, 0)

    assert [scalar(inside, x) for x in (0, 3, 6, 9)] == [0, 1, 0, 1]


def test_a_tuple_is_true_if_it_has_parts():
    def chosen(out, x):
        none, pair = (), (x, 10)
        if not pair:
            pair = (0, 0)
        a, b = none or pair
        tl.store(out, a + (b if pair and x > 3 else -b))

    assert [scalar(chosen, x) for x in (0, 5)] == [-10, 15]


def test_chained_comparison():
    def inside(out, x):
        tl.store(out, 1 if 0 < x <= 5 else 0)

    assert [scalar(inside, x) for x in (0, 1, 5, 6)] == [0, 1, 1, 0]


def test_tuples_are_merged():
    def swap(out, x):
        pair = (x, 10)
        if x > 3:
            pair = (20, x)
        tl.store(out, pair[0])
        tl.store(out + 1, pair[1])

    assert values(swap, 5).tolist()[:2] == [20, 5]
    assert values(swap, 2).tolist()[:2] == [2, 10]


def test_blocks_are_merged():
    def blocks(out, x):
        offsets = tl.arange(0, 8)
        if x > 3:
            offsets = offsets * 2
        tl.store(out + tl.arange(0, 8), offsets)

    assert values(blocks, 5).tolist() == list(range(0, 16, 2))
    assert values(blocks, 0).tolist() == list(range(8))


def test_ternary():
    def bigger(out, x, y):
        tl.store(out, x if x > y else y)

    assert scalar(bigger, 3, 8) == 8
    assert scalar(bigger, 9, 8) == 9


def test_ternary_evaluates_one_side():
    def guarded(out, x):
        tl.store(out, tl.load(out + 100) if x > 3 else 7)  # the load is out of bounds

    assert scalar(guarded, 2) == 7


def test_ternary_on_none():
    def optional(out, x, mask):
        tl.store(out, x if mask is None else mask)

    assert scalar(optional, 3, mask=None) == 3
    assert scalar(optional, 3, 4) == 4


def test_early_return_of_a_kernel():
    def leaves(out, x):
        if x > 3:
            return
        tl.store(out, x)

    assert scalar(leaves, 4) == -1
    assert scalar(leaves, 3) == 3


def test_early_returns_of_a_function():
    @jit
    def grade(x):
        if x > 90:
            return 4
        if x > 50:
            if x > 70:
                return 3
            x = x - 49
        else:
            return 0
        return x

    def caller(out, x):
        tl.store(out, grade(x))

    assert [scalar(caller, x) for x in (95, 80, 60, 10)] == [4, 3, 11, 0]


def test_code_after_a_return_is_dead():
    @jit
    def first(x, FLAG: tl.constexpr):
        if FLAG:
            return x
        return tl.undefined_name(x)

    def caller(out, x):
        tl.store(out, first(x, True))

    assert scalar(caller, 5) == 5


def test_a_return_inside_a_loop_of_the_caller():
    @jit
    def clipped(x):
        if x > 3:
            return 3
        return x

    def caller(out, n):
        acc = 0
        for i in range(n):
            acc += clipped(i)
        tl.store(out, acc)

    assert scalar(caller, 6) == 0 + 1 + 2 + 3 + 3 + 3


def test_a_variable_of_one_branch_is_an_error_only_where_it_is_used():
    def one(out, x):
        if x > 3:
            y = x
        tl.store(out, x)

    assert "scf.if" in text_of(one, out="*i32", x="i32")

    def used(out, x):
        if x > 3:
            y = x
        tl.store(out, y)

    error = error_of(used, out="*i32", x="i32")
    assert isinstance(error, NameNotFoundError)
    assert marked(error) == "y)"
    assert f"y has a value only if the condition in line {error.line - 2} is true (line {error.line - 1})" in str(error)
    assert error.hint == "Give y a value in front of it."


def test_a_variable_with_different_types_is_an_error_where_it_is_used():
    def differ(out, x):
        if x > 3:
            y = x
        else:
            y = 1.5
        tl.store(out, y)

    error = error_of(differ, out="*i32", x="i32")
    assert isinstance(error, NameNotFoundError)
    assert marked(error) == "y)"
    assert "int32" in str(error)
    assert "fp32" in str(error)
    assert error.hint == "Give y one type in both."


def test_a_variable_that_got_a_value_again_is_fine():
    def again(out, x):
        if x > 3:
            y = x
        y = 2
        tl.store(out, y)

    assert scalar(again, 1) == 2


def test_a_block_is_no_condition():
    def block(out, x):
        if tl.arange(0, 8) > x:
            tl.store(out, x)

    error = error_of(block, out="*i32", x="i32")
    assert isinstance(error, ConstexprError)
    assert marked(error) == "tl.arange(0, 8) > x:"
    assert "tl.where" in str(error)


def test_a_ternary_of_two_types():
    def mixed(out, x):
        tl.store(out, x if x > 3 else 1.5)

    error = error_of(mixed, out="*i32", x="i32")
    assert isinstance(error, TypeMismatchError)
    assert marked(error) == "x if x > 3 else 1.5)"
    assert "int32 and the constant 1.5" in str(error)


def test_returns_of_different_types():
    @jit
    def mixed(x):
        if x > 3:
            return x
        return 1.5

    def caller(out, x):
        tl.store(out, mixed(x))

    error = error_of(caller, out="*i32", x="i32")
    assert isinstance(error, TypeMismatchError)
    assert marked(error) == "if x > 3:"
    assert "returns different types" in str(error)
    assert "called from" in str(error)


def test_a_kernel_returns_nothing():
    def a_number(out, x):
        return x

    def a_constant(out, x):
        return 1

    def a_tuple(out, x):
        if x > 3:
            return out, x
        tl.store(out, x)

    def on_a_condition_that_is_known(out, x, FLAG: tl.constexpr = 1):
        if FLAG:
            return "early"
        tl.store(out, x)

    for kernel in (a_number, a_constant, a_tuple, on_a_condition_that_is_known):
        error = error_of(kernel, out="*i32", x="i32")
        assert isinstance(error, TypeMismatchError)
        assert "returns a value" in str(error)
        assert marked(error).startswith("return")


def test_a_kernel_may_return_none():
    def returns(out, x):
        if x > 3:
            return None
        return tl.store(out, x)

    assert "tt.store" in text_of(returns, out="*i32", x="i32")


def test_break_outside_a_loop_is_pythons_error():
    with pytest.raises(SyntaxError):
        exec("def f():\n    break")


def test_continue_under_a_value_in_an_unrolled_loop():
    def unrolled(out, x):
        for i in tl.static_range(4):
            if x > i:
                continue
            tl.store(out, i)

    error = error_of(unrolled, out="*i32", x="i32")
    assert isinstance(error, SyntaxNotSupportedError)
    assert marked(error) == "continue"
