"""Copies of blocks by an engine: right results in every order of warps, and planted mistakes, each a named fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.executor import Options
from mltriton.executor.faults import BarrierDivergence, DataRace, Fault, InvalidOperation, Unfinished

# Two warps: the first one fetches a block, each doubles its half, the first one sends it.
PROGRAM = """
module attributes {"mltriton.level" = "warp", "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @double(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %rows: i64, %columns: i64, %i: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %eight = arith.constant 8 : i32
  %idx = gpu.subgroup_id : index
  %id = arith.index_cast %idx : index to i32
  %first = arith.cmpi eq, %id, %zero : i32
  %half = arith.muli %id, %eight : i32
  %in = ttng.tensor_map %p, [%rows, %columns], [%columns, %one] : <f32>, <tensor<16x8xf32>>
  %out = ttng.tensor_map %q, [%rows, %columns], [%columns, %one] : <f32>, <tensor<16x8xf32>>
  %m = ttg.local_alloc : () -> !ttg.memdesc<16x8xf32>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64>
  scf.if %first {
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64>
  }
  gpu.barrier
  scf.if %first {
    ttng.barrier_expect %b, 512 : !ttg.memdesc<1xi64>
    ttng.async_tma_copy_global_to_local %in[%i, %zero] %m, %b
      : !tt.tensordesc<tensor<16x8xf32>>, !ttg.memdesc<1xi64> -> !ttg.memdesc<16x8xf32>
  }
  ttng.wait_barrier %b, %zero : !ttg.memdesc<1xi64>
  %mine = ttg.memdesc_subview %m[%half, %zero] : !ttg.memdesc<16x8xf32> -> !ttg.memdesc<8x8xf32>
  %x = ttg.local_load %mine : !ttg.memdesc<8x8xf32> -> tensor<8x8xf32>
  %y = arith.addf %x, %x : tensor<8x8xf32>
  ttg.local_store %y, %mine : tensor<8x8xf32> -> !ttg.memdesc<8x8xf32>
  ttng.fence_async_shared
  gpu.barrier
  scf.if %first {
    ttng.async_tma_copy_local_to_global %out[%i, %zero] %m : !tt.tensordesc<tensor<16x8xf32>>, !ttg.memdesc<16x8xf32>
    ttng.async_tma_store_wait
  }
  gpu.barrier
  ttg.local_store %y, %mine : tensor<8x8xf32> -> !ttg.memdesc<8x8xf32>
  tt.return
}
}"""
SEND = """ttng.async_tma_copy_local_to_global %out[%i, %zero] %m
      : !tt.tensordesc<tensor<16x8xf32>>, !ttg.memdesc<16x8xf32>"""
READ, WRITTEN = "ttng.async_tma_store_wait", "ttng.async_tma_store_wait {written = true}"
WAIT = "ttng.wait_barrier %b, %zero : !ttg.memdesc<1xi64>"
# What is replaced in the program, what by, and the fault.
MISTAKES: dict[str, tuple[str, str, type[Fault], str]] = {
    "no wait": (WAIT, "", Unfinished, "nobody has waited for the copy"),
    "one warp waits": (WAIT, f"scf.if %first {{\n{WAIT}\n}}", DataRace, "only other warps have waited"),
    "the other parity": (WAIT, WAIT.replace("%zero", "%other"), BarrierDivergence, "never ends"),
    "no fence": ("ttng.fence_async_shared", "", DataRace, "without a fence"),
    "no barrier": ("ttng.fence_async_shared\n  gpu.barrier", "ttng.fence_async_shared", DataRace, "races"),
    "no wait for the store": ("ttng.async_tma_store_wait", "", Unfinished, "nobody has waited for the copy from it"),
    "no barrier initialised": ("ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64>", "", InvalidOperation, "initialised"),
    "bytes that never come": ("%b, 512", "%b, 1024", BarrierDivergence, "never ends"),
    "too many bytes": ("%b, 512", "%b, 256", InvalidOperation, "more bytes"),
}


def run(execute: Any, text: str, order: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x, y = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32), np.zeros((20, 8), np.float32)
    execute(text, [x, y, 20, 8, 8], options=Options(order=order, uninitialised=True))
    return x, y


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_a_block_is_fetched_and_sent(execute: Any, order: Any) -> None:
    """What lies outside of the tensor is 0, and is not sent."""
    x, y = run(execute, PROGRAM, order)
    assert (y[8:] == 2 * x[8:]).all()
    assert not y[:8].any()


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found(execute: Any, name: str, order: Any) -> None:
    old, new, fault, message = MISTAKES[name]
    assert old in PROGRAM
    text = PROGRAM.replace(old, new, 1).replace("%zero = arith", "%other = arith.constant 1 : i32\n  %zero = arith", 1)
    with pytest.raises(fault, match=message):
        run(execute, text, order)


# What follows a copy to global memory in the same program, and whether it must wait for what that writes.
BEHIND = {
    "a copy": (SEND, True),
    "an update": (SEND.replace("_copy_local_to_global", "_reduce add,"), True),
    "a copy to other rows": (SEND.replace("%i, %zero", "%far, %zero"), False),
    "a load": ("%v = tt.load %q : !tt.ptr<f32>", True),
    "a store": ("%v = arith.constant 1.0 : f32\ntt.store %q, %v : !tt.ptr<f32>", True),
    "a load of something else": ("%v = tt.load %p : !tt.ptr<f32>", False),
}


@pytest.mark.parametrize("how", BEHIND)
@pytest.mark.parametrize("waits", [True, False])
def test_what_the_engine_may_still_write_is_left_alone(execute: Any, how: str, waits: bool) -> None:
    """Until that is waited for: shared memory that has been read does not say so, nor that only one copy is left."""
    behind, must_wait = BEHIND[how]
    start, end = PROGRAM.index("  scf.if %first {\n    ttng.async_tma_copy_local"), PROGRAM.rindex("  gpu.barrier\n")
    before = "%far = arith.constant 16 : i32\n" + f"scf.if %first {{\n{SEND}\n{READ}\n"
    wait = WRITTEN if waits else WRITTEN.replace("{", "{pendings = 1 : i32, ")
    text = f"{PROGRAM[:start]}{before}{wait}\n{behind}\n{READ}\n}}\n{PROGRAM[end:]}".replace("%out[%i", "%out[%zero")
    if waits or not must_wait:
        run(execute, text, "forward")
    else:
        with pytest.raises(Unfinished, match="may still write"):
            run(execute, text, "forward")


def test_updates_of_one_kind_need_no_order(execute: Any) -> None:
    add = SEND.replace("_copy_local_to_global", "_reduce add,")
    text = PROGRAM.replace("ttng.async_tma_store_wait", f"{READ}\n{add}\n{READ}")
    text = text.replace("ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce add,")
    x, y = run(execute, text, "forward")
    assert (y[8:] == 4 * x[8:]).all()
