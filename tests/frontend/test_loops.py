"""`for` and `while`: values carried from one iteration to the next, against the same loops in Python."""

from __future__ import annotations

import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, LoopCarriedTypeError, NameNotFoundError, SyntaxNotSupportedError
from mltriton.runtime.jit import jit

from .kernels import error_of, marked, scalar, text_of, values


def total(out, n):
    acc = 0
    for i in range(n):
        acc += i
    tl.store(out, acc)


def test_a_sum_is_carried():
    assert scalar(total, 10) == 45
    assert scalar(total, 0) == 0


def test_the_loop_is_one_for():
    text = text_of(total, out="*i32", n="i32")
    assert "scf.for %i = %c0_i32 to %n step %c1_i32 iter_args(%acc" in text


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 10, 1), (3, 20, 4), (5, 5, 1), (7, 2, 1), (10, 0, -3), (9, -1, -1), (0, 4, -1)]
)
def test_ranges_visit_what_python_visits(start, stop, step):
    def visit(out, a, b, STEP: tl.constexpr):
        count = 0
        for i in range(a, b, STEP):
            tl.store(out + count, i)
            count += 1

    expected = list(range(start, stop, step))
    assert values(visit, start, stop, size=12, STEP=step).tolist() == [*expected, *[-1] * (12 - len(expected))]


def test_a_range_of_64_bit_bounds_counts_in_64_bits():
    def count(out, n):
        for i in range(n.to(tl.int64)):
            tl.store(out, i.to(tl.int32))

    text = text_of(count, out="*i32", n="i32")
    assert ": i64 {" in text.split("scf.for")[1].splitlines()[0]


def test_hints_become_attributes():
    def hinted(out, n):
        for i in tl.range(0, n, num_stages=3, loop_unroll_factor=2):
            tl.store(out, i)

    text = text_of(hinted, out="*i32", n="i32")
    assert "tt.num_stages = 3" in text
    assert "loop_unroll_factor = 2" in text


def test_static_range_is_unrolled():
    def unrolled(out):
        for i in tl.static_range(0, 6, 2):
            tl.store(out + i, i * 10)

    text = text_of(unrolled, out="*i32")
    assert "scf" not in text
    assert values(unrolled).tolist() == [0, -1, 20, -1, 40, -1, -1, -1]


def test_the_counter_of_static_range_is_a_constant():
    def blocks(out):
        for i in tl.static_range(1, 3):
            tl.store(out + i, tl.sum(tl.full((2**i,), 1, tl.int32), 0))

    assert values(blocks).tolist()[:3] == [-1, 2, 4]


def test_a_tuple_is_iterated():
    def each(out, a, b):
        total = 0
        for x, weight in ((a, 1), (b, 10)):
            total += x * weight
        tl.store(out, total)

    assert scalar(each, 3, 4) == 43


def test_enumerate_and_zip():
    def each(out, a, b):
        for i, (x, y) in enumerate(zip((a, b), (1, 2), strict=False)):
            tl.store(out + i, x * y)

    assert values(each, 3, 4).tolist()[:2] == [3, 8]


def test_while():
    def collatz(out, n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        tl.store(out, steps)

    assert scalar(collatz, 27) == 111
    assert scalar(collatz, 1) == 0


def test_while_condition_with_a_hint():
    def count(out, n):
        i = 0
        while tl.condition(i < n, disable_licm=True):
            i += 1
        tl.store(out, i)

    assert scalar(count, 5) == 5


def test_while_that_is_false_runs_not_at_all():
    def never(out, GO: tl.constexpr):
        x = 1
        while GO:
            x = 2
        tl.store(out, x)

    assert scalar(never, GO=False) == 1


def test_nested_loops():
    def nested(out, n):
        acc = 0
        for i in range(n):
            for j in range(i):
                acc += i * j
        tl.store(out, acc)

    assert scalar(nested, 6) == sum(i * j for i in range(6) for j in range(i))


def test_continue():
    def odd(out, n):
        acc = 0
        for i in range(n):
            if i % 2 == 0:
                continue
            acc += i
        tl.store(out, acc)

    assert scalar(odd, 10) == 25


def test_continue_in_nested_conditions():
    def some(out, n):
        acc = 0
        for i in range(n):
            if i > 2:
                if i % 3 == 0:
                    continue
                acc += 100
            acc += i
        tl.store(out, acc)

    expected = 0
    for i in range(10):
        if i > 2:
            if i % 3 == 0:
                continue
            expected += 100
        expected += i
    assert scalar(some, 10) == expected


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_break_in_a_for(limit):
    def first(out, n, limit):
        acc = 0
        for i in range(n):
            if i * i > limit:
                break
            acc += i
        tl.store(out, acc)

    assert scalar(first, 10, limit) == sum(i for i in range(10) if i * i <= limit)


def test_break_and_continue_in_a_while():
    def mixed(out, n):
        i = 0
        acc = 0
        while True:
            i += 1
            if i % 2 == 0:
                continue
            if i > n:
                break
            acc += i
        tl.store(out, acc)

    assert scalar(mixed, 9) == 25


def test_break_leaves_only_the_inner_loop():
    def inner(out, n):
        acc = 0
        for i in range(n):
            for j in range(n):
                if j > i:
                    break
                acc += 1
        tl.store(out, acc)

    assert scalar(inner, 5) == 15


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_a_break_behind_a_loop_with_a_break(n):
    def nested(out, n):
        acc = 0
        for i in range(n):
            for j in range(n):
                if j > 1:
                    break
                k = 0
                while k < n:
                    k += 1
                    if k > 2:
                        break
                    acc += 1
                if acc > 100:
                    break
            acc += 10
            if i > 2:
                break
        tl.store(out, acc)

    expected = sum(10 + min(n, 2) * min(n, 2) for _ in range(min(n, 4)))
    assert scalar(nested, n) == expected


def test_after_a_break_the_condition_is_not_evaluated():
    def guarded(out, n):
        i = 0
        while tl.load(out + i) < n:  # would leave the array after the last element
            i += 1
            if i == 8:
                break
        tl.store(out, i)

    assert scalar(guarded, 100) == 8


def test_break_on_a_constant_in_an_unrolled_loop():
    def unrolled(out, STOP: tl.constexpr):
        for i in tl.static_range(8):
            if i == STOP:
                break
            if i == 1:
                continue
            tl.store(out + i, i)

    assert values(unrolled, STOP=4).tolist() == [0, -1, 2, 3, -1, -1, -1, -1]


def test_values_that_stay_are_no_arguments_of_the_loop():
    def same(out, n, FLAG: tl.constexpr):
        x = n * 2
        y = n * 3
        for i in range(n):
            if FLAG:
                x = x + 1
            tl.store(out, x + y)

    assert "iter_args" not in text_of(same, out="*i32", n="i32", FLAG=False)
    assert "iter_args(%x" in text_of(same, out="*i32", n="i32", FLAG=True)


def test_a_constant_stays_a_constant_where_the_loop_does_not_change_it():
    def kept(out, n, SIZE: tl.constexpr):
        for i in range(n):
            if SIZE > 4:
                SIZE = 2
            tl.store(out + tl.arange(0, SIZE), i)

    assert "end = 4" in text_of(kept, out="*i32", n="i32", SIZE=4)


def test_a_constant_that_the_loop_changes_becomes_a_tensor():
    @jit
    def sum_from(acc, n):
        for i in range(n):
            acc += i
        return acc

    def caller(out, n):
        tl.store(out, sum_from(100, n))

    assert scalar(caller, 4) == 106


def test_tuples_are_carried():
    def fibonacci(out, n):
        pair = (0, 1)
        for _ in range(n):
            pair = (pair[1], pair[0] + pair[1])
        tl.store(out, pair[0])

    assert scalar(fibonacci, 10) == 55


def test_swap_in_a_loop():
    def fibonacci(out, n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        tl.store(out, a)

    assert scalar(fibonacci, 10) == 55


def test_blocks_are_carried():
    def blocks(out, n):
        acc = tl.zeros((8,), tl.int32)
        offsets = out + tl.arange(0, 8)
        for i in range(n):
            acc += i
        tl.store(offsets, acc)

    assert values(blocks, 5).tolist() == [10] * 8


def test_a_block_pointer_is_carried():
    def advanced(out, n):
        pointer = tl.make_block_ptr(out, (8,), (1,), (0,), (2,), (0,))
        for i in range(n):
            tl.store(pointer, tl.full((2,), i, tl.int32))
            pointer = tl.advance(pointer, (2,))

    assert values(advanced, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_descriptor_is_carried():
    def carried(out, n):
        descriptor = tl.make_tensor_descriptor(out, [8], [1], [4])
        for i in range(n):
            descriptor.store([i * 4], tl.full((4,), i, tl.int32))
            descriptor = tl.make_tensor_descriptor(out, [8], [1], [4])

    assert values(carried, 2).tolist() == [0] * 4 + [1] * 4


def test_a_type_change_names_both_places():
    def change(out, n):
        acc = 0
        for i in range(n):
            acc += 0.5
        tl.store(out, acc)

    error = error_of(change, out="*fp32", n="i32")
    assert isinstance(error, LoopCarriedTypeError)
    assert marked(error) == "acc += 0.5"
    line = error.line
    assert f"int32, which it has before the loop (line {line - 2})" in str(error)
    assert f"found fp32 (line {line})" in str(error)


def test_a_none_that_becomes_a_tensor():
    def change(out, n):
        acc = None
        for i in range(n):
            acc = i
        tl.store(out, n)

    error = error_of(change, out="*i32", n="i32")
    assert isinstance(error, LoopCarriedTypeError)
    assert "the constant None" in str(error)


def test_a_shape_change():
    def change(out, n):
        acc = tl.zeros((4,), tl.float32)
        for i in range(n):
            acc = acc[:, None] + tl.zeros((4, 2), tl.float32)

    error = error_of(change, out="*fp32", n="i32")
    assert isinstance(error, LoopCarriedTypeError)
    assert "<4xfp32>" in str(error)
    assert "<4x2xfp32>" in str(error)


def test_the_counter_has_no_value_after_the_loop():
    def after(out, n):
        for i in range(n):
            tl.store(out, i)
        tl.store(out, i)

    error = error_of(after, out="*i32", n="i32")
    assert isinstance(error, NameNotFoundError)
    assert marked(error) == "i)"
    assert "counter of a loop" in str(error)


def test_a_variable_of_the_body_has_no_value_after_the_loop():
    def after(out, n):
        for i in range(n):
            last = i
        tl.store(out, last)

    error = error_of(after, out="*i32", n="i32")
    assert isinstance(error, NameNotFoundError)
    assert marked(error) == "last)"
    assert "only inside the loop" in str(error)


def test_reading_in_the_next_iteration_what_is_gone():
    def gone(out, n):
        i = n
        for k in range(n):
            tl.store(out, i)
            for i in range(k):
                tl.store(out, i)

    error = error_of(gone, out="*i32", n="i32")
    assert isinstance(error, NameNotFoundError)
    assert "in the next iteration i is the counter of a loop" in str(error)


def test_a_condition_that_is_always_true():
    def endless(out):
        while True:
            tl.store(out, 1)

    error = error_of(endless, out="*i32")
    assert isinstance(error, ConstexprError)
    assert marked(error) == "True:"


def test_return_in_a_loop():
    def leaves(out, n):
        for i in range(n):
            if i > 3:
                return
            tl.store(out, i)

    error = error_of(leaves, out="*i32", n="i32")
    assert isinstance(error, SyntaxNotSupportedError)
    assert marked(error) == "return"


def test_break_on_a_value_in_an_unrolled_loop():
    def unrolled(out, n):
        for i in tl.static_range(4):
            if n > i:
                break

    error = error_of(unrolled, out="*i32", n="i32")
    assert isinstance(error, SyntaxNotSupportedError)
    assert marked(error) == "break"


@pytest.mark.parametrize("kind", ["else", "step", "float", "tuple target", "not iterable", "static bound"])
def test_loops_that_cannot_be(kind):
    def with_else(out, n):
        for i in range(n):
            tl.store(out, i)
        else:
            tl.store(out, 0)

    def with_step(out, n):
        for i in range(0, n, 0):
            tl.store(out, i)

    def with_float(out, n):
        for i in range(2.5):
            tl.store(out, i)

    def with_tuple(out, n):
        for i, j in range(n):
            tl.store(out, i)

    def not_iterable(out, n):
        for i in n:
            tl.store(out, i)

    def static_bound(out, n):
        for i in tl.static_range(n):
            tl.store(out, i)

    cases = {
        "else": (with_else, "tl.store(out, 0)"),
        "step": (with_step, "range(0, n, 0):"),
        "float": (with_float, "range(2.5):"),
        "tuple target": (with_tuple, "i, j in range(n):"),
        "not iterable": (not_iterable, "n:"),
        "static bound": (static_bound, "tl.static_range(n):"),
    }
    kernel, where = cases[kind]
    assert marked(error_of(kernel, out="*i32", n="i32")) == where


def test_a_step_that_is_known_only_at_run_time():
    def strided(out, n, step):
        acc = 0
        for i in range(1, n, step):
            acc += i
        tl.store(out, acc)

    assert scalar(strided, 20, 6) == 1 + 7 + 13 + 19
