"""Migrate the text of one file.

Level: source text. Guarantees: the new text parses; what could not be decided is as it was and has a note; migrating
the new text again changes nothing.
"""

from __future__ import annotations

import difflib

from mltriton.tools.migrate.annotations import note_annotations
from mltriton.tools.migrate.bounds import Bounds
from mltriton.tools.migrate.choice import Choice, choose, leaving
from mltriton.tools.migrate.edits import Edits
from mltriton.tools.migrate.helpers import without_pointer_arguments
from mltriton.tools.migrate.masks import rewrite_masked_loads
from mltriton.tools.migrate.naming import Namer
from mltriton.tools.migrate.notes import note_group
from mltriton.tools.migrate.parse import Source, functions_of
from mltriton.tools.migrate.pointers import Group, Pointers
from mltriton.tools.migrate.result import Note, Options, Result
from mltriton.tools.migrate.rewriting import rewrite_group
from mltriton.tools.migrate.syntax import cst

MARKS = ("make_block_ptr", "advance", "boundary_check")


def migrate_source(text: str, path: str = "<source>", options: Options | None = None) -> Result:
    """Migrate the text of a file; MigrationError where it does not parse."""
    options = options or Options()
    result = Result(text, text, path)
    if not any(mark in text for mark in MARKS):
        return result
    source, notes = without_pointer_arguments(text, path)
    edits = Edits()
    contract = Edits()
    for function in functions_of(source.module):
        _migrate_function(source, function, options, edits, contract, result)
    result.text = edits.apply(source.module)
    result.contract = contract.apply(source.module) if contract.replace else None
    if notes:
        result.notes = [*notes, *_moved(result.notes, source.text, text)]
        result.counts["helpers changed"] += len(notes)
    return result


def _moved(notes: list[Note], plain: str, text: str) -> list[Note]:
    """Notes on the text between the two steps, at the lines of the user's text."""
    old, new = text.splitlines(), plain.splitlines()
    lines: dict[int, int] = {}
    for _, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines |= {place + 1: min(i + place - k, max(j - 1, i)) + 1 for place in range(k, m)}
    return [Note(min(lines.get(note.line, note.line), max(len(old), 1)), note.kind, note.text) for note in notes]


def _migrate_function(
    source: Source, function: cst.FunctionDef, options: Options, edits: Edits, contract: Edits, result: Result
) -> None:
    pointers = Pointers(source, function)
    if not pointers.groups:
        return
    bounds = Bounds(source, pointers)
    choices: dict[Group, Choice] = {group: choose(group, bounds, options) for group in pointers.groups}
    result.kernels.append(function.name.value)
    if source.language() is None:
        choices = {
            group: Choice("unresolved", ("the file does not import triton.language as a name",)) for group in choices
        }
    edits.functions.add(function)
    namer = Namer(source.module.code_for_node(function))
    for group, choice in choices.items():
        context = rewrite_group(pointers, bounds, group, choices, namer, edits) if choice.form != "unresolved" else None
        note_group(source, pointers, group, choice, context, result)
        if choice.form == "descriptor":
            _check_everything(group, choice, bounds, contract)
            contract.functions.add(function)
    note_annotations(source, pointers, bounds, result)
    settled = all(choice.form != "unresolved" for choice in choices.values())
    rewrite_masked_loads(source, pointers, bounds, options, namer, edits, result, settled=settled)


def _check_everything(group: Group, choice: Choice, bounds: Bounds, contract: Edits) -> None:
    """Let the accesses that had to stay inside their shape check every dimension, as the descriptor does."""
    for access in group.accesses:
        if leaving(group, bounds, access, choice.folded):
            dims = ", ".join(map(str, range(group.constructs[0].rank)))
            contract.replace[access.call] = lambda call, dims=dims: _with_check(call, dims)


def _with_check(call: cst.Call, dims: str) -> cst.Call:
    kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "boundary_check"]
    check = cst.Arg(cst.parse_expression(f"({dims},)"), keyword=cst.Name("boundary_check"))
    return call.with_changes(args=[*kept, check])
