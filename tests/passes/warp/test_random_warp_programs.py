"""Random warp-level kernels: warps that take turns, the loops over chunks and the warps together give the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mltriton.executor import Options

from ..programs import compare, transform
from .random_warp_programs import Writer
from .test_serialize_warps import CLEAN, program

WARP = f"{CLEAN},check-warp-level,assign-layouts,cse,distribute-to-warps,lower-cross-warp"
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 120))]


def load_kernel(source: str, folder: Path) -> Any:
    path = folder / "kernel.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("random_warp_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, tmp_path: Path) -> None:
    source = Writer(seed).source()
    warps = [1, 2, 4, 8][seed % 4]

    def arguments(random: np.random.Generator, w: int) -> list[Any]:
        x = random.standard_normal((w, 8)).astype(np.float32)
        return [x, np.zeros_like(x), seed % 3, seed // 3 % 3]

    made = program(load_kernel(source, tmp_path), warps, "*fp32, *fp32, i32, i32", arguments, N=8)
    module = made.transformed(WARP)
    expected = made.results(module, options=Options(order="backward"))
    assert all(np.isfinite(array).all() for array in expected)
    serial = transform(module, "serialize-warps")
    compare(expected, made.results(serial))
    loops = transform(serial, "canonicalize,cse,licm,dce,form-nests,pack-operands,match-target-size,dce")
    compare(expected, made.results(loops, options=Options(uninitialised=True)))
