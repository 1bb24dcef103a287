"""Programs with tiling hints at every level against level tt: a hint moves work between warps and changes no number."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import pytest

from levels import check_levels
from mltriton.errors import TilingError
from mltriton.frontend.function import LanguageFunction
from mltriton.targets.registry import spec

from .. import hinted_kernels as kernels
from ..programs import Array, Program, kernel, transform

PIPELINE = spec("generic").pipeline
LEVELS = ["ttg", "warp", "intrinsic"]


def program(fn: LanguageFunction, *shapes: tuple[int, ...], n: int | None = None, **constants: Any) -> Program:
    """A kernel on random f32 arrays, of which those of shape (0, ...) are zero, and `n`."""

    def make(random: np.random.Generator) -> list[Any]:
        made = [np.zeros(s[1:], np.float32) if s[0] == 0 else random.standard_normal(s).astype("f") for s in shapes]
        return [*made, *([] if n is None else [n])]

    entries = ", ".join(["*fp32:16"] * len(shapes) + ["i32"] * (n is not None))
    return kernel(fn, entries, make, **constants)


def batched(tiling: str | None) -> Program:
    shapes = ((2, 32, 16), (2, 16, 64), (0, 2 * 32 * 65))
    return program(kernels.batched, *shapes, B=2, BM=32, BN=64, BK=16, TILING=tiling)


def transposed(tiling: str | None) -> Program:
    return program(kernels.transposed, (16, 32), (64, 16), (0, 64, 32), BM=32, BN=64, BK=16, TILING=tiling)


def backward(**hints: str | None) -> Program:
    rows, keys = (50, 16), (32, 16)
    shapes = (rows, keys, keys, rows, (0, *rows), (0, *keys), (0, *keys))
    hints = {"DK": None, "DQ": None, "S": None, **hints}
    return program(kernels.attention_backward, *shapes, n=50, BM=32, BN=32, BD=16, **hints)


def control_flow(first: str | None, second: str | None) -> Program:
    return program(kernels.control_flow, (3, 32, 32), (0, 2, 32, 32), n=3, BM=32, FIRST=first, SECOND=second)


def chain(first: str | None, second: str | None) -> Program:
    return program(kernels.product_of_three, (32, 32), (0, 32, 32), BM=32, FIRST=first, SECOND=second)


def shared(first: str | None, second: str | None) -> Program:
    return program(kernels.shared_operand, (2, 32, 32), (0, 2, 32, 32), BM=32, FIRST=first, SECOND=second)


# Program and numbers of warps that its blocks are large enough for.
CASES: dict[str, tuple[Program, tuple[int, ...]]] = {
    "batched-horizontal": (batched("horizontal"), (2, 4, 8)),
    "batched-vertical": (batched("vertical"), (2, 4, 8)),
    "batched-square": (batched("square"), (4, 16)),
    "transposed-horizontal": (transposed("horizontal"), (2, 4)),
    "transposed-vertical": (transposed("vertical"), (2, 4)),
    "transposed-square": (transposed("square"), (4, 8)),
    "backward-dk": (backward(DK="horizontal"), (2, 4)),
    "backward-dq": (backward(DQ="horizontal"), (1, 2, 4)),
    "backward-dk-dq": (backward(DK="horizontal", DQ="horizontal"), (2, 4)),
    "backward-s": (backward(S="square"), (4, 8)),
    "backward-dq-s": (backward(DQ="horizontal", S="horizontal"), (4,)),
    "control-flow-horizontal": (control_flow("horizontal", "vertical"), (1, 2)),
    "control-flow-square": (control_flow("square", "horizontal"), (2, 4)),
    "chain": (chain("vertical", "horizontal"), (2,)),
    "chain-horizontal": (chain(None, "horizontal"), (2, 4)),
    "chain-vertical": (chain(None, "vertical"), (2,)),
    "shared": (shared("horizontal", "vertical"), (1, 2)),
    "shared-square": (shared("square", "horizontal"), (4,)),
}
RUNS = [(name, warps) for name, (_, counts) in CASES.items() for warps in counts]


@pytest.mark.parametrize(("name", "warps"), RUNS)
def test_levels(name: str, warps: int) -> None:
    check_every_level(CASES[name][0], warps)


def check_every_level(made: Program, warps: int) -> None:
    made = made.with_warps(warps)
    module = made.make()
    before = made.results(made.make())
    for level, passes in zip(["tt", *LEVELS], PIPELINE, strict=True):
        module = transform(module, passes)
        for expected, found in zip(before, made.results(module), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-3, err_msg=level)


def backward_exactly(q: Array, k: Array, v: Array, do: Array, *_: Array) -> list[Array]:
    s = q @ k.T
    ds = 2 * s * (do @ v.T)
    return [ds @ k, ds.T @ q, (s * s).T @ do]


def control_flow_exactly(x: Array, *_: Array) -> list[Array]:
    parts = [sum(x[inner] @ x[0] for inner in range(outer + 1)) / (outer + 1) for outer in range(3)]
    return [np.stack([1.5 * x[0] @ x[0], sum(parts)])]


# What the last arrays of a kernel hold, in float64.
EXACT: dict[str, Callable[..., list[Array]]] = {
    "batched": lambda a, b, _: [np.concatenate([(a @ b).ravel(), (a @ b).sum(2).ravel()])],
    "transposed": lambda a, b, _: [(a.T @ b.T + 1).T],
    "backward": backward_exactly,
    "control": control_flow_exactly,
    "chain": lambda x, _: [(x @ x).T @ (x + 1)],
    "shared": lambda x, _: [np.stack([x[0] @ x[1], x[0] @ x[0]])],
}


@pytest.mark.parametrize("name", CASES)
def test_level_tt_is_right(name: str) -> None:
    """Level tt, to which the others are compared."""
    made = CASES[name][0]
    arrays = [array for array in made.arguments(np.random.default_rng(0)) if isinstance(array, np.ndarray)]
    wanted = EXACT[name.partition("-")[0]](*(array.astype(np.float64) for array in arrays))
    for expected, result in zip(wanted, made.results(made.make())[-len(wanted) :], strict=True):
        tolerance = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(result.ravel(), expected.ravel(), rtol=1e-5, atol=tolerance)


HINTS = ("horizontal", "vertical", "square", None)
MAKERS: dict[str, Callable[..., Program]] = {
    "batched": batched,
    "transposed": transposed,
    "backward": lambda dk, dq, s: backward(DK=dk, DQ=dq, S=s),
    "control-flow": control_flow,
    "chain": chain,
    "shared": shared,
}


@pytest.mark.slow
@pytest.mark.parametrize("warps", [2, 4, 8])
@pytest.mark.parametrize("name", MAKERS)
def test_all_hints(name: str, warps: int) -> None:
    """Any hints on all dots: they are refused, or every level computes the same."""
    held = refused = 0
    for hints in product(HINTS, repeat=len(signature(MAKERS[name]).parameters)):
        try:
            check_every_level(MAKERS[name](*hints), warps)
            held += 1
        except TilingError:
            refused += 1
    assert held
    assert refused or name not in ("backward", "chain")


@pytest.mark.parametrize("tiling", ["horizontal", "vertical", "square"])
def test_machine_code(tiling: str) -> None:
    """A CPU runs a program as one warp: it takes hints that no block of this size could have with 32 warps."""
    arrays = {"a_ptr": "2x16x16:fp32", "b_ptr": "2x16x16:fp32", "c_ptr": "544:fp32"}
    blocks = {"B": 2, "BM": 16, "BN": 16, "BK": 16, "TILING": tiling}
    check_levels(kernels.batched, {**arrays, **blocks}, (1,), num_warps=32)
