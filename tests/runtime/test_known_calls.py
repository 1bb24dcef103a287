"""Calls like one before go through machine code: whatever else a call asks for must still be noticed."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, GridError
from mltriton.runtime.jit import HOOKS
from mltriton.runtime.native.launcher import is_native

from .references import references_kept

FACTOR = tl.constexpr(2)

pytestmark = pytest.mark.skipif(not is_native(), reason="launches go through Python threads")


@triton.jit
def scaled(x, y, n, BLOCK: tl.constexpr, PLUS: tl.constexpr = 0, bias=None):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * FACTOR + PLUS
    if bias is not None:
        value += tl.load(bias + at, mask=at < n)
    tl.store(y + at, value, mask=at < n)


@pytest.fixture
def kernel() -> Iterator[Any]:
    """A kernel that has launched over one grid, so that machine code takes calls like that one."""
    made = triton.jit(scaled.fn)
    x = np.arange(100, dtype=np.float32)
    for _ in range(2):
        made[(1,)](x, np.empty_like(x), 100, BLOCK=128, num_warps=2)
    yield made
    setattr(sys.modules[__name__], "FACTOR", tl.constexpr(2))  # noqa: B010 - a test gives it another value


def launched(
    kernel: Any, n: int = 100, dtype: Any = np.float32, **arguments: Any
) -> tuple[Any, np.ndarray, np.ndarray]:
    x = np.arange(n, dtype=dtype)
    y = np.full_like(x, -1)
    return kernel[(1,)](x, y, n, **{"BLOCK": 128, "num_warps": 2, **arguments}), x, y


def python_of(launch: Any, *arguments: Any, **named: Any) -> list[str]:
    """The functions of Python's that a call runs through."""
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        launch(*arguments, **named)
    finally:
        sys.setprofile(None)
    return names


def test_machine_code_takes_calls_like_earlier_ones(kernel: Any) -> None:
    fresh = triton.jit(scaled.fn)
    for launch in (kernel[(1,)], fresh[(1,)], fresh[1]):  # of the last two nothing was launched before
        x = np.arange(77, dtype=np.float32)
        for _ in range(2):
            y = np.full_like(x, -1)
            compiled = launch(x, y, 77, BLOCK=128, num_warps=2)
            assert (y == 2 * x).all() and compiled.metadata.num_warps == 2
        assert not python_of(launch, x, y, 77, BLOCK=128, num_warps=2)
        assert python_of(launch, x, y, 77, BLOCK=256, num_warps=2)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"PLUS": 3}, lambda x: 2 * x + 3),
        ({"BLOCK": 256}, lambda x: 2 * x),
        ({"bias": np.ones(100, np.float32)}, lambda x: 2 * x + 1),
        ({"dtype": np.int64}, lambda x: 2 * x),
        ({"dtype": np.float16}, lambda x: 2 * x),
        ({"n": 1}, lambda x: 2 * x),
    ],
    ids=["a constant", "a block", "an array", "a type", "a shorter type", "a number that is 1"],
)
def test_other_arguments(kernel: Any, arguments: dict[str, Any], expected: Any) -> None:
    for chosen in (arguments, {}, arguments, arguments):
        _, x, y = launched(kernel, **chosen)
        assert (y == (expected(x) if chosen else 2 * x)).all()


def test_more_kinds_of_calls_than_are_known(kernel: Any) -> None:
    for plus in (*range(9), *range(9)):
        _, x, y = launched(kernel, PLUS=plus)
        assert (y == 2 * x + plus).all()


def test_options(kernel: Any) -> None:
    """They are no parameters: the kernel alone shows them."""
    for warps in (4, 2, 4, 2, 1000 // 250):
        compiled, x, y = launched(kernel, num_warps=warps)
        assert compiled.metadata.num_warps == warps and (y == 2 * x).all()


def test_order_and_names_of_arguments(kernel: Any) -> None:
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    bias = np.ones(50, np.float32)
    for _ in range(3):
        kernel[(1,)](bias=bias, n=50, y=y, BLOCK=64, x=x, PLUS=5)
        assert (y == 2 * x + 6).all()
        kernel[(1,)](x, y, 50, 64)
        assert (y == 2 * x).all()
        kernel[(1,)](x, y, 50, 64, 1, bias)
        assert (y == 2 * x + 2).all()


def test_a_changed_constant(kernel: Any) -> None:
    setattr(sys.modules[__name__], "FACTOR", tl.constexpr(7))  # noqa: B010
    for _ in range(3):
        _, x, y = launched(kernel)
        assert (y == 7 * x).all()


def test_a_changed_text(kernel: Any) -> None:
    kernel._unsafe_update_src(kernel.src.replace("+ PLUS", "+ PLUS + 10"))
    for _ in range(3):
        _, x, y = launched(kernel)
        assert (y == 2 * x + 10).all()


def test_hooks(kernel: Any) -> None:
    seen: list[Any] = []

    def hook(*args: Any, **kwargs: Any) -> None:
        seen.append(kwargs)

    kernel.add_pre_run_hook(hook)
    try:
        launched(kernel)
        assert len(seen) == 1
    finally:
        HOOKS.clear()


def test_mistakes_have_the_place_of_the_launch(kernel: Any) -> None:
    x = np.zeros(4, np.float32)
    for arguments in ((x, x), (x, x, 4, 128, 0, None, 1), (x, object(), 4, 128)):
        with pytest.raises(ArgumentError) as caught:
            kernel[(1,)](*arguments)
        assert caught.value.file == __file__
    with pytest.raises(ArgumentError, match="no parameter 'BLOK'"):
        kernel[(1,)](x, x, 4, BLOK=128)
    with pytest.raises(ArgumentError, match="read-only"):
        x.setflags(write=False)
        kernel[(1,)](x, x, 4, BLOCK=128, num_warps=2)


def test_computed_grids(kernel: Any) -> None:
    asked: list[dict[str, Any]] = []

    def grid(arguments: dict[str, Any]) -> tuple[int, ...]:
        asked.append(arguments)
        return (triton.cdiv(arguments["n"], arguments["BLOCK"]),)

    for times in range(3):
        for n in (100, 300, 0, 500):
            x = np.arange(n, dtype=np.float32) + times
            y = np.full_like(x, -1)
            assert kernel[grid](x, y, n, BLOCK=128, PLUS=times).name == "scaled"
            assert (y == 2 * x + times).all()
            assert {"n": n, "BLOCK": 128, "PLUS": times, "bias": None}.items() <= asked.pop().items()
            assert not asked
        assert [type(kernel.grids.get((size,))) is BuiltinFunctionType for size in (1, 3, 4)] == [
            True,
            times > 0,
            times > 0,
        ]
    for wrong, message in ((1.5, "integers"), ((1, 2, 3, 4), "three dimensions"), ("a", "integers")):
        with pytest.raises(GridError, match=message):
            kernel[lambda _, size=wrong: size](x, y, 100, BLOCK=128)
    with pytest.raises(KeyError, match="no_such"):
        kernel[lambda arguments: (arguments["no_such"],)](x, y, 100, BLOCK=128)
    with pytest.raises(ArgumentError):
        kernel[grid](x, y, BLOCK=128)


@pytest.mark.parametrize("wrong", [4.0, (4.0,), (Fraction(4),), (4, 1.0), (2, 2, 1.0)])
def test_what_equals_a_known_grid_is_no_grid(kernel: Any, wrong: Any) -> None:
    x = np.arange(512, dtype=np.float32)
    for size in (4, (4,), (np.int64(4),), (4, 1), (2, 2, 1), [4]):
        for grid in (size, size, lambda _, size=size: size):
            y = np.zeros_like(x)
            kernel[grid](x, y, 512, BLOCK=128)
            assert (y[:256] == 2 * x[:256]).all()
    for grid in (wrong, lambda _: wrong):
        with pytest.raises(GridError, match="integers"):
            kernel[grid](x, x, 512, BLOCK=128)


def test_a_grid_of_an_array_is_the_number_that_it_holds(kernel: Any) -> None:
    """Each time: it may hold another one later."""
    x, size = np.ones(512, np.float32), np.array(4)
    for programs in (4, 2):
        size[...] = programs
        y = np.zeros_like(x)
        kernel[(size,)](x, y, 512, BLOCK=128)
        assert y.sum() == 2 * 128 * programs


def test_computed_grids_leave_no_garbage(kernel: Any) -> None:
    """Their launchers are made for each launch."""
    x = np.zeros(100, np.float32)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            kernel[lambda named: (1,)](x, x, 100, BLOCK=128, num_warps=2)
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_threads(kernel: Any) -> None:
    """Some of them change what is known, the others launch."""
    wrong: list[int] = []

    def work(plus: int) -> None:
        for _ in range(200):
            _, x, y = launched(kernel, PLUS=plus)
            if not (y == 2 * x + plus).all():
                wrong.append(plus)

    threads = [threading.Thread(target=work, args=(plus % 3,)) for plus in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_references(kernel: Any) -> None:
    """Nothing is kept of a call's arguments, and nothing given away too often."""
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    launched(kernel)
    compiled = kernel[(1,)](x, y, 100, BLOCK=128, num_warps=2)

    def call() -> None:
        kernel[(1,)](x, y, 100, BLOCK=128, num_warps=2)
        kernel[(1,)](x, y, 100, BLOCK=128, num_warps=4)

    assert not references_kept([x, y, NotImplemented, compiled], call)
