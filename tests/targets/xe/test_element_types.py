"""Blocks of every element type, loaded, converted and stored on Xe, emulated: no wrong byte, and none outside."""

from __future__ import annotations

import numpy as np
import pytest

from .element_moves import Move

pytestmark = pytest.mark.usefixtures("queue")
FORMS = ("simt", "simd")
RNG = np.random.default_rng(11)
BYTES = ("int8", "uint8", "float8e4nv", "float8e5")


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("pitch", ["wide", "odd"])
@pytest.mark.parametrize("kind", BYTES)
def test_bytes_with_32_columns_a_warp(kind: str, pitch: str, codegen: str) -> None:
    """Two neighbours of a row lie in one lane; by block accesses, and where the hardware takes no such matrix."""
    Move(kind, kind, 32, 32, pitch=pitch, codegen=codegen).run(RNG)
    Move(kind, kind, 16, 64, "plain", ragged=True, pitch=pitch, warps=2, codegen=codegen).run(RNG)


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("source", ["int32", "int64", "float32"])
def test_wider_elements_become_bytes_with_32_columns_a_warp(source: str, codegen: str) -> None:
    for rows, columns, warps in ((8, 32, 1), (64, 32, 1), (32, 32, 4)):
        Move(source, "int8", rows, columns, warps=warps, codegen=codegen).run(RNG)
