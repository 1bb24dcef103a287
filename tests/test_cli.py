"""The command line: what it offers, how errors and missing extras show, exit statuses."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import mltriton
from mltriton import cli
from mltriton.commands import app
from mltriton.runtime.config import SETTINGS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def main_with(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(sys, "argv", ["mltriton", *arguments])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    return exit_.value.code


def test_version() -> None:
    result = run("-m", "mltriton", "--version")
    assert (result.returncode, result.stdout) == (0, f"mltriton {mltriton.__version__}\n")


@pytest.mark.parametrize("command", ["demo", "compile", "opt", "verify", "bench"])
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"mltriton {command}" in result.output


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_line_says_what_to_install(missing: str) -> None:
    result = run("-c", f"import sys; sys.modules[{missing!r}] = None; from mltriton.cli import main; main()")
    assert result.returncode == 1
    assert result.stderr == f"mltriton: the command line needs {missing}: pip install 'mltriton[cli]'\n"


def test_a_named_error_prints_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    code = main_with(["compile", "gone.py:kernel", "-s", "*fp32"], monkeypatch)
    assert code == "OptionError: there is no file gone.py"


@pytest.mark.parametrize("arguments", [["compile"], ["opt", "gone.mlir"], ["verify"], ["nothing"], ["demo", "--fast"]])
def test_wrong_usage_exits_with_2(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main_with(arguments, monkeypatch) == 2


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_what_is_timed_runs_where_it_was_asked_to(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = str(main_with([command, "--quick", "-t", "xe:pvc"], monkeypatch))
    assert code == "OptionError: nothing is timed on xe:pvc\nexpected cpu or cuda, found xe:pvc"


def test_a_file_that_is_no_text_is_a_named_error(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "binary.mlir"
    file.write_bytes(bytes(range(256)))
    assert "is no text" in str(main_with(["opt", str(file)], monkeypatch))


def test_an_output_that_cannot_be_written_is_a_named_error(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "empty.mlir"
    file.write_text("module {\n}\n")
    nowhere = str(tmp_path / "missing" / "out.mlir")
    assert main_with(["opt", str(file), "-o", nowhere], monkeypatch) == (
        f"OptionError: cannot write {nowhere}: No such file or directory"
    )


@pytest.mark.parametrize("command", ["compile", "layout", "verify"])
def test_the_help_says_that_the_file_is_run(command: str) -> None:
    assert "is run" in CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output


def test_settings_are_listed_with_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLTRITON_NUM_THREADS", "3")
    monkeypatch.setenv("MLTRITON_DUMP", "ttg,@add")
    text = CliRunner().invoke(app, ["settings"]).output
    assert "MLTRITON_NUM_THREADS (now: 3)\n    Threads a CPU launch uses" in text
    assert "MLTRITON_DUMP (now: @add,ttg)" in text
    assert [setting.name for setting in SETTINGS if f"{setting.name} (now: " not in text] == []
    monkeypatch.setenv("MLTRITON_DUMP", "1")
    assert "MLTRITON_DUMP='1' is not a list of tt, ttg" in str(main_with(["settings"], monkeypatch))


def test_programs_for_c_are_offered_no_option_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CliRunner().invoke(app, ["aot", "--help"], env={"COLUMNS": "200"}).output
    assert "--num-warps" in listed
    assert not any(option in listed for option in ("cuda:", "xe:", "--num-stages"))
    assert main_with(["aot", "add.py:add", "-s", "*fp32", "--maxnreg", "32"], monkeypatch) == 2


@pytest.mark.parametrize("arguments", [["add.py:add", "-p", "cse"], ["add.mlir", "-s", "*fp32"]], ids=str)
def test_verify_takes_no_option_that_nothing_reads(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(main_with(["verify", *arguments], monkeypatch)).startswith("OptionError: --")


@pytest.mark.parametrize("module", ["gone", "gone.below", "json.gone", "sys.gone"])
def test_a_module_that_there_is_not_is_wrong_usage(module: str) -> None:
    result = run("-m", "mltriton.as_triton", "-m", module)
    assert result.returncode == 1
    assert result.stderr.startswith(f"UsageError: there is no module {module}\n")
