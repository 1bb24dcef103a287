"""What kernels written for warps may say of warps and shared memory, and every mistake they can make with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import errors
from mltriton.frontend.dependencies import dependencies

from .launches import check, job_of, mistake_in


@triton.jit
def says_its_id(out):
    tl.store(out + tl.warp_id(), tl.warp_id() + 10 * tl.num_warps())


@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_warps_know_their_id_and_their_number(num_warps):
    wanted = np.arange(num_warps) + 10 * num_warps
    check(says_its_id, {"out": np.zeros(num_warps, np.int32)}, {"out": wanted}, num_warps=num_warps)


@triton.jit(warp_level=True)
def helper_is_inlined(out):
    tl.store(out + tl.warp_id(), _twice_the_id())


@triton.jit
def _twice_the_id():
    return 2 * tl.warp_id()


def test_called_functions_need_no_mark():
    check(helper_is_inlined, {"out": np.zeros(4, np.int32)}, {"out": 2 * np.arange(4)})


@triton.jit(warp_level=True)
def windows(x, out):
    """Parts of parts: p[i], p[i, j], blocks, moved blocks, scalars."""
    b = tl.alloc((2, 8, 8), tl.int32)
    i = tl.arange(0, 64)
    if tl.warp_id() == 0:
        tl.store(b[1], tl.reshape(tl.load(x + i), (8, 8)))
        tl.store(b[0], tl.reshape(-tl.load(x + i), (8, 8)))
    tl.barrier()
    part = b[1].block((2, 4), (4, 4))
    moved = tl.advance(tl.advance(part, (2, -4)), (0, 2))
    row = b[1, 3]
    if tl.warp_id() == 0:
        j = tl.arange(0, 16)
        tl.store(out + j, tl.reshape(tl.load(part), (16,)))
        tl.store(out + 16 + j, tl.reshape(moved.load(), (16,)))
        tl.store(out + 32 + tl.arange(0, 8), tl.load(row))
        tl.store(out + 40, tl.load(row[5]))
        tl.store(out + 41, tl.load(b[0][7][7]))
        tl.store(out + 42 + tl.arange(0, 4), tl.load(part[1].block((1,), (2,))[1]))


def test_windows():
    x = np.arange(64, dtype=np.int32)
    m = x.reshape(8, 8)
    wanted = np.concatenate([m[2:6, 4:8].ravel(), m[4:8, 2:6].ravel(), m[3], [m[3, 5], -63], [m[3, 6]] * 4])
    check(windows, {"x": x, "out": np.zeros(46, np.int32)}, {"out": wanted}, num_warps=2)


@triton.jit(warp_level=True)
def carried(x, out, n):
    """A loop carries a window into shared memory and the number of a buffer."""
    b = tl.alloc((3, 4), tl.float32)
    first = tl.alloc((16,), tl.float32)
    if tl.warp_id() == 0:
        tl.store(first, tl.load(x + tl.arange(0, 16)))
        for i in range(3):
            tl.store(b[i], i * 100.0)
    tl.barrier()
    p = first.block((0,), (4,))
    q = b[0]
    acc = tl.zeros((4,), tl.float32)
    for i in range(n):
        acc += tl.load(p) + tl.load(q)
        p = tl.advance(p, (4,))
        if i % 2 == 0:
            q = b[2]
        else:
            q = b[1]
    while n < 10:
        p = first.block((n,), (4,))
        n += 4
    tl.store(out + 8 * tl.warp_id() + tl.arange(0, 4), acc)
    tl.store(out + 8 * tl.warp_id() + 4 + tl.arange(0, 4), tl.load(p))


def test_a_loop_carries_offsets():
    x = np.arange(16, dtype=np.float32)
    acc = x.reshape(4, 4).sum(0) + (0 + 200 + 100 + 200)
    wanted = np.tile(np.concatenate([acc, x[8:12]]), 2)
    check(carried, {"x": x, "out": np.zeros(16, np.float32), "n": 4}, {"out": wanted}, num_warps=2)


@triton.jit
def _two_buffers(N: tl.constexpr):
    return tl.alloc((2, N), tl.float32)


@triton.jit
def _first(p, i):
    return tl.load(p[i]), p


@triton.jit(warp_level=True)
def passed_around(out, n):
    """Pointers as arguments and results of functions (each call has a buffer of its own), in tuples, in branches."""
    a, b = _two_buffers(16), _two_buffers(16)
    if tl.warp_id() == 0:
        tl.store(a, 1.0)
        tl.store(b[0], 2.0)
        tl.store(b[1], 3.0)
    tl.barrier()
    c = b[1] if n > 2 else b[0]
    x, q = _first(b, n - 3)
    pair = (a[0], q[1])
    acc = tl.zeros((16,), tl.float32)
    for i in range(2):
        acc += tl.load(pair[0]) + 10 * tl.load(pair[1]) + 100 * x + 1000 * c.load()
        pair = (a[i], q[i])
    tl.store(out + tl.warp_id() * 16 + tl.arange(0, 16), acc)


def test_pointers_are_values():
    wanted = np.full(64, (1 + 30 + 200 + 3000) + (1 + 20 + 200 + 3000))
    check(passed_around, {"out": np.zeros(64, np.float32), "n": 3}, {"out": wanted})


@triton.jit(warp_level=True)
def in_a_loop(out, n):
    for i in range(n):
        b = tl.alloc((4,), tl.int32)
        if tl.warp_id() == 0:
            tl.store(b[0], i)
        tl.barrier()
        tl.store(out + 4 * tl.warp_id() + i, tl.load(b[0]))
        tl.barrier()


def test_an_allocation_in_a_loop_is_one_buffer():
    wanted = np.tile([0, 1, 2, 0], 2)
    check(in_a_loop, {"out": np.zeros(8, np.int32), "n": 3}, {"out": wanted}, num_warps=2)
    module = job_of(in_a_loop, {"out": np.zeros(8, np.int32), "n": 3}, 2).source_module()
    entry = module.body.block.ops[0].body.block
    assert [op.name for op in entry.ops[:2]].count("ttg.local_alloc") == 1


DTYPES = {"int1": np.bool_, "int8": np.int8, "float16": np.float16, "float64": np.float64, "uint32": np.uint32}


@triton.jit(warp_level=True)
def of_dtype(x, out, DTYPE: tl.constexpr):
    b = tl.alloc((tl.num_warps(), 16), DTYPE)
    i = tl.arange(0, 16)
    tl.store(b[tl.warp_id()], tl.load(x + i + 16 * tl.warp_id()))
    tl.barrier()
    found = tl.load(b[tl.num_warps() - 1 - tl.warp_id()])
    tl.static_assert(found.dtype == DTYPE and b.dtype == DTYPE)
    tl.store(out + i + 16 * tl.warp_id(), found)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name):
    x = np.random.default_rng(1).integers(0, 2, 64).astype(DTYPES[name])
    arguments = {"x": x, "out": np.zeros_like(x), "DTYPE": getattr(tl, name)}
    check(of_dtype, arguments, {"out": x.reshape(4, 16)[::-1].ravel()})


# Mistakes


@triton.jit(warp_level=True)
def masked_load(x):
    b = tl.alloc((16,), tl.int32)
    tl.load(b, mask=tl.arange(0, 16) < 8)


@triton.jit(warp_level=True)
def checked_store(x):
    b = tl.alloc((16,), tl.int32)
    tl.store(b, 0, boundary_check=(0,))


@triton.jit(warp_level=True)
def wrong_shape(x):
    b = tl.alloc((16,), tl.int32)
    tl.store(b, tl.zeros((2, 16), tl.int32))


@triton.jit(warp_level=True)
def wrong_dtype(x):
    tl.alloc((16,), x)


@triton.jit(warp_level=True)
def shape_not_known(x):
    tl.alloc((tl.load(x), 16), tl.int32)


@triton.jit(warp_level=True)
def empty(x):
    tl.alloc((0, 16), tl.int32)


@triton.jit(warp_level=True)
def no_power_of_two(x):
    b = tl.alloc((12,), tl.int32)
    tl.load(b)


@triton.jit(warp_level=True)
def index_outside(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b[2])


@triton.jit(warp_level=True)
def negative_index(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b[-1])


@triton.jit(warp_level=True)
def sliced(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b[0, :])


@triton.jit(warp_level=True)
def too_many_indices(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b[0, 0, 0])


@triton.jit(warp_level=True)
def window_outside(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b.block((1, 8), (1, 16)))


@triton.jit(warp_level=True)
def window_of_other_rank(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.load(b.block((1,), (16,)))


@triton.jit(warp_level=True)
def moved_outside(x):
    b = tl.alloc((2, 16), tl.int32)
    p = tl.advance(b[0], (4,))
    tl.load(p)


@triton.jit(warp_level=True)
def moved_by_other_rank(x):
    b = tl.alloc((2, 16), tl.int32)
    tl.advance(b, (1,))


@triton.jit(warp_level=True)
def other_buffer(x):
    a = tl.alloc((16,), tl.int32)
    b = tl.alloc((16,), tl.int32)
    for _ in range(4):
        a, b = b, a


@triton.jit(warp_level=True)
def atomic_on_shared(x):
    b = tl.alloc((16,), tl.int32)
    tl.atomic_add(b, 1)


@triton.jit(warp_level=True)
def added_to(x):
    b = tl.alloc((16,), tl.int32)
    tl.load(b + 1)


@triton.jit(warp_level=True)
def receiver_out_of_range(x):
    tl.sum(tl.load(x), cross_warp=True, dst_warps=4)


@triton.jit(warp_level=True)
def receiver_twice(x):
    tl.max(tl.load(x), cross_warp=True, dst_warps=(1, 1))


@triton.jit(warp_level=True)
def no_receiver(x):
    tl.max(tl.load(x), cross_warp=True, dst_warps=())


@triton.jit(warp_level=True)
def receiver_not_known(x):
    tl.max(tl.load(x), cross_warp=True, dst_warps=tl.warp_id())


@triton.jit(warp_level=True)
def receivers_within_a_warp(x):
    tl.sum(tl.arange(0, 4), dst_warps=0)


@triton.jit(warp_level=True)
def across_not_known(x):
    tl.sum(tl.arange(0, 4), cross_warp=tl.load(x) > 0)


@triton.jit(warp_level=True)
def scan_along_an_axis(x):
    tl.cumsum(tl.arange(0, 4), axis=0, cross_warp=True)


@triton.jit
def id_without_mark(x):
    tl.store(x, tl.warp_id())


@triton.jit
def number_without_mark(x):
    tl.store(x, tl.num_warps())


@triton.jit
def alloc_without_mark(x):
    tl.alloc((16,), tl.int32)


@triton.jit
def barrier_without_mark(x):
    tl.barrier()


@triton.jit
def across_without_mark(x):
    tl.argmax(tl.arange(0, 4), 0, cross_warp=True)


MISTAKES = [
    (masked_load, errors.PointerError, "tl.load(b, mask", "mask"),
    (checked_store, errors.PointerError, "tl.store(b, 0, bound", "boundary_check"),
    (wrong_shape, errors.ShapeMismatchError, "tl.store(b", "does not fit"),
    (wrong_dtype, errors.TypeMismatchError, "tl.alloc", "dtype"),
    (shape_not_known, errors.ConstexprError, "tl.alloc", "known when compiling"),
    (empty, errors.ShapeMismatchError, "tl.alloc", "positive"),
    (no_power_of_two, errors.PowerOfTwoError, "tl.load(b", "power of two"),
    (index_outside, errors.SharedMemoryError, "b[2]", "expected 0 to 1, found 2"),
    (negative_index, errors.SharedMemoryError, "b[-1]", "expected 0 to 1, found -1"),
    (sliced, errors.ShapeMismatchError, "b[0, :]", "one integer for each leading dimension"),
    (too_many_indices, errors.ShapeMismatchError, "b[0, 0, 0]", "at most 2"),
    (window_outside, errors.SharedMemoryError, "b.block", "expected 0 to 0, found 8 with 16 elements"),
    (window_of_other_rank, errors.ShapeMismatchError, "b.block", "2 offsets"),
    (moved_outside, errors.SharedMemoryError, "tl.load(p)", "expected 0 to 0, found 4 with 16 elements"),
    (moved_by_other_rank, errors.ShapeMismatchError, "tl.advance", "expected 2, found 1"),
    (other_buffer, errors.LoopCarriedTypeError, "a, b = b, a", "buffer"),
    (atomic_on_shared, errors.PointerError, "tl.atomic_add", "shared"),
    (added_to, errors.PointerError, "b + 1", "tl.advance"),
    (receiver_out_of_range, errors.AxisError, "tl.sum", "0 to 3"),
    (receiver_twice, errors.AxisError, "tl.max", "twice"),
    (no_receiver, errors.AxisError, "tl.max", "no warp"),
    (receiver_not_known, errors.ConstexprError, "tl.max", "known when compiling"),
    (receivers_within_a_warp, errors.WarpLevelError, "tl.sum", "cross_warp=True"),
    (across_not_known, errors.ConstexprError, "tl.sum", "known when compiling"),
    (scan_along_an_axis, errors.AxisError, "tl.cumsum", "axis=None"),
    (id_without_mark, errors.WarpLevelError, "tl.warp_id", "warp_level=True"),
    (number_without_mark, errors.WarpLevelError, "tl.num_warps", "warp_level=True"),
    (alloc_without_mark, errors.WarpLevelError, "tl.alloc", "warp_level=True"),
    (barrier_without_mark, errors.WarpLevelError, "tl.barrier", "warp_level=True"),
    (across_without_mark, errors.WarpLevelError, "tl.argmax", "warp_level=True"),
]


@pytest.mark.parametrize(("kernel", "kind", "where", "says"), MISTAKES, ids=[case[0].__name__ for case in MISTAKES])
def test_the_error_of_a_mistake(kernel, kind, where, says):
    error = mistake_in(kernel)
    assert type(error) is kind, repr(error)
    assert error.file == __file__
    lines = error.render().splitlines()
    assert lines[1][lines[2].index("^") :].startswith(where), lines
    assert says in error.render()


def test_the_mark_is_a_bool():
    with pytest.raises(errors.OptionError, match="warp_level"):
        triton.compile(id_without_mark, {"x": "*i32"}, target="generic", warp_level=1)


def test_an_option_marks_a_kernel_and_unmarks_it():
    marked = triton.compile(id_without_mark, {"x": "*i32"}, target="generic", warp_level=True)
    assert marked.metadata.warp_level and "gpu.subgroup_id" in marked.asm["tt"]
    with pytest.raises(errors.WarpLevelError):
        triton.compile(helper_is_inlined, {"out": "*i32"}, target="generic", warp_level=False)


def test_a_launch_marks_a_kernel():
    out = np.zeros(4, np.int32)
    says_its_id[(1,)](out, num_warps=4, warp_level=True)
    assert out.tolist() == [40, 41, 42, 43]
    with pytest.raises(errors.WarpLevelError):
        says_its_id[(1,)](out, num_warps=4)
    with pytest.raises(errors.WarpLevelError):
        helper_is_inlined[(1,)](out, num_warps=4, warp_level=False)


def test_the_cache_tells_them_apart():
    x = np.zeros(4, np.int32)
    job, other = job_of(windows, {"x": x, "out": x}, 4), job_of(windows, {"x": x, "out": x}, 4)
    depends = dependencies(windows)
    unmarked = replace(job, options=replace(job.options, warp_level=False))
    assert job.key(depends) == other.key(depends) != unmarked.key(depends)
