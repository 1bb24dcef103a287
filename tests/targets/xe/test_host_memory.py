"""Which bytes of main memory a launch on Xe copies and brings back, and kernels that leave the views they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import OutOfResources
from mltriton.targets.host_memory import Held, Memory, Span, held, merged
from mltriton.targets.xe.driver import Queue

RNG = np.random.default_rng(41)
Array = np.ndarray[Any, Any]


def alone(start: int, stop: int, written: bool = False) -> Held:
    return Held(start, Span(start, stop), Span(start, stop), written)


def test_too_much_memory(queue: Queue) -> None:
    with pytest.raises(OutOfResources, match="has no memory for the arrays of the launch"):
        Memory(queue, [alone(0, 1 << 50)])


def test_arrays_start_where_block_accesses_may(queue: Queue) -> None:
    """What numpy aligns to 16 bytes; of arrays that share a copy as many as can; others lie as in main memory."""
    memory = np.zeros(512, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    for offsets, expected in (([16], [0]), ([8], [8]), ([0, 144], [0, 0]), ([16, 80], [0, 0]), ([48, 64], [48, 0])):
        arrays = [alone(start + offset, start + offset + 64) for offset in offsets]
        copies = Memory(queue, arrays)
        assert [copies.place(array.address) % 64 for array in arrays] == expected


def test_spans() -> None:
    array = np.zeros((4, 6), np.int32)
    start = array.ctypes.data
    whole = Span(start, start + 96)
    turned = array[1:3, ::-1]
    assert held(turned, start + 44, True) == Held(start + 44, Span(start + 24, start + 72), whole, True)
    assert held(np.broadcast_to(array[2, :3], (5, 3)), 0, False)[1:3] == (Span(start + 48, start + 60), whole)
    assert held(array[2:2], start + 48, False)[1:3] == (Span(start + 48, start + 48), whole)
    assert held(array[:0, ::-1].T.view(np.int16), start, False).whole == whole
    strided = np.lib.stride_tricks.as_strided(array[1:], (2, 2), (24, 8))
    assert held(strided, start + 24, False)[1:3] == (Span(start + 24, start + 60), whole)
    assert merged([Span(10, 20), Span(20, 30), Span(40, 50), Span(12, 15)]) == [Span(10, 30), Span(40, 50)]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_spans_of_buffers(kind: Callable[[bytes], Any]) -> None:
    buffer = kind(bytes(range(64)))
    start = np.frombuffer(buffer, np.uint8).ctypes.data
    part = np.frombuffer(buffer, np.int16, count=4, offset=8)[1:]
    assert held(part, start + 10, False)[1:3] == (Span(start + 10, start + 16), Span(start, start + 64))


def test_spans_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 6, dtype=torch.float16)
    start = tensor.data_ptr()
    whole = Span(start, start + 48)
    for view, span in (
        (tensor[1:3, 2:4], Span(start + 16, start + 32)),
        (tensor[3, 2].expand(7), Span(start + 40, start + 42)),
        (tensor[2:, 4:].T.numpy()[::-1], Span(start + 32, start + 48)),
    ):
        assert held(view, view.data_ptr() if hasattr(view, "data_ptr") else 0, False)[1:3] == (span, whole)
    assert held(torch.zeros(0), 0, False) == Held(0, Span(0, 0), Span(0, 0), False)


@triton.jit
def strided(x, y, sx, sy, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at * sy, tl.load(x + at * sx, mask=inside) * 2 + 1, mask=inside)


def arrays_of(kind: str, size: int) -> tuple[Any, Array]:
    """An array or a tensor, and the numpy array with the same memory."""
    x = RNG.integers(-99, 99, size).astype(np.int32)
    if kind == "numpy":
        return x, x
    tensor = pytest.importorskip("torch").tensor(x)
    return tensor, tensor.numpy()


@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("strides", [(-1, 1), (1, -1), (-3, -2), (0, 1), (-1, 2), (2, -1)], ids=str)
def test_strides_that_leave_the_slice(queue: Queue, strides: tuple[int, int], kind: str, codegen: str) -> None:
    """The kernel is given a few elements in the middle; it reads and writes around them what the CPU does."""
    sx, sy = strides
    (x, shown), (y, written) = arrays_of(kind, 400), arrays_of(kind, 400)
    expected = written.copy()
    for i in range(50):
        expected[200 + i * sy] = shown[200 + i * sx] * 2 + 1
    before = shown.copy()
    strided[(2,)](x[200:203], y[200:203], sx, sy, 50, 32, target="xe:pvc", num_warps=1, codegen=codegen)
    np.testing.assert_array_equal(written, expected)
    np.testing.assert_array_equal(shown, before)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_views(queue: Queue, kind: str) -> None:
    """Columns of a matrix, a part that the kernel takes for the whole, and one array for both sides."""
    x, shown = arrays_of(kind, 600)
    matrix, numbers = x.reshape(20, 30), shown.reshape(20, 30)
    y, written = arrays_of(kind, 40)
    strided[(1,)](matrix[:, 7], y[3:5], 30, 1, 20, 32, target="xe:pvc", num_warps=1)
    np.testing.assert_array_equal(written[3:23], numbers[:, 7] * 2 + 1)
    expected = shown.copy()
    expected[300:350] = expected[100:50:-1] * 2 + 1
    strided[(2,)](x[100:101], x[300:310], -1, 1, 50, 32, target="xe:pvc", num_warps=1)
    np.testing.assert_array_equal(shown, expected)


def test_turned_views_of_numpy(queue: Queue) -> None:
    """Views with strides below zero, and one that the kernel leaves at both ends."""
    x, y = RNG.integers(-99, 99, 100).astype(np.int16), np.zeros(100, np.int16)
    strided[(1,)](x[::-1], y, -1, 1, 30, 32, target="xe:pvc", num_warps=1)
    np.testing.assert_array_equal(y[:30], x[:69:-1] * 2 + 1)
    middle = x[40:60][::-2]
    strided[(1,)](middle, y[99:], -2, -1, 30, 32, target="xe:pvc", num_warps=1)
    np.testing.assert_array_equal(y[:69:-1], x[59::-2][:30] * 2 + 1)


def test_bytes_around_what_is_written_stay(queue: Queue) -> None:
    """What the host changes in the same memory while the kernel runs is not overwritten by what was there before."""
    whole = np.arange(100, dtype=np.int32)
    start = whole.ctypes.data
    copies = Memory(queue, [held(whole[40:50], start + 160, True)])
    place = copies.place(start)
    there = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int32 * 100).from_address(place))
    np.testing.assert_array_equal(there, whole)
    there[[5, 45]] = -1
    whole[90] = -2
    copies.copy_back()
    expected = np.arange(100)
    expected[[5, 45]], expected[90] = -1, -2
    np.testing.assert_array_equal(whole, expected)
