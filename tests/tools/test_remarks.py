"""`mltriton compile --remarks`: one line for each access to a block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mltriton.commands import app

KERNEL = """
import mltriton as triton
import mltriton.language as tl


@triton.jit
def copy(x, y, n, stride, BLOCK: tl.constexpr):
    p = tl.make_block_ptr(x, (n, n), (stride, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    rows = tl.arange(0, BLOCK)
    tl.store(y + rows[:, None] * n + rows[None, :], tl.load(p))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A kernel with a 2D block load and a store through pointers."""
    made = tmp_path / "kernels.py"
    made.write_text(KERNEL, encoding="utf-8")
    return made


def run(file: Path, target: str, stride: str = "i32:16") -> tuple[int, str]:
    signature = f"*fp16:16, *fp16:16, i32:16, {stride}, 64"
    arguments = ["compile", f"{file}:copy", "-s", signature, "-t", target, "-e", "ttg", "--remarks"]
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stderr or str(result.exception)


def test_remarks_stand_alone_where_no_level_is_asked_for(file: Path) -> None:
    arguments = ["compile", f"{file}:copy", "-s", "*fp16:16, *fp16:16, i32:16, i32:16, 64", "-t", "xe:pvc", "--remarks"]
    alone = CliRunner().invoke(app, arguments)
    assert (alone.exit_code, alone.stdout) == (0, "")
    assert len(alone.stderr.splitlines()) == 4
    assert "tt.func" in CliRunner().invoke(app, [*arguments, "-e", "tt"]).stdout


def test_each_access_has_a_line(file: Path) -> None:
    code, text = run(file, "xe:pvc")
    assert code == 0
    load, store, conversion, registers = text.splitlines()
    assert load.startswith(f"{file}:10: load 64x64xf16: ")
    assert "2D block message" in load
    assert "#ttig.subgroup_2d_block<{" in load
    sizes = "at least 64 and at most 16777216"
    assert load.endswith(
        f"; checked at the launch: address a multiple of 64, bytes of a row {sizes}, rows at least 1 and at most "
        f"16777216, bytes from row to row {sizes} and at least bytes of a row. Where that does not hold, the launch "
        "warns: let the array start at a multiple of 64 bytes; give rows at least 32 elements; cut the matrix into "
        "smaller ones; give the matrix at least 1 rows; let rows lie at least 32 elements apart; let no row reach into "
        "the next one"
    )
    assert store.startswith(f"{file}:10: store 64x64xf16: each lane accesses 16 bytes at a time in #ttg.linear<{{")
    assert store.endswith(
        "since each element has a pointer of its own: the program multiplies no matrices, and lanes access neighbours "
        "together"
    )
    assert re.match(
        rf"{re.escape(str(file))}:10: convert 64x64xf16: of 64 registers .* shuffled; about \d+ ins", conversion
    )
    assert "#ttig.subgroup_2d_block<{" in conversion and " to #ttg.linear<{" in conversion
    assert re.search(r":10: registers: about 4\d of 128 that a warp gets: 32 in blocks 16x32xf16$", registers)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            "n = tl.load(y).to(tl.int32)",
            "; checked in the kernel: bytes of a row at least 64 and at most 16777216 and a",
        ),
        (
            "n = 24",
            "; but element by element, since width of the surface (bytes of a row): expected at least 64",
        ),
    ],
)
def test_what_the_kernel_asks_and_what_never_holds(tmp_path: Path, sizes: str, said: str) -> None:
    made = tmp_path / "kernels.py"
    made.write_text(KERNEL.replace("    p = ", f"    {sizes}\n    p = "), encoding="utf-8")
    _, text = run(made, "xe:pvc")
    assert said in text


def test_registers_that_are_too_few(tmp_path: Path) -> None:
    made = tmp_path / "kernels.py"
    made.write_text(KERNEL, encoding="utf-8")
    arguments = ["compile", f"{made}:copy", "-s", "*fp16:16, *fp16:16, i32:16, i32:16, 128"]
    result = CliRunner().invoke(app, [*arguments, "-t", "xe:pvc", "-w", "1", "-e", "ttg", "--remarks"])
    (line,) = [line for line in result.stderr.splitlines() if ": registers: " in line]
    assert "of 256 that a warp gets" in line
    assert line.endswith("leave more of them free")


def test_a_stride_that_breaks_the_rule(file: Path) -> None:
    _, text = run(file, "xe:pvc", stride="50")
    assert "since rows are 100 bytes apart, no multiple of 16. Pad the rows to a multiple of 8 elements." in text


PRODUCT = """
import mltriton as triton
import mltriton.language as tl


@triton.jit
def product(x, y, z, m, n, stride, wrap, BLOCK: tl.constexpr, WHICH: tl.constexpr):
    at = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    rows, columns = start + at, at
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    if WHICH == "data":
        mask = mask & (tl.load(y + at)[:, None] > 0)
    elif WHICH == "other":
        mask = rows[:, None] >= columns[None, :]
    elif WHICH == "irregular":
        rows = tl.load(wrap + at)
    elif WHICH == "wraps":
        rows = rows % (m // 2)
    elif WHICH == "strides":
        columns = columns * stride
    a = tl.load(x + rows[:, None] * stride + columns[None, :], mask=mask, other=0.0)
    tl.store(z + at[:, None] * BLOCK + at[None, :], tl.dot(a, a))
"""
REASONS = {
    "data": "the mask compares data. Load all within the bounds, and choose with tl.where.",
    "other": "the mask is more than bounds of rows and columns. Compare tl.arange + start with a scalar bound.",
    "irregular": "rows and columns are not a fixed distance apart. Compute pointers as base + rows[:, None] * stride + "
    "columns[None, :].",
    "wraps": "pointers wrap around or are clamped, and indices beyond the bound are used. Let the mask of the load or "
    "of the final store leave those indices out.",
    "strides": "no stride is known to be 1. Pass a stride of 1 as it is, or as a tl.constexpr.",
}


@pytest.mark.parametrize("which", [*REASONS, "none"])
def test_why_pointers_stay_pointers(tmp_path: Path, which: str) -> None:
    made = tmp_path / "kernels.py"
    made.write_text(PRODUCT, encoding="utf-8")
    signature = f"*fp16:16, *fp16:16, *fp32:16, i32, i32, i32:16, *i32:16, 64, '{which}'"
    result = CliRunner().invoke(
        app, ["compile", f"{made}:product", "-s", signature, "-t", "xe:pvc", "-e", "ttg", "--remarks"]
    )
    [load] = [line for line in result.stderr.splitlines() if "load 64x64xf16: " in line]
    if which in REASONS:
        assert load.endswith(f"since each element has a pointer of its own: {REASONS[which]}")
    else:
        assert "2D block message" in load


def test_a_target_without_block_accesses(file: Path) -> None:
    code, text = run(file, "generic")
    assert code != 0
    assert "there are no remarks for generic" in text
    assert "--target cuda:90" in text
