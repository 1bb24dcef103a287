"""A GPU that is a table, a machine and nothing else compiles to code that its assembler takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

F32, I32 = np.float32, np.int32


@triton.jit
def added(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    row = tl.load(x + at, mask=inside, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + at, powers / tl.sum(powers, 0), mask=inside)


def compiled(kernel: Any, dtype: Any = F32, block: int = 1024, warps: int = 4, **options: Any) -> Any:
    x = np.zeros(1 << 12, dtype)
    return kernel.warmup(x, x, x, 1 << 12, block, grid=(1,), num_warps=warps, target="second", **options).asm


def assembled(ptx: str, tmp_path: Path) -> None:
    """Let NVIDIA's assembler read it, where there is one."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("there is no ptxas")
    (tmp_path / "kernel.ptx").write_text(ptx)
    run = subprocess.run([assembler, "-arch=sm_90", "-o", "/dev/null", "kernel.ptx"], cwd=tmp_path, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


@pytest.mark.parametrize("kernel", [added, softmax])
@pytest.mark.parametrize("warps", [1, 4])
def test_it_compiles(kernel: Any, warps: int, tmp_path: Path) -> None:
    asm = compiled(kernel, warps=warps)
    assert f".maxntid {32 * warps}" in asm["ptx"]
    assembled(asm["ptx"], tmp_path)
