"""The pictures of layouts in the documentation are those that `mltriton layout --svg` draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from mltriton.tools.layout_picture import svg
from mltriton.tools.layout_view import view_of

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
DPAS = (
    "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, "
    "warpsPerCTA = [1, 1], repCluster = [1, 1]}>"
)
DRAWN = {
    "results": (DPAS, "tensor<8x16xf32>"),
    "right-operand": (f"#ttg.dot_op<{{opIdx = 1, parent = {DPAS}}}>", "tensor<16x16xf16>"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_current(name: str) -> None:
    assert (PICTURES / f"{name}.svg").read_text(encoding="utf-8") == svg(view_of(*DRAWN[name]))


def test_every_picture_is_drawn_here() -> None:
    assert {path.stem for path in PICTURES.iterdir()} == set(DRAWN)
