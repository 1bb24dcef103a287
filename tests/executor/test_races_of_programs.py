"""Races in programs whose blocks the compiler cuts between warps: planted ones are found with both lines, and what is
ordered by a barrier, done by one warp alone or atomic is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import TritonError
from mltriton.executor.faults import DataRace
from mltriton.tools.verify import VerifyResult, verify_kernel
from warps.launches import line_of


@triton.jit
def columns_after_rows(x, out):
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + i, tl.load(x + i))  # ONE
    z = tl.load(out + i)  # OTHER
    tl.store(out + 512 + tl.arange(0, 32), tl.min(z, axis=0))


@triton.jit
def a_neighbour(x, out):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i))  # ONE
    tl.store(out + 512 + i, tl.load(out + (i + 64) % 256))  # OTHER


@triton.jit
def reads_before_another_writes(x, out):
    i = tl.arange(0, 256)
    y = tl.load(out + 255 - i)  # ONE
    tl.store(out + i, y + 1)  # OTHER


@triton.jit
def a_product_in_place(x, out):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    right = tl.load(out + i)  # ONE
    tl.store(out + i, tl.dot(tl.load(x + i), right))  # OTHER


@triton.jit
def one_element_for_all(x, out):
    tl.store(out, tl.load(x))  # ONE
    tl.store(out + 1 + tl.arange(0, 64), tl.load(out) + tl.arange(0, 64))  # OTHER


@triton.jit
def one_element_twice(x, out):
    tl.store(out + tl.arange(0, 256) % 32, tl.load(x + tl.arange(0, 256)))  # ONE OTHER


@triton.jit
def the_next_iteration(x, out):
    i = tl.arange(0, 256)
    for step in range(3):
        y = tl.load(out + (i + 64 * step) % 256)  # OTHER
        tl.store(out + i, y + tl.load(x + i))  # ONE


@triton.jit
def a_block_pointer(x, out):
    p = tl.make_block_ptr(out, (32, 32), (32, 1), (0, 0), (16, 32), (1, 0))
    tl.store(p, tl.load(tl.make_block_ptr(x, (32, 32), (32, 1), (0, 0), (16, 32), (1, 0))))  # ONE
    y = tl.load(tl.advance(p, (1, 0)))  # OTHER
    tl.store(tl.advance(p, (16, 0)), y)


@triton.jit
def a_descriptor(x, out):
    d = tl.make_tensor_descriptor(out, (32, 32), (32, 1), (16, 32))
    d.store([0, 0], tl.make_tensor_descriptor(x, (32, 32), (32, 1), (16, 32)).load([0, 0]))  # ONE
    y = d.load([0, 0])  # OTHER
    tl.store(out + 512 + tl.arange(0, 32), tl.sum(y, axis=0))


@triton.jit
def an_atomic_and_a_load(x, out):
    i = tl.arange(0, 256)
    tl.atomic_add(out + (i + 64) % 256, tl.load(x + i))  # ONE
    tl.store(out + 512 + i, tl.load(out + i))  # OTHER


RACES = [
    columns_after_rows,
    a_neighbour,
    reads_before_another_writes,
    a_product_in_place,
    one_element_for_all,
    one_element_twice,
    the_next_iteration,
    a_block_pointer,
    a_descriptor,
    an_atomic_and_a_load,
]


def _verified(kernel: Any, warps: int, target: str = "generic") -> VerifyResult:
    arrays = {name: np.random.default_rng(0).random(1024).astype(np.float32) for name in ("x", "out")}
    return verify_kernel(kernel, args=arrays, grid=(1,), target=target, num_warps=warps)


def _fault_of(kernel: Any, warps: int, target: str = "generic") -> TritonError | None:
    wrong = _verified(kernel, warps, target).first_wrong
    return wrong.fault if wrong is not None else None


@pytest.mark.parametrize("warps", [2, 4])
@pytest.mark.parametrize("kernel", RACES, ids=lambda kernel: kernel.__name__)
def test_a_race_is_found_with_both_lines(kernel: Any, warps: int) -> None:
    fault = _fault_of(kernel, warps)
    assert isinstance(fault, DataRace), fault
    assert fault.other is not None
    assert {fault.line, fault.other.line} == {line_of(kernel, "ONE"), line_of(kernel, "OTHER")}


@pytest.mark.parametrize("kernel", [columns_after_rows, a_descriptor], ids=lambda kernel: kernel.__name__)
def test_a_race_is_found_on_xe(kernel: Any) -> None:
    pytest.importorskip("dpctl")
    assert isinstance(_fault_of(kernel, 4, "xe:pvc"), DataRace)


@pytest.mark.parametrize("kernel", RACES, ids=lambda kernel: kernel.__name__)
def test_one_warp_does_not_race_with_itself(kernel: Any) -> None:
    result = _verified(kernel, 1)
    assert result.ok, result


@triton.jit
def ordered_by_barriers(x, out):
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    j = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i))
    tl.debug_barrier()
    z = tl.min(tl.load(out + i), axis=0)
    for step in range(3):
        tl.debug_barrier()
        y = tl.load(out + (j + 64 * step) % 256)
        tl.debug_barrier()
        tl.store(out + j, y + tl.load(x + j))
    tl.store(out + 512 + tl.arange(0, 32), z)


@triton.jit
def the_same_index(x, out):
    """What a warp writes only it reads and writes again."""
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for _ in range(3):
        tl.store(out + i, tl.load(out + i) * 2 + tl.load(x + i))
    tl.store(out + i, tl.load(out + i) + 1, mask=i % 3 == 0)


@triton.jit
def atomics_of_all(x, out):
    i = tl.arange(0, 256)
    for _ in range(2):
        tl.atomic_add(out + i % 8, tl.load(x + i))
    tl.atomic_max(out + i % 8, 1.0)


@triton.jit
def one_pointer_in_two_roles(x, out):
    """What is stored and loaded through one block pointer is the same warp's."""
    p = tl.make_block_ptr(out, (32, 32), (32, 1), (0, 0), (32, 32), (1, 0))
    q = tl.make_block_ptr(x, (32, 32), (32, 1), (0, 0), (32, 32), (1, 0))
    tl.store(p, tl.load(q) * 2)
    y = tl.dot(tl.load(q), tl.trans(tl.load(q)), tl.load(p))
    tl.store(p, y + tl.sum(tl.load(p), axis=0)[None, :])


ORDERED = [ordered_by_barriers, the_same_index, atomics_of_all, one_pointer_in_two_roles]


@pytest.mark.parametrize("warps", [2, 4, 8])
@pytest.mark.parametrize("kernel", ORDERED, ids=lambda kernel: kernel.__name__)
def test_what_is_ordered_is_no_race(kernel: Any, warps: int) -> None:
    result = _verified(kernel, warps)
    assert result.ok, result


@triton.jit
def a_neighbour_of_a_lane(x, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i), mask=i < 60)  # ONE
    tl.store(out + 512 + i, tl.load(out + (i ^ 1), mask=i < 50))  # OTHER


@triton.jit
def rows_after_columns(x, out):
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    j = tl.arange(0, 512)
    tl.store(out + i, tl.load(x + i))  # ONE
    tl.store(out + 512 + j, tl.load(out + (j * 32 + j // 16) % 512))  # OTHER


@triton.jit
def stores_of_two_lanes(x, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i))  # ONE
    tl.store(out + (i ^ 2), tl.load(x + 64 + i))  # OTHER


@triton.jit
def an_atomic_of_another_lane(x, out):
    i = tl.arange(0, 64)
    tl.atomic_add(out + i, tl.load(x + i))  # ONE
    tl.store(out + 512 + i, tl.load(out + (i ^ 1)))  # OTHER


@triton.jit
def a_block_of_another_lane(x, out):
    d = tl.make_tensor_descriptor(out, (32, 32), (32, 1), (16, 16))
    d.store([0, 0], tl.make_tensor_descriptor(x, (32, 32), (32, 1), (16, 16)).load([0, 0]))  # ONE
    d.store([16, 1], d.load([0, 1]))  # OTHER


RACES_OF_LANES = [
    a_neighbour_of_a_lane,
    rows_after_columns,
    stores_of_two_lanes,
    an_atomic_of_another_lane,
    a_block_of_another_lane,
]


@pytest.mark.parametrize("kernel", RACES_OF_LANES, ids=lambda kernel: kernel.__name__)
def test_a_race_of_lanes_is_found_with_both_lines(kernel: Any) -> None:
    pytest.importorskip("dpctl")
    fault = _fault_of(kernel, 1, "xe:pvc")
    assert isinstance(fault, DataRace), fault
    assert "lane" in fault.message
    assert fault.other is not None
    assert {fault.line, fault.other.line} == {line_of(kernel, "ONE"), line_of(kernel, "OTHER")}


@triton.jit
def lanes_in_order(x, out):
    """Reads before writes, scalars of all lanes, the same lanes twice, and barriers."""
    i = tl.arange(0, 64)
    y = tl.load(out + (i ^ 1))
    tl.store(out + i, y + tl.load(x + i))
    tl.store(out + i, tl.load(out + i) * 2, mask=i % 3 == 0)
    tl.debug_barrier()
    tl.store(out + 512, tl.sum(tl.load(out + (i ^ 5))))
    tl.store(out + 513, tl.load(out + 512))
    tl.atomic_add(out + 600 + i, y)
    tl.atomic_add(out + 600 + (i ^ 1), y)
    tl.debug_barrier()
    tl.store(out + (i ^ 3), tl.load(x + i))


@pytest.mark.parametrize("kernel", [lanes_in_order, *ORDERED], ids=lambda kernel: kernel.__name__)
def test_lanes_in_order_do_not_race(kernel: Any) -> None:
    pytest.importorskip("dpctl")
    result = _verified(kernel, 1, "xe:pvc")
    assert result.ok, result
