"""`mltriton layout`: tables and pictures of layouts, from text, files and kernels."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from mltriton.commands import app
from mltriton.errors import IRSyntaxError, OptionError
from mltriton.layouts.encodings import BlockedEncoding
from mltriton.tools.layout_picture import draw, svg
from mltriton.tools.layout_view import View, text_of, views_in, views_of

DPAS = (
    "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, "
    "warpsPerCTA = [1, 2], repCluster = [1, 1]}>"
)
RIGHT = f"#ttg.dot_op<{{opIdx = 1, parent = {DPAS}}}>"
BLOCKED = "#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [2, 2], order = [1, 0]}>"


KERNEL = """
import mltriton
import mltriton.language as tl

@mltriton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    places = x_ptr + tl.arange(0, BLOCK)
    tl.store(places, tl.load(places) * 2)
"""


def shown(encoding: str, tensor: str, **options: int | bool) -> str:
    (view,) = views_of(encoding, tensor)
    return text_of(view, **options)


def test_elements_to_places() -> None:
    assert shown(RIGHT, "tensor<16x32xf16>", rows=2, columns=3) == (
        f"{RIGHT} of 16x32\n"
        "warps by the first row and column of their part\n"
        "    0 16\n"
        "  0 0  1\n"
        "lane:register of each element\n"
        "      0   1   2 ...\n"
        "  0 0:0 1:0 2:0 ...\n"
        "  1 0:1 1:1 2:1 ...\n"
        "..."
    )


def test_places_to_elements() -> None:
    text = shown(RIGHT, "tensor<16x32xf16>", hardware=True, rows=2, columns=16)
    assert "warp 1: rows are lanes, columns registers\n" in text
    assert text.splitlines()[-3].split()[:3] == ["0", "(0,16)", "(1,16)"]
    assert text.splitlines()[-2].split()[-1] == "(15,17)"


def test_warps_alone() -> None:
    lines = shown(BLOCKED, "tensor<64x128xf32>").splitlines()
    assert lines[2:] == ["     0 64", "   0 0  1", "  32 2  3", "the encoding does not say which lane holds an element"]


def test_warps_that_share_a_part() -> None:
    assert "  0 0-1 2-3" in shown(f"#ttg.slice<{{dim = 1, parent = {BLOCKED}}}>", "tensor<64xf32>")
    assert "  0 0,2 1,3" in shown(f"#ttg.slice<{{dim = 0, parent = {BLOCKED}}}>", "tensor<128xf32>")
    assert "  0 0-3" in shown(BLOCKED, "tensor<16x16xf32>")


def test_a_part_that_repeats() -> None:
    """A tensor larger than what the warps have at a time goes around."""
    lines = shown(DPAS, "tensor<8x64xf32>").splitlines()
    assert lines[2:4] == ["    0 16 32 48", "  0 0  1  0  1"]


def test_more_dimensions() -> None:
    view = View(BlockedEncoding((1, 4, 4), (2, 1, 1), (2, 1, 0)), (2, 4, 4))
    assert text_of(view).splitlines()[2:6] == ["[0]", "    0", "  0 0", "[1]"]


def test_all_layouts_of_a_program() -> None:
    text = f"tt.func @f(%x: tensor<64x128xf32, {BLOCKED}>, %y: tensor<16x32xf16, {RIGHT}>) {{\ntt.return\n}}"
    body = "%0 = arith.addf %x, %x : tensor<64x128xf32, {0}>\n%1 = arith.addf %y, %y : tensor<16x32xf16, {1}>\n"
    text = text.replace("tt.return", body.format(BLOCKED, RIGHT) + "tt.return")
    assert [view.shape for view in views_in(text)] == [(64, 128), (16, 32)]


def test_a_picture(tmp_path: Path) -> None:
    (view,) = views_of(RIGHT, "tensor<16x32xf16>")
    draw([view], tmp_path / "layout.svg")
    root = ElementTree.fromstring((tmp_path / "layout.svg").read_text())
    tips = [tip.text for tip in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(tips) == 16 * 32
    assert "(3, 17) warp 1 lane 1 register 3" in tips
    assert "w3" in svg(views_of(BLOCKED, "tensor<64x128xf32>")[0])


def test_the_command(tmp_path: Path) -> None:
    run = CliRunner().invoke
    found = run(app, ["layout", RIGHT, "-t", "tensor<16x32xf16>", "--svg", str(tmp_path / "a.svg"), "--rows", "2"])
    assert found.exit_code == 0
    assert "0:1 1:1 2:1" in found.output
    assert (tmp_path / "a.svg").exists()
    (tmp_path / "kernels.py").write_text(KERNEL)
    found = run(app, ["layout", f"{tmp_path}/kernels.py:double", "-s", "*fp32:16, 64", "--num-warps", "2"])
    assert found.exit_code == 0, found.output
    assert "#ttg.blocked<{sizePerWarp = [32], warpsPerCTA = [2], order = [0]}> of 64" in found.output


@pytest.mark.parametrize(
    ("what", "tensor", "message"),
    [
        (RIGHT, None, "an encoding alone has no shape"),
        (RIGHT, "f16", "f16 is no tensor"),
        ("#tt.something", "tensor<4xf16>", "is no layout encoding"),
        ("no_such_file.mlir", None, "is no encoding and no file"),
        ("file.py:kernel", None, "A kernel needs its --signature"),
    ],
)
def test_what_cannot_be_shown(what: str, tensor: str | None, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        views_of(what, tensor)


def test_other_mistakes() -> None:
    with pytest.raises(IRSyntaxError, match="repeatCount must be an integer"):
        views_of("#ttig.dpas<{warpsPerCTA = [1, 1]}>", "tensor<8x16xf32>")
    with pytest.raises(OptionError, match=r"no tensor in .* has an encoding"):
        views_in("tt.func @f() {\ntt.return\n}")
    with pytest.raises(OptionError, match="a picture shows one layout"):
        draw([], Path("x.svg"))
    with pytest.raises(OptionError, match="two dimensions"):
        svg(View(BlockedEncoding((1, 4, 4), (2, 1, 1), (2, 1, 0)), (2, 4, 4)))
