"""The pass manager.

Level: all. It asks whether each pass takes a program of this level, times passes, verifies after each when asked, shows
the program after each when asked, and turns a failure inside a pass into a `PassError` with a saved reproducer. A named
error about the user's kernel goes through unchanged, and so does Python's of a stack that is too small
(`runtime/compile_thread.py` gives a larger one).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TextIO

from mltriton.errors import InternalError, PassError, TritonError, VerificationError
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.passes.registry import check_level
from mltriton.records import record

if TYPE_CHECKING:
    from pathlib import Path


@record()
class PassManager:
    """Runs passes one after the other.

    `verify_each`: check the module after each pass (and before the first). `print_after`: names of passes after which
    the program is written to `log`; `{"all"}` for every one. `reproducer_dir`: where a failure is saved (default:
    `mltriton-reproducers` in the directory for temporary files). `observe` is called with each pass and its result.
    `restart` makes the start module again for a reproducer; without it the text is written down before the first pass.
    `is_verified`: the start module was checked after the pass that made it.
    """

    passes: Sequence[Pass]
    verify_each: bool = True
    print_after: Collection[str] = ()
    log: TextIO | None = None
    reproducer_dir: Path | None = None
    observe: Callable[[Pass, Module], None] | None = None
    restart: Callable[[], Module] | None = None
    is_verified: bool = False
    timings: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _known: dict[Any, set[Any]] = field(default_factory=dict[Any, set[Any]], init=False, repr=False)

    def run(self, module: Module) -> Module:
        """Run the passes. Raises `PassError` for a failure inside a pass or invalid IR after it."""
        if not self.passes:
            return module
        start = "" if self.restart is not None else _text(module)
        if self.verify_each and not self.is_verified:
            self._verify(module)
        for index, step in enumerate(self.passes):
            try:
                module = self._step(step, module)
            except InternalError as error:
                raise self._saved(error, start, index) from error
            except (TritonError, RecursionError):
                raise
            except Exception as failure:
                from mltriton.tracebacks import raised_by_signal  # Only a failure needs it.

                if raised_by_signal(failure):
                    raise
                error = PassError(f"pass {step.name} failed: {type(failure).__name__}: {failure}")
                raise self._saved(error, start, index) from failure
        return module

    def _step(self, step: Pass, module: Module) -> Module:
        check_level(step.name, module)
        begin = time.perf_counter()
        module = step.run(module)
        self.timings.append((step.name, time.perf_counter() - begin))
        if self.log is not None and ("all" in self.print_after or step.name in self.print_after):
            self.log.write(f"// -----// IR Dump After {step.name} //----- //\n{module}\n\n")
        if self.verify_each:
            try:
                self._verify(module)
            except VerificationError as error:
                raise PassError(f"pass {step.name} left invalid IR: {error.message}", hint=_rest_of(error)) from error
        if self.observe is not None:
            self.observe(step, module)
        return module

    def _verify(self, module: Module) -> None:
        from mltriton.passes.levels import verify_module  # A compilation verifies only where it is asked to.

        verify_module(module, self._known)

    def _saved(self, error: InternalError, start: str, index: int) -> InternalError:
        from mltriton.passes.reproducer import save  # Only a failure needs it.

        if error.reproducer is None:
            if self.restart is not None:
                start = _text(self.restart())
            path = save(start, self.passes[: index + 1], str(error), self.reproducer_dir)
            if path is not None:
                error.saved_to(path)
        return error


def _text(module: Module) -> str:
    from mltriton.ir.printer import print_op  # Only a failure and programs from a file need it.

    return print_op(module, locations=True)


def timing_table(timings: Sequence[tuple[str, float]]) -> str:
    """Milliseconds and share of each pass, and the sum."""
    total = sum(seconds for _, seconds in timings) or 1e-12
    rows = [*timings, ("total", sum(seconds for _, seconds in timings))]
    return "".join(f"{1e3 * seconds:9.3f} ms {100 * seconds / total:5.1f} %  {name}\n" for name, seconds in rows)


def _rest_of(error: VerificationError) -> str:
    return "\n".join([*([f"at {error.location}"] if error.location else []), *error.explanation()])
