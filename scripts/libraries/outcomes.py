"""A plugin of pytest: which outcome each test had, written when it ends, so that runs that are stopped count, too.

`SUITE_OUTCOMES` names the file, whose lines are `OUTCOME SECONDS TEST`; tests that are in it are not run again. With
`SUITE_EVERY=N` one test in N is run, the first of each file among them.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

_FILE = Path(os.environ.get("SUITE_OUTCOMES", os.devnull))
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ  # The process that hands out tests hears of all of them.


def read_outcomes(file: Path) -> dict[str, str]:
    """The outcome of each test in such a file."""
    lines = [line.split(" ", 2) for line in file.read_text().splitlines()] if file.exists() else []
    return {test: outcome for outcome, _, test in (line for line in lines if len(line) == 3)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for."""
    every, ended = int(os.environ.get("SUITE_EVERY", "1")), read_outcomes(_FILE)
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    for item in items:
        file = item.nodeid.partition("::")[0]
        if seen[file] % every == 0 and item.nodeid not in ended:
            kept.append(item)
        seen[file] += 1
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write an outcome: that of the call, or of what stands before or after it where that is to blame."""
    if _IS_WORKER or (report.when != "call" and report.outcome == "passed") or report.outcome == "rerun":
        return
    outcome = report.outcome if report.when == "call" or report.outcome == "skipped" else "error"
    with _FILE.open("a") as file:
        file.write(f"{'xfailed' if hasattr(report, 'wasxfail') else outcome} {report.duration:.1f} {report.nodeid}\n")
