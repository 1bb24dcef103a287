"""What autotuning shows of itself: how far it is, and a table of what it found.

Level: runtime. On standard error, where `MLTRITON_PRINT_AUTOTUNING` asks for it. On a terminal, with the extra `cli`
(rich), there is a bar and a coloured table; elsewhere lines of plain text.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mltriton.records import NamedTuple
from mltriton.runtime import config


class Row(NamedTuple):
    """A configuration, how it ran (milliseconds: median, 20 % and 80 % quantiles; None where it failed), a remark."""

    config: str
    timings: tuple[float, ...] | None
    remark: str = ""


class Silent:
    """Nothing is shown."""

    def step(self, what: str, done: int, of: int) -> None:
        """So much of `what` is done."""

    def close(self) -> None:
        """The end of the steps."""

    def table(self, title: str, rows: Sequence[Row]) -> None:
        """The results, the best one first."""


class Plain(Silent):
    """Lines of text."""

    def table(self, title: str, rows: Sequence[Row]) -> None:
        """One line each."""
        print(title, *(f"  {_shown(row):>24}  {row.config}{_remark(row)}" for row in rows), sep="\n", file=sys.stderr)


class Rich(Silent):
    """A bar and a table of rich's."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._console = Console(stderr=True)
        self._bar = Progress(console=self._console, transient=True)
        self._name = name
        self._tasks: dict[str, Any] = {}

    def step(self, what: str, done: int, of: int) -> None:
        """Move the bar."""
        if not self._tasks:
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(f"{self._name}: {what}", total=of)
        self._bar.update(self._tasks[what], completed=done, total=of)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def table(self, title: str, rows: Sequence[Row]) -> None:
        """Draw it."""
        from rich.table import Table

        table = Table("milliseconds", "configuration", "", title=title, title_justify="left")
        for row in rows:
            table.add_row(_shown(row), row.config, row.remark, style="bold" if row is rows[0] else None)
        self._console.print(table)


def reporter(name: str) -> Silent:
    """What shows the tuning of a kernel, as the settings ask."""
    if not config.PRINT_AUTOTUNING.get():
        return Silent()
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        return Plain()
    try:
        return Rich(name)
    except ImportError:
        return Plain()


def _shown(row: Row) -> str:
    if row.timings is None:
        return "failed"
    median, low, high = (*row.timings, *row.timings[-1:] * 2)[:3]
    return f"{median:.4f} ({low:.4f}-{high:.4f})"


def _remark(row: Row) -> str:
    return f"  [{row.remark}]" if row.remark else ""
