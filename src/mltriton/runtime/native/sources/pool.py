"""The pool: runs a kernel over the programs of a grid on a team of threads.

Level: runtime, machine code (see `translation`). The launching thread takes part, and waits at the end only for threads
that have registered: a worker that is still asleep is not waited for. There are two ways to get the team: an OpenMP
library already in the process (its address in `gomp_parallel`), or the workers here, which take over for a while
where a region of OpenMP was held up.
"""

from __future__ import annotations

from collections.abc import Callable

from .language import (
    Relaxed, Struct, Word, as_float, as_integer, as_number, ashr, below, exported, f64, fmax, i1, i32, i64, noinline,
    ptr, smax, umax, umin, unsigned, up_to, words,
)  # fmt: skip
from .pieces import Check, Job, Kernel, deal, forget_scratch, fullest, in_line, take_part
from .system import futex_number, relax, sched_number, syscall, ticks

SLEEP, WAKE = 137, 138  # of the futex system call, inside one process, with bits that say who is meant
EVERYBODY = 0xFFFF_FFFF


class Pace(Struct):
    """What a program has lately cost."""

    ticks: f64


# Set from Python.

gomp_parallel: Callable[[Callable[[Job], None], Job, i32, i32], None] | None = None  # body, argument, threads, flags
omp_get_thread_num: Callable[[], i32]  # set together with it
spin_limit: i64 = 0  # calls of `relax` before a waiting thread sleeps
ticks_split: i64 = 0  # a launch that takes less on one thread is not split
ticks_claim: i64 = 0  # a claim takes programs for so long, where it is known what one takes
ticks_forget: i64 = 0  # until half of `_late` is forgotten; 0: nothing is learnt of teams that are late
ticks_held: i64 = 0  # by which a region of OpenMP takes longer than twice an equal share if it was held up
ticks_hold: i64 = 0  # for which there are no such regions after one that was
workers: i64 = 0  # threads that run `worker`, numbered from 1

# The workers' state. A worker registers by adding 1 to `_active` and then looking at `_open`; the launching thread
# clears `_open` and then waits for `_active` to be 0. With both in sequentially consistent order, a worker that saw
# `_open` is waited for, and one that is not waited for does not touch the job.

_busy: Word  # 1 while a launch uses the workers
_epoch: Word  # counts launches; workers sleep on it
_sleepers: Word
_active: Word  # registered workers; the launching thread sleeps on it
_joining: Word  # 1 while the launching thread may sleep on `_active`
_open: Word  # 1 while `_job` may be joined
_job: Job
_team: i64 = 0  # threads that may take part in `_job`, the launching one included

# What splitting has lately cost: where other programs have the processors, an OpenMP region waits for a thread that is
# not running, thousands of times as long as a small launch takes.

_late: Relaxed[i64]  # ticks lost by a split launch, a running mean at `_late_since`
_late_since: Relaxed[i64]
held_at: Relaxed[i64]  # the last region of OpenMP that was held up; 0: none was
held_until: Relaxed[i64]  # the workers take over so long


# Sleeping and waking


@noinline
def sleep(word: Word, value: i32, bits: i64) -> None:
    """Sleep while the word has the value, at the latest until somebody calls `wake` with one of the bits (or for no
    reason at all).
    """
    syscall(futex_number(), word, i32(SLEEP), value, None, None, bits)


@noinline
def wake(word: Word, count: i64, bits: i64) -> None:
    """Wake up to `count` threads that sleep on the word with one of the bits, of which there are 32."""
    syscall(futex_number(), word, i32(WAKE), count, None, None, bits)


@exported
def relax_many(count: i64) -> None:
    """Relax so many times. Called once when the workers are set up, to learn how long that takes."""
    for _ in up_to(count):
        relax()


# The workers

SLICE = 100_000  # nanoseconds


class Schedule(Struct):
    """Linux's sched_attr, as it was at first."""

    size: i32
    policy: i32
    flags: i64
    niceness: i64
    runtime: i64
    deadline: i64
    period: i64


def shorten_slice() -> None:
    """Ask for short turns on a processor: Linux (from 6.12 on) then lets a thread that wakes have it at once, where
    another one that spins would keep it for milliseconds.
    """
    schedule = Schedule()
    if syscall(sched_number() + 1, 0, schedule, 48, 0) == 0 and schedule.policy == 0:
        schedule.runtime = SLICE
        syscall(sched_number(), 0, schedule, 0)


def take_part_in_region(job: Job) -> None:
    """The body of an OpenMP parallel region."""
    take_part(job, unsigned(omp_get_thread_num()), 0)


@exported
def worker(number: ptr) -> ptr | None:
    """What a worker thread runs, for ever; its number is 1 or more."""
    thread = as_number(number)
    shorten_slice()
    known = i32(0)
    while True:
        known = wait_for_launch(known, 1 << (thread & 31))
        _active.add(1)
        if _open.load() != 0 and below(thread, _team):
            take_part(_job, thread, 0)
        _active.subtract(1)
        if _joining.load() != 0:
            wake(_active, 1, EVERYBODY)


def wait_for_launch(known: i32, bit: i64) -> i32:
    """Wait until launches have been counted on from `known`; gives their number. `bit` says who sleeps."""
    spins = 0
    while True:
        epoch = _epoch.load()
        if epoch != known:
            return epoch
        if below(spins, spin_limit):
            relax()
            spins += 1
        else:
            _sleepers.add(1)
            sleep(_epoch, known, bit)
            _sleepers.subtract(1)
            spins = 0


def join() -> None:
    """Wait until no worker is registered."""
    spins = 0
    while _active.load() != 0:
        if not below(spins, spin_limit):
            sleep_until_left()
            return
        relax()
        spins += 1


def sleep_until_left() -> None:
    """The same, asleep."""
    _joining.store(1)
    while True:
        still = _active.load()
        if still == 0:
            break
        sleep(_active, still, EVERYBODY)
    _joining.store(0)


def run_with_workers(job: Job, team: i64) -> None:
    """Run the job on the calling thread and up to team - 1 workers, or, while another launch has the workers, on the
    calling thread alone: nobody waits for a launch that is not its own.
    """
    global _job, _team
    if not _busy.try_lock():
        take_part(job, 0, 0)
        return
    _job = job
    _team = team
    _open.store(1)
    _epoch.add(1)
    if _sleepers.load() != 0:
        wake(_epoch, team - 1, EVERYBODY if team > 31 else (1 << team) - 1)  # Others would do nothing.
    take_part(job, 0, 0)
    _open.store(0)
    join()
    _busy.unlock()


@exported
def reset_after_fork() -> None:
    """In a forked child there are no workers, and whatever other threads of the parent were doing does not happen."""
    global workers
    workers = 0
    _busy.store(0)
    _epoch.store(0)
    _sleepers.store(0)
    _active.store(0)
    _joining.store(0)
    _open.store(0)
    forget_scratch()


# Launching


@exported
def run(
    kernel: Kernel, args: ptr | None, end: i64, scratch_bytes: i64, team: i64, pace: Pace | None, check: Check | None
) -> i32:
    """Run programs [0, end) of `kernel` on up to `team` threads (at least 1). Gives 0 if all of them ran, 1 if some
    could not because no thread could get its scratch memory, 2 if `check` said to stop.

    `pace` has the ticks of a program in launches before (0: there were none). A launch that should be quicker than
    waking others is begun alone, and split only if it turns out to take longer.
    """
    if end == 1 and scratch_bytes == 0:
        kernel(args, 0, 1, None)
        return 0
    job = Job()
    job.kernel = kernel
    job.args = args
    job.scratch_bytes = scratch_bytes
    job.check = check
    job.stopped = 0
    job.cost.store(0.0)
    job.least = 1
    deal(job, 0, end, in_line(words(16)), 1)
    if team == 1:
        take_part(job, 0, 0)
    else:
        run_together(job, end, team, pace)
    remember(pace, job.cost.load())
    if job.stopped != 0:
        return 2
    return i32(fullest(job) >= 0)


def run_together(job: Job, end: i64, team: i64, pace: Pace | None) -> None:
    """Run a job on a team; alone first where that may be enough."""
    total = 0.0
    if pace is not None:
        job.least = worth_a_claim(end, team, pace)
        total = pace.ticks * as_float(end)
        late = lateness()
        gain = total - total / as_float(team)
        is_worth_it = total >= as_float(ticks_split) and gain >= as_float(late)
        if pace.ticks != 0.0 and not is_worth_it:
            take_part(job, 0, umax(ticks_split, late) << 2)
    begin = job.ranges[0].next.load()
    if begin >= end:
        return
    deal(job, begin, end, in_line(words((team << 3) + 8)), team)
    run_on(job, team, total, total / as_float(umin(team, end)))


@noinline
def run_on(job: Job, team: i64, alone: f64, even: f64) -> None:
    """Run a job on a team; `alone` is what it would take one thread, 0 where that is not known, `even` an equal share
    of that.
    """
    begun = ticks()
    if gomp_parallel is None or is_held_up():
        run_with_workers(job, team)
    else:
        gomp_parallel(take_part_in_region, job, i32(team), 0)
        taken = ticks() - begun
        if alone > 0.0 and as_float(taken) > even * 2.0 + as_float(ticks_held):
            learn_hold_up(begun + taken)
    learn_lateness(begun, alone)


def learn_hold_up(now: i64) -> None:
    """Let workers take over where this is not the only region that was held up lately: one alone is chance, and
    workers that sleep make small launches slower.
    """
    before = held_at.load()
    if before != 0 and (now - before) >> 1 < ticks_hold:
        held_until.store(now + ticks_hold)
    held_at.store(now)


def is_held_up() -> i1:
    """Whether a region of OpenMP has lately waited for threads that spin elsewhere, of another library say."""
    return ticks() < held_until.load()


def worth_a_claim(end: i64, team: i64, pace: Pace) -> i64:
    """The programs that take `ticks_claim`, but at most half of a thread's even share; one where nothing is known."""
    if pace.ticks == 0.0:
        return 1
    return umax(umin(as_integer(as_float(ticks_claim) / pace.ticks), end // (team << 1)), 1)


def lateness() -> i64:
    """How many ticks a split launch has lately lost, half of it forgotten in every `ticks_forget`."""
    late = _late.load()
    if late == 0 or ticks_forget == 0:
        return 0
    elapsed = smax(ticks() - _late_since.load(), 0)
    return late >> umin(elapsed // ticks_forget, 63)


def learn_lateness(begun: i64, alone: f64) -> None:
    """Add a launch split at a time of the clock to the mean: what it took beyond twice the ticks it should take alone
    (0: not known), so that only waiting counts, and not that the threads share the memory.
    """
    if alone > 0.0:
        now = ticks()
        lost = as_integer(fmax(as_float(now - begun) - alone * 2.0, 0.0))
        late = lateness()
        _late.store(late + ashr(lost - late, 5))
        _late_since.store(now)


def remember(pace: Pace | None, cost: f64) -> None:
    """Keep what a program cost, of a cheaper launch 7/8, of a dearer one no more than 4 times what was known: one
    launch that something held up counts little, and one with little to do among large ones does not make these begin
    alone.
    """
    if pace is None or not cost > 0.0:
        return
    before = pace.ticks
    if before == 0.0:
        pace.ticks = cost
    elif cost < before:
        pace.ticks = cost + (before - cost) * 0.125
    else:
        pace.ticks = cost if cost < before * 4.0 else before * 4.0
