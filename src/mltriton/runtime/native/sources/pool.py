"""The pool: runs a kernel over the programs of a grid on a team of threads.

Level: runtime, machine code (see `translation`). The launching thread takes part, and waits at the end only for threads
that have registered: a worker that is still asleep is not waited for. There are two ways to get the team: an OpenMP
library already in the process (its address in `gomp_parallel`), or the workers here, which take over for a while
where regions of OpenMP lose more than they win.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .language import (
    Array, Relaxed, Struct, Word, as_float, as_integer, as_number, below, exported, f64, i1, i32, i64, noinline, ptr,
    umax, umin, unsigned, words,
)  # fmt: skip
from .pieces import Check, Job, Kernel, deal, forget_scratch, fullest, in_line, take_part, ticks_long
from .system import futex_number, relax, sched_number, syscall, ticks

SLEEP, WAKE = 137, 138  # of the futex system call, inside one process, with bits that say who is meant
EVERYBODY = 0xFFFF_FFFF
OPENMP, WORKERS = 0, 1  # of `accounts`


class Pace(Struct):
    """What a program has lately cost."""

    ticks: f64


class Account(Struct):
    """What launches have lately won by a team, less what those that were late lost, in ticks; what the one lost that
    used it up, until when others are expected to lose as much, and for how long that was. On a cache line of its own.
    """

    credit: Relaxed[i64]
    lost: Relaxed[i64]
    until: Relaxed[i64]
    hold: Relaxed[i64]
    rest: Annotated[Array[i64], 4]


# Set from Python.

gomp_parallel: Callable[[Callable[[Job], None], Job, i32, i32], None] | None = None  # body, argument, threads, flags
omp_get_thread_num: Callable[[], i32]  # set together with it
ticks_spin: i64 = 0  # for which a waiting thread spins before it sleeps
ticks_split: i64 = 0  # a launch that takes less on one thread is not split
ticks_wake: i64 = 0  # a thread that sleeps is woken for so much work
ticks_claim: i64 = 0  # a claim takes programs for so long, where it is known what one takes
ticks_credit: i64 = 0  # the most that an account has; one that is an eighth of it below 0 is used up
ticks_hold: i64 = 0  # for which launches are expected to lose then, at first
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

# Where other programs have the processors, an OpenMP region waits for a thread that is not running, thousands of times
# as long as a small launch takes, and a launch on workers for one that was stopped in the middle of a program. But a
# machine that others share stands still for milliseconds now and then: that alone is no reason to do without.

accounts: Annotated[Array[Account], 2]


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


def wake_team(team: i64, alone: f64) -> None:
    """Wake threads of a team that sleep, for a launch that takes one thread `alone` ticks (0: not known): not more than
    are worth it, since each keeps the launching thread for a microsecond, and comes when that has worked for many.
    """
    if _sleepers.load() != 0:
        count = team - 1
        if alone > 0.0:
            count = umax(umin(count, as_integer(alone) // ticks_wake), 1)
        wake(_epoch, count, EVERYBODY if team > 31 else (1 << team) - 1)


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
        known = wait_for_launch(known, thread)
        _active.add(1)
        if _open.load() != 0 and below(thread, _team):
            take_part(_job, thread, 0)
        _active.subtract(1)
        if _joining.load() != 0:
            wake(_active, 1, EVERYBODY)


def wait_for_launch(known: i32, thread: i64) -> i32:
    """Wait until launches have been counted on from `known`; gives their number. How long a thread spins counts from
    the end of the launch, while others do their last programs, unless these take very long.
    """
    begun = ticks()
    idle = begun
    while True:
        epoch = _epoch.load()
        if epoch != known:
            return epoch
        now = ticks()
        if _open.load() != 0 and now - begun < ticks_long:
            idle = now
        if now - idle < ticks_spin:
            relax()
        else:
            _sleepers.add(1)
            sleep(_epoch, known, 1 << (thread & 31))
            _sleepers.subtract(1)
            begun = ticks()
            idle = begun


def join() -> None:
    """Wait until no worker is registered. The launching thread spins for long: others may take its processor when it
    sleeps, and Linux gives it back at the end of their turn.
    """
    begun = ticks()
    while _active.load() != 0:
        if ticks() - begun >= ticks_spin << 4:
            sleep_until_left()
            return
        relax()


def sleep_until_left() -> None:
    """The same, asleep."""
    _joining.store(1)
    while True:
        still = _active.load()
        if still == 0:
            break
        sleep(_active, still, EVERYBODY)
    _joining.store(0)


def run_with_workers(job: Job, team: i64, alone: f64) -> None:
    """Run the job on the calling thread and up to team - 1 workers, or, while another launch has the workers, on the
    calling thread alone: nobody waits for a launch that is not its own. `alone` is what it would take one thread, 0
    where that is not known.
    """
    global _job, _team
    if not _busy.try_lock():
        take_part(job, 0, 0)
        return
    _job = job
    _team = team
    _open.store(1)
    _epoch.add(1)
    wake_team(team, alone)
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
        late = expected(WORKERS)
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
    team_of = OPENMP
    wanted = (even + as_float(ticks_split)) * 2.0
    if gomp_parallel is None or is_held_up():
        run_with_workers(job, team, alone)
        team_of = WORKERS
        wanted = (alone + even) * 0.5
    else:
        gomp_parallel(take_part_in_region, job, i32(team), 0)
    if alone > 0.0:
        settle(accounts[team_of], as_integer(wanted) - (ticks() - begun))


def settle(own: Account, won: i64) -> None:
    """Add to an account the ticks that a launch has won against what it should take, or take away those that it lost. A
    region of OpenMP should take no more than twice an equal share and what waking takes, workers no more than the
    middle of an equal share and what one thread takes. One that is used up again and again is so for longer each time.
    """
    credit = own.credit.load() + won
    if credit > ticks_credit:
        credit = ticks_credit
    if won > 0 and own.hold.load() != 0:
        own.hold.store(0)
    if credit + (ticks_credit >> 3) < 0:
        hold = umin(umax(own.hold.load() << 1, ticks_hold), ticks_hold << 3)
        own.lost.store(0 - won)
        own.until.store(ticks() + hold)
        own.hold.store(hold)
        credit = 0
    own.credit.store(credit)


def expected(team: i64) -> i64:
    """How many ticks a launch by a team is expected to lose now."""
    own = accounts[team]
    if ticks() < own.until.load():
        return own.lost.load()
    return 0


def is_held_up() -> i1:
    """Whether regions of OpenMP wait for threads that do not run, where those of another library spin say."""
    return expected(OPENMP) != 0


def worth_a_claim(end: i64, team: i64, pace: Pace) -> i64:
    """The programs that take `ticks_claim`, but at most half of a thread's even share; one where nothing is known."""
    if pace.ticks == 0.0:
        return 1
    return umax(umin(as_integer(as_float(ticks_claim) / pace.ticks), end // (team << 1)), 1)


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
