"""The intrinsic level: register pieces (`ttig`) and tiles in scratch memory (`tile`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.executor import Options, to_bfloat16
from mltriton.executor.dialects.ttig import pieces
from mltriton.executor.faults import InvalidOperation, Misaligned, OutOfBounds, Uninitialised


def test_pieces_are_numbered_down_the_columns() -> None:
    assert [tuple((s.start, s.stop) for s in place) for place in pieces((4, 6), (2, 3))] == [
        ((0, 2), (0, 3)),
        ((2, 4), (0, 3)),
        ((0, 2), (3, 6)),
        ((2, 4), (3, 6)),
    ]
    assert [place[0].start for place in pieces((8,), (2,))] == [0, 2, 4, 6]
    assert [tuple(s.start for s in place) for place in pieces((2, 2, 2), (1, 1, 2))] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (1, 1, 0),
    ]


@pytest.mark.parametrize(("whole", "piece"), [((4, 6), (3, 3)), ((4,), (2, 2))])
def test_pieces_must_divide_the_whole(whole: Any, piece: Any) -> None:
    with pytest.raises(InvalidOperation, match="has no pieces"):
        pieces(whole, piece)


def test_glue_undoes_extract(execute: Any) -> None:
    text = """
    tt.func @f(%p: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
      %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
      %x = tt.reshape %i : tensor<32xi32> -> tensor<4x8xi32>
      %a = ttig.extract %x[0] : tensor<4x8xi32> -> tensor<2x4xi32>
      %b = ttig.extract %x[1] : tensor<4x8xi32> -> tensor<2x4xi32>
      %c = ttig.extract %x[2] : tensor<4x8xi32> -> tensor<2x4xi32>
      %d = ttig.extract %x[3] : tensor<4x8xi32> -> tensor<2x4xi32>
      %y = ttig.glue %a, %b, %c, %d
          : (tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<4x8xi32>
      %same = arith.cmpi eq, %x, %y : tensor<4x8xi32>
      tt.assert %same, "glue" : tensor<4x8xi1>
      %s = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %q = tt.addptr %s, %r : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      %f = tt.reshape %c : tensor<2x4xi32> -> tensor<8xi32>
      tt.store %q, %f : tensor<8x!tt.ptr<i32>>
      tt.return
    }"""
    out = np.zeros(8, np.int32)
    execute(text, [out, out])
    assert out.tolist() == [4, 5, 6, 7, 12, 13, 14, 15]


def scratch(body: str, size: int = 256) -> str:
    level = f'"mltriton.level" = "intrinsic", "ttg.num-warps" = 1 : i32, "tile.scratch_bytes" = {size} : i32'
    return f"module attributes {{{level}}} {{\n{body}\n}}"


def test_chunks_through_scratch(execute: Any) -> None:
    text = scratch("""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
      %s = tile.scratch {offset = 64 : i32, bytes = 64 : i32} : !tt.ptr<f32, 5>
      %v = tile.load %x : tensor<16xf32>
      tile.store %s, %v {align = 64 : i32} : tensor<16xf32>
      %w = tile.load %s {align = 64 : i32} : tensor<16xf32>
      %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %ns = tt.splat %n : i32 -> tensor<16xi32>
      %m = arith.cmpi slt, %i, %ns : tensor<16xi32>
      %sum = arith.addf %v, %w : tensor<16xf32>
      tile.store %y, %sum, %m : tensor<16xf32>
      tt.return
    }""")
    x, y = np.arange(16, dtype=np.float32), np.full(16, -1, np.float32)
    execute(text, [x, y, 10], options=Options(uninitialised=True))
    np.testing.assert_array_equal(y, np.where(np.arange(16) < 10, 2 * x, -1))
    with pytest.raises(OutOfBounds):
        execute(text, [x[:], np.zeros(9, np.float32), 10])
    execute(text, [x, np.zeros(9, np.float32), 9])
    with pytest.raises(Misaligned, match="64 bytes that the operation promises"):
        execute(text.replace("offset = 64", "offset = 32"), [x, y, 10])
    with pytest.raises(InvalidOperation, match="scratch memory"):
        execute(text.replace("offset = 64", "offset = 256"), [x, y, 10])
    with pytest.raises(Uninitialised, match="scratch of warp 0"):
        execute(
            text.replace("tile.store %s, %v {align = 64 : i32} : tensor<16xf32>", ""),
            [x, y, 10],
            options=Options(uninitialised=True),
        )


def test_masked_chunk_loads(execute: Any) -> None:
    text = scratch("""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %c = arith.constant dense<3> : tensor<16xi32>
      %m = arith.cmpi slt, %i, %c : tensor<16xi32>
      %o = arith.constant dense<7.0> : tensor<16xf32>
      %v = tile.load %x, %m, %o : tensor<16xf32>
      tile.store %y, %v : tensor<16xf32>
      tt.return
    }""")
    y = np.zeros(16, np.float32)
    execute(text, [np.array([1, 2, 3], np.float32), y])
    assert y.tolist() == [1, 2, 3] + [7] * 13


def test_scratch_is_forgotten_between_programs(execute: Any) -> None:
    text = scratch("""
    tt.func @f(%y: !tt.ptr<f32>) {
      %s = tile.scratch {offset = 0 : i32, bytes = 64 : i32} : !tt.ptr<f32, 5>
      %v = tile.load %s : tensor<16xf32>
      tile.store %y, %v : tensor<16xf32>
      %c = arith.constant dense<1.0> : tensor<16xf32>
      tile.store %s, %c : tensor<16xf32>
      tt.return
    }""")
    y = np.zeros(16, np.float32)
    execute(text, [y], (2,))
    assert np.isnan(y).all()


def test_transpose_interleave_and_lane(execute: Any) -> None:
    text = scratch("""
    tt.func @f(%y: !tt.ptr<i32>) {
      %a = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
      %b = tt.make_range {end = 12 : i32, start = 10 : i32} : tensor<2xi32>
      %t:2 = tile.transpose %a, %b : tensor<2xi32>, tensor<2xi32>
      %i = tile.interleave %t#0, %t#1 : tensor<2xi32>, tensor<2xi32> -> tensor<4xi32>
      tile.store %y, %i : tensor<4xi32>
      %four = arith.constant 4 : i32
      %one = arith.constant 1 : i32
      %l = tile.lane %t#1[%one] : tensor<2xi32> -> i32
      %q = tt.addptr %y, %four : !tt.ptr<i32>, i32
      tt.store %q, %l : !tt.ptr<i32>
      tile.prefetch %q : !tt.ptr<i32>
      tt.return
    }""")
    y = np.zeros(5, np.int32)
    execute(text, [y])
    assert y.tolist() == [0, 1, 10, 11, 11]
    with pytest.raises(InvalidOperation, match="no lane 4"):
        execute(text.replace("[%one]", "[%four]"), [y])


def micro_kernel(a: str, b: str, c: str, attributes: str, strides: tuple[int, int, int], k: int, more: bool) -> str:
    names = ("sa", "sb", "sc")
    constants = "\n".join(f"%{name} = arith.constant {value} : i64" for name, value in zip(names, strides, strict=True))
    return scratch(f"""
    tt.func @f(%a: !tt.ptr<{a}>, %b: !tt.ptr<{b}>, %c: !tt.ptr<{c}>) {{
      {constants}
      %k = arith.constant {k} : i64
      %more = arith.constant {str(more).lower()}
      tile.dot %a, %sa, %b, %sb, %c, %sc, %k, %more {{{attributes}}} : !tt.ptr<{a}>, !tt.ptr<{b}>, !tt.ptr<{c}>
      tt.return
    }}""")


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("layout", ["row", "column"])
def test_dot_of_floats(execute: Any, layout: str, more: bool) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=shape).astype(np.float32) for shape in ((6, 9), (9, 20), (6, 17)))
    expected = c.copy()
    expected[:, :16] = (c[:, :16] if more else 0) + a[:, :7] @ b[:7, :16]
    stored = a if layout == "row" else np.ascontiguousarray(a.T)
    code = {"row": 0, "column": 1}[layout]
    text = micro_kernel(
        "f32", "f32", "f32", f"m = 6 : i32, n = 16 : i32, a_layout = {code} : i32", (stored.shape[1], 20, 17), 7, more
    )
    execute(text, [stored, b, c])
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.parametrize(("type", "group", "result"), [("bf16", 2, "f32"), ("i8", 4, "i32")])
def test_dot_of_groups(execute: Any, type: str, group: int, result: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (4, 12)), rng.integers(-8, 8, (12, 16))
    packed = b.reshape(12 // group, group, 16).transpose(0, 2, 1)  # k-group, column, element of the group

    def stored(values: Any) -> Any:
        return to_bfloat16(values.astype(np.float32)) if type == "bf16" else values.astype(np.int8)

    c = np.zeros((4, 16), {"f32": np.float32, "i32": np.int32}[result])
    attributes = f"m = 4 : i32, n = 16 : i32, group = {group} : i32"
    text = micro_kernel(type, type, result, attributes, (12, 16 * group, 16), 12 // group, False)
    execute(text, [stored(a), np.ascontiguousarray(stored(packed)), c])
    np.testing.assert_array_equal(c, a @ b)


def test_dot_stays_inside_its_operands(execute: Any) -> None:
    a, b, c = np.zeros((6, 8), np.float32), np.zeros((8, 16), np.float32), np.zeros((6, 16), np.float32)
    text = micro_kernel("f32", "f32", "f32", "m = 6 : i32, n = 16 : i32", (8, 16, 16), 9, False)
    with pytest.raises(OutOfBounds):
        execute(text, [a, b, c])


def test_an_empty_dot_clears_its_result(execute: Any) -> None:
    c = np.ones((2, 4), np.float32)
    text = micro_kernel("f32", "f32", "f32", "m = 2 : i32, n = 4 : i32", (4, 4, 4), 0, False)
    execute(text, [np.ones(1, np.float32), np.ones(1, np.float32), c])
    assert (c == 0).all()
