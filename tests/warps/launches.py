"""Warp-level kernels in tests: run at every level in several orders of warps, or compiled up to their error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import mltriton
from mltriton.compiler import Job, options_of
from mltriton.errors import TritonError
from mltriton.executor import Options, run
from mltriton.frontend.signature import Argument
from mltriton.ir.verifier import verify
from mltriton.passes.levels import verify_level
from mltriton.targets.target import find_target
from mltriton.tools.launches import entries_of

Arrays = dict[str, np.ndarray[Any, Any]]
ORDERS = ("shuffled", "backward")


def job_of(kernel: Any, arguments: Mapping[str, Any], num_warps: int, target: str = "generic") -> Job:
    options = options_of(num_warps=num_warps, warp_level=True)
    return Job(kernel, entries_of(kernel, None, arguments), find_target(target), options)


def runs(
    kernel: Any,
    arguments: Mapping[str, Any],
    grid: Sequence[int] = (1,),
    *,
    num_warps: int = 4,
    orders: Sequence[Any] = ORDERS,
    target: str = "generic",
) -> Iterator[tuple[str, Arrays]]:
    """What the arrays hold after running the kernel at each level, in each order of warps, with every check on."""
    job = job_of(kernel, arguments, num_warps, target)
    for level, module in job.modules():
        verify(module)
        verify_level(module)
        for order in orders:
            copies = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
            given = [copies[name] for name, entry in job.entries.items() if isinstance(entry, Argument)]
            run(module, given, grid, options=Options(uninitialised=True, order=order, seed=7))
            yield f"{level}, {order}", {n: v for n, v in copies.items() if isinstance(v, np.ndarray)}


def native(
    kernel: Any, arguments: Mapping[str, Any], grid: Sequence[int] = (1,), *, num_warps: int = 4, **_: Any
) -> tuple[str, Arrays]:
    """What the arrays hold after a launch on the CPU."""
    copies = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    kernel[tuple(grid)](**copies, num_warps=num_warps, warp_level=True)
    return "native", {n: v for n, v in copies.items() if isinstance(v, np.ndarray)}


def check(
    kernel: Any, arguments: Mapping[str, Any], expected: Mapping[str, Any], rtol: float = 0.0, **how: Any
) -> None:
    """Every level, and the CPU, leave in the named arrays what is expected (floats: relative to the largest number)."""
    for name, arrays in [*runs(kernel, arguments, **how), native(kernel, arguments, **how)]:
        for array, wanted in expected.items():
            scale = np.abs(np.asarray(wanted, np.float64)).max()
            np.testing.assert_allclose(
                arrays[array].astype(np.float64), wanted, rtol=0, atol=rtol * scale, err_msg=f"{array}: {name}"
            )


def fault_of(kernel: Any, arguments: Mapping[str, Any], num_warps: int = 4, order: str = "forward") -> TritonError:
    """The fault of running the kernel at its first level."""
    try:
        next(runs(kernel, arguments, num_warps=num_warps, orders=[order]))
    except TritonError as error:
        return error
    raise AssertionError("the kernel runs")


def mistake_in(kernel: Any, num_warps: int = 4, target: str = "generic", **parameters: str) -> TritonError:
    """The error that compiling the kernel raises."""
    types = parameters or dict.fromkeys(kernel.signature.parameters, "*i32")
    try:
        mltriton.compile(kernel, types, target=target, num_warps=num_warps)
    except TritonError as error:
        return error
    raise AssertionError("the kernel compiles")


def line_of(kernel: Any, text: str, which: int = 0) -> int:
    """The line of the kernel's file on which `text` stands (the `which`-th time in the kernel)."""
    first = kernel.fn.__code__.co_firstlineno
    found = [first + i for i, line in enumerate(kernel.source.text.splitlines()) if text in line]
    return found[which]
