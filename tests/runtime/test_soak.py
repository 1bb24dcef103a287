"""Everything at once, for a while: threads that launch and compile, forks, signals, a disk that is full now and then.

The short form runs with all tests, the one of ten minutes with the slow ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mltriton

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks and signals as POSIX has them")

KERNELS = """
import mltriton as triton, mltriton.language as tl

@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

@triton.jit
def scale(x, o, n, FACTOR: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) * FACTOR, i < n)
"""

# Signals go to the main thread, which launches and compiles, too: a handler that returns, or raises meanwhile. Limits
# on the size of files stand for a full disk: entries of the cache are not written then. Children are forked at any time
# and must launch what was compiled, and compile.
SOAK = """
import os, random, resource, signal, sys, threading, time, traceback, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, PLACE)
from kernels import add, scale

problems, counts = [], {"launches": 0, "children": 0, "signals": 0, "compiled": 0, "stopped": 0}
armed = [False]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

class Stop(Exception):
    pass

def goes_on():
    return not problems and (time.monotonic() < end or not counts["launches"] or not counts["children"])

def handler(*_):
    if armed[0] and time.monotonic_ns() % 2:
        armed[0] = False
        raise Stop

def launch(random, compiles=False):
    n, block = random.randrange(1, 20_000), random.choice((64, 256, 1024))
    x, y = np.full(n, random.random(), np.float32), np.arange(n, dtype=np.float32)
    o = np.empty(n, np.float32)
    if compiles:
        factor = float(random.randrange(10**6))
        scale[(-(-n // block),)](y, o, n, FACTOR=factor, B=block)
        return np.allclose(o, y * np.float32(factor))
    add[(-(-n // block),)](x, y, o, n, B=block)
    return np.array_equal(o, x + y)

def launching(seed):
    random_ = random.Random(seed)
    while goes_on():
        try:
            compiles = random_.random() < 0.02
            if not launch(random_, compiles):
                problems.append("wrong")
            counts["compiled" if compiles else "launches"] += 1
        except BaseException:
            problems.append(traceback.format_exc())

def child(seed):
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            random_ = random.Random(seed)
            os._exit(0 if all(launch(random_, turn % 5 == 4) for turn in range(5)) else 3)
        except BaseException:
            traceback.print_exc()
            os._exit(4)
    return pid

def wait(pid):
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, 9)
    return "hangs"

def signalling():
    random_ = random.Random(1)
    while time.monotonic() < end - 1 and not problems:
        time.sleep(random_.uniform(0.005, 0.1))
        os.kill(os.getpid(), signal.SIGUSR1)
        counts["signals"] += 1

def main():
    random_ = random.Random(2)
    turn = 0
    while goes_on():
        turn += 1
        try:
            full = turn % 20 >= 14
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000 if full else -1, -1))
            if turn % 40 == 1:
                counts["children"] += 1
                if (result := wait(child(turn))) != 0:
                    problems.append(f"a child: {result}")
            try:
                armed[0] = turn > 100
                if not launch(random_, turn % 50 == 0):
                    problems.append("wrong in the main thread")
            finally:
                armed[0] = False
        except Stop:
            counts["stopped"] += 1
        except BaseException:
            problems.append(traceback.format_exc())

assert launch(random.Random(0)) and launch(random.Random(0), True)
end = time.monotonic() + SECONDS  # Loading the compiler takes longer than that on a busy machine.
signal.signal(signal.SIGUSR1, handler)
threads = [threading.Thread(target=launching, args=(seed,)) for seed in range(3)]
threads.append(threading.Thread(target=signalling))
for thread in threads:
    thread.start()
main()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for thread in threads:
    thread.join()
from mltriton.runtime.cache import default_cache
print(counts, [str(item)[:2000] for item in problems[:3]], default_cache().size() <= LIMIT)
sys.exit(bool(problems) or not counts["launches"] or not counts["children"] or default_cache().size() > LIMIT)
"""


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(4, 200_000), pytest.param(600, 2_000_000, marks=pytest.mark.slow)],
    ids=["short", "ten minutes"],
)
def test_soak(tmp_path, seconds, limit):
    (tmp_path / "kernels.py").write_text(KERNELS)
    settings = {"MLTRITON_CACHE_DIR": str(tmp_path / "cache"), "MLTRITON_CACHE_MAX_SIZE": str(limit)}
    done = subprocess.run(
        [sys.executable, "-c", f"PLACE, SECONDS, LIMIT = {str(tmp_path)!r}, {seconds}, {limit}\n{SOAK}"],
        env=os.environ | {"PYTHONPATH": str(Path(mltriton.__file__).parents[1])} | settings,
        capture_output=True,
        text=True,
        timeout=seconds + 400,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
