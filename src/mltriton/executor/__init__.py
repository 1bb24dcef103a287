"""The reference executor: runs a module of any level from `tt` to `intrinsic` in numpy.

Takes a module and the arguments of a launch; changes the argument arrays in place, as the kernel would. It is the
definition of what an operation means; passes are tested by running the program before and after. Every access is
checked for bounds and alignment.

    from mltriton.executor import Options, run
    run(module, [x, y, out, n], grid=(4,))                          # every program, the module's only function
    run(module, args, (8, 8), function="gemm", programs=[0, 63])    # some programs, by linear id (x fastest) or
    coordinates run(module, args, grid, options=Options(uninitialised=True, order="shuffled", seed=1))

Arguments stand in the order of the `tt.func`'s parameters: arrays for pointers (numpy, or torch CPU tensors, shared
without a copy), Python or numpy numbers for scalars, objects with `base`, `shape` and `strides` for descriptors.
numpy has no bf16 and fp8: give the bit patterns as uint16 and uint8 arrays (the parameter's type says what they are);
`to_bfloat16` and `from_bfloat16` convert. A view may be reached outside its bounds within its base buffer, never
outside that.

Raises `faults.Fault` (OutOfBounds, Misaligned, ReadOnly, Uninitialised, DataRace, BarrierDivergence,
BrokenAssumption, InvalidOperation), each with the source line, the operation, the program and the warp;
`DeviceAssertionError` for `tt.assert`; `ArgumentError` and `GridError` for the launch itself.

Levels: at `tt` and `ttg` a tensor is the whole block and a program runs once. At `warp` and `intrinsic` (module
attribute `mltriton.level`), and at every level of a warp-level kernel, it runs once for each of `ttg.num-warps` warps,
which meet at `gpu.barrier`. Masked-off
loads without `other` give 0. Dots accumulate in float64 and round once to the accumulator's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mltriton.errors import GridError
from mltriton.executor.arguments import bind
from mltriton.executor.code import Code
from mltriton.executor.machine import Coordinate, Machine, Options, coordinates
from mltriton.executor.segments import Memory
from mltriton.executor.table import FLOW, OPERATIONS
from mltriton.executor.values import from_bfloat16, to_bfloat16
from mltriton.executor.visits import Visits
from mltriton.ir.module import Module


def run(
    module: Module,
    args: Sequence[Any],
    grid: Sequence[int],
    *,
    function: str | None = None,
    programs: Iterable[int | Coordinate] | None = None,
    options: Options | None = None,
    visits: Visits | None = None,
) -> None:
    """Run a launch of `grid` programs; the module docstring says what arguments are and what is raised.

    `function` names the `tt.func` (the first public one when None); `programs` chooses programs, in that order (all
    of them, x fastest, when None); `visits` counts loads and stores.
    """
    extent = _grid(grid)
    code = Code(module, OPERATIONS if visits is None else visits.table(OPERATIONS), FLOW)
    name = function if function is not None else _entry(code)
    memory = Memory()
    arguments = bind(code.function(name), args, memory)
    machine = Machine(module, code, memory, extent, options or Options())
    machine.watch(code.function(name), arguments)
    with np.errstate(all="ignore"):
        for at in coordinates(extent) if programs is None else (_coordinate(p, extent) for p in programs):
            machine.run(name, arguments, at)


def _grid(grid: Sequence[int]) -> Coordinate:
    sizes = tuple(int(size) for size in grid)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise GridError(f"the grid {sizes} is not one to three positive integers")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _coordinate(program: int | Coordinate, grid: Coordinate) -> Coordinate:
    if isinstance(program, int):
        return program % grid[0], program // grid[0] % grid[1], program // (grid[0] * grid[1])
    return program


def _entry(code: Code) -> str:
    public = [name for name, op in code.functions.items() if op.sym_visibility == "public"]
    return next(iter(public or code.functions), "")


__all__ = ["Options", "Visits", "from_bfloat16", "run", "to_bfloat16"]
