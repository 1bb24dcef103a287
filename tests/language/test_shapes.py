"""Creation, shape operations and choosing elements: types, values against numpy, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import AxisError, ConstexprError, PowerOfTwoError, ShapeMismatchError, TypeMismatchError

from .tracing import Trace, compute

X = np.arange(64, dtype=np.int32).reshape(4, 2, 8)
M = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[:, None], X[:, None]),
        (lambda x: x[None, :, :, :, None], X[None, ..., None]),
        (lambda x: x[:, :, :], X),
        (lambda x: x[None], X[None]),
        (lambda x: tl.expand_dims(x, -1), X[..., None]),
        (lambda x: tl.expand_dims(x, (0, 2)), X[None, :, None]),
        (lambda x: x.expand_dims(tl.constexpr(1)), X[:, None]),
        (lambda x: x.reshape(8, 8), X.reshape(8, 8)),
        (lambda x: tl.reshape(x, (64,)), X.reshape(64)),
        (lambda x: x.reshape([2, -1]), X.reshape(2, 32)),
        (lambda x: x.ravel(), X.ravel()),
        (lambda x: tl.ravel(x), X.ravel()),
        (lambda x: x.T, X.swapaxes(1, 2)),
        (lambda x: tl.trans(x), X.swapaxes(1, 2)),
        (lambda x: tl.trans(x, 2, 0, 1), X.transpose(2, 0, 1)),
        (lambda x: x.permute((1, 2, 0)), X.transpose(1, 2, 0)),
        (lambda x: tl.permute(x, 0, -1, 1), X.transpose(0, 2, 1)),
        (lambda x: tl.permute(x, 0, 1, 2), X),
        (lambda x: tl.join(x, x + 1), np.stack([X, X + 1], -1)),
        (lambda x: tl.interleave(x, -x), np.stack([X, -X], -1).reshape(4, 2, 16)),
        (lambda x: tl.cat(x, x + 1), np.concatenate([X, X + 1])),
        (lambda x: tl.cat(x, x + 1, dim=1), np.concatenate([X, X + 1], 1)),
        (lambda x: tl.cat(x, x + 1, dim=-1), np.concatenate([X, X + 1], -1)),
        (lambda x: tl.cat(x.ravel(), x.ravel(), can_reorder=True), np.tile(X.ravel(), 2)),
        (lambda x: tl.unsqueeze(x, 1), X[:, None]),
        (lambda x: x[:, None].squeeze(1), X),
        (lambda x: x[None].squeeze(0), X),
        (lambda x: x[..., None], X[..., None]),
        (lambda x: x[:, None, ..., None], X[:, None, ..., None]),
        (lambda x: tl.flip(x), X[..., ::-1]),
        (lambda x: tl.flip(x, 0), X[::-1]),
        (lambda x: x.flip(-2), X[:, ::-1]),
        (lambda x: tl.zeros_like(x), 0 * X),
        (lambda x: tl.broadcast_to(x[:, None], 4, 2, 2, 8), np.broadcast_to(X[:, None], (4, 2, 2, 8))),
        (lambda x: tl.broadcast_to(x[None], (2, 4, 2, 8)), np.broadcast_to(X, (2, 4, 2, 8))),
    ],
)
def test_against_numpy(function, expected):
    np.testing.assert_array_equal(compute(function, X), expected)


def test_creation(kernel: Trace):
    assert tl.arange(0, 64).type == tl.block_type(tl.int32, (64,))
    assert tl.arange(tl.constexpr(16), 32).handle.defining_op.attributes["start"].value == 16
    assert tl.full((4, tl.constexpr(8)), 2.5, tl.constexpr(tl.float16)).type == tl.block_type(tl.float16, (4, 8))
    assert tl.full((), 3, tl.int32).type == tl.int32
    assert tl.zeros([16], tl.float8e5).type == tl.block_type(tl.float8e5, (16,))
    assert tl.full((8,), kernel.parameter(tl.int32), tl.float32).type == tl.block_type(tl.float32, (8,))
    assert kernel.names[-2:] == ["arith.sitofp", "tt.splat"]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (tl.float32, 0.1, np.float32(0.1)),
        (tl.float16, 1e6, np.inf),
        (tl.int8, -128, -128),
        (tl.uint32, 2**32 - 1, 2**32 - 1),
        (tl.int1, True, True),
        (tl.int32, 3.0, 3),
        (tl.uint64, 2**64 - 1, 2**64 - 1),
        (tl.float64, 1e300, 1e300),
        (tl.bfloat16, 1 + 2.0**-9, 1.0),
    ],
)
def test_constants(dtype, value, expected):
    assert compute(lambda: tl.full((4,), value, dtype)).tolist() == [expected] * 4


def test_literals_of_the_rest_of_the_float_range():
    values = [float("inf"), -float("inf"), -0.0, 5e-324]
    found = [compute(lambda v=v: tl.full((2,), v, tl.float64))[0] for v in values]
    assert [v.hex() for v in map(float, found)] == [v.hex() for v in values]
    assert np.isnan(compute(lambda: tl.full((2,), float("nan"), tl.float32))).all()


def test_split_and_item():
    x = np.arange(16, dtype=np.int32).reshape(8, 2)
    left, right = compute(lambda x: tl.split(x), x)
    assert left.tolist() == x[:, 0].tolist() and right.tolist() == x[:, 1].tolist()
    first, second = compute(lambda x: x.split(), np.array([3, 4], np.int32))
    assert (first, second) == (3, 4)
    assert compute(lambda x: tl.item(x), np.array([[7]], np.int32)) == 7
    assert compute(lambda x: tl.join(tl.item(x), 5), np.array([7], np.int32)).tolist() == [7, 5]


def test_gather():
    index = np.array([[0, 7, 7, 1], [2, 2, 0, 5], [1, 1, 1, 1], [6, 5, 4, 3]], np.int32)
    np.testing.assert_array_equal(compute(lambda x, i: tl.gather(x, i, 1), M, index), np.take_along_axis(M, index, 1))
    rows = np.tile(np.array([[3], [0]], np.int32), (1, 8))
    np.testing.assert_array_equal(compute(lambda x, i: x.gather(i, 0), M, rows), np.take_along_axis(M, rows, 0))


def test_gathers_of_two_sizes():
    """Warps do not wait for each other: none writes memory from which another one still gathers."""

    def both(x):
        first = tl.max(x, 1, keep_dims=True)
        return tl.gather(first, first & 0, 1), tl.gather(x, x & 3, 1)

    x = np.arange(128, dtype=np.int32).reshape(32, 4) % 41
    first, second = compute(both, x)
    np.testing.assert_array_equal(first, x.max(1, keepdims=True))
    np.testing.assert_array_equal(second, np.take_along_axis(x, x & 3, 1))


def test_implicit_broadcasting(kernel: Trace):
    rows, columns = tl.arange(0, 4), tl.arange(0, 8)
    assert (rows[:, None] + columns).type.shape == (4, 8)  # A missing leading dimension is added.
    assert (rows[:, None, None] * columns[None, :]).type.shape == (4, 1, 8)
    a, b = tl.broadcast(rows[:, None], columns[None, :])
    assert a.type == b.type == tl.block_type(tl.int32, (4, 8))
    assert [c.value for c in a.shape] == [4, 8] and a.numel == 32
    with pytest.raises(ShapeMismatchError) as caught:
        _ = rows + columns
    assert "[4] and [8] do not broadcast" in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda x: tl.arange(0, 48), PowerOfTwoError, "use 64"),
        (lambda x: tl.arange(8, 8), ShapeMismatchError, "an end above its start"),
        (lambda x: tl.arange(0, tl.program_id(0)), ConstexprError, "the end of tl.arange must be known when compiling"),
        (lambda x: tl.arange(0, 1 << 33), TypeMismatchError, "counts in int32"),
        (lambda x: tl.full((4,), x, tl.int32), TypeMismatchError, "repeats a scalar"),
        (lambda x: tl.full((4,), 1, "int32"), TypeMismatchError, "needs a dtype"),
        (lambda x: tl.full((4,), 300, tl.int8), TypeMismatchError, "300 does not fit in int8"),
        (lambda x: tl.full((4,), 1.5, tl.int32), TypeMismatchError, "1.5 is no value of int32"),
        (lambda x: tl.zeros(4, tl.int32), PowerOfTwoError, r"write \(4,\)"),
        (lambda x: tl.zeros((4, 3), tl.int32), PowerOfTwoError, "dimension 1 of a block must be a power of two"),
        (lambda x: tl.zeros((tl.program_id(0),), tl.int32), ConstexprError, "must be known when compiling"),
        (lambda x: x.reshape(tl.program_id(0), 4), ConstexprError, "dimension 0 of a block's shape must be known"),
        (lambda x: x[0], ShapeMismatchError, "indexed with `:` and None only"),
        (lambda x: x[tl.arange(0, 4)], ShapeMismatchError, "indexed with `:` and None only"),
        (lambda x: x[0:2, :], ShapeMismatchError, "indexed with `:` and None only"),
        (lambda x: x[:, :, :], AxisError, "too many `:`"),
        (lambda x: x.reshape(4, 4), ShapeMismatchError, "expected 32 elements"),
        (lambda x: x.reshape(3, -1), PowerOfTwoError, "power of two"),
        (lambda x: tl.broadcast_to(x, (8, 4)), ShapeMismatchError, "does not broadcast to"),
        (lambda x: tl.broadcast_to(x, (2, 4, 8)), ShapeMismatchError, "the same rank"),
        (lambda x: x.permute(0, 0), AxisError, "not a permutation"),
        (lambda x: x.permute(0), AxisError, "not a permutation"),
        (lambda x: tl.trans(x, 0, 2), AxisError, "out of range"),
        (lambda x: tl.arange(0, 4).T, AxisError, "needs two dimensions"),
        (lambda x: tl.trans(tl.program_id(0)), TypeMismatchError, "needs a block"),
        (lambda x: tl.expand_dims(x, 3), AxisError, "expected -3 to 2"),
        (lambda x: tl.expand_dims(x, (0, 0)), AxisError, "an axis twice"),
        (lambda x: tl.expand_dims(x, tl.program_id(0)), ConstexprError, "the axis of tl.expand_dims must be known"),
        (lambda x: tl.squeeze(x, 0), ShapeMismatchError, "size 1 at dimension 0"),
        (lambda x: tl.join(x, x.to(tl.int32)), TypeMismatchError, "needs one dtype"),
        (lambda x: tl.split(x), ShapeMismatchError, "a last dimension of size 2"),
        (lambda x: tl.cat(x, x.T), TypeMismatchError, "two blocks of one type"),
        (lambda x: tl.cat(x, x, dim=2), AxisError, "out of range"),
        (lambda x: tl.item(x), ShapeMismatchError, "a block of one element"),
        (lambda x: tl.gather(x, x, 0), TypeMismatchError, "must be integers"),
        (lambda x: tl.gather(x, tl.arange(0, 8), 0), ShapeMismatchError, "equal sizes except along axis 0"),
        (lambda x: tl.flip(x, 2), AxisError, "out of range"),
    ],
)
def test_misuse(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(tl.zeros((4, 8), tl.float32))
