"""What the compiler refuses in warp-level kernels: barriers that not all warps reach, results used where they are
missing, too much shared memory; and what it must not refuse.
"""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import errors

from .launches import line_of, mistake_in


@triton.jit(warp_level=True)
def under_a_condition(x, n):
    if tl.warp_id() == 0:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def otherwise(x, n):
    if tl.warp_id() >= 2:  # CAUSE
        tl.store(x, 1)
    else:
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def after_an_early_return(x, n):
    if tl.load(x + tl.warp_id()) > 0:  # CAUSE
        return
    tl.barrier()  # HERE


@triton.jit(warp_level=True)
def in_a_loop_of_its_own_length(x, n):
    for i in range(tl.warp_id(), n, tl.num_warps()):  # CAUSE
        tl.store(x, tl.sum(i, cross_warp=True))  # HERE


@triton.jit(warp_level=True)
def in_a_while(x, n):
    i = 0
    while i < n + tl.warp_id():  # CAUSE
        i += 1
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def through_a_variable(x, n):
    """The condition looks at a value that was assigned under another condition."""
    k = 0
    if tl.warp_id() == 1:
        k = n
    if k > 2:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def through_a_loop(x, n):
    k = 0
    for _ in range(n):
        if k < 100:  # CAUSE
            tl.barrier()  # HERE
        k += tl.warp_id()


@triton.jit(warp_level=True)
def through_the_length_of_a_loop(x, n):
    k = 0
    for _ in range(n + tl.warp_id()):
        k += 1
    if k > 3:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def through_shared_memory(x, n):
    b = tl.alloc((4,), tl.int32)
    tl.store(b[tl.warp_id()], 1)
    tl.barrier()
    if tl.load(b[tl.warp_id()]) > 0:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def after_an_atomic(x, n):
    if tl.atomic_add(x, 1) == 0:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def after_a_scan(x, n):
    if tl.cumsum(n, cross_warp=True) > 4:  # CAUSE
        tl.barrier()  # HERE


@triton.jit(warp_level=True)
def scan_under_a_condition(x, n):
    if tl.warp_id() > 0:  # CAUSE
        tl.store(x, tl.cumsum(n, cross_warp=True))  # HERE


@triton.jit
def _meets():
    tl.barrier()  # HERE


@triton.jit(warp_level=True)
def in_a_called_function(x, n):
    if tl.warp_id() == 0:  # CAUSE
        _meets()


DIVERGENT = [
    under_a_condition,
    otherwise,
    after_an_early_return,
    in_a_loop_of_its_own_length,
    in_a_while,
    through_a_variable,
    through_a_loop,
    through_the_length_of_a_loop,
    through_shared_memory,
    after_an_atomic,
    after_a_scan,
    scan_under_a_condition,
]


@pytest.mark.parametrize("target", ["generic", "cpu"])
@pytest.mark.parametrize("kernel", DIVERGENT, ids=lambda kernel: kernel.__name__)
def test_a_barrier_that_not_all_warps_reach(kernel, target):
    error = mistake_in(kernel, target=target, x="*i32", n="i32")
    assert type(error) is errors.WarpDivergenceError, repr(error)
    assert error.file == __file__ and error.line == line_of(kernel, "HERE")
    cause = line_of(kernel, "CAUSE")
    assert f"{__file__}:{cause}:" in error.render()
    assert kernel.source.text.splitlines()[cause - kernel.fn.__code__.co_firstlineno].strip() in error.render()


def test_a_barrier_in_a_called_function():
    error = mistake_in(in_a_called_function, x="*i32", n="i32")
    assert type(error) is errors.WarpDivergenceError
    assert error.line == line_of(_meets, "HERE")
    assert [place.line for place in error.calls] == [line_of(in_a_called_function, "_meets()")]


@triton.jit(warp_level=True)
def all_of_this_is_fine(x, n):
    if tl.warp_id() // tl.num_warps() == 0:
        tl.barrier()
    if tl.warp_id() < tl.num_warps():
        tl.barrier()
    if tl.warp_id() == 100:
        tl.barrier()
    if tl.sum(tl.warp_id(), cross_warp=True) > 3:
        tl.barrier()
    k = 1
    if tl.warp_id() >= 0:
        k = 2
    if k == 2:
        tl.barrier()
    for i in range(n):
        if i == 2:
            tl.barrier()
        if tl.load(x + i) > 0:
            tl.barrier()
    while n > 0:
        if tl.warp_id() == 0:
            tl.store(x, n)
        tl.barrier()
        n -= 1
    if tl.program_id(0) == 0:
        return
    tl.barrier()
    b = tl.sum(tl.warp_id(), cross_warp=True, dst_warps=1)
    c = b * 2
    if tl.warp_id() == 1:
        tl.store(x, c)
    tl.store(x + tl.warp_id(), tl.where(tl.warp_id() == 1, c, 0))
    tl.store(x, c, mask=tl.warp_id() == 1)
    if (tl.warp_id() == 1) & (n > 0):
        tl.store(x, c)
    if n > 0 and tl.warp_id() == 1:
        tl.store(x, c)
    if not ((tl.warp_id() != 1) | (tl.load(x) > 0)):
        tl.store(x, c)
    if (tl.warp_id() == 77) & (n > 0):
        tl.barrier()
    d = tl.max(n, cross_warp=True, dst_warps=(0, 2))
    if (tl.warp_id() == 0) | (tl.warp_id() == 2):
        for i in range(d):
            tl.store(x + i, d)


@pytest.mark.parametrize("num_warps", [2, 4, 16])
def test_uniform_conditions_are_understood(num_warps):
    if num_warps == 2:
        error = mistake_in(all_of_this_is_fine, num_warps, x="*i32", n="i32")
        assert type(error) is errors.AxisError  # there is no warp 2 to receive
        return
    made = triton.compile(all_of_this_is_fine, {"x": "*i32", "n": "i32"}, target="generic", num_warps=num_warps)
    if num_warps == 4:
        assert "gpu.barrier" in made.asm["warp"]


# Results that some warps do not receive


@triton.jit(warp_level=True)
def stored_by_all(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=(0, 2))  # CAUSE
    tl.store(x + tl.warp_id(), b * 2)  # HERE


@triton.jit(warp_level=True)
def stored_by_the_wrong_warp(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    if tl.warp_id() == 1:
        tl.store(x, b)  # HERE


@triton.jit(warp_level=True)
def decides(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    if b > 0:  # HERE
        tl.store(x, 1)


@triton.jit(warp_level=True)
def counts(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    for i in range(b):  # HERE
        tl.store(x, i)


@triton.jit(warp_level=True)
def addresses(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    tl.device_print("b", tl.load(x + b))  # HERE


@triton.jit(warp_level=True)
def passed_on(x, n):
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    tl.store(x, tl.max(b, cross_warp=True))  # HERE


@triton.jit(warp_level=True)
def shared(x, n):
    s = tl.alloc((4,), tl.int32)
    b = tl.sum(n, cross_warp=True, dst_warps=0)  # CAUSE
    tl.store(s[tl.warp_id()], b)  # HERE


@triton.jit(warp_level=True)
def carried(x, n):
    b = 0
    for i in range(n):
        tl.store(x + tl.warp_id(), b)  # HERE
        b += tl.sum(i, cross_warp=True, dst_warps=0)  # CAUSE


MISSING = [stored_by_all, stored_by_the_wrong_warp, decides, counts, addresses, passed_on, shared, carried]


@pytest.mark.parametrize("kernel", MISSING, ids=lambda kernel: kernel.__name__)
def test_a_result_used_where_it_is_missing(kernel):
    error = mistake_in(kernel, x="*i32", n="i32")
    assert type(error) is errors.MissingResultError, repr(error)
    assert error.file == __file__ and error.line == line_of(kernel, "HERE")
    assert f"{__file__}:{line_of(kernel, 'CAUSE')}:" in error.render()
    assert "did not receive" in error.message


# Shared memory


@triton.jit(warp_level=True)
def too_much(x, n):
    a = tl.alloc((8, 4096), tl.float32)  # FIRST
    b = tl.alloc((3,), tl.float16)  # SECOND
    tl.store(a.block((0, 0), (1, 16)), 0.0)
    tl.store(b[0], 0.0)
    tl.store(x + tl.arange(0, 16), tl.sum(tl.arange(0, 16), cross_warp=True), mask=tl.warp_id() == 0)  # THIRD


@triton.jit(warp_level=True)
def just_enough(x, n):
    a = tl.alloc((4096 * 8 - 16,), tl.float32)
    tl.alloc((1024,), tl.float32)  # nobody uses it
    tl.store(a[0], 0.0)
    tl.store(x, tl.sum(tl.warp_id() * tl.full((4,), 1, tl.int32), cross_warp=True).sum(), mask=tl.warp_id() == 0)


@pytest.mark.parametrize("target", ["generic", "cpu"])
def test_the_error_lists_the_buffers(target):
    error = mistake_in(too_much, target=target, x="*i32", n="i32")
    assert type(error) is errors.SharedMemoryError
    assert error.expected == "at most 131072 bytes" and error.found == f"{8 * 4096 * 4 + 6 + 4 * 64} bytes"
    lines = {line_of(too_much, mark): size for mark, size in (("FIRST", 131072), ("SECOND", 6), ("THIRD", 256))}
    for line, size in lines.items():
        assert any(f"{size} bytes at {__file__}:{line}:" in text for text in error.render().splitlines()), line


@triton.jit(warp_level=True)
def too_often(x, n):
    for _ in tl.static_range(40):
        tl.store(x, tl.sum(tl.zeros((256,), tl.int32) + tl.load(x), cross_warp=True).sum())  # HERE


def test_the_error_lists_buffers_of_one_line_once():
    error = mistake_in(too_often, x="*i32", n="i32")
    assert type(error) is errors.SharedMemoryError and error.found == f"{40 * 4 * 1024} bytes"
    (line,) = (text for text in error.render().splitlines() if " bytes at " in text)
    assert f":{line_of(too_often, 'HERE')}:" in line and line.endswith("(40 times)")


def test_the_last_byte_may_be_used():
    triton.compile(just_enough, {"x": "*i32", "n": "i32"}, target="generic")


@triton.jit(warp_level=True)
def outside_on_one_warp(x, n):
    b = tl.alloc((4, 16), tl.float32)
    tl.store(b[tl.warp_id() + 1], 0.0)  # HERE


def test_a_window_outside_its_buffer_on_one_warp():
    error = mistake_in(outside_on_one_warp, x="*i32", n="i32")
    assert type(error) is errors.SharedMemoryError
    assert error.line == line_of(outside_on_one_warp, "HERE") and error.found == "4 on warp 3"


def test_too_many_warps():
    error = mistake_in(under_a_condition, num_warps=128, x="*i32", n="i32")
    assert type(error) is errors.OptionError and "at most 64" in error.render()
