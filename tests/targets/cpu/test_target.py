"""The CPU as a target: from a module at the intrinsic level to a launch."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mltriton.errors import DeviceAssertionError
from mltriton.ir.parser import parse_module
from mltriton.runtime.slots import Slot
from mltriton.targets.registry import spec
from mltriton.targets.target import Binary, find_target

TEXT = """module attributes {"mltriton.level" = "intrinsic", "tile.scratch_bytes" = 64 : i32} {
  tt.func @f(%x: !tt.ptr<i32>, %n: i32) {
    %px = tt.get_program_id x : i32
    %py = tt.get_program_id y : i32
    %nx = tt.get_num_programs x : i32
    %row = arith.muli %py, %nx : i32
    %id = arith.addi %row, %px : i32
    %at = tt.addptr %x, %id : !tt.ptr<i32>, i32
    %v = tt.load %at : !tt.ptr<i32>
    %c = arith.cmpi slt, %v, %n : i32
    tt.assert %c, "x is too large" : i1
    %w = arith.addi %v, %v : i32
    tt.store %at, %w : !tt.ptr<i32>
    tt.return
  }
}"""


def load(text):
    target = find_target("cpu")
    module = parse_module(text, "kernel.py")
    binary = target.assemble(target.lower(module), module)
    return target.load(Binary(binary.object, json.loads(json.dumps(binary.metadata))), "f")


def test_a_launch_runs_every_program():
    x = np.arange(100, dtype=np.int32)
    load(TEXT).run((100, 1, 1), [Slot("tensor", x.ctypes.data), Slot("i32", 1000)])
    np.testing.assert_array_equal(x, 2 * np.arange(100))


def test_a_failed_assertion_is_an_error_once():
    kernel = load(TEXT)
    x = np.zeros(40, np.int32)
    x[23] = 7
    with pytest.raises(DeviceAssertionError, match=r"x is too large \(program \(3, 2, 0\), element 0\)"):
        kernel.run((10, 4, 1), [Slot("tensor", x.ctypes.data), Slot("i32", 5)])
    x[:] = 1
    kernel.run((10, 4, 1), [Slot("tensor", x.ctypes.data), Slot("i32", 5)])
    assert (x == 2).all()


def test_variants_give_their_own_assembly():
    module = parse_module(TEXT, "kernel.py")
    for name, word in (("cpu:sse", "retq"), ("cpu:neon", "ldr")):
        target = find_target(name)
        assert word in target.texts["asm"](target.lower(module))


@pytest.mark.parametrize(("variant", "fuses"), [("avx2", True), ("neon", True), ("sse", False)])
def test_only_processors_with_fused_products_fuse_them(variant, fuses):
    assert ("fuse-exponents" in ",".join(spec(f"cpu:{variant}").pipeline)) == fuses
