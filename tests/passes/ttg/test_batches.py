"""Products of batches at every level, for targets with lanes and without: the executor finds the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.targets.registry import spec

from ...targets.xe.test_batches import batched, heads, turned
from ..programs import Program, kernel


def program(function: Any, batch: int) -> Program:
    """Three batches of a tensor of four, in blocks that go beyond all sizes."""

    def make(random: np.random.Generator) -> list[Any]:
        right = (4, 28, 36) if function is turned else (4, 36, 28)
        shapes = ((4, 20, 36), right, (4, 20, 28))
        return [*(random.standard_normal(shape).astype(np.float16) for shape in shapes), 3, 20, 28, 36]

    signature = "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32"
    return kernel(function, signature, make, (1, 1, -(-4 // batch)), BB=batch, BM=32, BN=32, BK=16)


@pytest.mark.parametrize("target", ["generic", "xe:pvc"])
@pytest.mark.parametrize(
    ("function", "batch", "warps"), [(batched, 2, 4), (turned, 4, 1), (turned, 4, 8), (heads, 1, 4)]
)
def test_levels(function: Any, batch: int, warps: int, target: str) -> None:
    pipeline = spec(target).pipeline
    for end in (2, len(pipeline)):
        program(function, batch).with_warps(warps, target).check(",".join(pipeline[:end]))
