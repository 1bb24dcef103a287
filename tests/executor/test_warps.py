"""Warps of one program: ids, barriers, shared memory, races, asynchronous copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.executor import Options
from mltriton.executor.faults import (
    BarrierDivergence,
    DataRace,
    InvalidOperation,
    OutOfBounds,
    Unfinished,
    Uninitialised,
)


def warps(count: int, body: str) -> str:
    """A module at level `warp` with that many warps."""
    attributes = f'"mltriton.level" = "warp", "ttg.num-warps" = {count} : i32, "ttg.threads-per-warp" = 16 : i32'
    return f"module attributes {{{attributes}}} {{\n{body}\n}}"


# Each warp writes its id into row `id` of shared memory and reads row `(id + 1) % 4`.
NEIGHBOUR = """
tt.func @neighbour(%p: !tt.ptr<i32>) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %idx = gpu.subgroup_id : index
  %id = arith.index_cast %idx : index to i32
  %m = ttg.local_alloc : () -> !ttg.memdesc<4x8xi32>
  %mine = ttg.memdesc_subview %m[%id, %zero] : !ttg.memdesc<4x8xi32> -> !ttg.memdesc<8xi32>
  %v = tt.splat %id : i32 -> tensor<8xi32>
  ttg.local_store %v, %mine : tensor<8xi32> -> !ttg.memdesc<8xi32>
  {barrier}
  %n = arith.addi %id, %one : i32
  %next = arith.remsi %n, %four : i32
  %other = ttg.memdesc_subview %m[%next, %zero] : !ttg.memdesc<4x8xi32> -> !ttg.memdesc<8xi32>
  %w = ttg.local_load %other : !ttg.memdesc<8xi32> -> tensor<8xi32>
  %sum = "tt.reduce"(%w) <{{axis = 0 : i32}}> ({{
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }}) : (tensor<8xi32>) -> i32
  %q = tt.addptr %p, %id : !tt.ptr<i32>, i32
  tt.store %q, %sum : !tt.ptr<i32>
  tt.return
}}"""


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_warps_exchange_through_shared_memory(execute: Any, order: Any) -> None:
    out = np.zeros(4, np.int32)
    execute(warps(4, NEIGHBOUR.format(barrier="gpu.barrier")), [out], options=Options(order=order, uninitialised=True))
    assert out.tolist() == [8, 16, 24, 0]


def test_a_missing_barrier_is_a_race(execute: Any) -> None:
    text = warps(4, NEIGHBOUR.format(barrier=""))
    with pytest.raises(DataRace) as caught:
        execute(text, [np.zeros(4, np.int32)])
    assert "races with warp" in str(caught.value)
    assert "program.mlir:" in str(caught.value.hint)
    assert caught.value.line is not None


def test_a_race_is_seen_in_every_order(execute: Any) -> None:
    for order in ("forward", "backward", "shuffled"):
        with pytest.raises(DataRace):
            execute(warps(4, NEIGHBOUR.format(barrier="")), [np.zeros(4, np.int32)], options=Options(order=order))


def test_a_read_of_what_nobody_wrote(execute: Any) -> None:
    text = warps(4, NEIGHBOUR.format(barrier="")).replace(
        "ttg.local_store %v, %mine : tensor<8xi32> -> !ttg.memdesc<8xi32>", ""
    )
    out = np.zeros(4, np.int32)
    with pytest.raises(Uninitialised, match="element"):
        execute(text, [out], options=Options(uninitialised=True))
    execute(text, [out])
    assert out.tolist() == [-8] * 4  # poison


@pytest.mark.parametrize("limit", ["2", "3"])
def test_warps_must_meet_at_the_same_barrier(execute: Any, limit: str) -> None:
    text = f"""
    tt.func @f() {{
      %i = gpu.subgroup_id : index
      %n = arith.constant {limit} : index
      %c = arith.cmpi slt, %i, %n : index
      scf.if %c {{
        gpu.barrier
      }}
      tt.return
    }}"""
    with pytest.raises(BarrierDivergence, match="warp 3 has ended"):
        execute(warps(4, text), [])


def test_warps_at_different_barriers(execute: Any) -> None:
    text = """
    tt.func @f() {
      %i = gpu.subgroup_id : index
      %n = arith.constant 2 : index
      %c = arith.cmpi slt, %i, %n : index
      scf.if %c {
        gpu.barrier
      } else {
        gpu.barrier
      }
      tt.return
    }"""
    with pytest.raises(BarrierDivergence, match=r"warp 1 waits at program.mlir:\d+"):
        execute(warps(4, text), [])


def test_barriers_inside_loops(execute: Any) -> None:
    # Eight rounds of passing a value on to the next warp, double buffered.
    text = """
    tt.func @ring(%p: !tt.ptr<i32>) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %four = arith.constant 4 : i32
      %eight = arith.constant 8 : i32
      %idx = gpu.subgroup_id : index
      %id = arith.index_cast %idx : index to i32
      %m = ttg.local_alloc : () -> !ttg.memdesc<2x4x1xi32>
      %n = arith.addi %id, %one : i32
      %next = arith.remsi %n, %four : i32
      %r = scf.for %k = %zero to %eight step %one iter_args(%v = %id) -> (i32) : i32 {
        %slot = arith.remsi %k, %two : i32
        %mine = ttg.memdesc_subview %m[%slot, %next, %zero] : !ttg.memdesc<2x4x1xi32> -> !ttg.memdesc<1xi32>
        %s = tt.splat %v : i32 -> tensor<1xi32>
        ttg.local_store %s, %mine : tensor<1xi32> -> !ttg.memdesc<1xi32>
        gpu.barrier
        %here = ttg.memdesc_subview %m[%slot, %id, %zero] : !ttg.memdesc<2x4x1xi32> -> !ttg.memdesc<1xi32>
        %l = ttg.local_load %here : !ttg.memdesc<1xi32> -> tensor<1xi32>
        %u = tt.unsplat %l : tensor<1xi32>
        %w = arith.addi %u, %four : i32
        scf.yield %w : i32
      }
      %q = tt.addptr %p, %id : !tt.ptr<i32>, i32
      tt.store %q, %r : !tt.ptr<i32>
      tt.return
    }"""
    out = np.zeros(4, np.int32)
    execute(warps(4, text), [out], options=Options(order="shuffled", seed=3, uninitialised=True))
    assert out.tolist() == [32, 33, 34, 35]  # eight steps around a ring of four end where they began
    with pytest.raises(DataRace):  # with a single buffer a fast warp overwrites what a slow one has not read
        single = text.replace("%slot = arith.remsi %k, %two", "%slot = arith.muli %k, %zero")
        execute(warps(4, single), [out])


def test_the_same_value_written_twice_is_no_race(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<f32>) {
      %one = arith.constant dense<1.0> : tensor<4xf32>
      %m = ttg.local_alloc %one : (tensor<4xf32>) -> !ttg.memdesc<4xf32>
      gpu.barrier
      %v = ttg.local_load %m : !ttg.memdesc<4xf32> -> tensor<4xf32>
      tt.return
    }"""
    execute(warps(4, text), [np.zeros(4, np.float32)], options=Options(uninitialised=True))


def test_shared_memory_is_each_program_s_own(execute: Any) -> None:
    text = warps(4, NEIGHBOUR.format(barrier="gpu.barrier").replace("%q = tt.addptr", "%unused = tt.addptr")).replace(
        "tt.store %q", "tt.store %unused"
    )
    out = np.zeros(4, np.int32)
    execute(text, [out], (3,), options=Options(uninitialised=True))
    assert out.tolist() == [8, 16, 24, 0]


def test_transposed_and_windowed_views(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<f32>, %o: i32) {
      %zero = arith.constant 0 : i32
      %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
      %m = ttg.local_alloc %c : (tensor<2x4xf32>) -> !ttg.memdesc<2x4xf32>
      %t = ttg.memdesc_trans %m : !ttg.memdesc<2x4xf32> -> !ttg.memdesc<4x2xf32>
      %w = ttg.memdesc_subview %t[%o, %zero] : !ttg.memdesc<4x2xf32> -> !ttg.memdesc<2x2xf32>
      %v = ttg.local_load %w : !ttg.memdesc<2x2xf32> -> tensor<2x2xf32>
      %r = tt.reshape %v : tensor<2x2xf32> -> tensor<4xf32>
      %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
      %b = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
      %a = tt.addptr %b, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
      tt.store %a, %r : tensor<4x!tt.ptr<f32>>
      tt.return
    }"""
    out = np.zeros(4, np.float32)
    execute(warps(1, text), [out, 1])
    assert out.tolist() == [2, 6, 3, 7]
    with pytest.raises(OutOfBounds, match="a window"):
        execute(warps(1, text), [out, 3])


def test_elements_of_shared_memory_chosen_by_index(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<f32>) {
      %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
      %n = arith.constant dense<[[2, 0], [0, 0]]> : tensor<2x2xi32>
      %m = ttg.local_alloc %c : (tensor<3x2xf32>) -> !ttg.memdesc<3x2xf32>
      %v = ttg.local_gather %m[%n] {axis = 0 : i32} : !ttg.memdesc<3x2xf32>, tensor<2x2xi32> -> tensor<2x2xf32>
      %r = tt.reshape %v : tensor<2x2xf32> -> tensor<4xf32>
      %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
      %b = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
      %a = tt.addptr %b, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
      tt.store %a, %r : tensor<4x!tt.ptr<f32>>
      tt.return
    }"""
    out = np.zeros(4, np.float32)
    execute(warps(1, text), [out])
    assert out.tolist() == [5, 2, 1, 2]


COPY = """
tt.func @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %i = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32>
  %five = arith.constant dense<5> : tensor<8xi32>
  %mask = arith.cmpi slt, %i, %five : tensor<8xi32>
  %m = ttg.local_alloc : () -> !ttg.memdesc<2x8xf32>
  %m0 = ttg.memdesc_subview %m[%zero, %zero] : !ttg.memdesc<2x8xf32> -> !ttg.memdesc<8xf32>
  %m1 = ttg.memdesc_subview %m[%one, %zero] : !ttg.memdesc<2x8xf32> -> !ttg.memdesc<8xf32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %t0 = ttg.async_copy_global_to_local %xp, %m0 mask %mask : tensor<8x!tt.ptr<f32>> -> !ttg.memdesc<8xf32>
  %g0 = ttg.async_commit_group %t0
  %t1 = ttg.async_copy_global_to_local %xp, %m1 : tensor<8x!tt.ptr<f32>> -> !ttg.memdesc<8xf32>
  %g1 = ttg.async_commit_group %t1
  {wait}
  %v = ttg.local_load %m{buffer} : !ttg.memdesc<8xf32> -> tensor<8xf32>
  tt.store %yp, %v : tensor<8x!tt.ptr<f32>>
  tt.return
}}"""
NUMBERS = np.arange(1, 9, dtype=np.float32)


@pytest.mark.parametrize(
    ("wait", "buffer", "expected"),
    [
        ("%w = ttg.async_wait %g0 {num = 1 : i32}", 0, [1, 2, 3, 4, 5, 0, 0, 0]),
        ("%w = ttg.async_wait %g1 {num = 0 : i32}", 1, [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_copies_arrive_at_the_matching_wait(execute: Any, wait: str, buffer: int, expected: list[float]) -> None:
    y = np.zeros(8, np.float32)
    execute(warps(1, COPY.format(wait=wait, buffer=buffer)), [NUMBERS, y])
    np.testing.assert_array_equal(y, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("wait", "buffer"),
    [
        ("%w = ttg.async_wait %g0 {num = 1 : i32}", 1),
        ("%w = ttg.async_wait %g0 {num = 2 : i32}", 0),
        ("", 0),
        ("ttg.local_store %v0, %m0 : tensor<8xf32> -> !ttg.memdesc<8xf32>", 1),
    ],
)
def test_a_missing_wait_is_found(execute: Any, wait: str, buffer: int) -> None:
    body = COPY.format(wait=f"%v0 = arith.constant dense<1.0> : tensor<8xf32>\n{wait}", buffer=buffer)
    with pytest.raises(Unfinished, match="nobody has waited for the copy to element"):
        execute(warps(1, body), [NUMBERS, np.zeros(8, np.float32)])


def test_whole_programs_run_once(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<i32>) {
      %one = arith.constant 1 : i32
      %r = tt.atomic_rmw add, acq_rel, gpu, %p, %one : (!tt.ptr<i32>, i32) -> i32
      tt.return
    }"""
    for level, expected in (("tt", 1), ("ttg", 1), ("warp", 4), ("intrinsic", 4)):
        out = np.zeros(1, np.int32)
        execute(warps(4, text).replace('"warp"', f'"{level}"'), [out])
        assert out[0] == expected


def test_layout_changes_are_the_identity_on_whole_blocks(execute: Any) -> None:
    text = """
    tt.func @f() {
      %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %j = ttg.convert_layout %i : tensor<8xi32> -> tensor<8xi32>
      %c = arith.cmpi eq, %i, %j : tensor<8xi32>
      tt.assert %c, "moved" : tensor<8xi1>
      tt.return
    }"""
    execute(text, [])
    with pytest.raises(InvalidOperation, match="through shared memory"):
        execute(
            text.replace("-> tensor<8xi32>\n      %c", "-> tensor<4xi32>\n      %c").replace(
                "cmpi eq, %i, %j", "cmpi eq, %i, %i"
            ),
            [],
        )
