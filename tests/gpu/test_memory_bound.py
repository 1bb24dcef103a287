"""The kernels that `mltriton bench -t cuda` times, at sizes that neither blocks nor copies divide, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mltriton.tools.gpu_bench import load_both
from mltriton.tools.side_by_side import OURS

torch = pytest.importorskip("torch")
SOURCE = Path(__file__).parents[2] / "benchmarks" / "gpu" / "sources" / "memory_bound.py"
SHAPES = [(100, 72), (64, 1000), (257, 4096), (130, 5000)]


@pytest.fixture(scope="module")
def timed() -> Any:
    return load_both(SOURCE)[OURS]


def random(*shape: int, dtype: str = "float32") -> Any:
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
def test_transpose(timed: Any, shape: tuple[int, int], dtype: str) -> None:
    x = (100 * random(*shape)).to(getattr(torch, dtype))
    assert torch.equal(timed.transpose(x, torch.empty(*shape[::-1], device="cuda", dtype=x.dtype)), x.T)
