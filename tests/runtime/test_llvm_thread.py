"""llvmlite's objects live where no signal handler raises: a compile stands exceptions at any moment of it."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import threading
import weakref
from pathlib import Path

import pytest

from mltriton.errors import BackendError
from mltriton.runtime.llvm_thread import Kept, call_llvm
from mltriton.runtime.native import library, objects
from mltriton.targets.llvm import toolchain

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals as POSIX has them")

GOOD = "define i32 @f(i32 %a) {\n  %b = add i32 %a, 1\n  ret i32 %b\n}\n"
REJECTED = "define i32 @f(i32 %a) {\n  ret i64 %a\n}\n", "no IR"

# One exception at most for each compile, at any moment of it: a timer's, or that of Ctrl-C from another thread. The
# longest time until one is found on the way, however busy the machine: longer after each compile that was stopped (it
# works on, and the next one waits for it), shorter after each that ended.
STRESS = """
import os, random, signal, sys, threading, time
from mltriton.errors import BackendError
from mltriton.targets.llvm.toolchain import Machine, compile_here, host_machine, verify

class Stop(Exception):
    pass

def handler(*_):
    global armed
    if armed:
        armed = False
        raise Stop if TIMER else KeyboardInterrupt

def interrupt():
    while not ended:
        time.sleep(random_.uniform(1e-4, longest))
        os.kill(os.getpid(), signal.SIGINT)

machine = Machine(*host_machine()[:2])
expected = compile_here(GOOD, machine)
longest = 6e-3
random_ = random.Random(SEED)
armed = ended = False
done = stopped = 0
signal.signal(signal.SIGALRM if TIMER else signal.SIGINT, handler)
thread = threading.Thread(target=interrupt)
if not TIMER:
    thread.start()
while done < COMPILES or stopped <= COMPILES // 10:
    try:
        armed = True
        if TIMER:
            signal.setitimer(signal.ITIMER_REAL, random_.uniform(1e-5, longest))
        if done % 5 == 4:
            try:
                verify(REJECTED[done % 2])
                sys.exit("accepted")
            except BackendError:
                pass
        elif compile_here(GOOD, machine) != expected:
            sys.exit("another object")
        armed = False
        done += 1
        longest = max(1e-3, longest * 0.95)
    except (Stop, KeyboardInterrupt):
        stopped += 1
        longest *= 1.1
ended = True
signal.setitimer(signal.ITIMER_REAL, 0)
if not TIMER:
    thread.join()
print(done >= COMPILES)
"""


@pytest.mark.parametrize("compiles", [300, pytest.param(4000, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("timer", [True, False], ids=["timer", "interrupt"])
def test_exceptions_of_handlers_at_any_moment_of_a_compile(run_script, timer, compiles):
    names = f"GOOD, REJECTED, TIMER, COMPILES, SEED = {GOOD!r}, {REJECTED!r}, {timer}, {compiles}, {os.getpid()}\n"
    assert run_script(names + STRESS, seconds=120 + compiles) == "True\n"


def everything(image: bytes | None) -> bytes:
    """Every use of llvmlite, errors too."""
    machine = toolchain.Machine(*toolchain.host_machine()[:2])
    image = image or toolchain.compile_here(GOOD, machine)
    assert "f:" in toolchain.assembly(GOOD, machine)
    for text in REJECTED:
        with pytest.raises(BackendError):
            toolchain.verify(text)
    if library.machine() is not None:
        library.compile_object(GOOD, machine.triple)
    assert objects.load_with_llvm(image, ["f"]).addresses["f"]
    with pytest.raises(objects.ObjectLoadError):
        objects.load_with_llvm(image, ["missing"])
    return image


def test_no_object_of_llvmlite_is_seen_by_the_caller(monkeypatch):
    from llvmlite.binding import ffi

    image = everything(None)
    here, seen = threading.get_ident(), dict[str, set[bool]]()

    def recorded(kind: type, name: str):
        original = getattr(kind, name)

        def method(self, *rest, **named):
            seen.setdefault(f"{kind.__name__}.{name}", set()).add(threading.get_ident() == here)
            return original(self, *rest, **named)

        monkeypatch.setattr(kind, name, method)

    for kind in (ffi.ObjectRef, ffi.OutputString):
        for name in ("__init__", "close"):
            recorded(kind, name)
    recorded(ffi._lib_fn_wrapper, "__call__")
    gc.collect()
    gc.disable()
    kept = gc.get_objects()  # other tests use llvmlite by themselves
    try:
        everything(image)
        call_llvm(int)
        left = [item for item in gc.get_objects() if type(item) is ffi.OutputString]
        modules = [item for item in gc.get_objects() if type(item).__name__ in ("ModuleRef", "TargetMachine")]
        before = set(map(id, kept))
        left, modules = ([item for item in found if id(item) not in before] for found in (left, modules))
    finally:
        gc.enable()
    assert len(seen) == 5
    assert set.union(*seen.values()) == {False}
    assert not left
    assert not modules


class Named:
    """Says on which thread it was freed."""

    def __init__(self, freed: list[int]) -> None:
        self.freed = freed

    def __del__(self) -> None:
        self.freed.append(threading.get_ident())


def test_what_an_error_came_through_is_freed_on_the_thread():
    freed: list[int] = []

    def inner(held):
        raise KeyError(len(held.freed))

    def work():
        held = Named(freed)
        try:
            inner(held)
        except KeyError as error:
            raise ValueError("outer") from error

    with pytest.raises(ValueError, match="outer"):
        call_llvm(work)
    assert len(freed) == 1
    assert freed[0] != threading.get_ident()


def test_what_is_kept_is_freed_on_the_thread_with_the_next_call():
    freed: list[int] = []
    kept = call_llvm(lambda: Kept(Named(freed)))
    call_llvm(int)
    assert not freed
    alive = weakref.ref(kept)
    del kept
    assert alive() is None
    assert not freed
    call_llvm(int)
    assert len(freed) == 1
    assert freed[0] != threading.get_ident()


@pytest.fixture
def on_signal():
    """Set a handler."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, handler)
    signal.signal(signal.SIGUSR1, before)


def test_an_exception_does_not_wait_for_llvm(on_signal):
    go_on, ended = threading.Event(), threading.Event()

    def interrupted(*_):
        raise KeyboardInterrupt

    def work():
        os.kill(os.getpid(), signal.SIGUSR1)
        go_on.wait(60)
        ended.set()

    on_signal(interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_llvm(work)
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)
    assert call_llvm(lambda: 3) == 3


def test_a_handler_may_fork_while_llvm_works(run_script):
    code = """
import os, signal, threading
from mltriton.runtime.llvm_thread import call_llvm

me, turns, forked = os.getpid(), [], threading.Event()

def fork(*_):
    global child
    child = os.fork()
    forked.set()

def work():
    turns.append(os.getpid())
    if os.getpid() == me:
        os.kill(me, signal.SIGUSR1)
        forked.wait(60)
    return 5

signal.signal(signal.SIGUSR1, fork)
found = call_llvm(work)
if os.getpid() != me:
    os._exit(0 if found == 5 and turns == [me, os.getpid()] else 3)
print(found, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_script(code) == "5 0\n"


ENDING = """
import os, signal, sys, threading, time
from mltriton.runtime import llvm_thread
from mltriton.runtime.llvm_thread import call_llvm

def stop(*_):
    raise KeyError

def work():
    os.kill(os.getpid(), signal.SIGUSR1)
    stopped.wait()
    time.sleep(SECONDS)  # Meanwhile the process ends.
    print("worked", flush=True)

stopped = threading.Event()
signal.signal(signal.SIGUSR1, stop)
try:
    call_llvm(work)
except KeyError:
    print("stopped", flush=True)
    stopped.set()
"""


def test_a_process_ends_after_llvm_does(run_script):
    assert run_script(f"SECONDS = 0.5\n{ENDING}") == "stopped\nworked\n"


def test_a_process_does_not_wait_for_ever(run_script):
    assert run_script(f"SECONDS = 10**6\n{ENDING}\nllvm_thread.GRACE = 0.2") == "stopped\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much is mapped")
def test_a_call_takes_little_of_a_limited_address_space(run_script):
    code = """
import re
from pathlib import Path
from mltriton.runtime.llvm_thread import call_llvm
call_llvm(int)
print(re.findall(r"Vm(?:Peak|Size):\\s*(\\d+)", Path("/proc/self/status").read_text()))
"""
    peak, size = (int(number) for number in eval(run_script(code)))
    assert peak - size < 160 * 1024  # 16 MiB for the stack; the C library aligns its heaps of 64 MiB.


def test_llvm_that_cannot_be_loaded_is_a_named_error(run_script):
    code = """
from importlib.machinery import PathFinder
import numpy as np
from mltriton.errors import BackendError
from mltriton.targets.llvm.toolchain import verify

found = PathFinder.find_spec

def find_spec(name, *where):
    if name.startswith("llvmlite"):
        raise OSError("no memory to map it")
    return found(name, *where)

PathFinder.find_spec = find_spec
try:
    verify("")
except BackendError as error:
    print(error)
"""
    assert run_script(code).splitlines()[:2] == ["LLVM cannot be loaded", "found no memory to map it"]


def test_without_a_thread_the_work_is_done_here(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    assert call_llvm(threading.get_ident) == threading.get_ident()
