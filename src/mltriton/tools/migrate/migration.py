"""Migrate the text of one file.

Level: source text. Guarantees: the new text parses; what could not be decided is as it was and has a note; migrating
the new text again changes nothing.
"""

from __future__ import annotations

from mltriton.tools.migrate.annotations import note_annotations
from mltriton.tools.migrate.bounds import Bounds
from mltriton.tools.migrate.choice import Choice, choose
from mltriton.tools.migrate.edits import Edits
from mltriton.tools.migrate.naming import Namer
from mltriton.tools.migrate.notes import note_group
from mltriton.tools.migrate.parse import Source, functions_of, parse
from mltriton.tools.migrate.pointers import Group, Pointers
from mltriton.tools.migrate.result import Options, Result
from mltriton.tools.migrate.rewriting import rewrite_group
from mltriton.tools.migrate.syntax import cst

MARKS = ("make_block_ptr", "advance", "boundary_check")


def migrate_source(text: str, path: str = "<source>", options: Options | None = None) -> Result:
    """Migrate the text of a file; MigrationError where it does not parse."""
    options = options or Options()
    result = Result(text, text, path)
    if not any(mark in text for mark in MARKS):
        return result
    source = parse(text, path)
    edits = Edits()
    for function in functions_of(source.module):
        _migrate_function(source, function, options, edits, result)
    result.text = edits.apply(source.module)
    return result


def _migrate_function(
    source: Source, function: cst.FunctionDef, options: Options, edits: Edits, result: Result
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
    note_annotations(source, pointers, bounds, result)
