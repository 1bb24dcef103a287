"""Every mistake that a user is likely to make in a kernel: its error class, the line, the caret, what it says."""

from __future__ import annotations

import pytest

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


CASES = [
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
