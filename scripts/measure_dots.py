"""Register tiles of dot micro-kernels: speed from the second-level cache, against the peak of the multiply-add units.

Run `python scripts/measure_dots.py [f32 f64 i8 bf16 i32]`. This is how the tiles in
`mltriton/targets/cpu/features.py` were chosen; the peak is measured in the same run by a loop of independent
multiply-adds.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mltriton.runtime.native.objects import load_object
from mltriton.targets.cpu.features import CpuFeatures, RegisterTile, host
from mltriton.targets.cpu.llvm.dot import DotShape, call_dot
from mltriton.targets.cpu.llvm.dot_instructions import INSTRUCTIONS
from mltriton.targets.cpu.llvm.emit.kernel import function_attributes
from mltriton.targets.llvm.toolchain import Machine, compile_object
from mltriton.targets.llvm.types import I1, I64, PTR, VOID, constant
from mltriton.targets.llvm.writer import Module

TILES = ((4, 2), (6, 2), (8, 2), (12, 2), (4, 3), (8, 3), (4, 4), (5, 4), (6, 4), (4, 6))
ROWS, STEPS, WIDTH_BYTES, REPEATS, ROUNDS = 120, 256, 1024, 4, 15


def load(module: Module, features: CpuFeatures) -> Callable[..., Any]:
    """The function `run` of a module, and what keeps it loaded."""
    machine = Machine(features.triple, features.cpu, features.attributes)
    loaded = load_object(compile_object(module.text, machine), ["run"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(loaded.addresses["run"])
    return lambda *arguments: (function(*arguments), loaded)


def dot(features: CpuFeatures, dtype: str, tile: RegisterTile) -> tuple[Callable[..., Any], int]:
    """A function that multiplies packed panels, and its operations a repeat."""
    features = replace(features, tiles=((dtype, tile),))
    instruction = INSTRUCTIONS[dtype](features, "")
    panel = tile.vectors * features.lanes(instruction.accumulator.bits)
    columns = max(1, WIDTH_BYTES // instruction.accumulator.bytes // panel) * panel
    group = instruction.group
    module = Module(function_attributes(features))
    shape = DotShape(dtype, ROWS, columns, panel=panel, panel_stride=STEPS * panel * group, has_rest=False)
    run = module.function("run", VOID, [("repeats", I64), ("memory", PTR)], linkage="")
    repeats, a = run.parameters
    b = run.gep(a, ROWS * STEPS * group, instruction.a_type)
    c = run.gep(b, STEPS * columns * group, instruction.b_type)
    strides = [constant(I64, number) for number in (STEPS * group, panel * group, columns, STEPS)]
    with run.loop(0, repeats):
        call_dot(run, features, shape, a, strides[0], b, strides[1], c, strides[2], strides[3], constant(I1, 1))
    run.ret()
    return load(module, features), 2 * ROWS * columns * STEPS * group


def peak(features: CpuFeatures, dtype: str) -> tuple[Callable[..., Any], int]:
    """A loop of independent steps of the dtype's instruction, and its operations a repeat."""
    instruction, count = INSTRUCTIONS[dtype](features, ""), 12
    lanes = features.lanes(instruction.accumulator.bits)
    module = Module(function_attributes(features))
    run = module.function("run", VOID, [("repeats", I64), ("memory", PTR)], linkage="")
    repeats, memory = run.parameters
    a, b = run.load(instruction.a_load, memory), run.load(instruction.b_load.with_lanes(lanes), memory)
    zero = constant(instruction.accumulator.with_lanes(lanes), 0)
    with run.loop(0, run.mul(repeats, 50_000), carried=[zero] * count) as loop:
        loop.yield_(*[instruction.step(run, value, a, b) for value in loop.carried])
    for i, value in enumerate(loop.results):
        run.store(value, run.gep(memory, i * lanes, instruction.accumulator))
    run.ret()
    return load(module, features), 2 * count * lanes * instruction.group * 50_000


def main(dtypes: list[str]) -> None:
    """Print a table for each dtype; all candidates take turns, and the best round counts."""
    features = host()
    memory = np.zeros(8 << 20, np.uint8)
    print(f"{features.name}: {features.cpu}, {ROWS} rows, {STEPS} steps of k, {WIDTH_BYTES} bytes of a row of c")
    for dtype in dtypes:
        if dtype not in dict(features.tiles) or (dtype == "bf16" and not features.bf16_dot):
            print(f"{dtype}: no dot on this machine")
            continue
        tiles = [RegisterTile(*tile) for tile in TILES if tile[0] * tile[1] < features.vector_registers - tile[1]]
        runs = {"peak": peak(features, dtype)} | {f"{t.rows}x{t.vectors}": dot(features, dtype, t) for t in tiles}
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(ROUNDS):
            for name, (function, _) in runs.items():
                start = time.perf_counter()
                function(REPEATS, memory.ctypes.data)
                best[name] = min(best[name], time.perf_counter() - start)
        rates = {name: runs[name][1] * REPEATS / seconds / 1e9 for name, seconds in best.items()}
        chosen = features.tile(dtype)
        for name, rate in rates.items():
            mark = " <- in use" if name == f"{chosen.rows}x{chosen.vectors}" else ""
            print(f"{dtype:5s} {name:6s} {rate:8.1f} G operations/s {rate / rates['peak']:6.2f} of peak{mark}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["f32", "f64", "i8", "bf16", "i32"])
