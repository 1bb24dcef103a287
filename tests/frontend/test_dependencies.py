"""What a kernel's meaning depends on besides its own text."""

from __future__ import annotations

import types

import pytest

import mltriton.language as tl
from mltriton.frontend.dependencies import dependencies
from mltriton.frontend.function import constexpr_function
from mltriton.runtime.jit import jit

SIZE = tl.constexpr(8)
OTHER = tl.constexpr(9)
helpers = types.ModuleType("helpers")
helpers.SCALE = tl.constexpr(2)


@constexpr_function
def doubled(n):
    return n * 2


@jit
def inner(x):
    return x * SIZE


@jit
def kernel(out, OTHER):
    tl.store(out, inner(out) + doubled(4) + helpers.SCALE + OTHER)


def test_everything_named_is_found():
    parts = "\n".join(dependencies(kernel).parts)
    assert "def kernel" in parts
    assert "def inner" in parts
    assert "SIZE = 8" in parts
    assert "SCALE = 2" in parts
    assert "return n * 2" in parts
    assert "OTHER = 9" not in parts  # the parameter hides the global


@pytest.mark.parametrize(("space", "name"), [(globals(), "SIZE"), (globals(), "inner"), (vars(helpers), "SCALE")])
def test_a_change_is_noticed(monkeypatch, space, name):
    found = dependencies(kernel)
    assert not found.have_changed()
    monkeypatch.setitem(space, name, tl.constexpr(100))
    assert found.have_changed()
    assert dependencies(kernel).parts != found.parts


def test_a_changed_closure_is_noticed():
    size = tl.constexpr(4)

    @jit
    def closes(out):
        tl.store(out, size)

    found = dependencies(closes)
    size = tl.constexpr(5)
    assert found.have_changed()


def test_functions_that_call_each_other_end():
    @jit
    def even(n: tl.constexpr):
        return odd(n - 1) if n > 0 else True

    @jit
    def odd(n: tl.constexpr):
        return even(n - 1) if n > 0 else False

    parts = dependencies(even).parts
    assert sum("def even" in part for part in parts) == 1
    assert sum("def odd" in part for part in parts) == 1


def test_defaults_are_part_of_the_meaning():
    def make(default):
        @jit
        def with_default(out, n=default):
            tl.store(out, n)

        return with_default

    assert dependencies(make(1)).parts != dependencies(make(2)).parts
    assert dependencies(make(1)).parts == dependencies(make(1)).parts


def test_the_line_is_part_of_the_meaning():
    @jit
    def here(out):
        tl.store(out, 1)

    first = here

    @jit
    def here(out):
        tl.store(out, 1)

    assert dependencies(first).parts != dependencies(here).parts
