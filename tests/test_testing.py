"""`mltriton.testing`: times, comparisons, reports."""

from __future__ import annotations

import csv
import importlib.util
import time

import numpy as np
import pytest

from clock import Clock
from mltriton import testing
from mltriton.errors import OptionError
from mltriton.testing import Benchmark, assert_close, do_bench, perf_report


@pytest.fixture
def clock(monkeypatch):
    """The time that `do_bench` measures."""
    clock = Clock()
    monkeypatch.setattr(testing, "time", clock)
    return clock


def test_times_are_milliseconds():
    assert do_bench(lambda: time.sleep(0.002), warmup=1, rep=4) >= 2


def test_quantiles_and_modes(clock):
    def measured(**how):
        taken = iter([1, 1, 1, 1, *range(1, 11)])  # A first call, two to estimate, one to warm up, ten measured.
        return do_bench(lambda: clock.sleep(next(taken) * 1e-3), warmup=1.5, rep=10.5, **how)

    assert measured(quantiles=(0.1, 0.9)) == pytest.approx([1.9, 9.1], rel=1e-3)
    assert measured(quantiles=[0.5]) == pytest.approx(5.5, rel=1e-3)
    assert measured(return_mode="all") == pytest.approx(range(1, 11), rel=1e-3)
    for mode, expected in {"min": 1, "max": 10, "mean": 5.5, "median": 5.5}.items():
        assert measured(return_mode=mode) == pytest.approx(expected, rel=1e-3)
    assert measured() == measured(return_mode="mean")
    with pytest.raises(OptionError, match="no return_mode 'mode'"):
        measured(return_mode="mode")


def test_calls_fill_the_time_given(clock):
    calls = []
    do_bench(lambda: calls.append(clock.sleep(0.001)), warmup=5.5, rep=20.5)
    assert len(calls) == 28  # a first call, two to estimate, five to warm up, twenty measured


def test_a_slow_function_is_measured_once(clock):
    calls = []
    do_bench(lambda: calls.append(clock.sleep(0.03)), warmup=1, rep=1)
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
