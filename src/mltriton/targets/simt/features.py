"""What functions written as polynomials (`targets/llvm/math.py`) may use on a GPU. Level: data."""

from __future__ import annotations

from mltriton.records import NamedTuple


class Features(NamedTuple):
    """Fused multiply-add there is, and nothing of x86."""

    has_fma: bool = True
    avx512: bool = False
