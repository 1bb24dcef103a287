"""The steps before the other rules, until none finds anything more.

Level: source text. A pointer that moves is spelled out where it is passed on only if that leads to a rewritten helper.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.tools.migrate.read.callers import Callers
from mltriton.tools.migrate.read.parse import Source, parse
from mltriton.tools.migrate.rewrite.arms import without_chosen_return
from mltriton.tools.migrate.rewrite.helpers import without_pointer_argument
from mltriton.tools.migrate.rewrite.moving import without_moving_argument
from mltriton.tools.migrate.rewrite.returns import without_returned_pointer
from mltriton.tools.migrate.rewrite.steps import Analyses, Changed, Notes, may_pass_on
from mltriton.tools.migrate.rewrite.tuples import without_tuple

_ROUNDS = 64
_STEPS = (without_tuple, without_chosen_return, without_returned_pointer, without_pointer_argument)


def simplified(sources: Mapping[str, Source], notes: Notes) -> Mapping[str, Source]:
    """The files without tuples of block pointers, and with helpers that take and return what these are made of."""
    if not any(map(may_pass_on, sources.values())):
        return sources
    sources = _repeated(sources, notes)
    for _ in range(_ROUNDS):
        changed = without_moving_argument(sources, Callers(sources), notes)
        if changed is None:
            break
        before = {path: list(found) for path, found in notes.of.items()}
        tried = _repeated(_changed(sources, changed, notes), notes)
        if _problems(tried) >= _problems(sources):
            notes.of = before
            break
        sources = tried
    return sources


def _repeated(sources: Mapping[str, Source], notes: Notes) -> Mapping[str, Source]:
    for _ in range(_ROUNDS):
        callers = Callers(sources)
        changed = next((found for step in _STEPS if (found := step(sources, callers, notes)) is not None), None)
        if changed is None:
            break
        sources = _changed(sources, changed, notes)
    return sources


def _changed(sources: Mapping[str, Source], changed: Changed, notes: Notes) -> Mapping[str, Source]:
    found, texts = changed
    for path, note in found:
        notes.of[path].append(note)
    return {path: parse(texts[path], path) if path in texts else source for path, source in sources.items()}


def _problems(sources: Mapping[str, Source]) -> int:
    """How much of the files is not understood."""
    analyses = Analyses(sources)
    return sum(len(group.problems) for path in sources for each, _ in analyses.of(path) for group in each.groups)
