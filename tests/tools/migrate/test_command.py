"""`mltriton migrate`: modes, exit statuses, reports, named errors, and that a wrong migration is never written."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import mltriton.tools.migrate.files as files_module
from migrate_cases import case
from mltriton.commands import app
from mltriton.errors import OptionError
from mltriton.tools.migrate import Options, migrate_source
from mltriton.tools.migrate.migration import migrate_sources
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits
from mltriton.tools.migrate.result import MigrationError


def migrate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)])


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(case("rule_02_matmul")[0], encoding="utf-8")
    return path


def test_a_diff_is_shown_and_nothing_written(kernel: Path) -> None:
    before = kernel.read_text()
    result = migrate(kernel)
    assert result.exit_code == 0
    assert "+    a_desc = tl.make_tensor_descriptor(" in result.stdout
    assert kernel.read_text() == before


def test_write_edits_once_and_check_agrees(kernel: Path) -> None:
    assert migrate("--check", kernel).exit_code == 1
    assert migrate("--write", kernel.parent).exit_code == 0
    written = kernel.read_text()
    assert written == case("rule_02_matmul")[1]["auto"]
    assert migrate("--check", kernel).exit_code == 0
    assert migrate("--write", kernel).stdout == ""
    assert kernel.read_text() == written


def test_line_ends_survive(kernel: Path) -> None:
    kernel.write_bytes(kernel.read_bytes().replace(b"\n", b"\r\n"))
    assert migrate("--write", kernel).exit_code == 0
    assert kernel.read_bytes() == case("rule_02_matmul")[1]["auto"].encode().replace(b"\n", b"\r\n")


def test_a_byte_order_mark_survives(kernel: Path) -> None:
    kernel.write_bytes(b"\xef\xbb\xbf" + kernel.read_bytes())
    assert migrate("--write", kernel).exit_code == 0
    assert kernel.read_bytes() == b"\xef\xbb\xbf" + case("rule_02_matmul")[1]["auto"].encode()


def test_a_link_and_its_file_are_one(kernel: Path) -> None:
    (kernel.parent / "link.py").symlink_to(kernel)
    (kernel.parent / "broken.py").symlink_to("nowhere.py")
    (kernel.parent / "directory.py").mkdir()
    result = migrate("--write", kernel.parent)
    assert result.exit_code == 1
    assert "broken.py cannot be read" in result.stderr
    assert "2 files" in result.stderr
    assert (kernel.parent / "link.py").is_symlink()
    assert kernel.read_text() == case("rule_02_matmul")[1]["auto"]


def test_a_file_that_cannot_be_written_fails(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, data: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    result = migrate("--write", kernel)
    assert result.exit_code == 1
    assert f"{kernel} cannot be written" in result.stderr
    assert "migrated" not in result.stdout


def test_a_directory_without_python_files_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("make_block_ptr")
    for mode in ("--diff", "--check", "--write"):
        result = migrate(mode, tmp_path)
        assert result.exit_code == 0
        assert f"no Python file in {tmp_path}" in result.stderr


def test_check_fails_while_something_is_left(tmp_path: Path) -> None:
    path = tmp_path / "left.py"
    path.write_text(case("unresolved")[0], encoding="utf-8")
    result = migrate("--check", path)
    assert result.exit_code == 1
    assert f"{path}:8: left as it was: `p`: a block pointer is returned" in result.stderr


def test_modes_exclude_each_other(kernel: Path) -> None:
    assert migrate("--write", "--check", kernel).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "tma"], "--to has no value 'tma'"),
        (["--target", "amd"], "--target has no value 'amd'"),
        (["--report", "report.pdf"], "cannot write a report to report.pdf"),
    ],
)
def test_bad_options_are_named(kernel: Path, arguments: list[str], message: str) -> None:
    result = migrate(*arguments, kernel)
    assert isinstance(result.exception, OptionError)
    assert message in str(result.exception)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    assert isinstance(migrate(tmp_path / "nowhere").exception, OptionError)


def test_a_file_that_does_not_parse_is_reported_with_its_line_and_the_others_are_migrated(kernel: Path) -> None:
    broken = kernel.parent / "broken.py"
    broken.write_text("x = 1\ndef f(:\n    tl.make_block_ptr()\n", encoding="utf-8")
    latin = kernel.parent / "latin.py"
    latin.write_bytes(b"# \xe9\n")
    result = migrate("--write", kernel.parent)
    assert result.exit_code == 1
    assert f"{broken}:2:" in result.stderr
    assert "MigrationError: the file does not parse" in result.stderr
    assert "def f(:" in result.stderr
    assert f"{latin}:1:3: MigrationError: {latin} is not UTF-8 text" in result.stderr
    assert "make_tensor_descriptor" in kernel.read_text()


def test_a_parse_error_has_a_place_and_a_caret() -> None:
    with pytest.raises(MigrationError, match=r"k\.py:1:\d+: MigrationError: the file does not parse"):
        migrate_source("make_block_ptr(\n", "k.py")


def test_markdown_has_the_sections_of_the_format(kernel: Path) -> None:
    report = kernel.parent / "report.md"
    assert migrate("--report", report, kernel).exit_code == 0
    text = report.read_text()
    assert (
        "### Changes made\n\nReplaced 3 `make_block_ptr` with `make_tensor_descriptor`; removed 2 `tl.advance`" in text
    )
    assert "No host-launch changes are required on XPU." in text
    assert "### Performance note" in text
    assert "on the 2D block path" in text
    assert "set_allocator" not in text
    assert "### Caller-affecting changes" not in text


def test_markdown_lists_changed_callers(tmp_path: Path) -> None:
    path, report = tmp_path / "attention.py", tmp_path / "report.md"
    path.write_text(case("rule_12_attention")[0], encoding="utf-8")
    assert migrate("--report", report, path).exit_code == 0
    _, _, section = report.read_text().partition("### Caller-affecting changes")
    assert "inner takes K_base, K_stride_0, K_stride_1 instead of the block pointer K_block_ptr" in section
    assert "call sites changed: line" in section


def test_json_and_html_reports(kernel: Path) -> None:
    as_json, as_html = kernel.parent / "report.json", kernel.parent / "report.html"
    assert migrate("--report", as_json, kernel).exit_code == 0
    assert migrate("--report", as_html, kernel).exit_code == 0
    (file,) = json.loads(as_json.read_text())["files"]
    assert file["counts"]["sites"] == 8
    assert {note["kind"] for note in file["notes"]} == {"change", "condition", "performance"}
    text = as_html.read_text()
    assert text.count('<tr class="change">') > 10
    assert '<td class="old">    a_block_ptr = tl.make_block_ptr(</td>' in text


def test_verify_proves_and_writes(kernel: Path) -> None:
    result = migrate("--write", "--verify", kernel)
    assert result.exit_code == 0
    assert "matmul: proven on 2 inputs (tt, cpu)" in result.stderr
    assert "make_tensor_descriptor" in kernel.read_text()


def test_a_wrong_migration_is_found_and_not_written(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(texts: dict[str, str], options: Options, launchers: object) -> object:
        ((path, result),) = migrate_sources(texts, options).items()
        return {path: dataclasses.replace(result, text=result.text.replace("off_k += BK", "off_k += 2 * BK"))}

    monkeypatch.setattr(files_module, "migrate_sources", wrong)
    before = kernel.read_text()
    result = migrate("--write", "--verify", kernel)
    assert result.exit_code == 1
    assert "matmul: differs: other bytes in c_ptr" in result.stderr
    assert kernel.read_text() == before


def test_a_kernel_that_cannot_run_says_why() -> None:
    text = case("rule_02_matmul")[0].replace("acc += tl.dot(a, b)", "acc += tl.no_such_function(a, b)")
    (proof,) = prove(migrate_source(text), limits=Limits(machine_code=0))
    assert proof.verdict == "not runnable"
    assert "NameNotFoundError" in proof.reason


def test_a_signature_says_what_arguments_are() -> None:
    text = case("rule_06_transposed")[0]
    (proof,) = prove(migrate_source(text), signature="*fp16, *fp16, i32, i32, 32, 16", limits=Limits(machine_code=0))
    assert proof.proven


@pytest.mark.parametrize(("module", "extra"), [("libcst", "LibCST"), ("jinja2", "jinja2")])
def test_a_missing_extra_is_a_named_error(module: str, extra: str, kernel: Path) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; from mltriton.cli import main; "
        f"sys.argv = ['mltriton', 'migrate', {str(kernel)!r}, '--report', {str(kernel.parent / 'r.html')!r}]; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert extra in result.stderr
    assert "pip install 'mltriton[migrate]'" in result.stderr
    assert "Traceback" not in result.stderr
