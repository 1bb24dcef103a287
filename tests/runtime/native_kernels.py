"""Kernels written by hand in LLVM text, for the tests of the launcher and the pool."""

from __future__ import annotations

import platform
from functools import cache

from mltriton.runtime.native import library
from mltriton.runtime.native.launcher import NativeKernel

TRIPLE = f"{platform.machine()}-unknown-linux-gnu"

# The frame of a kernel: `body` runs for each program, with %pid, %args and %scratch.
_FRAME = """
define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  br label %head
head:
  %pid = phi i64 [ %begin, %entry ], [ %pid.next, %tail ]
  %more = icmp slt i64 %pid, %end
  br i1 %more, label %body, label %exit
body:
{body}
  br label %tail
tail:
  %pid.next = add i64 %pid, 1
  br label %head
exit:
  ret void
}}
declare i64 @pthread_self()
"""

# Adds 1 to counts[pid], which a program that runs twice, or never, gives away.
COUNT = """
  %counts = load ptr, ptr %args
  %count.at = getelementptr i64, ptr %counts, i64 %pid
  %ignored = atomicrmw add ptr %count.at, i64 1 monotonic
"""

# Works for a few microseconds, then writes which thread ran the program.
WHO = """
  %out = load ptr, ptr %args
  %out.at = getelementptr i64, ptr %out, i64 %pid
  br label %work
work:
  %i = phi i64 [ 0, %body ], [ %i.next, %work ]
  store volatile i64 %i, ptr %out.at
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, 10000
  br i1 %again, label %work, label %worked
worked:
  %thread = call i64 @pthread_self()
  store i64 %thread, ptr %out.at
"""

# Counts programs in the first word, and in the second one those that saw two of them within some seconds.
MEET = """
  %out = load ptr, ptr %args
  %met.at = getelementptr i64, ptr %out, i64 1
  %ignored = atomicrmw add ptr %out, i64 1 seq_cst
  br label %wait
wait:
  %i = phi i64 [ 0, %body ], [ %i.next, %waiting ]
  %there = load atomic i64, ptr %out seq_cst, align 8
  %both = icmp eq i64 %there, 2
  br i1 %both, label %met, label %waiting
waiting:
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, 500000000
  br i1 %again, label %wait, label %tail.enter
met:
  %ignored.too = atomicrmw add ptr %met.at, i64 1 seq_cst
  br label %tail.enter
tail.enter:
"""

# Fills 4096 bytes of scratch with its number and counts the words that still hold it afterwards; 0 if misaligned.
SCRATCH = """
  %out = load ptr, ptr %args
  %out.at = getelementptr i64, ptr %out, i64 %pid
  store i64 0, ptr %out.at
  %address = ptrtoint ptr %scratch to i64
  %low = and i64 %address, 63
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %write, label %tail.enter
write:
  %i = phi i64 [ 0, %body ], [ %i.next, %write ]
  %word.at = getelementptr i64, ptr %scratch, i64 %i
  store volatile i64 %pid, ptr %word.at
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, 512
  br i1 %again, label %write, label %read
read:
  %j = phi i64 [ 0, %write ], [ %j.next, %read ]
  %sum = phi i64 [ 0, %write ], [ %sum.next, %read ]
  %held.at = getelementptr i64, ptr %scratch, i64 %j
  %held = load volatile i64, ptr %held.at
  %same = icmp eq i64 %held, %pid
  %one = zext i1 %same to i64
  %sum.next = add i64 %sum, %one
  %j.next = add i64 %j, 1
  %more.words = icmp ult i64 %j.next, 512
  br i1 %more.words, label %read, label %total
total:
  store i64 %sum.next, ptr %out.at
  br label %tail.enter
tail.enter:
"""


def copy_slots(count: int) -> str:
    """Return the body of a kernel that copies the first `count` argument slots to the array in slot 0."""
    return f"""
  %out = load ptr, ptr %args
  call void @llvm.memmove.p0.p0.i64(ptr %out, ptr %args, i64 {8 * count}, i1 false)
"""


@cache
def compile_body(body: str) -> bytes:
    """Compile the kernel whose program is `body` to an object file."""
    return library.compile_object(_FRAME.format(body=body), TRIPLE)


def make_kernel(body: str, scratch_bytes: int = 0) -> NativeKernel:
    return NativeKernel(compile_body(body), scratch_bytes)
