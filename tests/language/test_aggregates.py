"""Classes of values in kernels: fields, methods, defaults, inheritance, through branches, loops and functions."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import CompilationError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @triton.constexpr_function
    def __init__(self, first, second):
        self.first = first
        self.second = second

    @triton.jit
    def get_first(self):
        return self.first

    def get_second(self):
        return self.second

    @triton.jit
    def swapped(self):
        return Pair(self.second, self.get_first())

    @triton.jit
    def unpack(self):
        return self.get_first(), self.get_second()


@triton.aggregate
class Config:
    size: tl.constexpr
    scale: tl.constexpr = 3

    @triton.constexpr_function
    def doubled(self):
        return self.size.value * 2


@triton.aggregate
class Window(Config):
    pair: Pair
    step: tl.constexpr = tl.constexpr(2)

    @triton.jit
    def total(self):
        first, second = self.pair.unpack()
        return tl.sum(first) * self.scale + tl.sum(second) * self.step


@triton.jit
def use(window):
    return window.total() + window.doubled()


@triton.jit
def everything(x, y, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    pair = Pair(tl.load(x + i), tl.load(y + i))
    config = Config(N)
    tl.static_assert(config.size == N and config.scale == 3 and config.doubled() == 2 * N)
    tl.store(out, use(Window(config.size, pair=pair, scale=5)))
    if n > 3:
        pair = pair.swapped()
    for k in range(n):
        pair = Pair(pair.first + k, pair.second * 2)
    first, second = pair.unpack()
    tl.store(out + 1, tl.sum(first))
    tl.store(out + 2, tl.sum(second))
    other = triton.aggregate_replace(pair, second=first)
    tl.store(out + 3, tl.sum(other.second))


@pytest.mark.parametrize("n", [2, 5])
def test_aggregates(n: int):
    x, y = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 10
    out = np.zeros(4, np.int32)
    everything[(1,)](x, y, out, n, 8)
    first, second = (y, x) if n > 3 else (x, y)
    total = (first + sum(range(n))).sum()
    assert out.tolist() == [x.sum() * 5 + y.sum() * 2 + 16, total, second.sum() * 2**n, total]


@triton.jit
def mistaken(out, KIND: tl.constexpr):
    v = tl.load(out)
    if KIND == "few":
        Config()
    elif KIND == "many":
        Config(1, 2, 3)
    elif KIND == "type":
        Pair(v, 3)
    elif KIND == "constant":
        Config(v)
    elif KIND == "assign":
        pair = Pair(v, v)
        pair.first = v
    elif KIND == "field":
        triton.aggregate_replace(Pair(v, v), third=v)
    elif KIND == "attribute":
        tl.store(out, Pair(v, v).third)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("few", "takes one value for each field"),
        ("many", "takes one value for each field"),
        ("type", "Expected tensor for attribute 'second' of Pair, got the constant 3"),
        ("constant", "Expected constexpr for attribute 'size' of Config, got int32"),
        ("assign", r"cannot assign to pair\.first"),
        ("field", "Pair has no field 'third'"),
        ("attribute", "has no attribute third"),
    ],
)
def test_mistakes(kind: str, text: str):
    with pytest.raises(CompilationError, match=text):
        mistaken[(1,)](np.zeros(1, np.int32), kind)


def make(method: str):
    """Two classes of one name whose methods differ."""
    return f"""
import mltriton as triton
import mltriton.language as tl

@triton.aggregate
class Value:
    x: tl.tensor

    @triton.jit
    def get(self):
        return {method}

@triton.jit
def kernel(out):
    tl.store(out, Value(tl.load(out)).get())
"""


def test_methods_are_part_of_what_is_cached(tmp_path, monkeypatch):
    import importlib.util

    found = []
    for number, method in enumerate(("self.x + 1", "self.x + 2")):
        path = tmp_path / str(number) / "values.py"
        path.parent.mkdir()
        path.write_text(make(method))
        spec = importlib.util.spec_from_file_location("values", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(__import__("sys").modules, "values", module)
        spec.loader.exec_module(module)
        out = np.full(1, 10, np.int32)
        module.kernel[(1,)](out)
        found.append(out[0])
    assert found == [11, 12]


def test_other_classes_are_no_bases():
    class Plain:
        pass

    with pytest.raises(TypeError, match="non-aggregate base"):

        @triton.aggregate
        class Derived(Plain):
            x: tl.tensor
