"""The rendering of errors: location, source line, caret, explanation."""

import copy
import inspect
import pickle
from pathlib import Path

import pytest

from mltriton import errors
from mltriton.errors import (
    CompilationError,
    DotShapeError,
    GridError,
    PassError,
    SourceLocation,
    TritonError,
    calling_location,
)

LINE = "    s = tl.dot(q, k)"
CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, TritonError)]


def dot_error() -> DotShapeError:
    return DotShapeError(
        "the inner sizes of tl.dot differ: 64 (from q) and 32 (from k)",
        location=SourceLocation("attention.py", 41, 11),
        source=LINE,
        hint="q is tensor<128x64xf16>, k is tensor<32x64xf16>: k has keys along rows. Did you mean tl.dot(q, k.T)?",
    )


def test_rendering_shows_location_line_caret_and_hint() -> None:
    assert str(dot_error()).splitlines() == [
        "attention.py:41:12: DotShapeError: the inner sizes of tl.dot differ: 64 (from q) and 32 (from k)",
        "   41 |     s = tl.dot(q, k)",
        "      |            ^",
        "q is tensor<128x64xf16>, k is tensor<32x64xf16>: k has keys along rows. Did you mean tl.dot(q, k.T)?",
    ]


def test_caret_keeps_tabs_so_that_it_stays_under_its_column() -> None:
    error = CompilationError("bad", location=SourceLocation("k.py", 7, 2), source="\ta b")
    assert str(error).splitlines()[1:] == ["    7 | \ta b", "      | \t ^"]


def test_source_line_is_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("first\n    second\n")
    error = CompilationError("bad", location=SourceLocation(str(file), 2, 4))
    assert str(error).splitlines()[1:] == ["    2 |     second", "      |     ^"]


def test_a_missing_file_leaves_out_the_excerpt() -> None:
    assert (
        str(CompilationError("bad", location=SourceLocation("gone.py", 3, 0))) == "gone.py:3:1: CompilationError: bad"
    )


def test_expected_and_found_come_before_the_hint() -> None:
    error = GridError("the grid is wrong", expected="1 to 3 integers", found="4 integers", hint="Fold two of them.")
    assert str(error).splitlines() == [
        "the grid is wrong",
        "expected 1 to 3 integers, found 4 integers",
        "Fold two of them.",
    ]


def test_only_found() -> None:
    assert str(GridError("empty", found="()")).splitlines()[1] == "found ()"


def test_the_first_location_stays() -> None:
    inner = SourceLocation("inner.py", 1, 0)
    error = CompilationError("bad").at(inner, "x = y").at(SourceLocation("outer.py", 2, 0), "f()")
    assert error.location == inner
    assert (error.file, error.line, error.column, error.source) == ("inner.py", 1, 0, "x = y")


def test_calls_are_listed_innermost_first() -> None:
    error = dot_error().called_from(SourceLocation("a.py", 5, 0)).called_from(SourceLocation("b.py", 9, 3))
    assert str(error).splitlines()[-2:] == ["called from a.py:5:1", "called from b.py:9:4"]


def test_reproducer_is_named() -> None:
    error = PassError("canonicalize failed").saved_to(Path("reproducers/1.mlir"))
    assert str(error).splitlines()[-1] == "reproducer saved to reproducers/1.mlir"


def test_calling_location_is_the_callers_line() -> None:
    location = calling_location()
    assert location is not None
    line = Path(__file__).read_text().splitlines()[location.line - 1]
    assert line[location.column :] == "calling_location()"


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_a_process_boundary(clone) -> None:
    error = dot_error().called_from(SourceLocation("a.py", 5, 0))
    assert str(clone(error)) == str(error)
    assert type(clone(error)) is DotShapeError


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_has_its_own_docstring_and_takes_a_message_alone(kind: type[TritonError]) -> None:
    assert kind.__dict__.get("__doc__")
    assert kind("text").message == "text"
