"""A kernel is compiled from what its key covers, whatever changes meanwhile, and anew when that has changed."""

from __future__ import annotations

import enum
import threading

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


class Settings:
    width = tl.constexpr(3)


@triton.jit
def one(x):
    return x + 1.0


@triton.jit
def two(x):
    return x + 2.0


class Functions:
    apply = one


WIDTH = tl.constexpr(3)
MODE = Mode.SLOW
DTYPE = tl.float32
ANSWER = 1


@triton.constexpr_function
def meddle():
    globals()["WIDTH"] = tl.constexpr(4)
    return 0


@triton.constexpr_function
def answer(scale):
    return ANSWER * scale


@triton.jit
def meddled(out):
    tl.store(out, meddle() + WIDTH)


@triton.jit
def of_mode(out):
    if MODE.value == 1:
        tl.store(out, 1.0)
    else:
        tl.store(out, 2.0)


@triton.jit
def of_dtype(out):
    tl.store(out, (tl.load(out) * 0 + 1.0001).to(DTYPE).to(tl.float32))


@triton.jit
def of_class(out):
    tl.store(out, Settings.width * 1.0)


@triton.jit
def of_function_of_class(out):
    tl.store(out, Functions.apply(1.0))


@triton.jit
def scaled(x):
    return x * WIDTH


@triton.jit
def of_constant_function(out, F: tl.constexpr):
    tl.store(out, F(2.0))


@triton.jit
def asks(out):
    tl.store(out, answer(1.5) + answer(scale=2.5))


@triton.jit
def asks_with_an_object(out):
    tl.store(out, answer(np.float32(2.0)) * 1.0)


def run(kernel, *arguments, **constants):
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, *arguments, **constants)
    return out[0]


def test_a_global_that_changes_while_compiling_does_not_get_under_the_old_key(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(globals(), "WIDTH", tl.constexpr(3))
    assert run(meddled) == 3
    assert run(meddled) == 4
    monkeypatch.setitem(globals(), "WIDTH", tl.constexpr(3))
    assert run(triton.jit(meddled.fn)) == 3  # From the disk.


@pytest.mark.parametrize(
    ("kernel", "space", "name", "value", "before", "after"),
    [
        (of_mode, globals(), "MODE", Mode.FAST, 1.0, 2.0),
        (of_dtype, globals(), "DTYPE", tl.float16, 1.0001, 1.0),
        (of_class, Settings, "width", tl.constexpr(5), 3.0, 5.0),
        (of_function_of_class, Functions, "apply", two, 2.0, 3.0),
    ],
)
def test_a_changed_global_compiles_anew(monkeypatch, kernel, space, name, value, before, after):
    assert run(kernel) == pytest.approx(before, abs=1e-6)
    key = kernel.cache_key
    if isinstance(space, dict):
        monkeypatch.setitem(space, name, value)
    else:
        monkeypatch.setattr(space, name, value)
    assert run(kernel) == pytest.approx(after, abs=1e-6)
    assert kernel.cache_key != key


def test_what_a_function_among_the_constants_names_is_watched(monkeypatch):
    monkeypatch.setitem(globals(), "WIDTH", tl.constexpr(3))
    assert run(of_constant_function, F=scaled) == 6
    monkeypatch.setitem(globals(), "WIDTH", tl.constexpr(5))
    assert run(of_constant_function, F=scaled) == 10


def test_answers_of_python_functions_belong_to_what_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    for value in (1, 2):
        monkeypatch.setitem(globals(), "ANSWER", value)
        assert run(triton.jit(asks.fn)) == 4 * value
    again = triton.jit(asks.fn).warmup(tl.float32)
    assert again.metadata.from_cache
    assert again.metadata.host_calls == [
        [0, {"tuple": [{"float": "1.5"}]}, {}, {"float": "3.0"}],
        [0, {"tuple": []}, {"scale": {"float": "2.5"}}, {"float": "5.0"}],
    ]


def test_what_another_process_cannot_ask_again_is_not_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        assert run(triton.jit(asks_with_an_object.fn)) == 2
        assert not triton.jit(asks_with_an_object.fn).warmup(tl.float32).metadata.from_cache


def test_a_thread_that_changes_a_global_sees_the_change_while_others_launch(monkeypatch):
    values = [tl.constexpr(3), tl.constexpr(4)]
    monkeypatch.setitem(globals(), "WIDTH", values[0])
    kernel = triton.jit(scaled_store.fn)
    stop, errors = threading.Event(), []

    def launch():
        try:
            while not stop.is_set():
                run(kernel)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    found = []
    for number in range(40):
        globals()["WIDTH"] = values[number % 2]
        found.append(run(kernel))
    stop.set()
    for thread in threads:
        thread.join()
    assert found == [3.0, 4.0] * 20
    assert not errors


@triton.jit
def scaled_store(out):
    tl.store(out, WIDTH * 1.0)
