"""What functions written as polynomials may use in a warp's vector program. Level: data."""

from __future__ import annotations

from typing import NamedTuple


class Features(NamedTuple):
    """As `targets/llvm/math.py` asks."""

    has_fma: bool = True
    avx512: bool = False
