"""Launches with checked accesses: what is found, what is left out, and that everything else is as before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import kernels
from mltriton.errors import DeviceAssertionError, OutOfBoundsError
from mltriton.runtime.overlaps import OverlapWarning


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("MLTRITON_SANITIZE", "1")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def add(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, m) + tl.load(y_ptr + i, m), m)


def numbers(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(1, 2, count).astype(np.float32)


def test_what_stays_inside_runs_as_before():
    x, y, o = numbers(1000), numbers(1000, 1), np.zeros(1000, np.float32)
    for _ in range(2):
        add[(8,)](x, y, o, 1000, B=128)
        np.testing.assert_array_equal(o, x + y)


@pytest.mark.parametrize(
    ("lengths", "name", "element"),
    [((990, 1000, 1000), "x_ptr", 94), ((1000, 913, 1000), "y_ptr", 17), ((1000, 1000, 999), "o_ptr", 103)],
)
def test_the_array_program_and_element_are_named(lengths: Any, name: str, element: int):
    memory = [numbers(1000, seed) for seed in range(3)]
    before = memory[2].copy()
    arrays = [whole[:length] for whole, length in zip(memory, lengths, strict=True)]
    what = "store" if name == "o_ptr" else "load"
    message = re.escape(f"a {what} outside of {name} (program (7, 0, 0), element {element})")
    with pytest.raises(OutOfBoundsError, match=message) as error:
        add[(8,)](*arrays, 1000, B=128)
    assert f"tl.{what}({name} + i" in error.value.render()
    np.testing.assert_array_equal(memory[2][lengths[2] :], before[lengths[2] :])
    assert isinstance(error.value, DeviceAssertionError)


@triton.jit
def far(o_ptr, i):
    tl.store(o_ptr + i, 1.0)


@pytest.mark.parametrize("place", [-1, 16, 4 * 10**12, -(2**61)])
def test_far_away(place: int):
    o = np.zeros(16, np.float32)
    with pytest.raises(OutOfBoundsError, match="a store outside of o_ptr"):
        far[(1,)](o, place)
    far[(1,)](o, 15)
    assert o[15] == 1


def test_the_end_of_an_element_counts():
    o = np.zeros(17, np.uint8)
    with pytest.raises(OutOfBoundsError):
        far[(1,)](o[:15].view(np.uint8)[:12].view(np.float32), 3)
    with pytest.raises(OutOfBoundsError):
        far[(1,)](o[:0].view(np.float32), 0)


def test_strides_are_inside():
    memory = np.zeros((4, 6), np.float32)
    turned = memory[::-1, ::-2]

    @triton.jit
    def fill(o_ptr, s0, s1, M: tl.constexpr, N: tl.constexpr):
        i, j = tl.arange(0, 4), tl.arange(0, 4)
        tl.store(o_ptr + i[:, None] * s0 + j[None] * s1, 1.0, (i < M)[:, None] & (j < N)[None])

    fill[(1,)](turned, -6, -2, M=4, N=3)
    assert turned.all()
    with pytest.raises(OutOfBoundsError):
        fill[(1,)](turned, -6, -2, M=4, N=4)


@triton.jit
def copy_blocks(x_ptr, o_ptr, M, N, stride, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [stride, 1], [B, B])
    target = tl.make_block_ptr(o_ptr, (M, N), (stride, 1), (0, 0), (B, B), (1, 0))
    for k in range(0, N, B):
        tl.store(target, source.load([0, k]), boundary_check=(0, 1))
        target = tl.advance(target, (0, B))


@pytest.mark.parametrize(("rows", "message"), [((9, 10), "a load outside of x_ptr"), ((10, 9), "element 144")])
def test_descriptors_and_block_pointers(rows: tuple[int, int], message: str):
    x, o = (numbers(240, seed).reshape(10, 24) for seed in range(2))
    copy_blocks[(1,)](x, o, 10, 24, 24, B=16)
    np.testing.assert_array_equal(x, o)
    with pytest.raises(OutOfBoundsError, match=message):
        copy_blocks[(1,)](x[: rows[0]], o[: rows[1]], 10, 24, 24, B=16)


@triton.jit
def update(o_ptr, i, SWAP: tl.constexpr, N: tl.constexpr):
    place = o_ptr + i + tl.arange(0, N)
    if SWAP:
        tl.atomic_cas(place, tl.zeros((N,), tl.int32), tl.full((N,), 7, tl.int32))
    else:
        tl.atomic_add(place, 7)


@pytest.mark.parametrize("swap", [False, True])
def test_atomics(swap: bool):
    o = np.zeros(8, np.int32)
    update[(1,)](o, 4, SWAP=swap, N=4)
    assert list(o) == [0] * 4 + [7] * 4
    with pytest.raises(OutOfBoundsError, match="compare-and-swap" if swap else "an atomic update"):
        update[(1,)](o, 5, SWAP=swap, N=4)


@triton.jit(warp_level=True)
def window(o_ptr, n):
    shared = tl.alloc(shape=(64, 64), dtype=tl.float32)
    part = shared.block((n, 0), (16, 64))
    tl.store(part, tl.full((16, 64), 1.0, tl.float32))
    tl.barrier()
    tl.store(o_ptr, tl.sum(tl.sum(tl.load(part), 0), 0))


def test_windows_of_shared_memory():
    o = np.zeros(1, np.float32)
    window[(1,)](o, 48, num_warps=1)
    assert o[0] == 1024
    for place in (49, -1, 10**8):
        with pytest.raises(OutOfBoundsError, match="a window outside of its shared memory"):
            window[(1,)](o, place, num_warps=1)


@triton.jit
def through_a_table(table_ptr, o_ptr):
    p = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(o_ptr + tl.program_id(0), tl.load(p))


def test_pointers_from_memory_are_trusted():
    values, o = numbers(2), np.zeros(2, np.float32)
    table = values.ctypes.data + 4 * np.arange(2, dtype=np.int64)
    through_a_table[(2,)](table, o)
    np.testing.assert_array_equal(o, values)


@triton.jit
def either(x_ptr, y_ptr, o_ptr, flag, n):
    p = x_ptr
    if flag:
        p = y_ptr
    for i in range(n):
        tl.store(o_ptr + i, tl.load(p))
        p += 1


@pytest.mark.parametrize("flag", [0, 2])
def test_pointers_of_branches_and_loops(flag: int):
    x, y, o = numbers(5), numbers(5, 1), np.zeros(9, np.float32)
    either[(1,)](x, y, o, flag, 5)
    np.testing.assert_array_equal(o[:5], y if flag else x)
    with pytest.raises(OutOfBoundsError, match="a load outside of x_ptr or y_ptr"):
        either[(1,)](x[:2], y[:2], o, flag, 9)


def test_debugging_checks_accesses_on_the_cpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLTRITON_SANITIZE", "0")
    with pytest.raises(OutOfBoundsError):
        far[(1,)](np.zeros(3, np.float32), 3, debug=True)
    with pytest.raises(DeviceAssertionError, match="not here"):

        @triton.jit
        def assertive(o_ptr, i):
            tl.device_assert(i < 0, "not here")
            tl.store(o_ptr + i, 1.0)

        assertive[(1,)](np.zeros(3, np.float32), 2, debug=True, sanitize=False)


def test_in_the_executor():
    o = np.zeros(3, np.float32)
    far[(1,)](o, 2, target="interpreter")
    assert o[2] == 1
    with pytest.raises(triton.TritonError):
        far[(1,)](o, 3, target="interpreter")


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: kernels.softmax(x),
        lambda x: kernels.layer_norm(x, x[0], x[1]),
        lambda x: kernels.matmul(x, x.T),
        lambda x: kernels.flash_attention(*(x.reshape(1, 1, 40, 64),) * 3, causal=True),
    ],
)
def test_the_library_stays_inside(compute: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch):
    x = numbers(40 * 64).reshape(40, 64)
    found = compute(x)
    monkeypatch.setenv("MLTRITON_SANITIZE", "0")
    np.testing.assert_allclose(found, compute(x.copy().reshape(40, 64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arrays_that_overlap_are_named(library: str):
    x = numbers(257)
    if library == "torch":
        x = pytest.importorskip("torch").from_numpy(x)
    y = x[:256] * 0 + 1
    with pytest.warns(OverlapWarning, match=r"x_ptr and o_ptr share elements .* writes to o_ptr") as found:
        add[(2,)](x[:-1], y, x[1:], 256, B=128)
    assert len(found) == 1


def test_arrays_that_are_apart_or_the_same_are_not_named(recwarn: pytest.WarningsRecorder):
    x, columns = numbers(256), numbers(512).reshape(256, 2)
    add[(2,)](x, x, x, 256, B=128)
    add[(2,)](x[128:], x[:-1], np.zeros(128, np.float32), 128, B=128)
    copy[(2,)](columns[:, 0], columns[:, 1], 256, 2, B=128)
    np.testing.assert_array_equal(columns[:, 0], columns[:, 1])
    assert not [item for item in recwarn if item.category is OverlapWarning]


@triton.jit
def copy(x_ptr, o_ptr, n, step, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i * step, tl.load(x_ptr + i * step, i < n), i < n)
