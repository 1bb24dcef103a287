"""Every mistake that a user is likely to make in a kernel: its error class, the line, the caret, what it says."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import errors

from .kernels import error_of, marked


def wrong_types(out, x):
    tl.store(out, tl.load(x) * out)


def power_of_tensor(out, x):
    tl.store(out, tl.load(x) ** 2)


def no_broadcast(out, x):
    tl.store(out + tl.arange(0, 8), tl.arange(0, 8) + tl.arange(0, 4))


def no_power_of_two(out, x):
    tl.store(out + tl.arange(0, 12), 1)


def block_too_large(out, x):
    tl.zeros((2048, 1024), tl.float32)


def runtime_shape(out, x):
    n = tl.load(x)
    tl.zeros((n,), tl.float32)


def list_grows(out, x):
    items = []
    items.append(tl.load(x))


def loop_changes_type(out, x):
    acc = tl.zeros((8,), tl.int32)
    for _ in range(4):
        acc += tl.load(x + tl.arange(0, 8)).to(tl.float32)
    tl.store(out + tl.arange(0, 8), acc)


def unknown_name(out, x):
    tl.store(out, undefned)  # noqa: F821


def unknown_builtin(out, x):
    tl.store(out, tl.lod(x))


def unsupported_python(out, x):
    try:
        tl.store(out, 1)
    except ValueError:
        pass


def descriptor_stride(out, x):
    d = tl.make_tensor_descriptor(x, [64, 64], [1, 64], [16, 16])
    d.store([0, 0], d.load([0, 0]))


def descriptor_small_block(out, x):
    tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 2])


def descriptor_ranks(out, x):
    tl.make_tensor_descriptor(x, [64], [64, 1], [16, 16])


def block_pointer_with_mask(out, x):
    p = tl.make_block_ptr(x, (64,), (1,), (0,), (16,), (0,))
    tl.load(p, mask=tl.arange(0, 16) < 8)


def dot_shapes(out, x):
    tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((16, 32), tl.float16))


def dot_types(out, x):
    tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))


def sum_axis(out, x):
    tl.sum(tl.zeros((16, 16), tl.float32), axis=2)


def program_axis(out, x):
    tl.program_id(3)


def reshape_size(out, x):
    tl.reshape(tl.arange(0, 16), (4, 8))


def permutation(out, x):
    tl.permute(tl.zeros((4, 8), tl.float32), (0, 0))


def store_through_value(out, x):
    tl.store(tl.load(x), 1)


def mask_shape(out, x):
    tl.load(x + tl.arange(0, 8), mask=tl.arange(0, 16) < 8)


def static_assertion(out, x):
    tl.static_assert(x.dtype == tl.int8, "needs int8")


def condition_of_block(out, x):
    if tl.load(x + tl.arange(0, 8)) > 0:
        tl.store(out, 1)


def index_of_block(out, x):
    tl.store(out, tl.arange(0, 8)[0])


def runtime_size(out, x):
    tl.arange(0, tl.load(x))


def numbered_range(out, x):
    for i, j in enumerate(range(tl.load(x))):
        tl.store(out + i, j)


def combined_by_python(out, x):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 8)), 0, max))


def mapped_by_python(out, x):
    tl.store(out + tl.arange(0, 8), tl.map_elementwise(abs, tl.load(x + tl.arange(0, 8))))


def prints_with_separator(out, x):
    print("x", tl.load(x), sep="-")


def leaves_python(out, x):
    exit()


def evaluates(out, x):
    tl.store(out, eval("1"))


def length_of_an_array(out, x):
    tl.store(out, x.shape[0])


def launched(out, x):
    mapped_kernel[(1,)](out, x)


def truth_of_a_descriptor(out, x):
    d = tl.make_tensor_descriptor(x, [64], [1], [16])
    if tl.load(x) > 0 and d:
        tl.store(out, 1)


def zeros_of_pointers(out, x):
    tl.zeros_like(x + tl.arange(0, 8))


def constant_of_two(out, x):
    tl.constexpr(1, 2)


def combined_by_three(out, x):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 8)), 0, tl.where))


def scanned_by_one(out, x):
    tl.store(out + tl.arange(0, 8), tl.associative_scan(tl.load(x + tl.arange(0, 8)), 0, tl.abs))


def dtype_with_a_mask(out, x):
    tl.store(out, tl.dtype("int32", mask=3))


def choice_of_a_tensor(out, x):
    tl.PropagateNan(tl.load(x))


def descriptor_type_of_a_number(out, x):
    tl.tensor_descriptor_type(4)


@triton.jit
def mapped_kernel(out, x):
    tl.store(out, tl.load(x))


CASES = [
    (length_of_an_array, errors.TypeMismatchError, "x.shape[0])"),
    (launched, errors.SyntaxNotSupportedError, "mapped_kernel[(1,)](out, x)"),
    (wrong_types, errors.TypeMismatchError, "tl.load(x) * out)"),
    (power_of_tensor, errors.TypeMismatchError, "tl.load(x) ** 2)"),
    (no_broadcast, errors.ShapeMismatchError, "tl.arange(0, 8) + tl.arange(0, 4))"),
    (no_power_of_two, errors.PowerOfTwoError, "tl.arange(0, 12), 1)"),
    (block_too_large, errors.PowerOfTwoError, "tl.zeros((2048, 1024), tl.float32)"),
    (runtime_shape, errors.ConstexprError, "tl.zeros((n,), tl.float32)"),
    (list_grows, errors.NameNotFoundError, "items.append(tl.load(x))"),
    (loop_changes_type, errors.LoopCarriedTypeError, "acc += tl.load(x + tl.arange(0, 8)).to(tl.float32)"),
    (unknown_name, errors.NameNotFoundError, "undefned)"),
    (unknown_builtin, errors.NameNotFoundError, "tl.lod(x))"),
    (unsupported_python, errors.SyntaxNotSupportedError, "try:"),
    (descriptor_stride, errors.DescriptorError, "tl.make_tensor_descriptor(x, [64, 64], [1, 64], [16, 16])"),
    (descriptor_small_block, errors.DescriptorError, "tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 2])"),
    (descriptor_ranks, errors.DescriptorError, "tl.make_tensor_descriptor(x, [64], [64, 1], [16, 16])"),
    (block_pointer_with_mask, errors.PointerError, "tl.load(p, mask=tl.arange(0, 16) < 8)"),
    (dot_shapes, errors.DotShapeError, "tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((16, 32), tl.float16))"),
    (dot_types, errors.DotTypeError, "tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))"),
    (sum_axis, errors.AxisError, "tl.sum(tl.zeros((16, 16), tl.float32), axis=2)"),
    (program_axis, errors.AxisError, "tl.program_id(3)"),
    (reshape_size, errors.ShapeMismatchError, "tl.reshape(tl.arange(0, 16), (4, 8))"),
    (permutation, errors.AxisError, "tl.permute(tl.zeros((4, 8), tl.float32), (0, 0))"),
    (store_through_value, errors.PointerError, "tl.store(tl.load(x), 1)"),
    (mask_shape, errors.ShapeMismatchError, "tl.load(x + tl.arange(0, 8), mask=tl.arange(0, 16) < 8)"),
    (static_assertion, errors.AssertionFailed, 'tl.static_assert(x.dtype == tl.int8, "needs int8")'),
    (index_of_block, errors.ShapeMismatchError, "tl.arange(0, 8)[0])"),
    (runtime_size, errors.ConstexprError, "tl.arange(0, tl.load(x))"),
    (numbered_range, errors.ConstexprError, "enumerate(range(tl.load(x))):"),
    (condition_of_block, errors.ConstexprError, "tl.load(x + tl.arange(0, 8)) > 0:"),
    (combined_by_python, errors.NameNotFoundError, "tl.reduce(tl.load(x + tl.arange(0, 8)), 0, max))"),
    (mapped_by_python, errors.NameNotFoundError, "tl.map_elementwise(abs, tl.load(x + tl.arange(0, 8))))"),
    (prints_with_separator, errors.OptionError, 'print("x", tl.load(x), sep="-")'),
    (leaves_python, errors.NameNotFoundError, "exit()"),
    (truth_of_a_descriptor, errors.TypeMismatchError, "tl.load(x) > 0 and d:"),
    (zeros_of_pointers, errors.TypeMismatchError, "tl.zeros_like(x + tl.arange(0, 8))"),
    (constant_of_two, errors.TypeMismatchError, "tl.constexpr(1, 2)"),
    (combined_by_three, errors.TypeMismatchError, "tl.reduce(tl.load(x + tl.arange(0, 8)), 0, tl.where))"),
    (scanned_by_one, errors.TypeMismatchError, "tl.associative_scan(tl.load(x + tl.arange(0, 8)), 0, tl.abs))"),
    (dtype_with_a_mask, errors.TypeMismatchError, 'tl.dtype("int32", mask=3))'),
    (choice_of_a_tensor, errors.TypeMismatchError, "tl.PropagateNan(tl.load(x))"),
    (descriptor_type_of_a_number, errors.TypeMismatchError, "tl.tensor_descriptor_type(4)"),
    (evaluates, errors.NameNotFoundError, 'eval("1"))'),
]


@pytest.mark.parametrize(("kernel", "error_class", "where"), CASES, ids=[case[0].__name__ for case in CASES])
def test_the_error_of_a_mistake(kernel, error_class, where):
    error = error_of(kernel, out="*i32:16", x="*i32:16")
    assert isinstance(error, error_class), repr(error)
    assert type(error) is not errors.CompilationError
    assert error.file == __file__
    assert marked(error) == where
    assert len(error.render().splitlines()) >= 3


ARRAY = np.arange(4)


def array_of_the_module(out, x):
    tl.store(out, tl.load(ARRAY))


def element_of_an_array(out, x):
    tl.store(out, x[3])


def method_of_a_number(out, x, n=1):
    tl.store(out, n.to(tl.float32))


def type_of_a_number(out, x, n=1):
    tl.store(out, 1, mask=n.dtype == tl.int32)


def array_for_a_number(out, x):
    tl.store(out, tl.program_id(0) < x)


def functions_of_numpy(out, x):
    tl.store(out, np.sqrt(tl.load(x)))


def functions_of_python(out, x):
    tl.store(out, round(tl.load(x)))


@pytest.mark.parametrize(
    ("kernel", "hint"),
    [
        (array_of_the_module, "Pass it as an argument."),
        (element_of_an_array, "tl.load(pointer + i)"),
        (method_of_a_number, "tl.cast(x, dtype)"),
        (method_of_a_number, "do_not_specialize=['n']"),
        (type_of_a_number, "An argument that is 1 is compiled in as a number"),
        (array_for_a_number, "tl.load(pointer) is the value"),
        (functions_of_numpy, "tl.sqrt takes tensors"),
        (functions_of_python, "It runs when compiling"),
        (length_of_an_array, "pass an array's as arguments"),
        (launched, "Without a grid"),
    ],
)
def test_what_to_do_about_a_mistake(kernel, hint):
    found = error_of(kernel, out="*i32", x="*i32").hint
    assert found is not None
    assert hint in found


@pytest.mark.parametrize("thing", [5, len, int], ids=str)
def test_what_is_no_function_of_python_is_no_kernel(thing):
    with pytest.raises(errors.SyntaxNotSupportedError, match="written with def"):
        triton.jit(thing)


@pytest.mark.parametrize(
    "decorate",
    [triton.autotune([triton.Config({})], []), triton.heuristics({"n": len})],
    ids=["autotune", "heuristics"],
)
def test_functions_that_are_no_kernels_yet(decorate):
    with pytest.raises(errors.OptionError, match=r"takes a kernel[\s\S]*@triton.jit below"):
        decorate(length_of_an_array)


def reported(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def test_what_stands_around_the_text_of_a_kernel_does_not_change_it():
    def kernel(out, n: tl.constexpr):
        tl.store(out, n)

    out = np.zeros(1, np.int32)
    for decorated in (
        triton.jit(reported(kernel)),
        triton.jit(reported(reported(kernel))),
        triton.jit(triton.jit(kernel)),
    ):
        decorated[(1,)](out, n=out.item() + 1)
    assert out == 3


def test_a_kernel_on_top_of_an_autotuner_is_an_error():
    tuned = triton.autotune([triton.Config({})], [])(triton.jit(length_of_an_array))
    with pytest.raises(errors.SyntaxNotSupportedError, match="below other decorators"):
        triton.jit(tuned)


def test_keywords_of_any_name_are_an_error_at_the_kernel():
    def kernel(out, **rest):
        tl.store(out, 1)

    with pytest.raises(errors.SyntaxNotSupportedError) as caught:
        triton.jit(kernel)
    assert caught.value.file == __file__
    assert caught.value.line == kernel.__code__.co_firstlineno


@triton.jit
def stepping(out, first, last, step):
    for j in range(first, last, step):
        tl.store(out + j, j)


def test_steps_that_only_the_launch_knows_are_checked_with_debug():
    out = np.full(8, -1, np.int32)
    stepping[(1,)](out, 1, 8, 3, debug=True)
    assert out.tolist() == [-1, 1, -1, -1, 4, -1, -1, 7]
    for step in (0, -1):
        with pytest.raises(errors.DeviceAssertionError, match="must count up"):
            stepping[(1,)](out, 7, -1 if step else 9, step, debug=True)


def counts_up(out, x):
    total += 1  # noqa: F821


def test_no_name_is_a_hint_for_itself():
    assert error_of(counts_up, out="*i32", x="*i32").hint is None


def test_a_whole_rendering():
    error = error_of(unknown_builtin, out="*i32", x="*i32")
    line = unknown_builtin.__code__.co_firstlineno + 1
    assert error.render().splitlines() == [
        f"{__file__}:{line}:19: NameNotFoundError: module mltriton.language has no attribute lod",
        f"{line:>5} |     tl.store(out, tl.lod(x))",
        "      |                   ^",
        "Did you mean load?",
    ]
