"""`mltriton layout`: tables and pictures of layouts, from text, files and kernels."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from mltriton.commands import app
from mltriton.errors import IRSyntaxError, OptionError
from mltriton.layouts.encodings import BlockedEncoding
from mltriton.tools.layout_changes import Change
from mltriton.tools.layout_picture import svg, svg_of_change
from mltriton.tools.layout_values import values_in
from mltriton.tools.layout_view import View, get_view, text_of, view_of

DPAS = (
    "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, "
    "warpsPerCTA = [1, 2], repCluster = [1, 1]}>"
)
RIGHT = f"#ttg.dot_op<{{opIdx = 1, parent = {DPAS}}}>"
BLOCKED = "#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [2, 2], order = [1, 0]}>"


BLOCK = (
    "#ttig.subgroup_2d_block<{warpsPerCTA = [1, 2], instrShape = [16, 16], numBlocks = 1, order = [1, 0], kWidth = 2, "
    "threadsPerWarp = 16, sizePerWarp = [16, 16]}>"
)
PLAIN = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [2, 1], order = [1, 0]}>"
BY_THREADS = "#ttg.blocked<{{sizePerThread = [{}, {}], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}}>"
SWIZZLED = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
SVG = "{http://www.w3.org/2000/svg}"

KERNEL = """
import mltriton
import mltriton.language as tl

@mltriton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    places = x_ptr + tl.arange(0, BLOCK)
    tl.store(places, tl.load(places) * 2)
    tl.store(x_ptr + tl.arange(0, 2 * BLOCK), 1.0)
"""


def shown(encoding: str, tensor: str, **options: int | bool) -> str:
    return text_of(view_of(encoding, tensor), **options)


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


def test_a_function_as_gluon_has_it() -> None:
    whole = get_view(RIGHT, "tensor<16x32xf16>")
    assert whole.splitlines()[-1].split() == ["15", *(f"{column % 16}:15" for column in range(32))]
    assert get_view(BlockedEncoding((4,), (2,), (0,)), (8,)).splitlines()[2:4] == ["    0 4", "  0 0 1"]
    assert "warp 1: rows are lanes" in get_view(RIGHT, (16, 32), hardware=True)


def test_shared_memory() -> None:
    """Rows of 64 bytes: the third one begins with its second group of 16 bytes, and so on."""
    layout = "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>"
    lines = shown(layout, "tensor<8x32xf16>", rows=3, columns=1).splitlines()
    assert lines[1:] == ["offset of each element", "     0 ...", "  0  0 ...", "  1 32 ...", "  2 72 ...", "..."]
    lines = shown(layout, "tensor<8x32xf16>", hardware=True, rows=2, columns=2).splitlines()
    assert lines[1:4] == ["the element at each offset, 128 bytes a line", "        0     1 ...", "  0 (0,0) (0,1) ..."]
    assert lines[4] == "  1 (2,8) (2,9) ..."


PROGRAM = f"""
tt.func @f(%x: tensor<64x128xf32, {BLOCKED}>, %y: tensor<16x32xf16, {RIGHT}>) {{
  %sum = arith.addf %x, %x : tensor<64x128xf32, {BLOCKED}> loc("user.py":7:3)
  %0 = arith.addf %y, %y : tensor<16x32xf16, {RIGHT}>
  %moved = ttg.convert_layout %y : tensor<16x32xf16, {RIGHT}> -> tensor<16x32xf16, {PLAIN}>
  tt.return
}}
"""


def test_the_values_of_a_program() -> None:
    x, y, total, _, moved = values_in(PROGRAM)
    assert [value.view.shape for value in (x, y)] == [(64, 128), (16, 32)]
    assert (x.name, y.alias, x.operation) == ("%x", "#dot1", "tt.func argument")
    assert total.line == "user.py:7  %sum  arith.addf  64x128xf32  #blocked"
    assert moved.line.endswith(
        "%moved  ttg.convert_layout  16x32xf16  #blocked1  (of 16 registers 16 through shared "
        "memory, 1024 bytes of shared memory; about 64 instructions of a warp)"
    )


def test_what_a_conversion_costs() -> None:
    """Lanes with two runs of four columns, and with one of eight."""
    wide, narrow = (view_of(BY_THREADS.format(*sizes), "tensor<8x32xf32>") for sizes in ("14", "18"))
    change = Change.between(wide, narrow)
    assert change.counts() == {"stay": 0, "renamed": 0, "chosen by lane": 0, "shuffled": 8, "through shared memory": 0}
    assert change.cost == 32
    assert change.summary() == "of 8 registers 8 shuffled; about 32 instructions of a warp"
    assert Change.between(wide, wide).summary() == "of 8 registers 8 stay; about 0 instructions of a warp"
    right, rows = view_of(RIGHT, "tensor<16x32xf16>"), view_of(BLOCK, "tensor<16x32xf16>")
    assert (
        Change.between(right, rows)
        .summary()
        .endswith("16 stay, words of 4 bytes to words of 2; about 16 instructions of a warp")
    )


def tree(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def labels(text: str) -> list[str]:
    return [span.text or "" for span in tree(text).iter(f"{SVG}tspan")]


def test_a_picture() -> None:
    text = svg(view_of(RIGHT, "tensor<16x32xf16>"))
    assert "1:3" in labels(text)
    assert len(labels(text)) == 16 * 32 + 32 + 2 * 2  # and the two warps that have halves of it
    assert "w3" in labels(svg(view_of(BLOCKED.replace("64]", "32]"), "tensor<64x64xf32>")))
    elements, hardware = (svg(view_of(RIGHT, "tensor<16x32xf16>"), hardware) for hardware in (False, True))
    assert elements != hardware
    assert "15,17" in labels(hardware)


def test_lines_around_words_and_messages() -> None:
    """No line between the rows of a pair; a dark one after each block of 16 columns."""
    fine, coarse, *_legend = [
        path.get("d")
        for path in tree(svg(view_of(RIGHT, "tensor<16x32xf16>"))).iter(f"{SVG}path")
        if path.get("stroke")
    ]
    assert fine is not None and coarse is not None
    assert fine.count("h") == 8 + 1
    assert fine.count("v") == 32 + 1
    assert (coarse.count("h"), coarse.count("v")) == (2, 3)


def test_titles_are_not_clipped() -> None:
    root = tree(svg(view_of(RIGHT, "tensor<16x16xf16>")))
    titles = [text for text in root.iter(f"{SVG}text") if text.get("class") == "t"]
    assert " ".join(text.text or "" for text in titles).startswith(f"{RIGHT} of 16x16")
    assert all(40 + 6 * len(text.text or "") < int(root.get("width", "0")) for text in titles)


def test_pictures_are_small() -> None:
    assert len(svg(view_of(BY_THREADS.format(1, 8), "tensor<256x256xf16>"))) < 200_000
    assert len(svg(view_of(BY_THREADS.format(1, 4), "tensor<64x64xf16>"))) < 200_000


def test_a_picture_of_a_conversion() -> None:
    wide, narrow = (view_of(BY_THREADS.format(*sizes), "tensor<8x32xf32>") for sizes in ("14", "18"))
    text = svg_of_change(Change.between(wide, narrow))
    titles = " ".join(text.text or "" for text in tree(text).iter(f"{SVG}text") if text.get("class") == "t")
    assert "about 32 instructions of a warp" in titles
    assert "where lanes (rows) and registers get their elements" in titles
    assert len(labels(text)) == 3 * 8 * 32 + 32 + 32 + 8
    assert "hsl" not in text  # which many programs that draw do not know


def test_warps_that_convert_alike_share_a_picture() -> None:
    parent = DPAS.replace("[1, 2], repCluster = [1, 1]", "[4, 2], repCluster = [4, 1]")
    encodings = (
        BLOCK.replace("[1, 2]", "[4, 2]").replace("sizePerWarp = [16, 16]", "sizePerWarp = [32, 64]"),
        f"#ttg.dot_op<{{opIdx = 0, parent = {parent}}}>",
    )
    text = svg_of_change(Change.between(*(view_of(encoding, "tensor<128x64xf16>") for encoding in encodings)))
    assert "warps 0, 1, 2, 3, 4, 5, 6, 7: where lanes" in text
    assert len(text) < 200_000


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["layout", *arguments])
    return found.exit_code, found.output + (str(found.exception) if found.exception else "")


def test_the_command(tmp_path: Path) -> None:
    code, text = run(RIGHT, "--tensor", "tensor<16x32xf16>", "--svg", str(tmp_path / "a.svg"), "--rows", "2")
    assert code == 0
    assert "0:1 1:1 2:1" in text
    assert (tmp_path / "a.svg").exists()
    assert run(f"tensor<16x32xf16, {RIGHT}>", "--rows", "2") == (0, text)
    code, text = run(RIGHT, "--tensor", "tensor<16x32xf16>", "--to", BLOCK, "--svg", str(tmp_path / "b.svg"))
    assert code == 0
    assert "words of 4 bytes to words of 2; about 16 instructions of a warp" in text
    assert (tmp_path / "b.svg").exists()


def test_a_target_may_convert_in_fewer_instructions() -> None:
    """Moves of regions take two rows at a time where the rows of a left operand are in this order."""
    parent = DPAS.replace("[1, 2], repCluster = [1, 1]", "[1, 1], repCluster = [4, 1], rowBases = [2, 1, 4]")
    source = BLOCK.replace("[1, 2]", "[1, 1]").replace("[16, 16]}", "[32, 32], packedRows = 2}")
    change = (source, "--tensor", "tensor<32x32xf16>", "--to", f"#ttg.dot_op<{{opIdx = 0, parent = {parent}}}>")
    assert "about 64 instructions" in run(*change)[1]
    assert "about 32 instructions" in run(*change, "--target", "xe:pvc")[1]


def test_the_command_of_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNEL)
    kernel = (f"{tmp_path}/kernels.py:double", "-s", "*fp32:16, 64", "--num-warps", "2")
    code, text = run(*kernel)
    assert code == 0, text
    assert "kernels.py:7  %places  tt.addptr  64x!tt.ptr<f32>  #blocked" in text
    assert "#blocked = #ttg.blocked<{sizePerWarp = [32], warpsPerCTA = [2], order = [0]}>" in text
    assert len(text.splitlines()) < 20  # a table of one layout is for --value
    assert "lane = [[" in run(*kernel, "-t", "cuda:90")[1] and "lane" not in text
    for option in (("--tensor", "tensor<64xf32>"), ("--to", BLOCK)):
        assert "tensors and conversions of its own" in run(*kernel, *option)[1]
    code, text = run(*kernel, "--value", "places", "--svg", str(tmp_path / "places.svg"))
    assert code == 0
    assert text.startswith("kernels.py:7  %places")
    assert (tmp_path / "places.svg").exists()
    code, text = run(*kernel, "--svg", str(tmp_path / "all"))
    assert code == 0
    assert list((tmp_path / "all").iterdir())
    code, text = run(*kernel, "--svg", str(tmp_path / "all.svg"))
    assert code != 0
    assert "a picture shows one layout" in text
    assert "sizePerWarp" not in text
    assert "no value with a layout is called %nothing" in run(*kernel, "--value", "nothing")[1]


@pytest.mark.parametrize(
    ("what", "tensor", "message"),
    [
        (RIGHT, None, "an encoding alone has no shape"),
        (RIGHT, "f16", "f16 is no tensor"),
        ("tensor<16x16xf16>", None, "tensor<16x16xf16> has no encoding"),
        (RIGHT, "tensor<30x32xf16>", "sizes are powers of two"),
        (RIGHT, "tensor<32xf16>", "a tensor has no such layout"),
        (BY_THREADS.format(1, 4), "tensor<32x32x2xf16>", "a tensor has no such layout"),
        (SWIZZLED, "tensor<4x64xf16>", "a tensor has no such layout"),
        ("#tt.something", "tensor<4xf16>", "is no layout encoding"),
        ("no_such_file.mlir", None, "is no encoding and no file"),
        ("file.py:kernel", None, "is no encoding and no file"),
    ],
)
def test_what_cannot_be_shown(what: str, tensor: str | None, message: str) -> None:
    code, text = run(what, *(["--tensor", tensor] if tensor else []))
    assert code != 0
    assert message in text


def test_other_mistakes() -> None:
    with pytest.raises(IRSyntaxError, match="repeatCount must be an integer"):
        view_of("#ttig.dpas<{warpsPerCTA = [1, 1]}>", "tensor<8x16xf32>")
    with pytest.raises(IRSyntaxError, match="repeatCount must be a power of two"):
        view_of(DPAS.replace("repeatCount = 8", "repeatCount = 9"), "tensor<8x16xf32>")
    with pytest.raises(IRSyntaxError, match="instrShape must be a list of powers of two"):
        view_of(BLOCK.replace("[16, 16]", "[3, 5]"), "tensor<16x16xf16>")
    for wide in ("[64, 16]", "[16, 128]"):
        with pytest.raises(IRSyntaxError, match=r"instrShape.* must have at most"):
            view_of(BLOCK.replace("[16, 16]", wide), "tensor<128x128xf16>")
    with pytest.raises(OptionError, match=r"no value in .* has a layout"):
        values_in("tt.func @f() {\ntt.return\n}")
    with pytest.raises(OptionError, match="two dimensions"):
        svg(View(BlockedEncoding((1, 4, 4), (2, 1, 1), (2, 1, 0)), (2, 4, 4)))


def test_a_picture_of_many_warps_shows_the_first() -> None:
    sixteen = DPAS.replace("warpsPerCTA = [1, 2]", "warpsPerCTA = [16, 1]")
    text = svg(view_of(sixteen, "tensor<128x16xf32>"), hardware=True)
    assert "(the first 6 of 16 tables)" in text and "warp 5:" in text and "warp 6:" not in text
