"""`mltriton opt`: run passes over IR text.

Level: all. Takes text, gives text; raises `IRSyntaxError`, `VerificationError`, `OptionError` and `PassError`.
"""

from __future__ import annotations

from functools import partial
from inspect import getdoc
from textwrap import indent
from typing import TextIO

from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.verifier import verify
from mltriton.passes.manager import PassManager, timing_table
from mltriton.passes.pipeline import parse_pipeline
from mltriton.passes.registry import PASSES, find_pass, levels_taken
from mltriton.passes.reproducer import pipeline_of
from mltriton.runtime.compile_thread import unlimited

SPLIT_MARK = "// -----"


def run_opt(
    text: str,
    passes: str = "",
    *,
    filename: str = "<text>",
    print_ir_after_all: bool = False,
    print_ir_after: str = "",
    verify_each: bool = True,
    split_input_file: bool = False,
    time_passes: bool = False,
    run_reproducer: bool = False,
    generic: bool = False,
    locations: bool = False,
    log: TextIO | None = None,
) -> str:
    """Run a pipeline over a module and return its text, with a final newline.

    With `split_input_file` the parts between `// -----` lines are separate modules; with `run_reproducer` the pipeline
    is the one that the text names. `print_ir_after` lists passes after which the program goes to `log`, as do timings.
    """
    pipeline = parse_pipeline(pipeline_of(text) if run_reproducer else passes)
    named = {name.strip() for name in print_ir_after.split(",") if name.strip()}
    for name in named:
        find_pass(name)
    shown = {"all"} if print_ir_after_all else named
    manager = PassManager(pipeline, verify_each=verify_each, print_after=shown, log=log)

    def optimized(part: str) -> str:
        module = parse_module(part, filename)
        verify(module)
        return print_op(manager.run(module), generic, locations) + "\n"

    outputs = [unlimited(partial(optimized, part)) for part in (split_parts(text) if split_input_file else [text])]
    if time_passes and log is not None:
        log.write(timing_table(manager.timings))
    return f"\n{SPLIT_MARK}\n\n".join(outputs)


def list_passes() -> str:
    """A paragraph for each pass: its name, the levels whose programs it takes (`any`: all of them), what it does."""
    return "\n".join(
        f"{name} ({' or '.join(levels_taken(name))})\n{indent(getdoc(find_pass(name)) or '', '    ')}"
        for name in PASSES
    )


def split_parts(text: str) -> list[str]:
    """The parts between `// -----` lines; each keeps the line numbers of the whole text."""
    parts: list[str] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if line.strip() == SPLIT_MARK:
            parts.append("\n".join(lines))
            lines = [""] * (number + 1)
        else:
            lines.append(line)
    return [*parts, "\n".join(lines)]
