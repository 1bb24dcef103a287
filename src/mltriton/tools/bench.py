"""Runs the benchmarks of a directory and prints how we compare: with the best library, or with a budget.

A benchmark is a Python file with `def measurements(quick: bool) -> Iterator[Measurement]` (or of `Cost`). Needs rich
(the `cli` extra).
"""

from __future__ import annotations

import json as json_module
import math
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from rich.table import Table

from mltriton.errors import OptionError
from mltriton.tools.costs import Cost
from mltriton.tools.demo_display import wide_console
from mltriton.tools.gpu_bench import is_on_gpu, name_of_gpu
from mltriton.tools.side_by_side import OURS, Measurement, geometric_mean, set_threads

Row = Measurement | Cost


def run_benchmarks(
    names: Sequence[str],
    *,
    directory: Path,
    quick: bool,
    json: Path | None,
    threads: int | None = None,
    target: str = "cpu",
) -> list[Row]:
    """Run the named benchmarks (all when there are no names), print a table each, return what was measured.

    Those for GPUs, which a `target` of the family `cuda` asks for, lie in a directory `gpu` of the others'.
    `json`: also write the measurements to this file. `threads`: for every library; with 1, CPU time is measured.
    Raises `OptionError` for an unknown name or an empty directory.
    """
    if threads is not None:
        set_threads(threads)
    console = wide_console()
    taken: list[Row] = []
    on_gpu = is_on_gpu(target)
    if on_gpu:
        console.print(name_of_gpu())
        directory /= "gpu"
    console.print(f"{machine()}, {os.cpu_count()} CPUs; {libraries()}{_threads(threads)}")
    for path in _choose(names, directory):
        rows: list[Row] = []
        with console.status(f"{path.stem} ..."):
            for row in _load(path).measurements(quick):
                rows.append(row)
                console.print(f"  {_line(row)}", highlight=False)
        measured = [row for row in rows if isinstance(row, Measurement)]
        costs = [row for row in rows if isinstance(row, Cost)]
        compare = library_table if on_gpu else ratio_table
        for table in [compare(path.stem, measured)] * bool(measured) + [cost_table(path.stem, costs)] * bool(costs):
            console.print(table)
        taken += rows
    if json is not None:
        json.write_text(json_module.dumps([asdict(row) for row in taken], indent=1), encoding="utf-8")
    return taken


def _threads(count: int | None) -> str:
    return "" if count is None else "; one thread, CPU time" if count == 1 else f"; {count} threads"


def _line(row: Row) -> str:
    if isinstance(row, Cost):
        return f"{row.name}: {_time(row.median)}"
    in_turn = f", {row.ratio_in_turn():.2f} in turn" if row.in_turn else ""
    return f"{row.job} {row.problem}: {row.ratio('minimum'):.2f} (min), {row.ratio():.2f} (median){in_turn}"


def _choose(names: Sequence[str], directory: Path) -> Iterator[Path]:
    found = {path.stem: path for path in sorted(directory.glob("*.py"))}
    if not found:
        hint = "benchmarks come with mltriton's source tree, not with the package: run it there, or give --directory"
        raise OptionError(f"no benchmarks in {directory}", hint=hint)
    for name in names or found:
        if name not in found:
            raise OptionError("unknown benchmark", expected=", ".join(found), found=name)
        yield found[name]


def _load(path: Path) -> Any:
    spec = spec_from_file_location(f"mltriton_benchmark_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ratio_table(title: str, rows: Sequence[Measurement]) -> Table:
    """Times side by side, our rate, and the ratio to the best of the others; its geometric mean for each job."""
    libraries = list(dict.fromkeys(name for row in rows for name in row.times))
    table = Table("job", "problem", title=f"{title}: best library's time / ours (above 1: ours is faster)")
    for heading in (*(f"{library} ms" for library in libraries), "rate", "min", "median", "in turn"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{1e3 * row.times[name].minimum:.3f}" if name in row.times else "-" for name in libraries]
        rate = f"{row.rate(OURS):.1f} {row.unit}" if row.work else ""
        table.add_row(row.job, row.problem, *times, rate, *map(_ratio_text, _ratios(row)))
    for job in dict.fromkeys(row.job for row in rows):
        each = zip(*(_ratios(row) for row in rows if row.job == job), strict=True)
        means = [_ratio_text(geometric_mean(values)) for values in each]
        table.add_row(job, "geometric mean", *[""] * len(libraries), "", *means, style="bold")
    return table


def library_table(title: str, rows: Sequence[Measurement]) -> Table:
    """Medians side by side, our rate, and the ratio to each of the others; its geometric mean for each job."""
    libraries = list(dict.fromkeys(name for row in rows for name in row.times))
    others = [name for name in libraries if name != OURS]
    table = Table("job", "problem", title=f"{title}: each library's median time / ours (above 1: ours is faster)")
    for heading in (*(f"{library} us" for library in libraries), "rate", *(f"/ {name}" for name in others)):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{1e6 * row.times[name].median:.1f}" if name in row.times else "-" for name in libraries]
        rate = f"{row.work / row.times[OURS].median / 1e9:.0f} {row.unit}" if row.work else ""
        table.add_row(row.job, row.problem, *times, rate, *(_ratio_text(row.ratio_to(name)) for name in others))
    for job in dict.fromkeys(row.job for row in rows):
        of_job = [row for row in rows if row.job == job]
        means = [_ratio_text(_mean([row.ratio_to(name) for row in of_job if name in row.times])) for name in others]
        table.add_row(job, "geometric mean", *[""] * len(libraries), "", *means, style="bold")
    return table


def _mean(ratios: Sequence[float]) -> float:
    return geometric_mean(ratios) if ratios else math.nan


def _ratios(row: Measurement) -> tuple[float, float, float]:
    """Of the shortest calls, of the medians, and of the medians right after one another."""
    return row.ratio("minimum"), row.ratio(), row.ratio_in_turn()


def _ratio_text(ratio: float) -> str:
    return "-" if math.isnan(ratio) else f"{ratio:.2f}"


def cost_table(title: str, rows: Sequence[Cost]) -> Table:
    """What each thing takes and may take."""
    table = Table("what", title=f"{title}: measured in fresh processes")
    for heading in ("min", "median", "budget", ""):
        table.add_column(heading, justify="right")
    for row in rows:
        verdict = "[green]ok[/]" if row.ok else "[red]above[/]"
        table.add_row(row.name, *map(_time, (row.minimum, row.median, row.budget)), verdict)
    return table


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.2f} us" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"


def libraries() -> str:
    """Names and versions of what takes part."""
    found = [f"Python {platform.python_version()}"]
    for name in ("numpy", "torch", "triton", "llvmlite"):
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def machine() -> str:
    """What the operating system calls this processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
