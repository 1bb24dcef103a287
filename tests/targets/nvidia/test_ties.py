"""Reductions that take one of equal elements, run by the PTX emulator: all lanes take the same."""

from __future__ import annotations

import pytest

from ptx_emulator.launch import install

from ..simt import ties


@pytest.mark.parametrize("num_warps", [1, 4])
def test_lanes_agree_about_equal_elements(monkeypatch: pytest.MonkeyPatch, num_warps: int):
    install(monkeypatch)
    ties.check("cuda:90", num_warps)
