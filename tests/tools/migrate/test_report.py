"""Reports: what JSON promises to programs, notes at their lines in HTML and Markdown, what the compiler says of Xe."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate_cases import case
from mltriton.commands import app

MATMUL = "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32:16, 1, i32:16, {pitch}, i32:16, 64, 64, 32"
SIGNATURE = MATMUL.format(pitch="i32:16")

# What programs may rely on; a change is one of the interface.
FILE_KEYS = {"path", "error", "changed", "changes_made", "counts", "notes", "kernels", "proofs"}
NOTE_KEYS = {"line", "new_line", "kind", "text", "detail"}
PROOF_KEYS = {"kernel", "verdict", "inputs", "machine_code", "missed", "untried", "text"}


def report(path: Path, kind: str, *options: object, text: str | None = None) -> str:
    path.write_text(text or case("rule_02_matmul")[0], encoding="utf-8")
    found = path.with_suffix(kind)
    result = CliRunner().invoke(app, ["migrate", str(path), "--report", str(found), *map(str, options)])
    assert result.exit_code == 0, result.output
    return found.read_text(encoding="utf-8")


def test_json_keeps_its_keys(tmp_path: Path) -> None:
    found = json.loads(report(tmp_path / "kernel.py", ".json", "--verify"))
    assert set(found) == {"summary", "files"}
    (file,) = found["files"]
    assert set(file) == FILE_KEYS
    assert {frozenset(note) for note in file["notes"]} == {frozenset(NOTE_KEYS)}
    assert [set(proof) for proof in file["proofs"]] == [PROOF_KEYS]
    assert file["proofs"][0]["verdict"] == "proven"
    assert file["proofs"][0]["missed"] == []


def test_notes_name_lines_of_both_texts(tmp_path: Path) -> None:
    (file,) = json.loads(report(tmp_path / "kernel.py", ".json"))["files"]
    old, new = (text.splitlines() for text in (case("rule_02_matmul")[0], case("rule_02_matmul")[1]["auto"]))
    notes = [note for note in file["notes"] if note["kind"] == "performance"]
    assert len(notes) == 3
    for note in notes:
        assert "make_block_ptr" in old[note["line"] - 1]
        assert "make_tensor_descriptor" in new[note["new_line"] - 1]


def test_html_shows_notes_under_their_lines_and_escapes_the_source(tmp_path: Path) -> None:
    text = case("rule_02_matmul")[0].replace("# the left operand", '# the left <b>operand</b> & "more"')
    page = report(tmp_path / "kernel.py", ".html", text=text)
    assert "# the left &lt;b&gt;operand&lt;/b&gt; &amp; &#34;more&#34;" in page
    assert "<b>operand" not in page
    rows = re.findall(r'<tr class="(\w+)">(.*?)</tr>', page, re.DOTALL)
    for number, (kind, row) in enumerate(rows):
        if kind == "note" and "b_block_ptr" in row:
            above = next(row for kind, row in reversed(rows[:number]) if kind != "note")
            assert "b_block_ptr = tl.make_block_ptr" in above
            return
    pytest.fail("there is no note on b_block_ptr")


def test_with_a_signature_the_compiler_says_what_xe_does(tmp_path: Path) -> None:
    text = report(tmp_path / "kernel.py", ".md", "--explain", "--signature", SIGNATURE)
    notes = text.partition("### Performance note")[2]
    assert len(re.findall(r"^- line \d+", notes, re.MULTILINE)) == 3
    for name, what in (
        ("a", "load 64x32xf16 at line 20"),
        ("b", "load 32x64xf16 at line 21"),
        ("c", "store 64x64xf16"),
    ):
        assert re.search(rf"`{name}_desc`: on the 2D block path\n  - {what}.*2D block message", notes), notes
    assert f"compiled for xe:pvc with {SIGNATURE}" in notes


def test_with_a_signature_the_compiler_says_why_not(tmp_path: Path) -> None:
    signature = MATMUL.format(pitch="33")
    text = report(tmp_path / "kernel.py", ".md", "--signature", signature)
    (note,) = re.findall(r"`b_desc`: not.*", text)
    assert note == "`b_desc`: not on the 2D block path: rows are 66 bytes apart, no multiple of 16"
    text = report(tmp_path / "kernel.py", ".md", "--explain", "--signature", signature)
    (detail,) = re.findall(r"  - (load 32x64xf16 at line 2\d: each lane .*)", text)
    assert "apart, no multiple of 16. Pad the rows to a multiple of 8 elements (compiled" in detail


def test_a_proof_gives_the_compiler_what_it_needs(tmp_path: Path) -> None:
    text = report(tmp_path / "kernel.py", ".md", "--verify", "--explain")
    assert re.search(r"`a_desc`: on the 2D block path\n  - load 64x64xf16 .*\(compiled for xe:pvc with arrays of", text)
    assert "### Proof\n\n- matmul: proven on 2 inputs (tt, cpu)" in text


def test_a_note_is_one_short_line(tmp_path: Path) -> None:
    for options in ((), ("--signature", SIGNATURE), ("--signature", MATMUL.format(pitch="33")), ("--verify",)):
        (file,) = json.loads(report(tmp_path / "kernel.py", ".json", *options))["files"]
        notes = [note["text"] for note in file["notes"] if note["kind"] == "performance"]
        assert len(notes) == 3
        assert all(len(text) <= 120 for text in notes), notes


def test_details_are_shown_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(case("rule_02_matmul")[0], encoding="utf-8")
    plain, explained = (CliRunner().invoke(app, ["migrate", str(path), *more]) for more in ([], ["--explain"]))
    assert "block path" not in plain.stderr
    assert re.search(r"`a_block_ptr`: on the 2D block path if .*\(2D, last stride 1, .* feeds a dot", explained.stderr)
