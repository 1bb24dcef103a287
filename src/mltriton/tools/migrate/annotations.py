"""Rule 10, which reports and changes nothing: integer annotations of contiguous strides.

Level: source text.
"""

from __future__ import annotations

from mltriton.tools.migrate.bounds import Bounds
from mltriton.tools.migrate.choice import annotated_strides
from mltriton.tools.migrate.parse import Source
from mltriton.tools.migrate.pointers import Pointers
from mltriton.tools.migrate.result import Note, Result


def note_annotations(source: Source, pointers: Pointers, bounds: Bounds, result: Result) -> None:
    """Add the notes of one function that has block pointers."""
    seen: set[str] = set()
    for group in pointers.groups:
        for annotation, parameter in annotated_strides(group, bounds):
            name = parameter.name.value
            if name not in seen:
                seen.add(name)
                text = (
                    f"flagged `{name}: {annotation}`: an annotated contiguous stride is never the constant 1; "
                    "leave the annotation out or make it tl.constexpr"
                )
                result.notes.append(Note(source.line(parameter), "annotation", text))
