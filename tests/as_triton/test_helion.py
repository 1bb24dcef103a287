"""Kernels written in Helion: `helion_kernels.py`, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_import import python


@pytest.mark.slow
def test_all_kernels(tmp_path: Path) -> None:
    pytest.importorskip("helion")
    script = str(Path(__file__).with_name("helion_kernels.py"))
    printed = python("-W", "ignore", script, seconds=900, MLTRITON_CACHE_DIR=str(tmp_path))
    assert printed.count(": right") == 16
