"""Loads, stores and atomics, and every way in which they can go wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.errors import ArgumentError, GridError
from mltriton.executor import Options, from_bfloat16, to_bfloat16
from mltriton.executor.faults import Misaligned, OutOfBounds, ReadOnly
from mltriton.executor.segments import Memory


def copy(size: int, type: str = "f32", offset: str = "i32", mask: str = "") -> str:
    """Copies `size` elements per program from %x to %y; `mask` is a line that defines %m."""
    pointers = f"tensor<{size}x!tt.ptr<{type}>>"
    tail = ", %m" if mask else ""
    return f"""
    tt.func @copy(%x: !tt.ptr<{type}>, %y: !tt.ptr<{type}>, %n: i32) {{
      %p = tt.get_program_id x : i32
      %c = arith.constant {size} : i32
      %b = arith.muli %p, %c : i32
      %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>
      %s = tt.splat %b : i32 -> tensor<{size}xi32>
      %i = arith.addi %s, %r : tensor<{size}xi32>
      %ns = tt.splat %n : i32 -> tensor<{size}xi32>
      {mask}
      %xs = tt.splat %x : !tt.ptr<{type}> -> {pointers}
      %ys = tt.splat %y : !tt.ptr<{type}> -> {pointers}
      %xp = tt.addptr %xs, %i : {pointers}, tensor<{size}xi32>
      %yp = tt.addptr %ys, %i : {pointers}, tensor<{size}xi32>
      %v = tt.load %xp{tail} : {pointers}
      tt.store %yp, %v{tail} : {pointers}
      tt.return
    }}"""


LESS_THAN_N = "%m = arith.cmpi slt, %i, %ns : tensor<16xi32>"


def test_masked_copy_over_a_grid(execute: Any) -> None:
    x, y = np.arange(100, dtype=np.float32), np.full(100, -1, np.float32)
    execute(copy(16, mask=LESS_THAN_N), [x, y, 90], (7,))
    np.testing.assert_array_equal(y, np.where(np.arange(100) < 90, x, -1))


def test_chosen_programs_run_in_order(execute: Any) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    execute(copy(16), [x, y, 0], (4,), programs=[3, (1, 0, 0)])
    assert (y != 0).reshape(4, 16).any(axis=1).tolist() == [False, True, False, True]


def test_out_of_bounds_names_place_element_and_program(execute: Any) -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(112, np.float32)
    with pytest.raises(OutOfBounds) as caught:
        execute(copy(16), [x, y, 0], (7,))
    fault = caught.value
    assert fault.program == (6, 0, 0)
    assert fault.operation == "tt.load"
    assert fault.file == "program.mlir"
    assert fault.line == 15
    assert "element (4,)" in str(fault)
    assert "x, which has 400 bytes" in str(fault)


def test_out_of_bounds_before_the_beginning(execute: Any) -> None:
    y = np.zeros(100, np.float32)
    mask = "%k = arith.constant dense<-1> : tensor<16xi32>\n%m = arith.cmpi sgt, %i, %k : tensor<16xi32>"
    text = copy(16, mask=mask).replace("arith.constant 16", "arith.constant -16").replace("dense<-1>", "dense<-100>")
    with pytest.raises(OutOfBounds, match="64 bytes before"):
        execute(text, [y, np.zeros(100, np.float32), 0], (2,))


def test_views_may_reach_into_their_base(execute: Any) -> None:
    base = np.arange(64, dtype=np.float32)
    y = np.zeros(16, np.float32)
    execute(copy(16), [base[40:], y, 0])
    assert y.tolist() == list(range(40, 56))
    with pytest.raises(OutOfBounds):
        execute(copy(16), [base[56:], y, 0])


def test_arguments_of_one_buffer_see_each_other(execute: Any) -> None:
    base = np.arange(32, dtype=np.float32)
    execute(copy(16), [base[:16], base[16:], 0])
    assert base[16:].tolist() == list(range(16))


def test_read_only_arrays_are_not_written(execute: Any) -> None:
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    y.flags.writeable = False
    with pytest.raises(ReadOnly, match="y, which is read-only"):
        execute(copy(16), [x, y, 0])


def test_misaligned(execute: Any) -> None:
    raw = np.zeros(65 * 4 + 2, np.uint8)
    shifted = raw[2:66].view(np.uint8)
    text = copy(16).replace("%xs = tt.splat %x", "%q = tt.bitcast %x0 : !tt.ptr<i8> -> !tt.ptr<f32>\n%xs = tt.splat %q")
    text = text.replace("%x: !tt.ptr<f32>", "%x0: !tt.ptr<i8>")
    offset = (-shifted.ctypes.data) % 4 or 4
    with pytest.raises(Misaligned, match="multiple of 4"):
        execute(text, [raw[2 + offset + 2 :], np.zeros(16, np.float32), 0])


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("i1", np.array([0, 1] * 8, np.uint8)),
        ("i8", np.arange(16, dtype=np.int8)),
        ("i64", np.arange(16, dtype=np.int64) << 40),
        ("f16", np.arange(16, dtype=np.float16)),
        ("f64", np.arange(16, dtype=np.float64)),
        ("bf16", to_bfloat16(np.arange(16, dtype=np.float32))),
        ("f8E5M2", np.arange(16, dtype=np.uint8)),
    ],
)
def test_every_type_is_copied_exactly(execute: Any, type: str, values: Any) -> None:
    out = np.zeros_like(values)
    execute(copy(16, type), [values, out, 0])
    np.testing.assert_array_equal(out, values)


def test_masked_off_elements_are_zero_or_other(execute: Any) -> None:
    x, y = np.arange(16, dtype=np.float32) + 1, np.full(16, -1, np.float32)
    text = copy(16, mask=LESS_THAN_N).replace("tt.store %yp, %v, %m", "tt.store %yp, %v")
    execute(text, [x, y, 3])
    assert y.tolist() == [1, 2, 3] + [0] * 13
    other = text.replace(
        "%v = tt.load %xp, %m", "%o = arith.constant dense<9.0> : tensor<16xf32>\n%v = tt.load %xp, %m, %o"
    )
    execute(other, [x, y, 3])
    assert y.tolist() == [1, 2, 3] + [9] * 13


def test_pointers_into_several_arguments() -> None:
    memory = Memory()
    first, second = (memory.add(name, np.arange(n, dtype=np.uint8)) for name, n in (("a", 4), ("b", 8)))
    addresses = np.array([[second.start + 7, first.start], [first.start + 3, second.start]])
    np.testing.assert_array_equal(memory.load_bits(addresses, np.dtype("u1")), [[7, 0], [3, 0]])
    memory.store_bits(addresses, np.array([[1, 2], [3, 4]], np.uint8), np.dtype("u1"))
    assert (first.data.tolist(), second.data.tolist()) == ([2, 1, 2, 3], [4, 1, 2, 3, 4, 5, 6, 1])
    with pytest.raises(OutOfBounds, match="b, which has 8 bytes"):
        memory.load_bits(np.array([first.start, second.start + 8]), np.dtype("u1"))


def test_addresses_of_nothing() -> None:
    memory = Memory()
    memory.add("a", np.zeros(4, np.uint8))
    for address in (0, -8, 1 << 60):
        with pytest.raises(OutOfBounds, match="no memory is there"):
            memory.load_bits(np.int64(address), np.dtype("f4"))


@pytest.mark.parametrize("strides", [(4, 1), (1, 4), (-4, 1), (0, 1), (8, -2)])
def test_windows_are_views_of_strided_memory(strides: tuple[int, int]) -> None:
    memory = Memory()
    numbers = np.arange(64, dtype=np.int32)
    segment = memory.add("a", numbers.view(np.uint8))
    window = memory.window(segment.start + 4 * 32, (3, 4), strides, np.dtype("i4"), write=True)
    expected = [[32 + i * strides[0] + j * strides[1] for j in range(4)] for i in range(3)]
    assert window.tolist() == expected
    window[0, 0] = -1
    assert numbers[32] == -1


@pytest.mark.parametrize(("at", "strides"), [(60, (1, 1)), (2, (-1, 0)), (0, (16, 1)), (0, (1, -1))])
def test_windows_stay_inside(at: int, strides: tuple[int, int]) -> None:
    memory = Memory()
    segment = memory.add("a", np.zeros(64 * 4, np.uint8))
    with pytest.raises(OutOfBounds):
        memory.window(segment.start + 4 * at, (5, 4), strides, np.dtype("i4"), write=False)


def test_torch_tensors_are_changed_in_place(execute: Any) -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(32, dtype=torch.bfloat16)
    out = torch.zeros(16, dtype=torch.bfloat16)
    execute(copy(16, "bf16"), [base[8:], out, 0])
    assert out.tolist() == list(range(8, 24))


def test_arguments_must_fit(execute: Any) -> None:
    x = np.zeros(16, np.float32)
    for args, message in [
        ([x, x], "takes 3 arguments and got 2"),
        ([x, 3, 0], "y is no array"),
        ([x, x.astype(np.float64), 0], "y has another element type"),
        ([x, x.view(np.int32), 0], "y has another element type"),
        ([x, x, 1.5], "n is no integer"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            execute(copy(16), args)


@pytest.mark.parametrize("grid", [(), (0,), (1, 2, 3, 4), (1, -1)])
def test_grids_must_be_positive(execute: Any, grid: Any) -> None:
    with pytest.raises(GridError):
        execute(copy(16), [np.zeros(16, np.float32)] * 2 + [0], grid)


def atomic(operation: str, type: str) -> str:
    pointers = f"tensor<8x!tt.ptr<{type}>>"
    return f"""
    tt.func @f(%x: !tt.ptr<{type}>, %where: !tt.ptr<i32>, %v: !tt.ptr<{type}>, %old: !tt.ptr<{type}>) {{
      %i = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32>
      %ws = tt.splat %where : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %wp = tt.addptr %ws, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      %w = tt.load %wp : tensor<8x!tt.ptr<i32>>
      %xs = tt.splat %x : !tt.ptr<{type}> -> {pointers}
      %a = tt.addptr %xs, %w : {pointers}, tensor<8xi32>
      %vs = tt.splat %v : !tt.ptr<{type}> -> {pointers}
      %vp = tt.addptr %vs, %i : {pointers}, tensor<8xi32>
      %n = tt.load %vp : {pointers}
      %os = tt.splat %old : !tt.ptr<{type}> -> {pointers}
      %op = tt.addptr %os, %i : {pointers}, tensor<8xi32>
      %c = arith.constant dense<6> : tensor<8xi32>
      %m = arith.cmpi slt, %i, %c : tensor<8xi32>
      {operation}
      tt.store %op, %r : {pointers}
      tt.return
    }}"""


@pytest.mark.parametrize("where", [[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 0, 1, 2, 2, 2]])
@pytest.mark.parametrize(
    ("kind", "update"),
    [
        ("add", lambda a, b: a + b),
        ("max", max),
        ("umin", lambda a, b: min(a, b, key=lambda v: v & 0xFFFFFFFF)),
        ("exch", lambda a, b: b),
    ],
)
def test_atomics_one_after_the_other(execute: Any, kind: str, update: Any, where: list[int]) -> None:
    x, values, old = np.arange(8, dtype=np.int32) - 4, np.arange(8, dtype=np.int32) * 3 - 8, np.zeros(8, np.int32)
    expected, seen = x.tolist(), [0] * 8
    for i in range(6):
        seen[i] = expected[where[i]]
        expected[where[i]] = update(expected[where[i]], int(values[i]))
    signature = "(tensor<8x!tt.ptr<i32>>, tensor<8xi32>, tensor<8xi1>) -> tensor<8xi32>"
    text = atomic(f"%r = tt.atomic_rmw {kind}, acq_rel, gpu, %a, %n, %m : {signature}", "i32")
    execute(text, [x, np.array(where, np.int32), values, old])
    assert x.tolist() == expected
    assert old.tolist() == seen


def test_atomic_float_addition_rounds_each_time(execute: Any) -> None:
    x, where = to_bfloat16(np.array([256.0], np.float32)), np.zeros(8, np.int32)
    values, old = to_bfloat16(np.ones(8, np.float32)), np.zeros(8, np.uint16)
    signature = "(tensor<8x!tt.ptr<bf16>>, tensor<8xbf16>, tensor<8xi1>) -> tensor<8xbf16>"
    text = atomic(f"%r = tt.atomic_rmw fadd, acq_rel, gpu, %a, %n, %m : {signature}", "bf16")
    execute(text, [x, where, values, old])
    assert from_bfloat16(x).tolist() == [256.0]


def test_compare_and_swap(execute: Any) -> None:
    x, where = np.array([5, 7], np.int32), np.array([0, 0, 1, 1, 0, 0, 0, 0], np.int32)
    values, old = np.array([5, 5, 1, 7, 9, 9, 9, 9], np.int32), np.zeros(8, np.int32)
    operation = """%k = arith.constant dense<100> : tensor<8xi32>
      %r = tt.atomic_cas acq_rel, gpu, %a, %n, %k
          : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>"""
    execute(atomic(operation, "i32"), [x, where, values, old])
    assert x.tolist() == [100, 100]
    assert old.tolist() == [5, 100, 7, 7, 100, 100, 100, 100]


def block_copy(check: str, padding: str = "") -> str:
    """A 4 x 8 block of a tensor at offsets given as arguments, through a block pointer, to a dense 4 x 8 tensor."""
    attributes = f"boundaryCheck = array<i32: {check}>{padding}" if check else ""
    return f"""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %h: i64, %w: i64, %s: i64, %i: i32, %j: i32) {{
      %one = arith.constant 1 : i64
      %four = arith.constant 4 : i64
      %eight = arith.constant 8 : i64
      %zero = arith.constant 0 : i32
      %p0 = tt.make_tensor_ptr %x, [%h, %w], [%s, %one], [%zero, %zero]
          {{order = array<i32: 1, 0>}} : !tt.ptr<tensor<4x8xf32>>
      %p = tt.advance %p0, [%i, %j] : !tt.ptr<tensor<4x8xf32>>
      %v = tt.load %p {{{attributes}}} : !tt.ptr<tensor<4x8xf32>>
      %q = tt.make_tensor_ptr %y, [%four, %eight], [%eight, %one], [%zero, %zero]
          {{order = array<i32: 1, 0>}} : !tt.ptr<tensor<4x8xf32>>
      tt.store %q, %v : !tt.ptr<tensor<4x8xf32>>
      tt.return
    }}"""


@pytest.mark.parametrize(("i", "j"), [(0, 0), (5, 6), (-2, -3), (100, 0)])
def test_block_pointer_with_boundary_check(execute: Any, i: int, j: int) -> None:
    x, y = np.arange(1, 71, dtype=np.float32).reshape(7, 10), np.full((4, 8), -1, np.float32)
    execute(block_copy("0, 1"), [x, y, 7, 10, 10, i, j])
    padded = np.zeros((300, 300), np.float32)
    padded[100:107, 100:110] = x
    np.testing.assert_array_equal(y, padded[100 + i : 104 + i, 100 + j : 108 + j])


def test_block_pointer_pads_with_nan(execute: Any) -> None:
    x, y = np.ones((7, 10), np.float32), np.zeros((4, 8), np.float32)
    execute(block_copy("0, 1", ", padding = 2 : i32"), [x, y, 7, 10, 10, 5, 6])
    assert np.isnan(y).sum() == 32 - 2 * 4
    assert (y[:2, :4] == 1).all()


def test_block_pointer_without_check_is_still_checked_by_memory(execute: Any) -> None:
    x, y = np.ones((7, 10), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(OutOfBounds):
        execute(block_copy("1"), [x, y, 7, 10, 10, 5, 0])


def test_block_pointer_store_drops_what_lies_outside(execute: Any) -> None:
    text = """
    tt.func @f(%x: !tt.ptr<f32>) {
      %three = arith.constant 3 : i64
      %one = arith.constant 1 : i64
      %zero = arith.constant 0 : i32
      %v = arith.constant dense<2.0> : tensor<4x4xf32>
      %p = tt.make_tensor_ptr %x, [%three, %three], [%three, %one], [%zero, %zero]
          {order = array<i32: 1, 0>} : !tt.ptr<tensor<4x4xf32>>
      tt.store %p, %v {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<4x4xf32>>
      tt.return
    }"""
    x = np.zeros(10, np.float32)
    execute(text, [x])
    assert x.tolist() == [2] * 9 + [0]


def test_descriptors(execute: Any) -> None:
    text = """
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %h: i32, %w: i32, %s: i64, %i: i32, %j: i32) {
      %one = arith.constant 1 : i64
      %d = tt.make_tensor_descriptor %x, [%h, %w], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<4x8xf32>>
      %e = tt.make_tensor_descriptor %y, [%h, %w], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<4x8xf32>>
      %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<4x8xf32>> -> tensor<4x8xf32>
      tt.descriptor_store %e[%i, %j], %v : !tt.tensordesc<tensor<4x8xf32>>, tensor<4x8xf32>
      tt.return
    }"""
    x, y = np.random.default_rng(0).normal(size=(7, 10)).astype(np.float32), np.zeros((7, 10), np.float32)
    for i in (0, 4):
        for j in (0, 8):
            execute(text, [x, y, 7, 10, 10, i, j])
    np.testing.assert_array_equal(x, y)


def test_options_are_checked_by_name() -> None:
    assert Options(order="backward").order == "backward"
    with pytest.raises(TypeError):
        Options(unknown=True)  # type: ignore[call-arg]
