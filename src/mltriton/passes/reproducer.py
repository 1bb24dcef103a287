"""Reproducers: a file with the IR and the pipeline that make a pass fail.

Level: all. The file is IR text with three comment lines in front; `mltriton opt FILE --run-reproducer` runs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mltriton.errors import OptionError
from mltriton.ir.passes import Pass
from mltriton.ir.printer import print_op
from mltriton.passes.pipeline import pipeline_text
from mltriton.runtime.private_files import save_text

_PIPELINE = re.compile(r"^// pipeline: (.*)$", re.MULTILINE)


def save(start: str, passes: Sequence[Pass], message: str, directory: Path | None = None) -> Path | None:
    """Write a reproducer of the last pass's failure; None where nothing can be written.

    `start` is the module's text before the first pass. The file holds the IR right before the failing pass where
    running the others again gives it.
    """
    before, failing = _reduced(start, passes)
    text = "\n".join(
        [
            "// run with: mltriton opt FILE --run-reproducer",
            f"// pipeline: {pipeline_text(failing)}",
            *(f"// {line}" for line in message.splitlines()),
            before,
            "",
        ]
    )
    return save_text(text, failing[-1].name, directory)


def _reduced(start: str, passes: Sequence[Pass]) -> tuple[str, Sequence[Pass]]:
    """The IR right before the last pass and that pass alone, or the start and all passes if that cannot be had."""
    from mltriton.ir.parser import parse_module  # Only a failure needs it.

    try:
        module = parse_module(start)
        for step in passes[:-1]:
            module = step.run(module)
        before = print_op(module, locations=True)
        parse_module(before)
    except Exception:  # whatever goes wrong here must not hide the failure that is being saved
        return start, passes
    return before, passes[-1:]


def pipeline_of(text: str) -> str:
    """The pipeline of a reproducer. Raises `OptionError` when the text is none."""
    found = _PIPELINE.search(text)
    if found is None:
        raise OptionError("this is no reproducer: it has no line `// pipeline: ...`")
    return found[1]
