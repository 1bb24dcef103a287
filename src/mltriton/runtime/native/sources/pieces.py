"""Taking part in a launch: programs are claimed in pieces, and run with scratch memory of the thread's own.

Level: runtime, machine code (see `translation`). A launch is a `Job` on the launching thread's stack. Threads claim
programs from it until none is left, so a thread that comes late, or never, costs nothing but its help. No function
touches Python: they run without the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .language import Array, Lock, Relaxed, Struct, as_float, below, exported, f64, i1, i64, ptr, umax, umin, up_to
from .system import aligned_alloc, free, ticks

LARGEST_PIECE = 1 << 60

Kernel = Callable[[ptr | None, i64, i64, ptr | None], None]  # arguments, begin, end, scratch memory
Check = Callable[[], i1]


class Job(Struct):
    """A launch: kernel(args, begin, until, scratch) is called until begin reaches `end`.

    A claim takes (programs left) >> `shift`, and no less than `least`. `check` is asked now and then by the launching
    thread whether to stop, and `stopped` is 1 if it said so. `cost`: ticks that one of the threads took for a program;
    0 where that was not measured. The counter of the next program has a cache line to itself.
    """

    kernel: Kernel
    args: ptr | None
    end: i64
    scratch_bytes: i64
    shift: i64
    check: Check | None
    stopped: i64
    cost: Relaxed[f64]
    next: Relaxed[i64]
    least: i64
    rest: Annotated[Array[i64], 6]


class Scratch(Struct):
    """One thread's scratch memory, on a cache line of its own."""

    in_use: Lock
    buffer: ptr | None
    size: i64
    rest: Annotated[Array[i64], 5]


# Set from Python.

ticks_long: i64 = 0  # a piece that takes this long makes the next one smaller
ticks_ask: i64 = 0  # between two questions whether to stop

_scratch: Annotated[Array[Scratch], 1024]


# Scratch memory


def acquire_scratch(first: i64, size: i64) -> Scratch | None:
    """Scratch memory of at least `size` bytes (a multiple of 64) that is now the caller's; None if there is no memory.

    Starts at entry `first`, so that a thread finds the buffer it used before, still in its cache.
    """
    for tried in up_to(1024):
        scratch = _scratch[(first + tried) & 1023]
        if scratch.in_use.try_lock():
            if below(scratch.size, size):
                free(scratch.buffer)
                scratch.buffer = aligned_alloc(64, size)
                scratch.size = size
                if scratch.buffer is None:
                    scratch.size = 0
                    scratch.in_use.unlock()
                    return None
            return scratch
    return None


@exported
def release_scratch() -> i64:
    """Free every buffer that no thread is using; gives how many bytes that were."""
    total = 0
    for index in up_to(1024):
        scratch = _scratch[index]
        if scratch.in_use.try_lock():
            total += scratch.size
            free(scratch.buffer)
            scratch.buffer = None
            scratch.size = 0
            scratch.in_use.unlock()
    return total


def forget_scratch() -> None:
    """Let buffers be nobody's: in a forked child those that had them are gone."""
    for index in up_to(1024):
        _scratch[index].in_use.unlock()


# Taking part in a job


def run_pieces(job: Job, scratch: ptr | None, thread: i64, patience: i64) -> None:
    """Claim pieces [begin, until) of the job and run them until none is left.

    Pieces shrink with what is left, down to the fewest programs worth a claim: few claims where there are very many
    programs, and no thread left with a long last piece. They begin with the fewest and grow while they are quick, so
    that a thread looks up often enough: the launching one (0) to ask whether to stop, and, unless `patience` is 0, to
    return after so many ticks.
    """
    end = job.end
    begun = 0
    if end != 1:
        begun = ticks()
    last = begun
    asked = begun
    most = job.least
    ran = 0
    begin = job.next.load()
    while begin < end:
        piece = umin(umin(umax((end - begin) >> job.shift, job.least), most), end - begin)
        seen, ours = job.next.exchange(begin, begin + piece)
        if not ours:
            begin = seen
            continue
        job.kernel(job.args, begin, begin + piece, scratch)
        ran += piece
        if begin + piece >= end:
            break
        now = ticks()
        if now - last >= ticks_long:
            most = umax(most >> 1, 1)
        else:
            most = umin(most, LARGEST_PIECE) << 3
        last = now
        if thread == 0 and job.check is not None and now - asked >= ticks_ask:
            if job.check():
                job.stopped = 1
                job.next.store(end)
                return
            last = ticks()
            asked = last
        if patience != 0 and now - begun > patience:
            break
        begin = job.next.load()
    if ran != 0 and end != 1:
        job.cost.store(as_float(ticks() - begun) / as_float(ran))


def take_part(job: Job, thread: i64, patience: i64) -> None:
    """Take part with scratch memory of its own, as the team's thread number `thread`. A thread for which there is no
    memory takes no programs: the others run them.
    """
    if job.scratch_bytes == 0:
        run_pieces(job, None, thread, patience)
        return
    scratch = acquire_scratch(thread, job.scratch_bytes)
    if scratch is not None:
        run_pieces(job, scratch.buffer, thread, patience)
        scratch.in_use.unlock()
