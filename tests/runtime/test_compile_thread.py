"""Programs of any depth compile from any depth, and what a thread of its own must keep of the caller's."""

from __future__ import annotations

import contextvars
import importlib.util
import itertools
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import BackendError, ConstexprError, NestingError
from mltriton.runtime import compile_thread
from mltriton.runtime.compile_thread import TimeIsUp, limited, unlimited
from mltriton.tools.verify import verify_kernel

HEAD = "import mltriton as triton\nimport mltriton.language as tl\n\n@triton.jit\n"
_numbers = itertools.count()


@triton.jit
def horner(out, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    a = tl.arange(0, BLOCK) * 1.0
    for j in tl.static_range(STEPS):
        a = a * 0.5 + j
    tl.store(out + tl.arange(0, BLOCK), a)


@triton.jit
def scalar_chain(out, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    a = n
    for _ in tl.static_range(STEPS):
        a = a * 3 + n
    tl.store(out + tl.arange(0, BLOCK), a * 1.0)


def at_depth(frames, call):
    return at_depth(frames - 1, call) if frames else call()


def written(tmp_path, body, before=""):
    """The kernel `k` of a file with this text."""
    name = f"deep_kernels_{next(_numbers)}"
    file = tmp_path / f"{name}.py"
    file.write_text(before + HEAD + "def k(out, n):\n" + body, encoding="utf-8")
    specification = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.k


def deep(work):
    """`work` on a large stack, as after a failure on the caller's."""
    asked = []

    def once_more():
        if not asked:
            asked.append(True)
            raise RecursionError
        return work()

    return unlimited(once_more)


@pytest.mark.parametrize("frames", [0, 800])
def test_a_chain_of_any_length_compiles_at_any_depth_of_the_caller(frames):
    out = np.zeros(32, np.float32)
    at_depth(frames, lambda: horner[(1,)](out, 3, BLOCK=32, STEPS=400))
    expected = np.arange(32, dtype=np.float64)
    for j in range(400):
        expected = expected * 0.5 + j
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_long_chains_of_scalars():
    out = np.zeros(32, np.float32)
    scalar_chain[(1,)](out, 7, BLOCK=32, STEPS=700)
    expected = 7
    for _ in range(700):
        expected = (expected * 3 + 7) % 2**32
    assert (out == np.int64(expected - 2**32 * (expected >= 2**31)).astype(np.float32)).all()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [horner, scalar_chain])
def test_a_chain_of_twenty_thousand_steps(kernel):
    out = np.zeros(32, np.float32)
    kernel[(1,)](out, 3, BLOCK=32, STEPS=20_000)
    assert (out != 0).all()


def test_a_sum_of_many_terms(tmp_path):
    out = np.zeros(4, np.float32)
    kernel = written(tmp_path, "    tl.store(out, " + " + ".join(f"n * {j}.0" for j in range(700)) + ")\n")
    kernel[(1,)](out, 3)
    assert out[0] == 3 * sum(range(700))


def test_many_elifs(tmp_path):
    out = np.zeros(4, np.float32)
    branches = "".join(f"    elif n == {d}:\n        a = {d}.5\n" for d in range(1, 150))
    kernel = written(tmp_path, f"    a = 0.0\n    if n == 0:\n        a = 1.0\n{branches}    tl.store(out, a)\n")
    for n in (0, 3, 149):
        kernel[(1,)](out, n)
        assert out[0] == (n + 0.5 if n else 1.0)


def test_the_executor_and_the_tools_take_what_nests_deep(tmp_path, monkeypatch):
    branches = "".join(f"    elif n == {d}:\n        a = {d}.5\n" for d in range(1, 100))
    body = f"    a = 0.0\n    if n == 0:\n        a = 1.0\n{branches}    tl.store(out, a)\n"
    kernel = written(tmp_path, body)
    report = verify_kernel(kernel, {"out": "*fp32", "n": "i32"}, args={"out": np.zeros(4, np.float32), "n": 7})
    assert report.ok, str(report)
    monkeypatch.setenv("MLTRITON_INTERPRET", "1")
    out = np.zeros(4, np.float32)
    written(tmp_path, body)[(1,)](out, 98)
    assert out[0] == 98.5


def test_many_calls_inside_each_other(tmp_path):
    out = np.zeros(4, np.float32)
    before = "".join(
        f"{HEAD if not j else '@triton.jit' + chr(10)}def f{j}(x):\n    return f{j + 1}(x) + 1.0\n" for j in range(300)
    )
    before += "@triton.jit\ndef f300(x):\n    return x\n\n"
    written(tmp_path, "    tl.store(out, f0(n * 1.0))\n", before)[(1,)](out, 5)
    assert out[0] == 305


@triton.constexpr_function
def endless(n):
    return endless(n + 1)


@triton.jit
def calls_endless(out):
    tl.store(out, endless(1))


def test_endless_recursion_of_a_host_function_is_a_named_error():
    with pytest.raises(ConstexprError, match="endless fails when compiling: RecursionError"):
        calls_endless[(1,)](np.zeros(1, np.float32))


def test_endless_recursion_of_the_work_is_a_named_error():
    def forever():
        return forever()

    with pytest.raises(NestingError, match="nested too deep"):
        unlimited(forever)


def test_the_recursion_limit_is_raised_for_the_work_and_restored():
    before = sys.getrecursionlimit()
    assert deep(sys.getrecursionlimit) > 100_000
    assert sys.getrecursionlimit() == before


def test_context_variables_and_trace_functions_reach_the_work():
    variable = contextvars.ContextVar("variable")
    variable.set("the caller's")
    seen = []

    def trace(frame, event, argument):
        seen.append(frame.f_code.co_name)

    def work():
        return variable.get()

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert deep(work) == "the caller's"
    finally:
        sys.settrace(before)
    assert "work" in seen


def test_an_error_of_the_work_has_the_frames_of_both_threads():
    def fails():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone") as caught:
        deep(fails)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[0] == "test_an_error_of_the_work_has_the_frames_of_both_threads"
    assert names[-1] == "fails"


class AlarmError(Exception):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, AlarmError])
def test_an_exception_of_a_signal_handler_stops_the_work(kind):
    def handle(number, frame):
        raise kind

    ended = threading.Event()

    def work():
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            while True:
                time.sleep(0.001)
        finally:
            ended.set()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(kind):
            deep(work)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ended.is_set()
    assert all(thread.name != "mltriton-compile" for thread in threading.enumerate())


def test_where_no_thread_has_the_largest_stack_a_smaller_one_does(monkeypatch):
    start, largest = threading.Thread.start, compile_thread.STACKS[0]

    def refusing(thread):
        if threading.stack_size() == largest:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    assert 50_000 < deep(sys.getrecursionlimit) < 150_000


def test_work_that_takes_too_long_is_stopped():
    ended = threading.Event()

    def work():
        try:
            while True:
                time.sleep(0.001)
        finally:
            ended.set()

    with pytest.raises(TimeIsUp):
        limited(work, 0.1)
    assert ended.is_set()
    assert limited(lambda: compile_thread.time_limit() <= 60, 60)


def test_the_time_limit_bounds_the_front_end(monkeypatch):
    monkeypatch.setenv("MLTRITON_COMPILE_TIMEOUT", "1")
    with pytest.raises(BackendError, match="compiling horner took longer than 1 seconds"):
        horner[(1,)](np.zeros(32, np.float32), 3, BLOCK=32, STEPS=10**6)
    monkeypatch.delenv("MLTRITON_COMPILE_TIMEOUT")
    horner[(1,)](np.zeros(32, np.float32), 3, BLOCK=32, STEPS=3)
