"""`mltriton.testing`: times, comparisons, reports."""

from __future__ import annotations

import csv
import importlib.util
import time

import numpy as np
import pytest

from mltriton.errors import OptionError
from mltriton.testing import Benchmark, assert_close, do_bench, perf_report


def test_times_are_milliseconds():
    assert 2 <= do_bench(lambda: time.sleep(0.002), warmup=1, rep=10) < 20


def test_quantiles_and_modes():
    def quick():
        return sum(range(100))

    low, high = do_bench(quick, warmup=1, rep=2, quantiles=(0.1, 0.9))
    assert low <= high
    assert isinstance(do_bench(quick, warmup=1, rep=2, quantiles=[0.5]), float)
    times = do_bench(quick, warmup=1, rep=2, return_mode="all")
    assert len(times) > 10
    for mode in ("min", "max", "mean", "median"):
        assert do_bench(quick, warmup=1, rep=2, return_mode=mode) > 0
    with pytest.raises(OptionError, match="no return_mode 'mode'"):
        do_bench(quick, return_mode="mode")


def test_calls_fill_the_time_given():
    calls = []
    do_bench(lambda: calls.append(time.sleep(0.001)), warmup=5, rep=20)
    assert 10 <= len(calls) <= 40


def test_a_slow_function_is_measured_once():
    calls = []
    do_bench(lambda: calls.append(time.sleep(0.03)), warmup=1, rep=1)
    assert len(calls) == 5  # a first call, two to estimate, one to warm up, one measured


def test_comparison():
    x = np.linspace(0, 1, 10, dtype=np.float32)
    assert_close(x, x + np.float32(1e-7))
    assert_close(x, x.astype(np.float16))
    assert_close(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    assert_close(3, 3)
    with pytest.raises(AssertionError):
        assert_close(x, x + np.float32(1e-3))
    assert_close(x, x + np.float32(1e-3), atol=1e-2)
    with pytest.raises(AssertionError, match="shapes"):
        assert_close(x, x[:, None])
    with pytest.raises(AssertionError, match="rows"):
        assert_close(np.array([1, 2]), np.array([1, 3]), err_msg="rows")


def test_comparison_of_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 1, 10)
    assert_close(x, x.numpy())
    assert_close(x.to(torch.bfloat16), x)
    with pytest.raises(AssertionError):
        assert_close(x, x + 0.1)
    assert_close(torch.arange(3), np.arange(3))


def report(**changes):
    benchmark = Benchmark(
        x_names=["n"],
        x_vals=[1, 10],
        line_arg="provider",
        line_vals=["a", "b"],
        line_names=["A", "B"],
        plot_name="times",
        args={"factor": 2},
        ylabel="ms",
    )
    for name, value in changes.items():
        setattr(benchmark, name, value)

    @perf_report(benchmark)
    def measure(n, provider, factor, offset=0):
        value = n * factor + offset + (provider == "b")
        return (value, value - 1, value + 1) if provider == "a" else value

    return measure


def test_a_report_measures_every_point(tmp_path, capsys):
    rows = report().run(print_data=True, return_df=True, save_path=tmp_path / "plots")
    assert [row.values for row in rows] == [{"A": 2, "B": 3}, {"A": 20, "B": 21}]
    assert rows[0].bounds == {"A": (1, 3), "B": None}
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["times:", " n  A (ms)  B (ms)", " 1       2       3", "10      20      21"]
    with (tmp_path / "plots" / "times.csv").open() as stream:
        assert list(csv.reader(stream)) == [["n", "A", "B"], ["1", "2", "3"], ["10", "20", "21"]]


def test_several_names_on_the_axis_and_arguments_of_run():
    rows = report(x_names=["n", "offset"], x_vals=[(1, 5), 3]).run(return_df=True)
    assert [row.x for row in rows] == [{"n": 1, "offset": 5}, {"n": 3, "offset": 3}]
    assert report().run(return_df=True, offset=100)[0].values["A"] == 102
    assert report().run() is None


def test_plots(tmp_path):
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(OptionError, match="plots need matplotlib"):
            report().run(show_plots=True)
        return
    import matplotlib as mpl

    mpl.use("Agg")
    report(styles=[("red", "-"), ("blue", "--")], x_log=True).run(save_path=tmp_path)
    assert (tmp_path / "times.png").stat().st_size > 1000
