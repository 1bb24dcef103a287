"""Programs whose blocks say which lane holds what: every level agrees with level tt, with 1 to 32 warps."""

from __future__ import annotations

import pytest

from mltriton.targets.registry import spec

from ..programs import Program
from ..warp.test_levels import PROGRAMS

PIPELINE = spec("xe:pvc").pipeline
LEVELS = {"ttg": 2, "warp": 3, "intrinsic": 4}


@pytest.mark.parametrize("warps", [1, 4, 32])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_level(name: str, level: str, warps: int) -> None:
    program: Program = PROGRAMS[name].with_warps(warps, "xe:pvc")
    program.check(",".join(PIPELINE[: LEVELS[level]]))
