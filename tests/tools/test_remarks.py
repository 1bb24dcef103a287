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


def test_each_access_has_a_line(file: Path) -> None:
    code, text = run(file, "xe:pvc")
    assert code == 0
    load, store, registers = text.splitlines()
    assert load.startswith(f"{file}:10: load 64x64xf16: ")
    assert "2D block message" in load
    assert "#ttig.subgroup_2d_block<{" in load
    assert load.endswith("asked at run time: the tensor starts at a multiple of 64 bytes")
    assert store.startswith(f"{file}:10: store 64x64xf16: each lane accesses 16 bytes at a time in #ttg.linear<{{")
    assert "since each element has a pointer of its own" in store
    assert store.endswith("Describe the tensor with tl.make_tensor_descriptor or tl.make_block_ptr.")
    assert re.search(r":10: registers: about 4\d of 128 that a warp gets: 32 in blocks 16x32xf16$", registers)


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


def test_a_target_without_block_accesses(file: Path) -> None:
    code, text = run(file, "generic")
    assert code != 0
    assert "there are no remarks for generic" in text
