"""Kernels are pickled and copied as functions are, by name; and constants that equal nothing, not even themselves."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl


@triton.jit
def store(out, V: tl.constexpr):
    tl.store(out, V)


@triton.constexpr_function
def doubled(n):
    return 2 * n


@triton.autotune([triton.Config({"V": 1})], key=[])
@triton.jit
def tuned(out, V: tl.constexpr):
    tl.store(out, V)


@triton.heuristics({"V": lambda arguments: 2})
@triton.jit
def guessed(out, V: tl.constexpr):
    tl.store(out, V)


@pytest.mark.parametrize("launchable", [store, doubled, tuned, guessed], ids=["kernel", "function", "tuned", "guessed"])
def test_pickles_and_copies_are_the_thing_itself(launchable):
    assert pickle.loads(pickle.dumps(launchable)) is launchable
    assert copy.deepcopy(launchable) is launchable
    assert copy.deepcopy([launchable, launchable]) == [launchable, launchable]


def test_a_kernel_that_was_launched_can_be_pickled():
    store[(1,)](np.zeros(1, np.float32), V=3)
    assert pickle.loads(pickle.dumps({"kernel": store}))["kernel"] is store


def test_a_kernel_without_a_name_cannot_be_pickled():
    @triton.jit
    def local(out):
        tl.store(out, 1.0)

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)
    with pytest.raises(pickle.PicklingError, match="another object"):
        pickle.dumps(triton.heuristics({})(store))


def test_nan_is_one_constant():
    kernel = triton.jit(store.fn)
    out = np.zeros(1, np.float32)
    for value in [*(float("nan") for _ in range(4)), math.nan, np.float32("nan"), np.float64("nan")]:
        kernel[(1,)](out, V=value)
        assert np.isnan(out[0])
        out[0] = 0
    assert len(kernel._compiled) == 1
    assert sum(len(shape.variants) for shape in kernel.shapes.values()) <= 2
