"""What the demo shows: a progress line while it runs, and tables of errors, times and operation counts at the end.

Takes one `JobReport` a kernel; needs rich (the `cli` extra).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mltriton.runtime.native.cpus import available_cpus

# What is done now, how many steps are done, and how many there are.
OnStep = Callable[[str, int, int], None]
OURS = "mltriton"
FILE_WIDTH = 160
BUSY = 1.5  # threads for each processor, above which other programs' are among them
IN_PHASES = "in phases, each library alone"


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one kernel did on random data.

    `operations` counts the operations of each level; `error` is the greatest difference from numpy in float64, scaled
    so that `tolerance` bounds it; `seconds` holds the median time of "mltriton" and of each library beside it;
    `level_errors` are those of a small problem at each level.
    """

    name: str
    problem: str
    operations: Mapping[str, int]
    error: float
    tolerance: float
    seconds: Mapping[str, float]
    level_errors: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def ok(self) -> bool:
        """Whether all results are right; an error that is not a number is wrong."""
        return all(error <= self.tolerance for error in (self.error, *self.level_errors.values()))


@contextmanager
def progress(title: str, console: Console | None = None) -> Generator[OnStep]:
    """Show a bar that the yielded callback moves."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None)

        def on_step(description: str, done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield on_step


def print_reports(reports: Sequence[JobReport], console: Console | None = None, timed: str = IN_PHASES) -> None:
    """Print the tables, unabridged where the output is no terminal."""
    console = console or wide_console()
    console.print(result_table(reports, timed))
    console.print(level_table(reports))
    console.print(operation_table(reports))


def wide_console() -> Console:
    """The standard output; a file is wide enough for any table."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_WIDTH)


def result_table(reports: Sequence[JobReport], timed: str = IN_PHASES) -> Table:
    """Return times side by side and the error of every job; `timed` says how."""
    libraries = _columns(report.seconds for report in reports)
    table = Table("kernel", "problem", title=f"Checked against numpy in float64; timed {timed}")
    for library in libraries:
        table.add_column(f"{library} ms", justify="right")
    for heading in ("best / ours", "error", "allowed"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for report in reports:
        times = [f"{1e3 * report.seconds[key]:.3f}" if key in report.seconds else "-" for key in libraries]
        verdict = "[green]ok[/]" if report.ok else "[red]WRONG[/]"
        table.add_row(
            report.name,
            report.problem,
            *times,
            _speedup(report.seconds),
            f"{report.error:.1e}",
            f"{report.tolerance:.1e}",
            verdict,
        )
    if any(_ratio(report.seconds) < 1.0 for report in reports):
        table.caption = explanation(os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, available_cpus())
    return table


def explanation(load: float, processors: int) -> str:
    """Why a library may be faster here, where so many threads have lately wanted so many processors."""
    known = "Under 1.00: docs/measurements.md says which kernels are slower, and why."
    if load <= processors * BUSY:
        return known
    return (
        f"{known} Other work keeps this machine busy ({load:.0f} threads on {processors} processors): repeat it alone."
    )


def level_table(reports: Sequence[JobReport]) -> Table:
    """Return the error of a small problem at each level."""
    return _by_level(
        "A small problem at each level: error against numpy in float64",
        {report.name: {k: _verdict(v, report.tolerance) for k, v in report.level_errors.items()} for report in reports},
    )


def _verdict(error: float, tolerance: float) -> str:
    return f"{error:.1e}" if error <= tolerance else f"[red]{error:.1e} WRONG[/]"


def operation_table(reports: Sequence[JobReport]) -> Table:
    """Return the number of operations of every job at each level; of instructions below."""
    return _by_level("Operations at each level", {report.name: report.operations for report in reports})


def _by_level(title: str, rows: Mapping[str, Mapping[str, object]]) -> Table:
    """A row for each kernel, and a column for each level that any of them has."""
    levels = _columns(rows.values())
    table = Table("kernel", title=title)
    for level in levels:
        table.add_column(level, justify="right")
    for name, row in rows.items():
        table.add_row(name, *(str(row.get(level, "-")) for level in levels))
    return table


def _columns(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the keys that any row has, in order of appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _speedup(seconds: Mapping[str, float]) -> str:
    ratio = _ratio(seconds)
    return "-" if math.isnan(ratio) else f"{ratio:.2f}x"


def _ratio(seconds: Mapping[str, float]) -> float:
    """Return how many times as fast as the best library we are; NaN with nothing to compare with."""
    others = [time for library, time in seconds.items() if library != OURS]
    return min(others) / seconds[OURS] if others and OURS in seconds else math.nan
