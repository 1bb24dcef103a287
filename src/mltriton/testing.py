"""Measuring and comparing: `do_bench`, `assert_close`, benchmarks over a range of sizes (`Benchmark`, `perf_report`).

Level: user. Times are wall-clock milliseconds of calls that have returned, which is the whole of a launch on the CPU;
where programs use an NVIDIA GPU (`mltriton.runtime.driver.active`), what the GPU takes by its own events.
Plots need the extra `plot` (matplotlib); everything else needs numpy alone.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from mltriton.errors import OptionError

RETURN_MODES: Mapping[str, Callable[[np.ndarray], Any]] = {
    "mean": lambda times: float(np.mean(times)),
    "median": lambda times: float(np.median(times)),
    "min": lambda times: float(np.min(times)),
    "max": lambda times: float(np.max(times)),
    "all": lambda times: times.tolist(),
}


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that a call of `fn` takes.

    The GPU's, with its second-level cache empty, where the active driver is one's; else the host's. Calls it for about
    `warmup` milliseconds, then measures single calls for about `rep` milliseconds (once at least). Gives the quantiles
    asked for (one alone as a float), otherwise what `return_mode` says: mean, median, min, max or all (the list).
    `grad_to_none` are tensors whose gradient is dropped before each call. Raises `OptionError` for another mode.
    """
    if return_mode not in RETURN_MODES:
        raise OptionError(f"there is no return_mode {return_mode!r}", expected=f"one of {', '.join(RETURN_MODES)}")
    times = np.array(_times(fn, warmup, rep, grad_to_none or ()))
    if quantiles is None:
        return RETURN_MODES[return_mode](times)
    found = np.quantile(times, list(quantiles)).tolist()
    return found[0] if len(found) == 1 else found


def _times(fn: Callable[[], object], warmup: float, rep: float, grad_to_none: Sequence[Any]) -> Sequence[float]:
    from mltriton.runtime.driver import driver  # Few programs need it.

    if driver.active.get_current_target().backend == "cuda":
        from mltriton.targets.nvidia.timing import bench  # Few programs need it.

        return bench(fn, warmup, rep, lambda: _drop(grad_to_none))
    fn()
    estimate = max(_milliseconds(fn) for _ in range(2))
    for _ in range(_count(warmup, estimate)):
        fn()
    return [_measured(fn, grad_to_none) for _ in range(_count(rep, estimate))]


def _count(budget: float, estimate: float) -> int:
    """How many calls fit into `budget` milliseconds; one at least."""
    return max(1, int(budget / max(estimate, 1e-4)))


def _milliseconds(fn: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    fn()
    return (time.perf_counter_ns() - started) * 1e-6


def _measured(fn: Callable[[], object], grad_to_none: Sequence[Any]) -> float:
    _drop(grad_to_none)
    return _milliseconds(fn)


def _drop(grad_to_none: Sequence[Any]) -> None:
    for tensor in grad_to_none:
        tensor.grad = None


# Absolute and relative tolerance by the coarser of two dtypes, as torch.testing has them.
_TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float16": (1e-5, 1e-3),
    "bfloat16": (1e-5, 1.6e-2),
    "float32": (1e-5, 1.3e-6),
    "float64": (1e-7, 1e-7),
}


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise `AssertionError` unless `x` and `y` have one shape and agree: |x - y| <= atol + rtol * |y|.

    They are numpy arrays, torch tensors or numbers. Tolerances that are not given follow the coarser dtype; integers
    must be equal. NaN agrees with NaN.
    """
    names = [str(getattr(value, "dtype", "float64")).removeprefix("torch.") for value in (x, y)]
    default_atol, default_rtol = max((_TOLERANCES.get(name, (0.0, 0.0)) for name in names), key=lambda pair: pair[1])
    left, right = _as_float64(x), _as_float64(y)
    if left.shape != right.shape:
        raise AssertionError(f"shapes {left.shape} and {right.shape} differ. {err_msg}".rstrip())
    atol, rtol = default_atol if atol is None else atol, default_rtol if rtol is None else rtol
    np.testing.assert_allclose(left, right, atol=atol, rtol=rtol, err_msg=err_msg, equal_nan=True)


def _as_float64(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.to(_torch_float64(value)) if value.dtype.is_floating_point else value).numpy()
    return np.asarray(value).astype(np.float64)


def _torch_float64(tensor: Any) -> Any:
    import sys

    return sys.modules[type(tensor).__module__.partition(".")[0]].float64


@dataclass
class Benchmark:
    """What a function is measured over.

    `x_names` take each of `x_vals` (or of each tuple of `x_vals` one value each), `line_arg` each of `line_vals`, the
    rest is `args`. `line_names` label the lines, `styles` are pairs of a colour and a line style, `plot_name` is the
    name of the plot and of its files.
    """

    x_names: list[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, Any]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None


@dataclass
class Row:
    """One measured point.

    The values of `x_names`, and for each line the value and its bounds (None where the function gave none).
    """

    x: dict[str, Any]
    values: dict[str, float] = field(default_factory=dict[str, float])
    bounds: dict[str, tuple[float, float] | None] = field(default_factory=dict[str, "tuple[float, float] | None"])


class Mark:
    """A function with benchmarks; `run` measures, prints, plots and saves them."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Measure. `save_path` is the directory for a .csv and, with matplotlib, a .png for each benchmark.

        With `return_df` gives the rows (`Row`; one list for each benchmark, or the list alone where there is one).
        `kwargs` go to the function. Raises `OptionError` when plots are asked for and matplotlib is not there.
        """
        single = isinstance(self.benchmarks, Benchmark)
        found: list[list[Row]] = []
        for benchmark in [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else self.benchmarks:
            rows = self._measure(benchmark, kwargs)
            found.append(rows)
            if print_data:
                print(f"{benchmark.plot_name}:\n{table(benchmark, rows)}")
            if save_path:
                _save(benchmark, rows, Path(save_path))
            if show_plots or save_path:
                _plot(benchmark, rows, show_plots, Path(save_path) if save_path else None)
        return (found[0] if single else found) if return_df else None

    def _measure(self, benchmark: Benchmark, kwargs: Mapping[str, Any]) -> list[Row]:
        rows: list[Row] = []
        for value in benchmark.x_vals:
            values = (
                cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value] * len(benchmark.x_names)
            )
            row = Row(dict(zip(benchmark.x_names, values, strict=True)))
            for line, name in zip(benchmark.line_vals, benchmark.line_names, strict=True):
                measured = self.fn(**row.x, **{benchmark.line_arg: line}, **benchmark.args, **kwargs)
                row.values[name], row.bounds[name] = _value_and_bounds(measured)
            rows.append(row)
        return rows


def _value_and_bounds(measured: Any) -> tuple[float, tuple[float, float] | None]:
    """A measurement is a number, or a number with its lower and upper bound."""
    if isinstance(measured, list | tuple):
        value, low, high = cast("Sequence[float]", measured)
        return value, (low, high)
    return measured, None


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Measure the decorated function over benchmarks.

    `@perf_report(Benchmark(...))`, then `function.run(print_data=True)`.
    """
    return lambda fn: Mark(fn, benchmarks)


def table(benchmark: Benchmark, rows: Sequence[Row]) -> str:
    """The rows as text, one column for each of `x_names` and each line."""
    header = [
        *benchmark.x_names,
        *(f"{name} ({benchmark.ylabel})" if benchmark.ylabel else name for name in benchmark.line_names),
    ]
    lines = [header, *([*(f"{v}" for v in row.x.values()), *(f"{v:.6g}" for v in row.values.values())] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _save(benchmark: Benchmark, rows: Sequence[Row], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{benchmark.plot_name}.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*benchmark.x_names, *benchmark.line_names])
        writer.writerows([*row.x.values(), *row.values.values()] for row in rows)


def _plot(benchmark: Benchmark, rows: Sequence[Row], show: bool, directory: Path | None) -> None:
    """Draw the lines with their bounds.

    Without matplotlib: an error if the plot should be shown, nothing if it was to be saved.
    """
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError:
        if show:
            raise OptionError("plots need matplotlib", hint="pip install 'mltriton[plot]'") from None
        return
    figure, axes = pyplot.subplots()
    xs = [next(iter(row.x.values())) for row in rows]
    for index, name in enumerate(benchmark.line_names):
        colour, style = benchmark.styles[index] if benchmark.styles else (None, None)
        axes.plot(xs, [row.values[name] for row in rows], label=name, color=colour, linestyle=style)
        bounds = [row.bounds[name] for row in rows]
        if all(bounds):
            low, high = zip(*cast("list[tuple[float, float]]", bounds), strict=True)
            axes.fill_between(xs, low, high, alpha=0.15, color=colour)
    axes.legend()
    axes.set(xlabel=benchmark.xlabel or benchmark.x_names[0], ylabel=benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    if directory is not None:
        figure.savefig(directory / f"{benchmark.plot_name}.png")
    if show:
        pyplot.show()
    pyplot.close(figure)
