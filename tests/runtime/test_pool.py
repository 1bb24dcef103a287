"""Running a grid on a team of threads: every program once, real parallelism, scratch memory, forks, exits."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

from mltriton.runtime.native import launcher, library, portable
from mltriton.runtime.native.launcher import NativeKernel
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.pool import ScratchLimitError, ScratchMemoryError, pool
from mltriton.runtime.slots import Slot

from .native_kernels import COUNT, MEET, SCRATCH, WHO, compile_body, copy_slots, make_kernel

INT64 = [ParamSpec.tensor(np.dtype(np.int64))]


@pytest.mark.parametrize("programs", [1, 2, 3, 4, 5, 63, 64, 65, 1000, 12_345, 1_000_003])
def test_every_program_runs_once(team, programs):
    counts = np.zeros(programs, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for turn in range(1, 4):
        assert launch(programs, 1, 1, counts) is None
        assert (counts == turn).all()


def test_many_launches_in_a_row(team):
    counts = np.zeros(37, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    turns = 200 if team == "portable" else 20_000
    for _ in range(turns):
        launch(37, 1, 1, counts)
    assert (counts == turns).all()


def test_the_grid_has_three_dimensions(team):
    out = np.zeros(5, np.int64)
    kernel = make_kernel(copy_slots(5))
    launch = kernel.launcher([*INT64, ParamSpec.integer("i32")])
    assert launch(3, 5, 7, out, 11) is None
    assert out.tolist() == [out.ctypes.data, 11, 3, 5, 7]
    counts = np.zeros(105, np.int64)
    make_kernel(COUNT).launcher(INT64)(3, 5, 7, counts)
    assert (counts == 1).all()


def test_an_empty_grid_runs_nothing(team):
    counts = np.zeros(1, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    assert launch(0, 1, 1, counts) is None
    assert launch(4, 0, 2, counts) is None
    make_kernel(COUNT).run((4, 0, 2), [Slot("tensor", counts.ctypes.data)])
    assert counts[0] == 0


def test_several_threads_work(team):
    who = np.zeros(4000, np.int64)
    launch = make_kernel(WHO).launcher(INT64)
    seen = max(len(launch_and_count(launch, who)) for _ in range(20))
    assert 2 <= seen <= 4


def launch_and_count(launch, who: np.ndarray) -> set[int]:
    launch(len(who), 1, 1, who)
    return set(who.tolist())


def test_one_program_and_serial_grids_stay_on_the_calling_thread(team):
    who = np.zeros(1000, np.int64)
    kernel = make_kernel(WHO)
    assert launch_and_count(kernel.launcher(INT64), who[:1]) == {threading.get_ident()}
    assert launch_and_count(kernel.launcher(INT64, serial_below=1001), who) == {threading.get_ident()}


def test_one_thread(team):
    launcher.set_num_threads(1)
    who = np.zeros(1000, np.int64)
    assert launch_and_count(make_kernel(WHO).launcher(INT64), who) == {threading.get_ident()}


def test_each_thread_has_scratch_of_its_own(team):
    words = np.full(5000, -1, np.int64)
    launch = make_kernel(SCRATCH, scratch_bytes=4096).launcher(INT64)
    launch(5000, 1, 1, words)
    assert (words == 512).all()


def test_launches_from_many_threads_at_once(team):
    words = [np.full(500, -1, np.int64) for _ in range(6)]
    counts = np.zeros(50, np.int64)
    scratch = make_kernel(SCRATCH, scratch_bytes=4096).launcher(INT64)
    count = make_kernel(COUNT).launcher(INT64)

    def work(out: np.ndarray) -> None:
        for _ in range(30):
            scratch(500, 1, 1, out)
            count(50, 1, 1, counts)

    threads = [threading.Thread(target=work, args=(out,)) for out in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((out == 512).all() for out in words)
    assert (counts == 180).all()


def test_scratch_is_freed_on_demand(team):
    launcher.release_scratch()
    words = np.zeros(64, np.int64)
    make_kernel(SCRATCH, scratch_bytes=4096).launcher(INT64)(64, 1, 1, words)
    big = make_kernel(SCRATCH, scratch_bytes=1 << 20).launcher(INT64)
    big(1, 1, 1, words)
    freed = launcher.release_scratch()
    assert 1 << 20 <= freed <= (1 << 20) + 3 * 4096
    assert launcher.release_scratch() == 0
    big(64, 1, 1, words)
    assert (words == 512).all()


def test_scratch_has_a_limit(mode, monkeypatch):
    monkeypatch.setenv("MLTRITON_MAX_SCRATCH", "1M")
    make_kernel(SCRATCH, scratch_bytes=2**20)
    with pytest.raises(ScratchLimitError, match="1048577 bytes of scratch") as error:
        make_kernel(SCRATCH, scratch_bytes=2**20 + 1)
    assert "MLTRITON_MAX_SCRATCH" in str(error.value)


def test_no_memory_for_scratch_is_an_error_and_the_next_launch_works(team, monkeypatch):
    monkeypatch.setenv("MLTRITON_MAX_SCRATCH", str(2**60))
    counts = np.zeros(16, np.int64)
    impossible = make_kernel(COUNT, scratch_bytes=2**59)
    with pytest.raises(ScratchMemoryError):
        impossible.launcher(INT64)(16, 1, 1, counts)
    with pytest.raises(ScratchMemoryError):
        impossible.run((16, 1, 1), [Slot("tensor", counts.ctypes.data)])
    assert not counts.any()
    assert make_kernel(COUNT, scratch_bytes=128).launcher(INT64)(16, 1, 1, counts) is None
    assert (counts == 1).all()


def test_run_takes_slots_as_they_are(team):
    out = np.zeros(6, np.int64)
    make_kernel(copy_slots(6)).run(
        (1, 2, 3), [Slot("tensor", out.ctypes.data), Slot("i64", -5), Slot("u64", 2**64 - 1)]
    )
    assert out.tolist() == [out.ctypes.data, -5, -1, 1, 2, 3]


def test_a_launcher_keeps_its_code(mode):
    counts = np.zeros(8, np.int64)
    launch = NativeKernel(compile_body(COUNT)).launcher(INT64)
    for _ in range(50):  # Other objects would take the place of code that was unloaded.
        make_kernel(WHO)
    assert launch(8, 1, 1, counts) is None
    assert (counts == 1).all()


@pytest.mark.parametrize("count", [0, -1])
def test_bad_thread_counts(mode, count):
    with pytest.raises(ValueError, match="number of threads"):
        launcher.set_num_threads(count)


needs_native = pytest.mark.skipif(library.machine() is None, reason="no native launcher for this machine")


@needs_native
def test_native_is_refused_where_it_does_not_work(monkeypatch):
    monkeypatch.setattr(launcher, "_native_works", lambda: False)
    monkeypatch.setenv("MLTRITON_LAUNCHER", "native")
    with pytest.raises(library.TargetError, match="no native launcher"):
        launcher.is_native()
    monkeypatch.setenv("MLTRITON_LAUNCHER", "auto")
    assert not launcher.is_native()


@needs_native
def test_workers_are_started_once(monkeypatch):
    monkeypatch.setenv("MLTRITON_LAUNCHER", "native")
    pool().set_num_threads(3)
    parallel = pool().library.pointer("gomp_parallel")
    address, parallel.value = parallel.value, None
    launch = make_kernel(COUNT).launcher(INT64)
    counts = np.zeros(10, np.int64)
    launch(10, 1, 1, counts)
    started = pool().workers
    launch(10, 1, 1, counts)
    assert pool().workers == started >= 2
    parallel.value = address
    pool().set_num_threads(None)


@needs_native
def test_launches_of_few_programs_wake_those_that_are_to_run_them(monkeypatch):
    """Workers sleep at once, and only the first of seven may take part."""
    monkeypatch.setenv("MLTRITON_LAUNCHER", "native")
    pool().set_num_threads(8)
    parallel = pool().library.pointer("gomp_parallel")
    address, parallel.value = parallel.value, None
    pool().prepare()
    numbers = [pool().library.number(name) for name in ("spin_limit", "ticks_split", "ticks_forget")]
    before = [number.value for number in numbers]
    for number in numbers:
        number.value = 0
    launch = make_kernel(MEET).launcher(INT64)
    met: list[int] = []
    for _ in range(8):
        there = np.zeros(2, np.int64)
        launch(2, 1, 1, there)
        met.append(int(there[1]))
        time.sleep(0.01)
    parallel.value = address
    for number, value in zip(numbers, before, strict=True):
        number.value = value
    assert met == [2] * 8
    pool().set_num_threads(None)


@needs_native
def test_a_machine_that_gives_no_threads(run_script):
    output = run_script("""
import warnings
import numpy as np
from native_kernels import COUNT, make_kernel
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native import launcher, pool
pool._create_thread = lambda entry, number: False
launcher.set_num_threads(4)
counts = np.zeros(10, np.int64)
launch = make_kernel(COUNT).launcher([ParamSpec.tensor(np.dtype(np.int64))])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    launch(10, 1, 1, counts)
    launch(10, 1, 1, counts)
print(*[warning.message for warning in seen], counts.tolist(), launcher.num_threads(), sep="; ")
""")
    assert output == f"only 1 thread(s) can be started for kernels; {[2] * 10}; 1\n"


FORK = """
import os, sys
import numpy as np
from native_kernels import COUNT, SCRATCH, make_kernel
from mltriton.runtime.native import launcher
from mltriton.runtime.native.params import ParamSpec
specs = [ParamSpec.tensor(np.dtype(np.int64))]
count = make_kernel(COUNT).launcher(specs)
scratch = make_kernel(SCRATCH, 4096).launcher(specs)
launcher.set_num_threads(3)

def check():
    counts, words = np.zeros(1000, np.int64), np.zeros(1000, np.int64)
    for _ in range(20):
        count(1000, 1, 1, counts)
        scratch(1000, 1, 1, words)
    assert (counts == 20).all() and (words == 512).all()

def child():
    pid = os.fork()
    if pid == 0:
        try:
            check()
            if len(sys.argv) == 1:
                sys.argv.append("nested")
                child()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

check()
for _ in range(3):
    child()
    check()
print("done")
"""


@pytest.mark.parametrize("before", ["", "import torch; torch.ones(100_000).exp(); "])
@pytest.mark.parametrize("how", ["native", "portable"])
def test_a_forked_child_launches(run_script, before, how):
    if before:
        pytest.importorskip("torch")
    assert run_script(before + FORK, MLTRITON_LAUNCHER=how) == "done\n"


@pytest.mark.parametrize("how", ["native", "portable"])
def test_a_fork_while_other_threads_launch(run_script, how):
    forever = """
import ctypes
import threading
stop = []
def forever():
    while not stop:
        check()
busy = threading.Thread(target=forever)
busy.start()
for _ in range(10):
    child()
stop.append(True)
busy.join()
print("done")
"""
    code = FORK[: FORK.index("\ncheck()\n")] + forever
    assert run_script(code, MLTRITON_LAUNCHER=how) == "done\n"


EXIT = """
import threading, time
import numpy as np
from native_kernels import WHO, make_kernel
from mltriton.runtime.native import launcher
from mltriton.runtime.native.params import ParamSpec
launcher.set_num_threads(3)
launch = make_kernel(WHO).launcher([ParamSpec.tensor(np.dtype(np.int64))])
out = np.zeros(200, np.int64)
def forever():
    while True:
        launch(200, 1, 1, out)
launch(200, 1, 1, out)
for _ in range({threads}):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
print("done", flush=True)
"""


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("how", ["native", "portable"])
def test_the_interpreter_exits_cleanly(run_script, how, threads):
    for _ in range(4 if threads else 1):
        assert run_script(EXIT.format(threads=threads), MLTRITON_LAUNCHER=how) == "done\n"


@needs_native
def test_signals_reach_the_main_thread(run_script):
    output = run_script("""
import os, signal, time
import numpy as np
from native_kernels import COUNT, make_kernel
from mltriton.runtime.native import launcher
from mltriton.runtime.native.params import ParamSpec
launcher.set_num_threads(4)
make_kernel(COUNT).launcher([ParamSpec.tensor(np.dtype(np.int64))])(10, 1, 1, np.zeros(10, np.int64))

def blocks():
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as status:
            mask = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
        yield bool(mask >> signal.SIGINT - 1 & 1), bool(mask >> signal.SIGSEGV - 1 & 1)

end = time.monotonic() + 60
while (True, True) in (blocked := list(blocks())) and time.monotonic() < end:
    time.sleep(0.01)  # A thread blocks all signals until it has started.
print(blocked.count((True, False)), blocked.count((True, True)), blocked.count((False, True)))
""")
    assert output == "3 0 0\n"  # The workers; numpy may have started threads as well.


@needs_native
def test_the_number_of_threads_comes_from_the_environment(run_script):
    code = "from mltriton.runtime.native import launcher; print(launcher.num_threads(), end=' ')"
    affinity = "import os; print(len(os.sched_getaffinity(0)))"
    for how in ("native", "portable"):
        assert run_script(code, MLTRITON_NUM_THREADS="7", MLTRITON_LAUNCHER=how) == "7 "
        given, available = run_script(f"{code}\n{affinity}", MLTRITON_LAUNCHER=how).split()
        assert given == available


@needs_native
def test_the_portable_pool_serves_many_sizes():
    portable.pool().set_num_threads(2)
    counts = np.zeros(100, np.int64)
    kernel = make_kernel(COUNT)
    for team in (1, 2, 5, 3):
        portable.pool().run(kernel.address, [counts.ctypes.data, 1, 1, 100], 100, 0, team)
    assert (counts == 4).all()
    portable.pool().set_num_threads(None)


@pytest.fixture
def splits():
    """Counts launches that are split, for an OpenMP library: the calling thread does all the work, and is then late.

    How late a busy machine makes it nobody knows: tests set the limits that times are held to so that none decides.
    """
    if library.machine() is None:
        pytest.skip("no native launcher for this machine")
    count: list[int] = []

    def parallel(work, job, threads, flags):
        count.append(threads)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)(job)
        time.sleep(0.002)

    names = ("gomp_parallel", "omp_get_thread_num")
    kinds = (ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_uint] * 2), ctypes.CFUNCTYPE(ctypes.c_int))
    functions = [kind(function) for kind, function in zip(kinds, (parallel, lambda: 0), strict=True)]
    pool().set_num_threads(4)
    pool().prepare()
    pointers = [pool().library.pointer(name) for name in names]
    names = ("ticks_split", "ticks_forget", "ticks_hold", "ticks_held", "held_at", "held_until")
    limit, forget, hold, held, at, until = (pool().library.number(name) for name in names)
    before = [setting.value for setting in (*pointers, limit, forget, hold, held)]
    for pointer, function in zip(pointers, functions, strict=True):
        pointer.value = ctypes.cast(function, ctypes.c_void_p).value
    forget.value = hold.value = at.value = 0
    yield count, limit, forget
    for setting, value in zip((*pointers, limit, forget, hold, held), before, strict=True):
        setting.value = value
    at.value = until.value = 0
    pool().set_num_threads(None)


@pytest.mark.parametrize(("limit", "expected"), [(2**60, 1), (0, 50)], ids=["quick", "long"])
def test_launches_that_took_less_than_the_limit_are_not_split(splits, limit, expected):
    """The first is, as nothing is known of it. No clock decides here: everything takes less than one limit."""
    count, ticks, _ = splits
    ticks.value = limit
    counts = np.zeros(64, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for _ in range(50):
        launch(64, 1, 1, counts)
    assert (counts == 50).all()
    assert count == [4] * expected


@pytest.mark.parametrize("claim", [0, 2**60], ids=["one", "many"])
@pytest.mark.parametrize("programs", [2, 3, 9, 64, 1001])
def test_programs_that_are_claimed_together_run_once_each(splits, programs, claim):
    """From the second launch on it is known what a program takes, and so how many are worth a claim."""
    _, limit, _ = splits
    together = pool().library.number("ticks_claim")
    before, together.value, limit.value = together.value, claim, 0
    counts = np.zeros(programs, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for _ in range(20):
        launch(programs, 1, 1, counts)
    together.value = before
    assert (counts == 20).all()


@pytest.mark.parametrize("forget", [1, 2**60], ids=["forgotten", "known"])
def test_launches_that_gain_less_than_waiting_has_cost_are_not_split(splits, forget):
    """A region that waits for a thread other programs keep from running takes thousands of times as long as these."""
    count, limit, half = splits
    limit.value, half.value = 0, forget
    counts = np.zeros(64, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for _ in range(50):
        launch(64, 1, 1, counts)
    assert (counts == 50).all()
    assert len(count) == 50 if forget == 1 else len(count) < 50


def test_what_takes_long_is_split_whatever_quick_launches_were_before(splits):
    count, _, _ = splits
    quick, slow = (make_kernel(body).launcher(INT64) for body in (COUNT, WHO))
    split = {quick: 0, slow: 0}
    for _ in range(60):
        for launch, programs in ((quick, 8), (slow, 1024)):
            before = len(count)
            launch(programs, 1, 1, np.zeros(programs, np.int64))
            split[launch] += len(count) - before
    assert split[quick] < split[slow] == 60


@pytest.mark.parametrize(("held", "regions"), [(-(2**62), 3), (2**62, 50)], ids=["held up", "in time"])
def test_workers_take_over_where_openmp_is_held_up(splits, held, regions):
    """After two regions of known cost workers do the work, until that is forgotten."""
    count, limit, _ = splits
    limit_held, hold = (pool().library.number(name) for name in ("ticks_held", "ticks_hold"))
    limit.value, hold.value, limit_held.value = 0, 2**60, held
    counts = np.zeros(64, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for _ in range(50):
        launch(64, 1, 1, counts)
    assert (counts == 50).all()
    assert len(count) == regions
    assert regions == 50 or pool().workers >= 3


def test_one_region_that_is_held_up_is_chance(splits):
    """The one before it was held up long ago: nothing changes."""
    count, limit, _ = splits
    hold, held, at = (pool().library.number(name) for name in ("ticks_hold", "ticks_held", "held_at"))
    ticks = ctypes.PYFUNCTYPE(ctypes.c_int64)(pool().library.addresses["ticks"])
    limit.value, hold.value, held.value = 0, 2**60, -(2**62)
    counts = np.zeros(64, np.int64)
    launch = make_kernel(COUNT).launcher(INT64)
    for _ in range(50):
        at.value = ticks() - 2**62
        launch(64, 1, 1, counts)
    assert (counts == 50).all()
    assert len(count) == 50


def test_nobody_waits_for_workers_that_never_start(run_script):
    if library.machine() is None:
        pytest.skip("no native launcher for this machine")
    code = """
import ctypes
import threading
import numpy as np
from mltriton.runtime.native import pool as module
from mltriton.runtime.native.params import ParamSpec
from native_kernels import WHO, make_kernel
module._create_thread = lambda entry, number: True
pool = module.pool()
pool.set_num_threads(4)
launch = make_kernel(WHO).launcher([ParamSpec.tensor(np.dtype(np.int64))])
who = np.zeros(1000, np.int64)
for _ in range(10):
    launch(1000, 1, 1, who)
print(pool.kind, pool.workers, set(who.tolist()) == {threading.get_ident()})
"""
    assert run_script(code, MLTRITON_LAUNCHER="native") == "workers 3 True\n"
