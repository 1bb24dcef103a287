"""Processes of every kind: killed, interrupted, with Python's options, little stack, other hash seeds, more threads."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mltriton

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as POSIX has them")

KERNELS = """
import numpy as np
import mltriton as triton, mltriton.language as tl

@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

@triton.jit
def long(o, n, K: tl.constexpr):
    i = tl.arange(0, 64)
    for k in tl.static_range(8):
        tl.store(o + i, (i + n) * (k + K) + tl.sin(i * 1.0 + k))

def run(n, B):
    x, y, o = np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)
    add[(triton.cdiv(n, B),)](x, y, o, n, B=B)
    return bool((o == x + 1).all())

def run_long(K):
    o = np.zeros(64, np.float32)
    long[(1,)](o, 3, K=K)
    i = np.arange(64)
    return np.allclose(o, (i + 3) * (7 + K) + np.sin(i + 7.0), rtol=1e-5)
"""


@pytest.fixture
def start(tmp_path):
    """Start Python on code that sees the kernels, with a cache of the test's own."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    paths = os.pathsep.join((str(Path(mltriton.__file__).parents[1]), str(tmp_path)))
    own = os.environ | {"PYTHONPATH": paths, "MLTRITON_CACHE_DIR": str(tmp_path / "cache")}

    def started(code: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, *options, "-c", code]
        return subprocess.Popen(command, env=own | environment, stdout=pipe, stderr=pipe, text=True)

    return started


def printed(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    return out


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)], ids=["short", "long"])
def test_killed_processes_leave_a_whole_cache(start, kills):
    code = "from kernels import run\nprint(all(run(1000, B) for B in (16, 32, 64, 128, 256, 512)))"
    random_ = random.Random(kills)
    for _ in range(kills):
        process = start(code)
        time.sleep(random_.uniform(0.15, 1.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert printed(start(code, "-W", "error")) == "True\n"


@pytest.mark.parametrize("options", [("-OO",), ("-X", "dev", "-W", "error")], ids=" ".join)
def test_options_of_python(start, options):
    assert printed(start("from kernels import run\nprint(run(1000, 64))", *options)) == "True\n"


def test_a_small_stack(start):
    code = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_STACK, (2**18, 2**18))
os.execv(sys.executable, [sys.executable, "-c", "from kernels import run; print(run(99, 16))"])
"""
    assert printed(start(code)) == "True\n"


def test_the_same_program_makes_the_same_code(start, tmp_path):
    code = """
import mltriton.kernels as kernels, numpy as np
x = np.ones((64, 64), np.float32)
kernels.matmul(x, x)
kernels.softmax(x)
"""
    caches = [tmp_path / seed for seed in ("1", "77")]
    for process in [start(code, PYTHONHASHSEED=cache.name, MLTRITON_CACHE_DIR=str(cache)) for cache in caches]:
        assert printed(process) == ""
    one, other = ({path.name: path.read_bytes() for path in cache.glob("*/*")} for cache in caches)
    assert len(one) > 1
    assert one == other


def test_kernels_are_launched_while_another_thread_compiles(start):
    """Some hundred thousand launches fit; few would mean that they wait for LLVM."""
    code = """
import threading
from kernels import run, run_long
run(100, 64)
thread = threading.Thread(target=lambda: print(run_long(1)))
thread.start()
count = 0
while thread.is_alive():
    assert run(100, 64)
    count += 1
print(count > 20)
"""
    assert printed(start(code)) == "True\nTrue\n"


@pytest.mark.parametrize("turns", [8, pytest.param(300, marks=pytest.mark.slow)], ids=["short", "long"])
def test_a_compilation_is_interrupted_at_any_moment(start, turns):
    """What is left works: the same kernel compiles, Python's collector and limits are what they were.

    Moments are those of the process's CPU time, in which a compilation takes as long on a busy machine.
    """
    code = f"""
import gc, random, signal, sys, threading, time
from kernels import run_long

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

limit = sys.getrecursionlimit()
assert run_long(-1)  # Loads the compiler.
began = time.process_time()
assert run_long(0)
usual, stopped, random_ = time.process_time() - began, 0, random.Random({turns})
signal.signal(signal.SIGPROF, stop)
for turn in range(1, {turns} + 1):
    try:
        signal.setitimer(signal.ITIMER_PROF, random_.uniform(0.001, usual))
        assert run_long(turn)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except Stop:
        stopped += 1
    assert run_long(turn)
print(stopped > 0, gc.isenabled(), sys.getrecursionlimit() == limit, threading.active_count())
"""
    assert printed(start(code, MLTRITON_ALWAYS_COMPILE="1")) == "True True True 1\n"
