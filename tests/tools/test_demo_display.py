"""The demo's tables and progress line."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from mltriton.tools.demo_display import JobReport, explanation, print_reports, progress

GOOD = JobReport("matmul", "512x512x512 f32", {"tt": 20, "warp": 30}, 1e-6, 1e-5, {"mltriton": 0.002, "numpy": 0.003})
BAD = JobReport("softmax", "8x8 f32", {"tt": 9, "llvm": 99}, float("nan"), 1e-5, {"mltriton": 0.001})


def shown(*reports: JobReport) -> list[list[str]]:
    """The words of each printed line."""
    out = io.StringIO()
    print_reports(reports, Console(file=out, width=160))
    return [line.replace("│", " ").replace("┃", " ").split() for line in out.getvalue().splitlines()]


def test_result_row_has_times_ratio_error_and_verdict() -> None:
    row = ["matmul", "512x512x512", "f32", "2.000", "3.000", "1.50x", "1.0e-06", "1.0e-05", "ok"]
    assert row in shown(GOOD)


def test_slower_rows_are_explained() -> None:
    slow = replace(GOOD, seconds={"mltriton": 0.004, "numpy": 0.003})
    assert not any("docs/measurements.md" in words for words in shown(GOOD, BAD))
    assert any("docs/measurements.md" in words for words in shown(GOOD, slow))
    assert "busy" not in explanation(2.0, 2)
    assert "(9 threads on 2 processors)" in explanation(9.2, 2)


def test_an_error_that_is_not_a_number_is_wrong() -> None:
    assert not BAD.ok
    assert ["softmax", "8x8", "f32", "1.000", "-", "-", "nan", "1.0e-05", "WRONG"] in shown(GOOD, BAD)


def test_operations_of_every_level_with_gaps() -> None:
    lines = shown(GOOD, BAD)
    assert ["kernel", "tt", "warp", "llvm"] in lines
    assert ["matmul", "20", "30", "-"] in lines
    assert ["softmax", "9", "-", "99"] in lines


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_the_last_step(terminal: bool) -> None:
    out = io.StringIO()
    with progress("demo", Console(file=out, width=100, force_terminal=terminal)) as on_step:
        on_step("softmax", 2, 4)
    assert "softmax" in out.getvalue()
    assert "2/4" in out.getvalue()
