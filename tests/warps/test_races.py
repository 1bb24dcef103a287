"""The race detector on kernels of users: every planted fault is found, in every order of warps, with both lines;
correct kernels report nothing (`test_kernels.py` and `test_reductions.py` run with every check on).
"""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor.faults import DataRace, OutOfBounds, Uninitialised
from mltriton.tools.verify import verify_kernel

from .launches import check, fault_of, line_of

ORDERS = ["forward", "backward", "shuffled"]


@triton.jit(warp_level=True)
def no_barrier(out):
    b = tl.alloc((4, 16), tl.float32)
    tl.store(b[tl.warp_id()], 1.0)  # ONE
    x = tl.load(b[(tl.warp_id() + 1) % 4])  # OTHER
    tl.store(out + 16 * tl.warp_id() + tl.arange(0, 16), x)


@triton.jit(warp_level=True)
def read_by_many_written_by_one(out):
    """The writer is one of the readers, and the last that read."""
    b = tl.alloc((16,), tl.float32)
    if tl.warp_id() == 0:
        tl.store(b, 1.0)
    tl.barrier()
    x = tl.load(b)  # ONE
    if tl.warp_id() == 3:
        tl.store(b, tl.load(b) + x)  # OTHER


@triton.jit(warp_level=True)
def windows_that_overlap(out):
    """Warp 1's four elements from 8 on are the last that warp 2 reads (which has four from 8 on, too)."""
    b = tl.alloc((32,), tl.float32)
    tl.store(b.block((8 * tl.warp_id(),), (8,)), 1.0)
    tl.barrier()
    x = tl.load(b.block((tl.warp_id() * 4,), (4,)))  # ONE
    if tl.warp_id() == 1:
        tl.store(b.block((11,), (4,)), x + 1)  # OTHER


@triton.jit(warp_level=True)
def the_same_value(out):
    """Storing what is there already is a write all the same."""
    b = tl.alloc((16,), tl.float32)
    tl.store(b, 1.0)  # ONE OTHER


@triton.jit(warp_level=True)
def one_buffer_for_two_steps(out):
    """A pipeline needs two buffers, or two barriers."""
    b = tl.alloc((16,), tl.float32)
    for i in range(3):
        if tl.warp_id() == 0:
            tl.store(b, i * 1.0)  # ONE
        tl.barrier()
        x = tl.load(b)  # OTHER
        tl.store(out + 16 * tl.warp_id() + tl.arange(0, 16), x)


@triton.jit(warp_level=True, debug=True)
def through_global_memory(out):
    i = tl.arange(0, 16)
    tl.store(out + 16 * tl.warp_id() + i, 1.0)  # ONE
    x = tl.load(out + 16 * ((tl.warp_id() + 1) % 4) + i)  # OTHER
    tl.device_assert(x[:, None] < 10)


@triton.jit(warp_level=True)
def stores_that_overlap(out):
    tl.store(out + 15 * tl.warp_id() + tl.arange(0, 16), 1.0)  # ONE OTHER


@triton.jit(warp_level=True)
def atomic_and_not(out):
    tl.atomic_add(out, 1.0)  # ONE
    if tl.warp_id() == 2:
        tl.store(out, 0.0)  # OTHER


@triton.jit(warp_level=True, debug=True)
def wide_and_narrow(out):
    """The same bytes as elements of another size."""
    narrow = out.to(tl.pointer_type(tl.int16))
    if tl.warp_id() == 0:
        tl.store(out + 1, 2.0)  # ONE
    else:
        tl.device_assert(tl.load(narrow + 1 + tl.warp_id()) != 77)  # OTHER


RACES = [
    no_barrier,
    read_by_many_written_by_one,
    windows_that_overlap,
    the_same_value,
    one_buffer_for_two_steps,
    through_global_memory,
    stores_that_overlap,
    atomic_and_not,
    wide_and_narrow,
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", RACES, ids=lambda kernel: kernel.__name__)
def test_a_race_is_found_with_both_lines(kernel, order):
    fault = fault_of(kernel, {"out": np.zeros(64, np.float32)}, order=order)
    assert type(fault) is DataRace, repr(fault)
    lines = {line_of(kernel, "ONE"), line_of(kernel, "OTHER")}
    assert {fault.line, fault.other.line} == lines
    text = fault.render()
    for line in lines:
        assert f"{__file__}:{line}:" in text
        assert kernel.source.text.splitlines()[line - kernel.fn.__code__.co_firstlineno] in text


@triton.jit(warp_level=True)
def never_written(out):
    b = tl.alloc((4, 16), tl.float32)
    if tl.warp_id() < 3:
        tl.store(b[tl.warp_id()], 1.0)
    tl.barrier()
    tl.store(out + 16 * tl.warp_id() + tl.arange(0, 16), tl.load(b[tl.warp_id()]))  # HERE


@triton.jit(warp_level=True)
def partly_written(out):
    b = tl.alloc((16,), tl.float32)
    if tl.warp_id() == 0:
        tl.store(b.block((0,), (8,)), 1.0)
    tl.barrier()
    tl.store(out + 16 * tl.warp_id() + tl.arange(0, 16), tl.load(b))  # HERE


@triton.jit(warp_level=True)
def outside_shared_memory(out):
    b = tl.alloc((4, 16), tl.float32)
    n = tl.program_id(0) + 1
    tl.store(b[tl.warp_id() + n], 1.0)  # HERE


@triton.jit(warp_level=True)
def moved_outside_shared_memory(out):
    b = tl.alloc((64,), tl.float32)
    p = b.block((0,), (16,))
    for _ in range(5):
        if tl.warp_id() == 0:
            tl.store(p, 0.0)  # HERE
        p = tl.advance(p, (16,))


@triton.jit(warp_level=True)
def outside_global_memory(out):
    tl.store(out + 16 * tl.warp_id() + tl.arange(0, 16) + 1, 1.0)  # HERE


FAULTS = [
    (never_written, Uninitialised),
    (partly_written, Uninitialised),
    (outside_shared_memory, OutOfBounds),
    (moved_outside_shared_memory, OutOfBounds),
    (outside_global_memory, OutOfBounds),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kernel", "kind"), FAULTS, ids=lambda case: getattr(case, "__name__", None))
def test_other_faults_are_found(kernel, kind, order):
    fault = fault_of(kernel, {"out": np.zeros(64, np.float32)}, order=order)
    assert type(fault) is kind, repr(fault)
    assert fault.line == line_of(kernel, "HERE")


@triton.jit(warp_level=True)
def looks_like_a_race(x, out):
    """Reads of the same by all, neighbouring elements, atomics of all, one element on both sides of a barrier."""
    i = tl.arange(0, 16)
    w = tl.warp_id()
    y = tl.load(x + i)
    tl.atomic_add(out + i, y)
    tl.barrier()
    if w == 1:
        tl.store(out + i, tl.load(out + i) + 1)
    tl.barrier()
    if w == 2:
        tl.store(out + 2 * i, tl.load(out + 2 * i, mask=i < 8) * 2, mask=i < 8)
    if w == 3:
        tl.store(out + 2 * i + 1, tl.load(out + 2 * i + 1, mask=i < 8) * 3, mask=i < 8)


def test_what_looks_like_a_race_is_none():
    x = np.arange(16, dtype=np.float32)
    wanted = (4 * x + 1) * np.where(np.arange(16) % 2, 3, 2)
    check(looks_like_a_race, {"x": x, "out": np.zeros(16, np.float32)}, {"out": wanted}, orders=ORDERS)


@triton.jit(warp_level=True)
def last_one_wins(out):
    """No two accesses race, since atomic operations do not: but who comes last decides."""
    tl.atomic_xchg(out, tl.warp_id() * 1.0)


@pytest.mark.parametrize("kernel", [no_barrier, never_written, outside_shared_memory, stores_that_overlap])
def test_verify_finds_them(kernel):
    report = verify_kernel(kernel, args={"out": np.zeros(64, np.float32)}, grid=(1,), target="generic")
    assert not report.ok and report.first_wrong.name == "tt"
    assert type(report.first_wrong.fault) in (DataRace, Uninitialised, OutOfBounds)


def test_verify_finds_what_depends_on_the_order_of_warps():
    report = verify_kernel(last_one_wins, args={"out": np.zeros(4, np.float32)}, grid=(1,), target="generic")
    assert not report.ok and "order in which warps run" in str(report)


def test_verify_of_a_correct_kernel():
    args = {"x": np.arange(16, dtype=np.float32), "out": np.zeros(16, np.float32)}
    assert verify_kernel(looks_like_a_race, args=args, grid=(2,), target="generic").ok
