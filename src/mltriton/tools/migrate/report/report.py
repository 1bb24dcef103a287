"""The report of a migration: Markdown, JSON, or HTML with old and new text side by side.

Level: source text. The sections are: the migrated kernels, "Changes made", "Performance note" for each descriptor, and
"Caller-affecting changes" where a function's parameters changed; what was left, and what was proven, follow.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from mltriton.errors import OptionError
from mltriton.frontend.syntax import parsed
from mltriton.tools.migrate.files import FileResult
from mltriton.tools.migrate.prove.verdicts import Proof
from mltriton.tools.migrate.report.lines import located
from mltriton.tools.migrate.result import NOTE_KINDS, MissingExtraError, Note, Result, total

NO_HOST_CHANGES = "No host-launch changes are required on XPU."
SUFFIXES = (".md", ".json", ".html")


def write_report(path: Path, files: Sequence[FileResult], *, explain: bool = False) -> None:
    """Write the report in the format that the file's suffix names; Markdown with the details of notes if `explain`."""
    writers = {".md": partial(markdown, explain=explain), ".json": as_json, ".html": html}
    if path.suffix not in writers:
        raise OptionError(f"cannot write a report to {path}", expected=f"a name ending in {', '.join(SUFFIXES)}")
    path.write_text(writers[path.suffix](files), encoding="utf-8")


# Text.


def markdown(files: Sequence[FileResult], *, explain: bool = False) -> str:
    """The report in Markdown."""
    lines = ["# Migration of block pointers", "", summary(files), ""]
    for one in files:
        if one.error is not None:
            lines += [f"## {one.path}", "", "```", one.error.render(), "```", ""]
        elif one.result is not None and (one.result.notes or one.result.changed):
            lines += [f"## {one.path}", "", *_file(one.result, one, explain=explain)]
    return "\n".join(lines).rstrip() + "\n"


def summary(files: Sequence[FileResult]) -> str:
    """All files in one line."""
    counts = total(one.result for one in files if one.result is not None)
    text = (
        f"{_counted(len(files), 'file')}, {_counted(counts['sites'], 'call site')}: "
        f"{counts['descriptor']} to descriptors, "
        f"{counts['pointer']} to masked pointers, {counts['unresolved']} left."
    )
    proofs = [proof for one in files for proof in one.proofs]
    if proofs:
        proven = sum(proof.proven for proof in proofs)
        partly = sum(proof.verdict == "partly proven" for proof in proofs)
        differ = sum(proof.differs for proof in proofs)
        text += (
            f" {proven} of {len(proofs)} kernels proven, {partly} partly, {differ} differ, "
            f"{len(proofs) - proven - partly - differ} not runnable."
        )
    return text


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def changes_made(result: Result) -> str:
    """One sentence of counts."""
    counts = result.counts
    parts = [
        (counts["make_block_ptr -> descriptor"], "replaced {} `make_block_ptr` with `make_tensor_descriptor`"),
        (counts["make_block_ptr -> pointer"], "rewrote {} `make_block_ptr` to masked pointers"),
        (counts["advance removed"], "removed {} `tl.advance`"),
        (counts["transposed"], "{} described in native layout, blocks transposed via `.T`"),
        (counts["folded into the base"], "{} with leading dimensions folded into the base"),
    ]
    text = "; ".join(form.format(count) for count, form in parts if count)
    return f"{text[:1].upper()}{text[1:] or 'Nothing'}. {NO_HOST_CHANGES}"


def _file(result: Result, one: FileResult, *, explain: bool) -> Iterator[str]:
    if result.changed:
        yield "```python"
        yield "\n\n\n".join(kernels(result))
        yield "```"
        yield ""
    yield "### Changes made"
    yield ""
    yield changes_made(result)
    yield ""
    noted = located(result)
    yield from _list([note for note in noted if NOTE_KINDS[note.kind] == "Changes made"], explain=explain)
    for title in dict.fromkeys(NOTE_KINDS.values()):
        notes = [note for note in noted if NOTE_KINDS[note.kind] == title and title != "Changes made"]
        if notes:
            yield f"### {title}"
            yield ""
            yield from _list(notes, explain=explain)
    if one.proofs:
        yield "### Proof"
        yield ""
        yield from [f"- {proof}" for proof in one.proofs]
        yield ""


def _list(notes: Sequence[Note], *, explain: bool) -> list[str]:
    lines: list[str] = []
    for note in notes:
        lines.append(f"- line {_place(note)}: {note.text}")
        lines += [f"  - {note.detail}"] if explain and note.detail else []
    return [*lines, ""]


def _place(note: Note) -> str:
    """The line in the new text, and in the old one where that is another."""
    return str(note.new_line) if note.new_line == note.line else f"{note.new_line} (was {note.line})"


def kernels(result: Result) -> list[str]:
    """The new text of the functions that changed."""
    lines = result.text.splitlines()
    found: list[str] = []
    for node in ast.walk(parsed(result.text)):
        if isinstance(node, ast.FunctionDef) and node.name in result.kernels:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.append("\n".join(lines[first - 1 : node.end_lineno]))
    return found


# JSON.


def as_json(files: Sequence[FileResult]) -> str:
    """The report for programs."""
    return json.dumps({"summary": summary(files), "files": [_json(one) for one in files]}, indent=1) + "\n"


def _json(one: FileResult) -> dict[str, Any]:
    result = one.result
    return {
        "path": str(one.path),
        "error": one.error.render() if one.error is not None else None,
        "changed": result is not None and result.changed,
        "changes_made": changes_made(result) if result is not None else None,
        "counts": dict(result.counts) if result is not None else {},
        "notes": [asdict(note) for note in located(result)] if result is not None else [],
        "kernels": result.kernels if result is not None else [],
        "proofs": [_proof(proof) for proof in one.proofs],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "kernel": proof.kernel,
        "verdict": proof.verdict,
        "inputs": proof.inputs,
        "machine_code": proof.machine_code,
        "missed": sorted(line for lines in proof.missed.values() for line in lines),
        "untried": list(proof.untried),
        "text": str(proof),
    }


# HTML.


def html(files: Sequence[FileResult]) -> str:
    """The report as one page: old and new text side by side, notes under the lines that they are about."""
    try:
        jinja2: Any = import_module("jinja2")
    except ImportError:
        raise MissingExtraError(
            "an HTML report needs jinja2", hint="Install it with the extra: pip install 'mltriton[migrate]'"
        ) from None
    text = (Path(__file__).parent / "report.html.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(text)
    shown = [one for one in files if one.error is not None or (one.result is not None and one.result.notes)]
    pages = [
        {
            "path": one.path,
            "error": one.error.render() if one.error is not None else None,
            "changes": changes_made(one.result) if one.result is not None else "",
            "rows": list(rows(one.result)) if one.result is not None else [],
            "proofs": one.proofs,
        }
        for one in shown
    ]
    return template.render(summary=summary(files), files=pages)


_CONTEXT = 3


def rows(result: Result) -> Iterator[dict[str, Any]]:
    """Lines side by side around what changed or has a note; `kind` is equal, change or gap."""
    old, new = result.source.splitlines(), result.text.splitlines()
    notes: dict[int, list[Note]] = {}
    for note in located(result):
        notes.setdefault(note.line, []).append(note)
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for offset in range(max(j - i, m - k)):
            left, right = i + offset, k + offset
            here = notes.get(left + 1, []) if left < j else []
            if tag == "equal" and not here and _CONTEXT <= offset < j - i - _CONTEXT:
                if offset == _CONTEXT:
                    yield {"kind": "gap"}
                continue
            yield {
                "kind": "equal" if tag == "equal" else "change",
                "left": (left + 1, old[left]) if left < j else None,
                "right": (right + 1, new[right]) if right < m else None,
                "notes": here,
            }
