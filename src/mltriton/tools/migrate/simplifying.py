"""The steps before the other rules, until none finds anything more.

Level: source text.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.tools.migrate.callers import Callers
from mltriton.tools.migrate.helpers import without_pointer_argument
from mltriton.tools.migrate.parse import Source, parse
from mltriton.tools.migrate.returns import without_returned_pointer
from mltriton.tools.migrate.steps import Notes
from mltriton.tools.migrate.tuples import without_tuple

_ROUNDS = 16
_STEPS = (without_tuple, without_returned_pointer, without_pointer_argument)


def simplified(sources: Mapping[str, Source], notes: Notes) -> Mapping[str, Source]:
    """The files without tuples of block pointers, and with helpers that take and return what these are made of."""
    for _ in range(_ROUNDS):
        callers = Callers(sources)
        changed = next((found for step in _STEPS if (found := step(sources, callers, notes)) is not None), None)
        if changed is None:
            break
        found, texts = changed
        for path, note in found:
            notes.of[path].append(note)
        sources = {path: parse(texts[path], path) if path in texts else source for path, source in sources.items()}
    return sources
