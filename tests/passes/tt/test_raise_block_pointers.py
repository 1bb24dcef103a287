"""raise-block-pointers: random programs do the same before and after; what is raised, and what is not, and why."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.dialects import tt
from mltriton.errors import ExecutionError
from mltriton.executor import run
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module

from ..programs import transform
from .regular_pointer_programs import program


def effects(module: Module, seed: int) -> np.ndarray | None:
    """What the program stores; None where it leaves its memory."""
    random = np.random.default_rng(seed)
    x = random.integers(-4, 5, int(random.choice([300, 1000, 2100, 2500, 6000]))).astype(np.float32)
    y = np.zeros(6000, np.float32)
    m, n, k = (int(random.integers(1, 20)) for _ in range(3))
    stride = int(random.choice([16, 24, 40, 7, 1, 0, -16]))
    numbers = [m, n, k, stride, int(random.integers(-9, 20)), int(random.integers(0, 4)), bool(random.integers(2))]
    try:
        run(module, [x, y, *numbers], (3, 2))
    except ExecutionError:
        return None
    return y


def check(seed: int) -> tuple[int, int]:
    """Accesses that were raised, of how many."""
    text = program(seed)
    before, after = (parse_module(text, "random.mlir") for _ in range(2))
    transform(after, f"{'canonicalize,cse,' if seed % 2 else ''}raise-block-pointers,canonicalize,cse,licm,dce")
    for inputs in range(3):
        expected = effects(before, seed + inputs)
        if expected is not None:
            np.testing.assert_array_equal(effects(after, seed + inputs), expected, f"{seed} {inputs}\n{text}")
    accesses = [op for op in after.walk() if isinstance(op, tt.Load | tt.Store)]
    return sum(isinstance(op.ptr.defining_op, tt.MakeTensorPtr) for op in accesses), len(accesses)


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 3000), marks=pytest.mark.slow)])
def test_random_programs_do_the_same(seeds: range) -> None:
    raised, total = np.sum([check(seed) for seed in seeds], axis=0)
    assert raised > total / 3
