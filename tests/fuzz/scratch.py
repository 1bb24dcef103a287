"""Scratch memory full of NaN: what a kernel on the CPU reads there without having written it shows.

A thread's scratch memory is kept from launch to launch, and what an earlier launch left is often right by chance.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from mltriton.runtime.native.launcher import NativeKernel
from mltriton.runtime.native.pool import pool
from mltriton.targets.cpu.features import host
from mltriton.targets.llvm.toolchain import Machine, compile_object

BYTES = 1 << 20  # more than the programs here take
# Fills the scratch memory with ones, or copies as many words of it as the second argument says to the first.
_TEXT = f"""
define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
  %out = load ptr, ptr %args
  %count.at = getelementptr i64, ptr %args, i64 1
  %count = load i64, ptr %count.at
  %fills = icmp eq i64 %count, 0
  %words = select i1 %fills, i64 {BYTES // 8}, i64 %count
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %at = getelementptr i64, ptr %scratch, i64 %i
  %old = load volatile i64, ptr %at
  %word = select i1 %fills, i64 -1, i64 %old
  store volatile i64 %word, ptr %at
  %to.out = getelementptr i64, ptr %out, i64 %i
  %to = select i1 %fills, ptr %at, ptr %to.out
  store volatile i64 %word, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %words
  br i1 %more, label %loop, label %done

done:
  ret void
}}
"""


@cache
def _kernel() -> NativeKernel:
    features = host()
    machine = Machine(features.triple, features.cpu, features.attributes)
    return NativeKernel(compile_object(_TEXT, machine), BYTES)


@contextmanager
def scratch_of_nan() -> Generator[None]:
    """Launches run on the calling thread alone, whose scratch memory is full of bytes that are NaN in every type."""
    pool().set_num_threads(1)
    try:
        pool().run(_kernel().address, (0, 0), 1, BYTES, 1)
        yield
    finally:
        pool().set_num_threads(None)


def scratch_bytes(count: int) -> bytes:
    """The first bytes of the calling thread's scratch memory; a multiple of 8."""
    found = (ctypes.c_uint64 * (count // 8))()
    pool().run(_kernel().address, (ctypes.addressof(found), count // 8), 1, BYTES, 1)
    return bytes(found)
