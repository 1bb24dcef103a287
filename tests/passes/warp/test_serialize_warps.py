"""serialize-warps: one thread gives what the warps together give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.dialects import gpu
from mltriton.errors import TargetError
from mltriton.executor import Options
from mltriton.frontend.code_generator import generate
from mltriton.frontend.signature import Constant, parse_signature
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.types import I1, I32

from ..programs import Program, compare, transform
from . import warp_kernels

CLEAN = (
    "canonicalize,cse,combine,reorder-broadcast,normalize-block-pointers,split-uniform-increments,"
    "canonicalize,cse,licm,dce"
)
WARP = f"{CLEAN},assign-layouts,cse,distribute-to-warps"


def program(fn: Any, warps: int, signature: str, arguments: Any, **constants: Any) -> Program:
    """A kernel written for `warps` warps."""

    def make() -> Module:
        names = [name for name in fn.signature.parameters if name not in constants]
        entries = parse_signature(signature, names) | {name: Constant(value) for name, value in constants.items()}
        ordered = {name: entries[name] for name in fn.signature.parameters}
        module = generate(fn, ordered, target="cpu", warps=warps)
        module.attributes |= {
            "mltriton.warp_level": IntegerAttr(1, I1),
            "ttg.num-warps": IntegerAttr(warps, I32),
            "ttg.target": StringAttr("cpu"),
        }
        return module

    return Program(make, lambda random: arguments(random, warps))


def check(made: Program) -> Module:
    """Run the warps together and in turns, before and after cleaning up; gives the loops over chunks."""
    module = made.transformed(WARP)
    expected = made.results(module, options=Options(order="backward"))
    assert any(array.any() for array in expected)
    serial = transform(module, "serialize-warps")
    assert not any(isinstance(op, gpu.SubgroupId | gpu.Barrier) for op in serial.walk())
    compare(expected, made.results(serial))
    clean = transform(serial, "canonicalize,cse,licm,dce")
    compare(expected, made.results(clean))
    loops = transform(clean, "form-nests,pack-operands,match-target-size,dce")
    compare(expected, made.results(loops, options=Options(uninitialised=True)))
    return loops


def rows(random: np.random.Generator, warps: int, n: int = 16, out: int = 0) -> list[Any]:
    x = random.standard_normal((warps, n)).astype(np.float32)
    return [x, np.zeros((warps + out, n), np.float32)]


WARPS = [1, 2, 4, 8, 32]


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize(
    "fn", [warp_kernels.alone, warp_kernels.neighbours, warp_kernels.until], ids=lambda fn: fn.__name__
)
def test_rows(fn: Any, warps: int) -> None:
    check(program(fn, warps, "*fp32, *fp32", lambda random, w: rows(random, w, out=1), N=16))


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("warps", WARPS)
def test_loops_with_barriers(warps: int, n: int) -> None:
    check(program(warp_kernels.steps, warps, "*fp32, *fp32, i32", lambda random, w: [*rows(random, w), n], N=16))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 0), (3, 2), (4, 1)])
@pytest.mark.parametrize("warps", WARPS)
def test_nested_loops_branches_and_early_returns(warps: int, n: int, m: int) -> None:
    signature = "*fp32, *fp32, i32, i32"
    check(program(warp_kernels.nested, warps, signature, lambda random, w: [*rows(random, w), n, m], N=16))


@pytest.mark.parametrize("warps", WARPS)
def test_dots_with_accumulators_in_loops_with_barriers(warps: int) -> None:
    def arguments(random: np.random.Generator, w: int) -> list[Any]:
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((16 * w, 75), (75, 32)))
        return [a, b, np.zeros((16 * w, 32), np.float32), 75]

    check(program(warp_kernels.products, warps, "*fp32, *fp32, *fp32, i32", arguments, M=16, N=32, BK=32))


@pytest.mark.parametrize("warps", WARPS)
def test_block_pointers(warps: int) -> None:
    def arguments(random: np.random.Generator, w: int) -> list[Any]:
        x = random.standard_normal((3 * w, 16)).astype(np.float32)
        return [x, np.zeros_like(x), 3]

    check(program(warp_kernels.block_pointers, warps, "*fp32, *fp32, i32", arguments, N=16))


@pytest.mark.parametrize("warps", WARPS)
def test_global_memory_in_order(warps: int) -> None:
    def arguments(random: np.random.Generator, w: int) -> list[Any]:
        return [random.integers(0, 9, (w, 8)).astype(np.int32), np.zeros(w + 1, np.int32)]

    check(program(warp_kernels.in_turn, warps, "*i32, *i32", arguments, N=8))


CHOICE = """
module attributes {{mltriton.warp_level = true, "ttg.num-warps" = 2 : i32, ttg.target = "cpu"}} {{
  tt.func @choice(%p: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %index = gpu.subgroup_id : index
    %w = arith.index_cast %index : index to i32
    %x = arith.constant dense<1.0> : tensor<8xf32>
    %a = ttg.local_alloc : () -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    %first = arith.cmpi eq, %{chosen_by}, %c0 : i32
    %m = scf.if %first -> (!ttg.memdesc<8xf32, #ttg.shared_memory, mutable>) {{
      scf.yield %a : !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    }} else {{
      scf.yield %b : !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    }}
    gpu.barrier
    ttg.local_store %x, %m : tensor<8xf32> -> !ttg.memdesc<8xf32, #ttg.shared_memory, mutable>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(("chosen_by", "message"), [("w", "depends on the warp"), ("n", "known when compiling")])
def test_a_buffer_that_a_branch_chooses_is_refused(chosen_by: str, message: str) -> None:
    """The language has no way to say it."""
    module = parse_module(CHOICE.format(chosen_by=chosen_by), "choice.mlir")
    with pytest.raises(TargetError, match=message) as caught:
        transform(
            module, "assign-layouts,distribute-to-warps,serialize-warps,form-nests,pack-operands,match-target-size"
        )
    assert caught.value.line == 11
    assert "memdesc<8xf32" in str(caught.value)
