"""Types and attributes are shared, immutable and tell apart what differs in value."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from mltriton.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.types import F32, I1, I32, FloatType, IntegerType, PointerType, TensorType
from mltriton.layouts.encodings import BlockedEncoding, SliceEncoding


def test_equal_fields_give_one_object() -> None:
    assert IntegerType(32) is I32
    assert TensorType((4, 8), F32) is TensorType(shape=(4, 8), element=F32, encoding=None)
    assert PointerType(F32) is PointerType(F32, 1)
    assert PointerType(F32, 3) is not PointerType(F32)
    parent = BlockedEncoding((4, 4), (2, 2), (1, 0))
    assert SliceEncoding(0, parent) is SliceEncoding(parent=BlockedEncoding((4, 4), (2, 2), order=(1, 0)), dim=0)


def test_values_that_compare_equal_stay_apart() -> None:
    assert FloatAttr(0.0, F32) is not FloatAttr(-0.0, F32)
    assert FloatAttr(math.nan, F32) is FloatAttr(math.nan, F32)
    assert DenseAttr((0.0,), TensorType((2,), F32)) is not DenseAttr((-0.0,), TensorType((2,), F32))
    assert IntegerAttr(True, I1) is IntegerAttr(1, I1)
    assert IntegerAttr(1, I1) is not IntegerAttr(1, I32)


def test_copies_and_pickles_are_the_same_object() -> None:
    type = TensorType((4,), F32, BlockedEncoding((4,), (1,), (0,)))
    assert copy.copy(type) is type
    assert copy.deepcopy([type])[0] is type
    assert pickle.loads(pickle.dumps(type)) is type


def test_instances_are_immutable() -> None:
    with pytest.raises(AttributeError, match="IntegerType is immutable"):
        I32.width = 64  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del I32.width


@pytest.mark.parametrize("arguments", [(), (8, "i8"), ("f8", 8, 1)])
def test_wrong_fields_are_named(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match="takes"):
        (IntegerType if len(arguments) < 3 else FloatType)(*arguments)  # type: ignore[arg-type]


def test_instances_show_their_fields() -> None:
    assert repr(FloatType("f16", 16)) == "FloatType(name='f16', width=16)"
