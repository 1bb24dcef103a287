"""Taking part in a launch: programs are claimed in pieces, and run with scratch memory of the thread's own.

Level: runtime, machine code (see `translation`). A launch is a `Job` on the launching thread's stack. Each thread of a
team has a range of programs, the same ones in every launch of a kind, so that it finds what they touch in its caches;
when that is done it claims from the range in which most is left. So a thread that comes late, or never, costs nothing
but its help. No function touches Python: they run without the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .language import (
    Array, Lock, Relaxed, Struct, as_float, as_number, below, cast, exported, f64, i1, i64, moved, ptr, umax, umin,
    unsigned, up_to,
)  # fmt: skip
from .system import aligned_alloc, free, ticks

LARGEST_PIECE = 1 << 60
SHARE = 2  # a claim takes a quarter of what is left of a range

Kernel = Callable[[ptr | None, i64, i64, ptr | None], None]  # arguments, begin, end, scratch memory
Check = Callable[[], i1]


class Range(Struct):
    """Programs [next, end), on a cache line of their own."""

    next: Relaxed[i64]
    end: i64
    rest: Annotated[Array[i64], 6]


class Job(Struct):
    """A launch: kernel(args, begin, until, scratch) is called until nothing is left of `count` ranges.

    A claim takes no fewer programs than `least`. `check` is asked now and then by the launching thread whether to stop,
    and `stopped` is 1 if it said so. `cost`: ticks that one of the threads took for a program; 0 where that was not
    measured. It is written while others read the rest, and begins the second cache line.
    """

    kernel: Kernel
    args: ptr | None
    scratch_bytes: i64
    check: Check | None
    stopped: i64
    least: i64
    count: i64
    ranges: Array[Range]
    cost: Relaxed[f64]


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


# Ranges


def in_line(room: Array[Range]) -> Array[Range]:
    """Where the first cache line of some room begins, which has 8 words more than it needs."""
    return cast(Array[Range], moved(room, 63 - ((as_number(room) - 1) & 63)))


def deal(job: Job, begin: i64, end: i64, ranges: Array[Range], count: i64) -> None:
    """Let the job's programs be those of [begin, end), in as many ranges, equal but for one program."""
    share = (end - begin) // count
    more = (end - begin) - share * count
    for number in up_to(count):
        ranges[number].next.store(begin)
        begin += share + unsigned(below(number, more))
        ranges[number].end = begin
    job.ranges = ranges
    job.count = count


def fullest(job: Job) -> i64:
    """The range in which most is left; -1 when nothing is left in any."""
    found = -1
    most = 0
    for number in up_to(job.count):
        left = job.ranges[number].end - job.ranges[number].next.load()
        if left > most:
            found = number
            most = left
    return found


def stop(job: Job) -> None:
    """Let nothing be left."""
    job.stopped = 1
    for number in up_to(job.count):
        job.ranges[number].next.store(job.ranges[number].end)


# Taking part in a job


def run_pieces(job: Job, scratch: ptr | None, thread: i64, patience: i64) -> None:
    """Claim pieces of the job, first from the thread's own range, and run them until nothing is left.

    Pieces shrink with what is left, down to the fewest programs worth a claim: few claims where there are very many
    programs, and no thread left with a long last piece. They begin with the fewest and grow while they are quick, so
    that a thread looks up often enough: the launching one (0) to ask whether to stop, and, unless `patience` is 0, to
    return after so many ticks.
    """
    begun = ticks()
    last = begun
    asked = begun
    most = job.least
    ran = 0
    number = thread
    while number >= 0:
        range = job.ranges[number]
        begin = range.next.load()
        left = range.end - begin
        if left <= 0:
            number = fullest(job)
            continue
        piece = umin(umin(umax(left >> SHARE, job.least), most), left)
        if left - piece < job.least:
            piece = left  # The rest is not worth a claim.
        _, ours = range.next.exchange(begin, begin + piece)
        if not ours:
            continue
        job.kernel(job.args, begin, begin + piece, scratch)
        ran += piece
        now = ticks()
        if now - last >= ticks_long:
            most = umax(most >> 1, 1)
        else:
            most = umin(most, LARGEST_PIECE) << 3
        last = now
        if thread == 0 and job.check is not None and now - asked >= ticks_ask:
            if job.check():
                stop(job)
                return
            last = ticks()
            asked = last
        if patience != 0 and now - begun > patience:
            break
    if ran != 0:
        job.cost.store(as_float(last - begun) / as_float(ran))


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
