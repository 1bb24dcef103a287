"""A process that forks while its threads compile, import and launch: its children compile and launch."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning"),
]

KERNELS = "import mltriton as triton, mltriton.language as tl\n" + "".join(
    f"@triton.jit\ndef kernel{number}(o_ptr, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
    + "".join(f"    tl.store(o_ptr + i, i * {term + number}.5 + tl.sin(i * 1.0 + {term}) + n)\n" for term in range(15))
    for number in range(3)
)

FORKING = """
import os, sys, threading, time, traceback
import numpy as np
sys.path.insert(0, PLACE)

def child(work, seconds=100):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 3)
        except BaseException:
            traceback.print_exc()
            os._exit(4)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

def launch(kernel, B=64):
    o = np.zeros(B, np.float32)
    kernel[(1,)](o, 3, B=B)
    i = np.arange(B)
    last = 14 + kernels.NUMBERS[kernel.__name__]
    return np.allclose(o, i * (last + 0.5) + np.sin(i + 14.0) + 3, rtol=1e-5)
"""

# The thread that compiles starts in a process that has compiled nothing: modules are imported meanwhile, too.
WHILE_COMPILING = """
import kernels
thread = threading.Thread(target=launch, args=(kernels.kernel0,))
thread.start()
results = []
for delay in DELAYS:
    time.sleep(delay)
    results += [child(lambda: launch(kernels.kernel0)), child(lambda: launch(kernels.kernel1, 32))]
thread.join()
print(set(results), launch(kernels.kernel0), launch(kernels.kernel2))
"""


@pytest.mark.parametrize("delays", [(0.0, 0.1), (0.3, 0.2)], ids=["at once", "later"])
def test_a_fork_while_a_thread_compiles(run_script, tmp_path, delays):
    fork_while_compiling(run_script, tmp_path, delays)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(20))
def test_many_forks_while_a_thread_compiles(run_script, tmp_path, turn):
    fork_while_compiling(run_script, tmp_path, (0.013 * turn, 0.021 * turn))


def fork_while_compiling(run_script, tmp_path: Path, delays: tuple[float, ...]) -> None:
    (tmp_path / "kernels.py").write_text(f"{KERNELS}\nNUMBERS = {{f'kernel{{n}}': n for n in range(3)}}\n")
    code = f"PLACE, DELAYS = {str(tmp_path)!r}, {delays}\n{FORKING}\n{WHILE_COMPILING}"
    assert run_script(code, MLTRITON_CACHE_DIR=str(tmp_path / "cache")) == "{0} True True\n"


def test_a_kernel_may_fork_while_it_is_compiled(run_script, tmp_path):
    """The forking thread itself holds the locks, in the child, too."""
    source = """
    import os
    import mltriton as triton, mltriton.language as tl

    CHILDREN = []

    @triton.constexpr_function
    def forking():
        pid = os.fork()
        if pid == 0:
            CHILDREN.clear()
        else:
            CHILDREN.append(pid)
        return 2

    @triton.jit
    def fill(o):
        tl.store(o, forking() * 1.0)
    """
    (tmp_path / "forking.py").write_text(textwrap.dedent(source))
    code = f"""
import os, sys
import numpy as np
sys.path.insert(0, {str(tmp_path)!r})
import forking
o = np.zeros(1, np.float32)
me = os.getpid()
forking.fill[(1,)](o)
if os.getpid() != me:
    os._exit(0 if o[0] == 2 else 3)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in forking.CHILDREN[:1]], o[0])
"""
    assert run_script(code, MLTRITON_CACHE_DIR=str(tmp_path / "cache")) == "[0] 2.0\n"


def test_locks_that_a_thread_held_are_free_in_the_child(run_script):
    code = """
import os, threading
from functools import cached_property
from mltriton.runtime.forking import fork_lock
import mltriton.runtime.jit as jit

held, mine, done, ready = fork_lock(), fork_lock(), threading.Event(), threading.Event()

def hold():
    with held, getattr(jit.JITFunction.parameters, "lock", fork_lock()):
        ready.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
ready.wait()
with mine:
    pid = os.fork()
    if pid == 0:
        free = held.acquire(timeout=1) and getattr(jit.JITFunction.parameters, "lock", held).acquire(timeout=1)
        os._exit(0 if free and mine._is_owned() else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), held.acquire(blocking=False))
done.set()
thread.join()
"""
    assert run_script(code) == "0 False\n"


def test_the_collector_that_a_thread_paused_works_in_the_child(run_script, tmp_path):
    source = """
    import threading
    import mltriton as triton, mltriton.language as tl

    compiling, done = threading.Event(), threading.Event()

    @triton.constexpr_function
    def waiting():
        compiling.set()
        done.wait()
        return 2

    @triton.jit
    def fill(o):
        tl.store(o, waiting() * 1.0)
    """
    (tmp_path / "waiting_kernel.py").write_text(textwrap.dedent(source))
    code = f"""
import gc, os, sys, threading
import numpy as np
sys.path.insert(0, {str(tmp_path)!r})
import waiting_kernel
thread = threading.Thread(target=waiting_kernel.fill[(1,)], args=(np.zeros(1, np.float32),))
thread.start()
waiting_kernel.compiling.wait()
paused = not gc.isenabled()
pid = os.fork()
if pid == 0:
    os._exit(0 if gc.isenabled() else 3)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
waiting_kernel.done.set()
thread.join()
print(paused, status, gc.isenabled())
"""
    assert run_script(code, MLTRITON_CACHE_DIR=str(tmp_path / "cache")) == "True 0 True\n"
