"""Finding a kernel by name and writing its levels."""

import subprocess
import sys
from pathlib import Path

import pytest

from mltriton.errors import OptionError
from mltriton.tools.aot import emit_levels, load_kernel

LEVELS = {"tt": "module {}\n", "llvm": "define void @k()", "binary": b"\x03\x02"}


@pytest.mark.parametrize("spec", ["kernel", "file.py", "file.py:", ":kernel"])
def test_a_spec_needs_a_file_and_a_name(spec: str) -> None:
    with pytest.raises(OptionError, match=r"names no kernel\nexpected FILE\.py:KERNEL"):
        load_kernel(spec)


def test_a_missing_file_and_a_missing_module() -> None:
    with pytest.raises(OptionError, match=r"there is no file gone\.py"):
        load_kernel("gone.py:kernel")
    with pytest.raises(OptionError, match=r"gone\.module cannot be imported: ModuleNotFoundError") as caught:
        load_kernel("gone.module:kernel")
    assert caught.value.file is None, "no line of the user's is at fault"


WRAPPED = """
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def twice(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = EVEN | (i < n)
    tl.store(x + i, 2 * tl.load(x + i, mask), mask)
"""


def test_a_program_written_for_triton_gives_the_kernel_under_its_decorators(tmp_path: Path) -> None:
    file = tmp_path / "wrapped.py"
    file.write_text(WRAPPED)
    command = [sys.executable, "-m", "mltriton", "verify", f"{file}:twice", "-s", "*fp32, i32, 128, False"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "twice for cpu, 4 warps: all levels agree" in done.stdout


def test_kernels_under_decorators_are_among_those_that_a_file_has(tmp_path: Path) -> None:
    file = tmp_path / "wrapped_kernels.py"
    file.write_text(WRAPPED.replace("triton", "mltriton"))
    with pytest.raises(OptionError, match=r"has no kernel 'thrice'\nIts kernels are twice\."):
        load_kernel(f"{file}:thrice")


def test_a_file_that_raises_shows_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("x = 1\nx / 0\n")
    with pytest.raises(OptionError, match="ZeroDivisionError") as caught:
        load_kernel(f"{file}:kernel")
    assert (caught.value.file, caught.value.line) == (str(file), 2)


def test_a_file_that_does_not_parse_shows_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "unparsable.py"
    file.write_text("def f(:\n")
    with pytest.raises(OptionError, match="SyntaxError") as caught:
        load_kernel(f"{file}:kernel")
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(file), 1, 6)


def test_one_level_goes_to_standard_output_with_a_final_newline(capsys: pytest.CaptureFixture[str]) -> None:
    emit_levels(LEVELS, "tt", None, stem="k")
    emit_levels(LEVELS, "llvm", None, stem="k")
    assert capsys.readouterr().out == "module {}\ndefine void @k()\n"


def test_one_level_goes_to_a_file(tmp_path: Path) -> None:
    emit_levels(LEVELS, "binary", tmp_path / "k.bin", stem="k")
    assert (tmp_path / "k.bin").read_bytes() == b"\x03\x02"


def test_all_levels_go_to_a_directory(tmp_path: Path) -> None:
    emit_levels(LEVELS, "all", tmp_path / "out", stem="k")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"k.tt.mlir", "k.ll", "k.binary"}
    assert (tmp_path / "out" / "k.tt.mlir").read_text() == LEVELS["tt"]


def test_all_levels_need_a_directory() -> None:
    with pytest.raises(OptionError, match="--output DIR"):
        emit_levels(LEVELS, "all", None, stem="k")


def test_an_unknown_level_lists_the_levels() -> None:
    with pytest.raises(OptionError, match="no level 'ptx'\nexpected tt, llvm, binary or all, found ptx"):
        emit_levels(LEVELS, "ptx", None, stem="k")
