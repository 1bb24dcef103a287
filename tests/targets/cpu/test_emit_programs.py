"""Memory, control flow, tiles, reductions, atomics: whole small programs on the CPU against the reference executor."""

from __future__ import annotations

import numpy as np
import pytest

from combinations import each_pair
from mltriton.errors import BackendError
from mltriton.executor import to_bfloat16
from mltriton.ir.parser import parse_module
from mltriton.targets.cpu.features import FEATURES
from mltriton.targets.cpu.llvm.dot import cut, cut_rows
from mltriton.targets.cpu.llvm.emit.kernel import emit_kernel
from mltriton.targets.llvm import toolchain

from .conftest import run_both, run_module

MEMORY_TYPES = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.uint16,
    "i1": np.uint8,
}


def module(body, scratch=0):
    attributes = f'"mltriton.level" = "intrinsic", "ttg.num-warps" = 1 : i32, "tile.scratch_bytes" = {scratch} : i32'
    return f"module attributes {{{attributes}}} {{\n{body}\n}}"


def same(pairs, **tolerance):
    for mine, theirs in pairs:
        if tolerance:
            np.testing.assert_allclose(mine, theirs, **tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)


def filled(type_, count, seed=0):
    rng = np.random.default_rng(seed)
    if type_ == "i1":
        return rng.integers(0, 2, count).astype(np.uint8)
    if type_ == "bf16":
        return to_bfloat16(rng.standard_normal(count).astype(np.float32))
    return (rng.standard_normal(count) * 50).astype(MEMORY_TYPES[type_])


MASK = """%i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %ns = tt.splat %n : i32 -> tensor<16xi32>
      %m = arith.cmpi slt, %i, %ns : tensor<16xi32>"""


@pytest.mark.parametrize("n", [0, 1, 7, 16])
@pytest.mark.parametrize("type_", list(MEMORY_TYPES))
def test_masked_chunks(isa, type_, n):
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>, %z: !tt.ptr<{type_}>, %n: i32) {{
      {MASK}
      %o = tile.load %z : tensor<16x{type_}>
      %v = tile.load %x, %m, %o : tensor<16x{type_}>
      %w = tile.load %x, %m : tensor<16x{type_}>
      tile.store %z, %v : tensor<16x{type_}>
      tile.store %y, %w, %m : tensor<16x{type_}>
      tt.return
    }}""")
    # The arrays are as long as the mask allows: anything more that is touched is out of bounds in the executor.
    same(run_both(text, isa, [filled(type_, max(n, 1)), filled(type_, 16, 1), filled(type_, 16, 2), n]))


@pytest.mark.parametrize("masked", ["", "masked"])
@pytest.mark.parametrize("type_", list(MEMORY_TYPES))
def test_gather_and_scatter(isa, type_, masked):
    mask, other = (", %m", ", %o") if masked else ("", "")
    chunk, pointers = f"tensor<16x{type_}>", f"tensor<16x!tt.ptr<{type_}>>"
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>, %where: !tt.ptr<i32>, %n: i32) {{
      {MASK}
      %index = tile.load %where : tensor<16xi32>
      %o = tile.load %y : {chunk}
      %xs = tt.splat %x : !tt.ptr<{type_}> -> {pointers}
      %ys = tt.splat %y : !tt.ptr<{type_}> -> {pointers}
      %from = tt.addptr %xs, %index : {pointers}, tensor<16xi32>
      %to = tt.addptr %ys, %index : {pointers}, tensor<16xi32>
      %v = tt.load %from{mask}{other} : {pointers}
      tt.store %to, %v{mask} : {pointers}
      tt.return
    }}""")
    where = np.random.default_rng(3).permutation(40)[:16].astype(np.int32)
    same(run_both(text, isa, [filled(type_, 40), filled(type_, 40, 1), where, 11]))


@pytest.mark.parametrize("n", [0, 5])
def test_scalar_memory_with_a_mask(isa, n):
    text = module("""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
      %zero = arith.constant 0 : i32
      %m = arith.cmpi sgt, %n, %zero : i32
      %o = arith.constant 4.0 : f32
      %v = tt.load %x, %m, %o : !tt.ptr<f32>
      tt.store %y, %v, %m : !tt.ptr<f32>
      %p = tt.addptr %y, %n : !tt.ptr<f32>, i32
      tt.store %p, %v : !tt.ptr<f32>
      tt.return
    }""")
    same(run_both(text, isa, [filled("f32", 8), filled("f32", 8, 1), n]))


def test_parameters_of_every_type(isa):
    text = module("""
    tt.func @f(%p: !tt.ptr<f64>, %a: i32, %b: f32, %c: i64, %d: f64, %e: i1, %q: !tt.ptr<i64>) {
      %x = arith.extf %b : f32 to f64
      %y = arith.addf %x, %d : f64
      tt.store %p, %y : !tt.ptr<f64>
      %w = arith.extsi %a : i32 to i64
      %z = arith.addi %w, %c : i64
      %n = arith.constant 0 : i64
      %s = arith.select %e, %z, %n : i64
      tt.store %q, %s : !tt.ptr<i64>
      tt.return
    }""")
    arguments = [np.int32(-5), np.float32(0.1), np.int64(1 << 40), 2.5, np.True_]
    same(run_both(text, isa, [np.zeros(1), *arguments, np.zeros(1, np.int64)]))


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 4, 5), (1, 6, 2)])
def test_program_coordinates(isa, grid):
    coordinates = "".join(
        f"%p{a} = tt.get_program_id {a} : i32\n%n{a} = tt.get_num_programs {a} : i32\n" for a in "xyz"
    )
    text = module(f"""
    tt.func @f(%out: !tt.ptr<i32>) {{
      {coordinates}
      %a = arith.muli %pz, %ny : i32
      %b = arith.addi %a, %py : i32
      %c = arith.muli %b, %nx : i32
      %id = arith.addi %c, %px : i32
      %k = arith.constant 100 : i32
      %d = arith.muli %pz, %k : i32
      %e = arith.addi %d, %py : i32
      %g = arith.muli %e, %k : i32
      %v = arith.addi %g, %px : i32
      %at = tt.addptr %out, %id : !tt.ptr<i32>, i32
      tt.store %at, %v : !tt.ptr<i32>
      tt.return
    }}""")
    same(run_both(text, isa, [np.zeros(int(np.prod(grid)), np.int32)], grid))


@pytest.mark.parametrize("bounds", [(0, 4, 1), (1, 10, 3), (4, 4, 1), (5, 4, 1), (2**31 - 3, 2**31 - 1, 2)])
def test_for_loops(isa, bounds):
    text = module("""
    tt.func @f(%p: !tt.ptr<i32>, %lo: i32, %hi: i32, %step: i32) {
      %z = arith.constant 0 : i32
      %o = arith.constant 1 : i32
      %s:2 = scf.for %i = %lo to %hi step %step iter_args(%a = %z, %b = %o) -> (i32, i32) : i32 {
        %n = arith.addi %a, %i : i32
        %m = arith.muli %b, %n : i32
        scf.yield %m, %n : i32, i32
      }
      %t = arith.xori %s#0, %s#1 : i32
      tt.store %p, %t : !tt.ptr<i32>
      tt.return
    }""")
    same(run_both(text, isa, [np.zeros(1, np.int32), *map(np.int32, bounds)]))


def test_while_and_if(isa):
    text = module("""
    tt.func @collatz(%p: !tt.ptr<i32>) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %id = tt.get_program_id x : i32
      %n = arith.addi %id, %one : i32
      %r:2 = scf.while (%x = %n, %c = %zero) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi ne, %x, %one : i32
        scf.condition(%go) %x, %c : i32, i32
      } do {
      ^bb0(%x: i32, %c: i32):
        %odd = arith.remsi %x, %two : i32
        %is = arith.cmpi eq, %odd, %one : i32
        %y = scf.if %is -> (i32) {
          %t = arith.muli %x, %three : i32
          %u = arith.addi %t, %one : i32
          scf.yield %u : i32
        } else {
          %h = arith.divsi %x, %two : i32
          scf.yield %h : i32
        }
        %d = arith.addi %c, %one : i32
        scf.yield %y, %d : i32, i32
      }
      %at = tt.addptr %p, %id : !tt.ptr<i32>, i32
      %small = arith.cmpi slt, %id, %three : i32
      scf.if %small {
        tt.store %at, %two : !tt.ptr<i32>
      } else {
        tt.store %at, %r#1 : !tt.ptr<i32>
      }
      tt.return
    }""")
    same(run_both(text, isa, [np.zeros(40, np.int32)], (40, 1, 1)))


COMBINE = {
    "sum": ("f32", "%c = arith.addf %a, %b : f32"),
    "max": ("f32", "%c = arith.maxnumf %a, %b : f32"),
    "xor": ("i32", "%c = arith.xori %a, %b : i32"),
    "bf16": ("bf16", "%c = arith.minnumf %a, %b : bf16"),
    "constant": ("i32", "%k = arith.constant 3 : i32\n%d = arith.minsi %a, %b : i32\n%c = arith.minsi %d, %k : i32"),
    "branch": ("i32", """%p = arith.cmpi sgt, %a, %b : i32
        %c = scf.if %p -> (i32) { scf.yield %a : i32 } else { scf.yield %b : i32 }"""),
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 2, 7, 16])
@pytest.mark.parametrize("name", list(COMBINE))
def test_reduce(isa, name, lanes):
    type_, combine = COMBINE[name]
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>) {{
      %v = tile.load %x : tensor<{lanes}x{type_}>
      %s = "tt.reduce"(%v) <{{axis = 0 : i32}}> ({{
      ^bb0(%a: {type_}, %b: {type_}):
        {combine}
        tt.reduce.return %c : {type_}
      }}) : (tensor<{lanes}x{type_}>) -> {type_}
      tt.store %y, %s : !tt.ptr<{type_}>
      tt.return
    }}""")
    same(run_both(text, isa, [filled(type_, lanes), filled(type_, 1)]), rtol=1e-6)


@each_pair(("name", ["xor", "branch", "max"]), ("lanes", [1, 2, 7, 16]), ("reverse", ["true", "false"]))
def test_scan(isa, name, lanes, reverse):
    type_, combine = COMBINE[name]
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>) {{
      %v = tile.load %x : tensor<{lanes}x{type_}>
      %s = "tt.scan"(%v) <{{axis = 0 : i32, reverse = {reverse}}}> ({{
      ^bb0(%a: {type_}, %b: {type_}):
        {combine}
        tt.scan.return %c : {type_}
      }}) : (tensor<{lanes}x{type_}>) -> tensor<{lanes}x{type_}>
      tile.store %y, %s : tensor<{lanes}x{type_}>
      tt.return
    }}""")
    same(run_both(text, isa, [filled(type_, lanes), filled(type_, lanes, 1)]))


@pytest.mark.parametrize("reverse", ["true", "false"])
def test_no_lane_of_a_scan_is_left_to_whatever_a_register_holds(reverse):
    """Products of denormal floats take 150 cycles: LLVM must not know which lanes are not taken."""
    text = module(f"""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
      %v = tile.load %x : tensor<16xf32>
      %s = "tt.scan"(%v) <{{axis = 0 : i32, reverse = {reverse}}}> ({{
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %b : f32
        tt.scan.return %c : f32
      }}) : (tensor<16xf32>) -> tensor<16xf32>
      tile.store %y, %s : tensor<16xf32>
      tt.return
    }}""")
    emitted = emit_kernel(parse_module(text, "kernel.mlir"), FEATURES["avx512"])
    assert emitted.count("select <16 x i1> %") == 4
    optimized = assembly(text, "avx512")
    assert optimized.count("vmulps") == 4
    assert "vinsertf64x4" not in optimized  # of a register that has nothing to do with it


def test_reduce_of_two_values_finds_the_first_maximum(isa):
    text = module("""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
      %v = tile.load %x : tensor<16xf32>
      %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %r:2 = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
        %g = arith.cmpf ogt, %a, %b : f32
        %e = arith.cmpf oeq, %a, %b : f32
        %l = arith.cmpi slt, %ai, %bi : i32
        %t = arith.andi %e, %l : i1
        %p = arith.ori %g, %t : i1
        %w = arith.select %p, %a, %b : f32
        %j = arith.select %p, %ai, %bi : i32
        tt.reduce.return %w, %j : f32, i32
      }) : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
      tt.store %y, %r#1 : !tt.ptr<i32>
      tt.return
    }""")
    x = np.random.default_rng(1).integers(0, 3, 16).astype(np.float32)
    same(run_both(text, isa, [x, np.zeros(1, np.int32)]))


RMW = {
    "i32": ["add", "and", "or", "xor", "max", "min", "umax", "umin", "exch"],
    "i64": ["add", "max", "umin", "exch"],
    "f32": ["fadd", "max", "min", "exch"],
    "f64": ["fadd", "exch"],
    "f16": ["fadd", "max"],
    "bf16": ["fadd", "min", "exch"],
}


@pytest.mark.parametrize(("type_", "kind"), [(type_, kind) for type_, kinds in RMW.items() for kind in kinds])
def test_atomic_updates(isa, type_, kind):
    chunk, pointers = f"tensor<16x{type_}>", f"tensor<16x!tt.ptr<{type_}>>"
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %v: !tt.ptr<{type_}>, %old: !tt.ptr<{type_}>, %where: !tt.ptr<i32>, %n: i32) {{
      {MASK}
      %index = tile.load %where : tensor<16xi32>
      %value = tile.load %v : {chunk}
      %xs = tt.splat %x : !tt.ptr<{type_}> -> {pointers}
      %at = tt.addptr %xs, %index : {pointers}, tensor<16xi32>
      %r = tt.atomic_rmw {kind}, acq_rel, gpu, %at, %value, %m : ({pointers}, {chunk}, tensor<16xi1>) -> {chunk}
      tile.store %old, %r : {chunk}
      %s = tt.load %v : !tt.ptr<{type_}>
      %t = tt.atomic_rmw {kind}, relaxed, gpu, %x, %s : (!tt.ptr<{type_}>, {type_}) -> {type_}
      tt.store %old, %t : !tt.ptr<{type_}>
      tt.return
    }}""")
    where = np.random.default_rng(3).integers(0, 5, 16).astype(np.int32)
    same(run_both(text, isa, [filled(type_, 5), filled(type_, 16, 1), filled(type_, 16, 2), where, 13]))


@pytest.mark.parametrize("type_", ["i32", "i64", "f32"])
def test_compare_and_swap(isa, type_):
    chunk, pointers = f"tensor<16x{type_}>", f"tensor<16x!tt.ptr<{type_}>>"
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %c: !tt.ptr<{type_}>, %v: !tt.ptr<{type_}>, %old: !tt.ptr<{type_}>) {{
      %i = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32>
      %expected = tile.load %c : {chunk}
      %value = tile.load %v : {chunk}
      %xs = tt.splat %x : !tt.ptr<{type_}> -> {pointers}
      %at = tt.addptr %xs, %i : {pointers}, tensor<16xi32>
      %r = tt.atomic_cas acq_rel, gpu, %at, %expected, %value : ({pointers}, {chunk}, {chunk}) -> {chunk}
      tile.store %old, %r : {chunk}
      tt.return
    }}""")
    x = filled(type_, 16)
    expected = np.where(np.arange(16) % 3 == 0, x, x + 1).astype(x.dtype)
    same(run_both(text, isa, [x, expected, filled(type_, 16, 1), filled(type_, 16, 2)]))


@pytest.mark.parametrize(
    ("type_", "group"), [("f32", 1), ("i16", 1), ("bf16", 1), ("f64", 1), ("bf16", 2), ("f16", 2), ("i8", 4)]
)
def test_tile_transpose_and_lane(isa, type_, group):
    lanes = 4 * group
    chunk = f"tensor<{lanes}x{type_}>"
    loads = "\n".join(
        f"%o{i} = arith.constant {lanes * i} : i32\n%p{i} = tt.addptr %x, %o{i} : !tt.ptr<{type_}>, i32\n"
        f"%r{i} = tile.load %p{i} : {chunk}"
        for i in range(4)
    )
    stores = "\n".join(
        f"%q{i} = tt.addptr %y, %o{i} : !tt.ptr<{type_}>, i32\ntile.store %q{i}, %t#{i} : {chunk}" for i in range(4)
    )
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>, %n: i32) {{
      {loads}
      %t:4 = tile.transpose %r0, %r1, %r2, %r3 : {chunk}, {chunk}, {chunk}, {chunk}
      {stores}
      %l = tile.lane %r2[%n] : {chunk} -> {type_}
      tt.store %y, %l : !tt.ptr<{type_}>
      tt.return
    }}""")
    same(run_both(text, isa, [filled(type_, 4 * lanes), filled(type_, 4 * lanes, 1), 3]))


@pytest.mark.parametrize(
    ("type_", "parts"), [("bf16", 2), ("i8", 4), ("i8", 2), ("f32", 2), ("i32", 2), ("f64", 4), ("i64", 2)]
)
def test_interleave(isa, type_, parts):
    names = [f"%v{i}" for i in range(parts)]
    chunk = f"tensor<8x{type_}>"
    loads = "\n".join(
        f"%o{i} = arith.constant {8 * i} : i32\n%p{i} = tt.addptr %x, %o{i} : !tt.ptr<{type_}>, i32\n"
        f"%v{i} = tile.load %p{i} : {chunk}"
        for i in range(parts)
    )
    text = module(f"""
    tt.func @f(%x: !tt.ptr<{type_}>, %y: !tt.ptr<{type_}>) {{
      {loads}
      %r = tile.interleave {", ".join(names)} : {", ".join([chunk] * parts)} -> tensor<{8 * parts}x{type_}>
      tile.store %y, %r : tensor<{8 * parts}x{type_}>
      tt.return
    }}""")
    same(run_both(text, isa, [filled(type_, 8 * parts), filled(type_, 8 * parts, 1)]))


def test_scratch_memory_and_prefetch(isa):
    text = module(
        """
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %s = tile.scratch {offset = 64 : i32, bytes = 64 : i32} : !tt.ptr<f32, 5>
      tile.prefetch %x : !tt.ptr<f32>
      %v = tile.load %x : tensor<16xf32>
      tile.store %s, %v {align = 64 : i32, nontemporal = true} : tensor<16xf32>
      %w = tile.load %s {align = 64 : i32} : tensor<16xf32>
      %sum = arith.addf %v, %w : tensor<16xf32>
      tile.store %y, %sum : tensor<16xf32>
      tt.return
    }""",
        scratch=128,
    )
    same(run_both(text, isa, [filled("f32", 16), filled("f32", 16, 1)]))


def dot_text(dtype, m, n, k, group, layout, constant_stride):
    accumulator = {"i8": "i32", "i32": "i32", "f64": "f64"}.get(dtype, "f32")
    attributes = f"group = {group} : i32, a_layout = {int(layout == 'column')} : i32"
    stride = f"%sb = arith.constant {n * group + 8} : i64" if constant_stride else "%sb = arith.addi %sbv, %zero : i64"
    return module(f"""
    tt.func @f(%a: !tt.ptr<{dtype}>, %sa: i64, %b: !tt.ptr<{dtype}>, %sbv: i64,
               %c: !tt.ptr<{accumulator}>, %sc: i64, %more: i1) {{
      %zero = arith.constant 0 : i64
      {stride}
      %k = arith.constant {k} : i64
      tile.dot %a, %sa, %b, %sb, %c, %sc, %k, %more {{m = {m} : i32, n = {n} : i32, {attributes}}}
        : !tt.ptr<{dtype}>, !tt.ptr<{dtype}>, !tt.ptr<{accumulator}>
      tt.return
    }}""")


@each_pair(
    ("dtype, layout", [("f32", "row"), ("f32", "column"), ("f64", "row"), ("i32", "row"), ("i8", "row")]),
    ("shape", [(16, 64, 13), (1, 16, 8), (7, 36, 4), (33, 128, 3), (32, 8, 0)]),
    ("more", [False, True]),
)
def test_dots(every_isa, dtype, layout, shape, more):
    m, n, k = shape
    group = 4 if dtype == "i8" else 1
    accumulator = np.int32 if dtype in ("i8", "i32") else MEMORY_TYPES[dtype]
    a_columns = (m if layout == "column" else k * group) + 3
    a = filled(dtype, (k if layout == "column" else m) * a_columns + 1)
    b = filled(dtype, k * (n * group + 8) + 1, 1)
    c = np.random.default_rng(2).integers(-99, 99, m * (n + 5)).astype(accumulator)
    if dtype == "i8":
        a[:4], b[:4] = -128, -128
    text = dot_text(dtype, m, n, k, group, layout, constant_stride=more)
    arguments = [a, np.int64(a_columns), b, np.int64(n * group + 8), c, np.int64(n + 5), np.bool_(more)]
    exact = dtype in ("i8", "i32")
    same(run_both(text, every_isa, arguments), **({} if exact else {"rtol": 2e-5, "atol": 2e-2}))


@pytest.mark.parametrize(("m", "k"), [(13, 8), (64, 6)])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_dots_of_panels(every_isa, dtype, m, k):
    group, bits = (4, 32) if dtype == "i8" else (1, np.dtype(MEMORY_TYPES[dtype]).itemsize * 8)
    panel = every_isa.tile(dtype).vectors * every_isa.lanes(bits)
    n, stride = 3 * panel, (k + 1) * panel * group
    panels = f"panel = {panel} : i32, panel_stride = {stride} : i32, group"
    text = dot_text(dtype, m, n, k, group, "row", constant_stride=False).replace("group", panels, 1)
    a, b = filled(dtype, m * k * group), filled(dtype, 3 * stride, 1)
    c = np.zeros(m * n, np.int32 if dtype == "i8" else MEMORY_TYPES[dtype])
    arguments = [a, np.int64(k * group), b, np.int64(panel * group), c, np.int64(n), np.False_]
    same(run_both(text, every_isa, arguments), **({} if dtype == "i8" else {"rtol": 2e-5, "atol": 2e-2}))
    with pytest.raises(BackendError, match="columns at a time, not in panels"):
        emit_kernel(parse_module(text.replace(f"panel = {panel}", "panel = 3"), "kernel.mlir"), every_isa)


@pytest.mark.parametrize("unsigned", ["a", "b", "ab"])
def test_dots_of_unsigned_bytes(every_isa, unsigned):
    """Of the largest and smallest bytes, too, whose sums saturate in 16 bits."""
    m, n, k = 7, 36, 5
    flags = "".join(f"{operand}_unsigned, " for operand in unsigned)
    text = dot_text("i8", m, n, k, 4, "row", constant_stride=True).replace("{m =", f"{{{flags}m =")
    a, b, c = filled("i8", m * k * 4), filled("i8", k * (n * 4 + 8), 1), np.zeros(m * n, np.int32)
    a[: 4 * k], b[: 4 * n] = -1, -1
    a[4 * k : 8 * k], b[4 * n + 8 : 8 * n + 8] = -128, 127
    arguments = [a, np.int64(k * 4), b, np.int64(n * 4 + 8), c, np.int64(n), np.False_]
    same(run_both(text, every_isa, arguments))


def test_a_dot_the_instruction_set_lacks_is_an_error():
    text = dot_text("bf16", 8, 64, 8, 2, "row", constant_stride=True)
    with pytest.raises(BackendError, match="no bf16 dot"):
        emit_kernel(parse_module(text, "kernel.mlir"), FEATURES["avx2"])
    with pytest.raises(BackendError, match="no f16 dot"):
        emit_kernel(parse_module(text.replace("bf16", "f16"), "kernel.mlir"), FEATURES["avx512-bf16"])
    with pytest.raises(BackendError, match="no dot of these types"):
        emit_kernel(parse_module(text.replace("bf16", "i16"), "kernel.mlir"), FEATURES["avx512-bf16"])
    assert "vdpbf16ps" in assembly(text, "avx512-bf16")


def assembly(text, name):
    isa = FEATURES[name]
    machine = toolchain.Machine(isa.triple, isa.cpu, isa.attributes)
    return toolchain.assembly(emit_kernel(parse_module(text, "kernel.mlir"), isa), machine)


def test_aarch64_assembly():
    code = assembly(dot_text("f32", 16, 16, 8, 1, "row", constant_stride=True), "neon")
    assert "fmla\tv" in code
    for dtype, group in (("f64", 1), ("i32", 1), ("i8", 4)):
        assert "kernel:" in assembly(dot_text(dtype, 16, 16, 8, group, "row", constant_stride=False), "neon")


def test_an_operation_of_another_level_is_an_error():
    text = module("""
    tt.func @f(%x: !tt.ptr<f32>) {
      %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %y = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
      tt.return
    }""")
    with pytest.raises(BackendError, match=r"tt\.expand_dims is not an operation of the intrinsic level"):
        emit_kernel(parse_module(text, "kernel.mlir"), FEATURES["sse"])


def test_print_writes_the_executors_lines(isa, capfd):
    text = module("""
    tt.func @f(%n: i32) {
      %i = tt.make_range {end = 3 : i32, start = 0 : i32} : tensor<3xi32>
      %x = arith.sitofp %i : tensor<3xi32> to tensor<3xf16>
      tt.print "x: 100% " : %x : tensor<3xf16>
      tt.print "n " {hex = true} : %n : i32
      tt.print "both " : %n, %i : i32, tensor<3xi32>
      tt.print "done"
      tt.return
    }""")
    run_both(text, isa, [np.int32(-7)], (2, 1, 1))
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 36
    assert sorted(lines[:18]) == sorted(lines[18:])


def test_a_false_assertion_is_recorded(isa):
    text = module("""
    tt.func @f(%p: !tt.ptr<i32>, %n: i32) {
      %id = tt.get_program_id x : i32
      %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %v = tile.load %p : tensor<8xi32>
      %c = arith.cmpi sle, %v, %i : tensor<8xi32>
      %fine = arith.cmpi sgt, %n, %id : i32
      tt.assert %fine, "fine" : i1
      tt.assert %c, "wrong" : tensor<8xi1>
      tt.return
    }""")
    import ctypes

    for x, expected in ((np.zeros(8, np.int32), [0, 0, 0]), (np.array([0, 0, 0, 9, 0, 9, 0, 0], np.int32), [2, 0, 3])):
        program = run_module(text, isa, [x, np.int32(100)], (5, 1, 1))
        failure = (ctypes.c_int64 * 3).from_address(program.address("kernel.failure"))
        assert list(failure) == expected


@pytest.mark.parametrize(
    ("size", "step", "pieces"),
    [
        (128, 6, [(20, 6), (2, 4)]),
        (256, 6, [(42, 6), (1, 4)]),
        (8, 6, [(2, 4)]),
        (7, 6, [(1, 6), (1, 1)]),
        (4, 6, [(1, 4)]),
        (64, 4, [(16, 4)]),
    ],
)
def test_rows_are_cut_into_register_tiles(size, step, pieces):
    assert cut_rows(size, step) == pieces
    assert sum(count * length for count, length in pieces) == size
    assert cut(80, 64) == [(1, 64), (1, 16)]


@pytest.mark.parametrize("first", ["0xFF800000", "0x7FC00000"])
def test_a_maximum_carried_by_a_loop_ignores_nan(isa, first):
    text = module(f"""
    tt.func @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {{
      %first = arith.constant dense<{first}> : tensor<8xf32>
      %zero = arith.constant 0 : i32
      %eight = arith.constant 8 : i32
      %m = scf.for %i = %zero to %n step %eight iter_args(%a = %first) -> (tensor<8xf32>) : i32 {{
        %at = tt.addptr %x, %i : !tt.ptr<f32>, i32
        %v = tile.load %at : tensor<8xf32>
        %b = arith.maxnumf %a, %v : tensor<8xf32>
        scf.yield %b : tensor<8xf32>
      }}
      tile.store %y, %m : tensor<8xf32>
      tt.return
    }}""")
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    x[::3] = np.nan
    x[5::8] = np.nan
    same(run_both(text, isa, [x, np.zeros(8, np.float32), np.int32(64)]))
