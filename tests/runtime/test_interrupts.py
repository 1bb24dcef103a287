"""Signals while kernels run: a launch ends between two programs, and what it left is whole."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.runtime.native import library

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")

SPINNING = """
import os, signal, sys, threading, time
sys.path.insert(0, PLACE)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background is started without
if TORCH:
    import torch
import numpy as np
from spinning import spin
count, steps = np.zeros(1 << 16, np.int32), np.array([10])
spin[(4,)](count, steps)

def begin():
    count[:], steps[:] = 0, 10**6  # Programs take milliseconds.

def signal_in_the_middle(number):
    while not count.any():
        time.sleep(0.001)
    os.kill(os.getpid(), number)

def in_the_middle(number):
    threading.Thread(target=signal_in_the_middle, args=(number,)).start()
"""
KERNEL = """
import mltriton as triton, mltriton.language as tl

@triton.jit
def spin(count, steps):
    a = 0.0
    for i in range(tl.load(steps)):
        a = a * 1.0001 + 1.0
    tl.store(count + tl.program_id(0), 1 + (a < 0.0).to(tl.int32))
"""
# A grid that would take minutes; the signal comes when the first programs have run.
INTERRUPTED = """
begin()
in_the_middle(signal.SIGINT)
try:
    spin[(1 << 16,)](count, steps)
    print("not interrupted")
except KeyboardInterrupt:
    ran = int(count.sum())
    time.sleep(0.05)
    print(0 < ran < 1 << 16, int(count.sum()) == ran)
steps[:], count[:] = 10, 0
spin[(200,)](count, steps)
print(count[:200].all())
"""
# A handler that returns lets the launch go on. It makes the programs that are left short ones.
HANDLED = """
begin()
hits = []

def handler(*_):
    hits.append(int(count.sum()))
    steps[:] = 10

signal.signal(signal.SIGALRM, handler)
in_the_middle(signal.SIGALRM)
spin[(1 << 14,)](count, steps)
print(len(hits), 0 < hits[0] < 1 << 14, int(count.sum()) == 1 << 14)
"""
# Other threads' launches are not the ones that are interrupted.
ELSEWHERE = """
begin()
done = []
thread = threading.Thread(target=lambda: done.append(spin[(1 << 14,)](count, steps)))
thread.start()
interrupts = 0
try:
    signal_in_the_middle(signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    interrupts += 1
print(interrupts, 0 < int(count.sum()) < 1 << 14)
steps[:] = 10
thread.join()
print(len(done), int(count.sum()) == 1 << 14)
"""
# The launcher, the number of threads, whether torch's are used.
WAYS = {
    "alone": ("native", 1, False),
    "workers": ("native", 2, False),
    "openmp": ("native", 2, True),
    "portable": ("portable", 2, False),
}


@pytest.fixture(params=WAYS)
def run_spinning(request, run_script, tmp_path):
    choice, threads, with_torch = WAYS[request.param]
    if choice == "native" and library.machine() is None:
        pytest.skip("no native launcher for this machine")
    if with_torch:
        pytest.importorskip("torch")
    (tmp_path / "spinning.py").write_text(KERNEL)

    def run(code: str) -> str:
        head = f"PLACE, TORCH = {str(tmp_path)!r}, {with_torch}\n"
        return run_script(head + SPINNING + code, MLTRITON_LAUNCHER=choice, MLTRITON_NUM_THREADS=str(threads))

    return run


def test_signals_arrive_between_programs(run_spinning):
    expected = ["True True", "True", "1 True True", "1 True", "1 True"]
    found = run_spinning(INTERRUPTED + HANDLED + ELSEWHERE)
    assert found.splitlines() == expected


def test_tuning_that_is_interrupted_restores_arguments():
    class Interrupted(BaseException):
        pass

    @triton.autotune([triton.Config({"B": b}) for b in (16, 32)], key=["n"], restore_value=["x"], reset_to_zero=["y"])
    @triton.jit
    def increase(x, y, n, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(x + i, tl.load(x + i) + 1)
        tl.store(y + i, tl.load(y + i) + 1)

    x, y = np.arange(32, dtype=np.float32), np.ones(32, np.float32)
    hooks: list[Any] = []

    def interrupt(*_: Any, **__: Any) -> None:
        hooks.append(1)
        x[:] = -1  # As a launch that was stopped in the middle would.
        raise Interrupted

    increase.base_fn.add_pre_run_hook(interrupt)
    with pytest.raises(Interrupted):
        increase[(1,)](x, y, 32)
    increase.base_fn.pre_run_hooks.remove(interrupt)
    assert hooks == [1]
    assert (x == np.arange(32)).all()
    assert not increase.cache


def test_restoring_that_is_interrupted_is_done_again(monkeypatch):
    from mltriton.runtime import configs

    state = configs.ArgumentState((), ("x", "y"), None, None)
    named = {"x": np.zeros(3), "y": np.zeros(3)}
    assign, calls = configs._assign, []

    def interrupted(array: Any, value: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        assign(array, value)

    monkeypatch.setattr(configs, "_assign", interrupted)
    state.before(named)
    for array in named.values():
        array[:] = 1
    with pytest.raises(KeyboardInterrupt):
        state.after(named, None)
    assert not named["x"].any()
    assert not named["y"].any()
