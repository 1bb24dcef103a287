"""Named errors: every mistake has a class, the user's line with a caret, and what to do.

Level: all. Raised by the front end, the passes, the back ends and the runtime; caught by nobody on the way except to
add a location to an error that has none (`at`) or the call it was inlined through (`called_from`). Imports nothing of
the compiler, so that `mltriton.CompilationError` is cheap.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path

# Where no call of a user's stands: this package, and the module that starts the threads it compiles on.
PACKAGE = (os.path.dirname(__file__) + os.sep, str(threading.__file__))


class SourceLocation(NamedTuple):
    """A location in the user's source: `line` counts from 1, `column` from 0 (in characters); it prints both from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"


def calling_location() -> SourceLocation | None:
    """The innermost call that comes from outside this package: the line that launched a kernel."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    line, _, column, _ = positions or (None, None, None, None)
    return SourceLocation(frame.f_code.co_filename, line or frame.f_lineno, column or 0)


def calling_level() -> int:
    """The same call as the `stacklevel` of a warning that the caller gives."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


class TritonError(Exception):
    """Base of all errors of this package.

    `message` says what is wrong in one line; `expected` and `found` say it in types or shapes; `hint` says what to
    change; `upstream` is Triton's own sentence, which programs and tests look for. `source` is the text of the line,
    read from the file when it is not given. `str(error)` is the whole text, and `render()` the same with the class
    named where there is no location.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        source: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
        upstream: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.source = source
        self.expected = expected
        self.found = found
        self.hint = hint
        self.upstream = upstream
        self.error_message = upstream or message  # by which name upstream's errors have it
        self.calls: list[SourceLocation] = []

    @property
    def file(self) -> str | None:
        """The user's file, when the location is known."""
        return self.location.file if self.location else None

    @property
    def line(self) -> int | None:
        """The line, counted from 1, when the location is known."""
        return self.location.line if self.location else None

    @property
    def column(self) -> int | None:
        """The column, counted from 0, when the location is known."""
        return self.location.column if self.location else None

    def at(self, location: SourceLocation | None, source: str | None = None) -> Self:
        """Set the location and the text of its line, unless a more precise location is known already."""
        if self.location is None:
            self.location = location
            self.source = source
        return self

    def called_from(self, location: SourceLocation) -> Self:
        """Record that the code of the error was inlined into a call at `location`; innermost call first."""
        self.calls.append(location)
        return self

    def render(self) -> str:
        """Return the whole text: location, class and message; source line and caret; explanation."""
        place = f"{self.location}: " if self.location else ""
        shown = excerpt(self.location, self.source)
        return "\n".join([f"{place}{type(self).__name__}: {self.message}", *shown, *self.explanation()])

    def __str__(self) -> str:
        """The rendering; without a location the class is left out, since a traceback names it before the text."""
        return self.render() if self.location else "\n".join([self.message, *self.explanation()])

    def explanation(self) -> list[str]:
        """Return the lines after the caret."""
        lines: list[str] = []
        if self.expected is not None or self.found is not None:
            sides = [("expected", self.expected), ("found", self.found)]
            lines.append(", ".join(f"{name} {text}" for name, text in sides if text is not None))
        if self.hint is not None:
            lines.append(self.hint)
        if self.upstream is not None:
            lines.append(f"In Triton's words: {self.upstream}")
        return lines + [f"called from {location}" for location in self.calls]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the most similar known name."""
    close = _closest(name, known)
    return None if close is None else f"Did you mean {close}?"


def closest_public(name: str, known: Iterable[str]) -> str | None:
    """The most similar public name; none for a private one: tools ask for such of every module, by no mistake."""
    return None if name[0] == "_" else _closest(name, (other for other in known if other[0] != "_"))


def _closest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # Only a mistake needs it.

    return next(iter(get_close_matches(name, list(known), n=1)), None)


def excerpt(location: SourceLocation | None, source: str | None = None) -> list[str]:
    """The line of a location (read from the file unless it is given) and the caret under the column."""
    if location is None:
        return []
    source = (source if source is not None else linecache.getline(location.file, location.line)).rstrip("\n")
    if not source.strip():
        return []
    number = f"{location.line:>5}"
    padding = "".join("\t" if character == "\t" else " " for character in source[: location.column])
    return [f"{number} | {source}", f"{' ' * len(number)} | {padding}^"]


class CompilationError(TritonError):
    """A kernel cannot be compiled."""


# What is wrong with the kernel's text.


class SyntaxNotSupportedError(CompilationError):
    """Python that has no meaning in a kernel (try, lambda, classes, ...)."""


class NestingError(CompilationError):
    """A program is nested deeper than the compiler, or Python's own parser, can follow."""


class NameNotFoundError(CompilationError):
    """A name, attribute or builtin that does not exist, or a global that is not a constexpr."""


class TypeMismatchError(CompilationError):
    """An operation got a type that it does not take, or two types that do not go together."""


class ShapeMismatchError(CompilationError):
    """Shapes that do not broadcast, or a reshape that changes the number of elements."""


class DotShapeError(CompilationError):
    """The shapes given to `tl.dot` do not multiply."""


class DotTypeError(CompilationError):
    """The dtypes given to `tl.dot` cannot be multiplied or accumulated."""


class TilingError(CompilationError):
    """A tiling hint of `tl.dot` cannot hold: the block is too small for the warps, or another hint contradicts."""


class AxisError(CompilationError):
    """An axis, a permutation or a program dimension is out of range."""


class ConstexprError(CompilationError):
    """A value that must be known when compiling is not, or a constexpr parameter got no value."""


class LoopCarriedTypeError(CompilationError):
    """A variable has another type after a loop body or a branch than before it."""


class PowerOfTwoError(CompilationError):
    """A block dimension is not a power of two, or a block has too many elements."""


class PointerError(CompilationError):
    """A pointer is used in a way its kind forbids (a block pointer with a mask, a store through a value, ...)."""


class DescriptorError(CompilationError):
    """A tensor descriptor breaks a rule: last stride 1, last block dimension of 16 bytes or more, equal ranks."""


class WarpLevelError(CompilationError):
    """A function for warps is used in a kernel that is not written for warps, or as no warp can."""


class WarpDivergenceError(CompilationError):
    """A barrier, or an operation across warps, that not all warps of the program reach."""


class MissingResultError(CompilationError):
    """A warp uses a result across warps that only other warps receive."""


class SharedMemoryError(CompilationError):
    """A program asks for more shared memory than the target has (by so many bytes, `missing`), or for what is not in
    its shared memory.
    """

    missing: int = 0


class AssertionFailed(CompilationError):  # noqa: N818 - named after the event, as users know it from static_assert
    """A `tl.static_assert` is false."""


class PerformanceWarning(UserWarning):
    """A kernel runs and is right, but slower than it could: the text says why, and what to change."""


# What is wrong with how the compiler was asked.


class SignatureError(CompilationError):
    """A signature cannot be read or does not fit the kernel's parameters."""


class OptionError(CompilationError):
    """An unknown pass, pass option, level or launch option, or a value it does not take."""


class TargetError(CompilationError):
    """An unknown target, or a kernel that needs what the target does not have."""


class AssemblyError(CompilationError):
    """Inline assembly that the target's assembler, or LLVM text that LLVM rejects."""


class IRSyntaxError(CompilationError):
    """IR text that cannot be read."""


# What went wrong inside the compiler.


class VerificationError(CompilationError):
    """IR that breaks a rule of its operations, of SSA or of its level."""


class InternalError(CompilationError):
    """A failure inside the compiler; `reproducer` is the saved file that shows it, when one could be written."""

    reproducer: Path | None = None

    def explanation(self) -> list[str]:
        """Add where the reproducer lies."""
        saved = [f"reproducer saved to {self.reproducer}"] if self.reproducer else []
        return super().explanation() + saved

    def saved_to(self, reproducer: Path | None) -> Self:
        """Record where the IR and the pipeline were saved, if they could be."""
        self.reproducer = reproducer
        return self


class PassError(InternalError):
    """A pass failed or left invalid IR."""


class LayoutError(InternalError):
    """The compiler gave the operands and results of an operation layouts that do not fit each other."""


class BackendError(InternalError):
    """LLVM, an assembler or another tool rejected what the compiler gave it, crashed or took too long."""


# What went wrong when running.


class LaunchError(TritonError):
    """A kernel cannot be launched."""


class AutotuneError(LaunchError):
    """None of the configurations of an autotuned kernel can be run; the hint says what is wrong with each."""


class GridError(LaunchError):
    """A grid that is not one to three positive integers."""


class ArgumentError(LaunchError):
    """A kernel got too many, too few, unknown or unusable arguments."""


class ImportOrderError(TritonError, ImportError):
    """mltriton shall stand in for triton, and the program has imported the real one already."""


class InterpreterError(TritonError):
    """A kernel that runs in the executor, as `MLTRITON_INTERPRET` asks, cannot go on."""


class DeviceError(LaunchError):
    """An array lies on another device than the kernel runs on, or the device is missing or lost."""


class DeviceAssertionError(LaunchError, RuntimeError):
    """A `tl.device_assert` was false in some program (upstream raises a `RuntimeError`)."""


class OutOfBoundsError(DeviceAssertionError):
    """A program of a launch with checked accesses reached outside of the memory of the arrays that it was given."""


class OutOfResources(LaunchError):  # noqa: N818 - upstream's name
    """A kernel needs more shared memory, registers or memory than there is.

    Programs make it of `required`, `limit` and a `name`, as upstream's.
    """

    def __init__(self, message: object, limit: object = None, name: object = None, **said: Any) -> None:
        if name is not None:
            hint = "Reducing block sizes or `num_stages` may help."
            sizes = f"Required: {message}, Hardware limit: {limit}"
            said, message = {"hint": hint, **said}, f"out of resource: {name}, {sizes}"
        super().__init__(str(message), **said)


class ExecutionError(TritonError):
    """The reference executor met undefined behaviour: an access out of bounds, a data race, a missing barrier."""
