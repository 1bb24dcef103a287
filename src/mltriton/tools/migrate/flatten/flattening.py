"""The steps before the other rules, until none finds anything more.

Level: source text. A pointer that moves is spelled out where it is passed on only if that leads to a rewritten helper.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.tools.migrate.flatten.moving import without_moving_argument
from mltriton.tools.migrate.flatten.parameters import without_pointer_argument
from mltriton.tools.migrate.flatten.program import Changed, Notes, Program, may_pass_on
from mltriton.tools.migrate.flatten.returned import without_chosen_return, without_returned_pointer
from mltriton.tools.migrate.flatten.tuples import without_tuple
from mltriton.tools.migrate.read.parse import Source, parse

_ROUNDS = 64
_STEPS = (without_tuple, without_chosen_return, without_returned_pointer, without_pointer_argument)


def flattened(sources: Mapping[str, Source], notes: Notes) -> Mapping[str, Source]:
    """The files without tuples of block pointers, and with helpers that take and return what these are made of."""
    if not any(map(may_pass_on, sources.values())):
        return sources
    program = _repeated(Program(sources, notes))
    for _ in range(_ROUNDS):
        changed = without_moving_argument(program)
        if changed is None:
            break
        before = {path: list(found) for path, found in notes.of.items()}
        tried = _repeated(_changed(program, changed))
        if _problems(tried) >= _problems(program):
            notes.of = before
            break
        program = tried
    return program.sources


def _repeated(program: Program) -> Program:
    for _ in range(_ROUNDS):
        changed = next((found for step in _STEPS if (found := step(program)) is not None), None)
        if changed is None:
            break
        program = _changed(program, changed)
    return program


def _changed(program: Program, changed: Changed) -> Program:
    found, texts = changed
    for path, note in found:
        program.notes.of[path].append(note)
    sources = {path: parse(texts[path], path) if path in texts else old for path, old in program.sources.items()}
    return Program(sources, program.notes)


def _problems(program: Program) -> int:
    """How much of the files is not understood."""
    return sum(len(group.problems) for path in program.sources for each, _ in program.of(path) for group in each.groups)
