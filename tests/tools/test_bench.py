"""Benchmarks: what is measured, what is printed, which files run."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from clock import Clock
from mltriton.errors import OptionError
from mltriton.tools import side_by_side
from mltriton.tools.bench import run_benchmarks
from mltriton.tools.costs import Cost, sample_in_processes
from mltriton.tools.side_by_side import Measurement, Times, compared, geometric_mean, measure, set_threads

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SOURCE = '''
"""A benchmark."""
from mltriton.tools.costs import Cost
from mltriton.tools.side_by_side import Measurement, Times

def measurements(quick):
    ours, theirs = Times(0.5, 1.0), Times(0.25 if quick else 1.0, 4.0)
    yield Measurement("job", "2x2", {"mltriton": ours, "numpy": theirs, "slow": Times(9, 9)}, 1e9)
    yield Cost("start", (0.5, 2e-6, 0.25), 0.2)
'''


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that contenders take and that is measured."""
    clock = Clock()
    monkeypatch.setattr(side_by_side, "time", clock)
    return clock


def test_contenders_are_timed_in_turns(clock: Clock) -> None:
    calls: list[str] = []
    seconds = {"mltriton": 2e-3, "numpy": 3e-3}
    contenders = {name: lambda name=name: (calls.append(name), clock.work(seconds[name])) for name in seconds}
    times = measure(contenders, rounds=3)
    turns = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert turns == ["mltriton", "numpy"] * 4  # once to warm up
    for name, taken in times.items():
        assert (taken.minimum, taken.median) == pytest.approx((seconds[name], seconds[name]), rel=1e-3)


def test_in_phases_the_machine_rests_before_each_burst(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    events: list[str] = []
    monkeypatch.setattr(clock, "sleep", lambda seconds: events.append(f"rest {seconds}"))
    contenders = {name: lambda name=name: events.append(name) for name in ("mltriton", "numpy")}
    measure(contenders, rounds=2, rest=0.5)
    changes = [event for i, event in enumerate(events) if i == 0 or events[i - 1] != event]
    assert changes == ["mltriton", "numpy", *["rest 0.5", "mltriton", "rest 0.5", "numpy"] * 2]


@pytest.mark.parametrize("threads, in_turn", [("1", set()), ("2", {"mltriton", "numpy"})])
def test_both_ways_are_measured_where_there_are_several_threads(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, threads: str, in_turn: set[str]
) -> None:
    monkeypatch.setenv("MLTRITON_NUM_THREADS", threads)
    row = compared("job", "1", {"mltriton": lambda: clock.work(1e-3), "numpy": lambda: clock.work(1e-3)})
    assert set(row.times) == {"mltriton", "numpy"}
    assert set(row.in_turn) == in_turn
    assert math.isnan(row.ratio_in_turn()) == (not in_turn)


def test_who_is_far_behind_is_not_timed_again(clock: Clock) -> None:
    calls: list[int] = []
    contenders = {"mltriton": lambda: clock.work(1e-3), "numpy": lambda: (calls.append(1), clock.work(20e-3))}
    times = measure(contenders, rounds=4)
    assert len(calls) == 5  # one to warm up; one that does not count, and three, in the first round
    assert times["numpy"].minimum >= 20e-3


def test_we_are_always_timed(clock: Clock) -> None:
    calls: list[int] = []
    contenders = {"mltriton": lambda: (calls.append(1), clock.work(20e-3)), "numpy": lambda: clock.work(1e-3)}
    measure(contenders, rounds=3)
    assert len(calls) == 13


def test_the_budget_ends_it_after_two_rounds(clock: Clock) -> None:
    calls: list[int] = []
    measure({"mltriton": lambda: (calls.append(1), clock.work(6e-3))}, rounds=50, budget=0.0)
    assert len(calls) == 9


def test_short_calls_are_timed_several_at_once(clock: Clock) -> None:
    calls: list[int] = []
    times = measure({"mltriton": lambda: (calls.append(1), clock.work(1e-5))}, rounds=1)
    assert len(calls) > 500
    assert times["mltriton"].minimum == pytest.approx(1e-5, rel=1e-2)


def test_one_thread_is_measured_in_cpu_time(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    for name in ("MLTRITON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    set_threads(1)
    assert os.environ["OMP_NUM_THREADS"] == os.environ["MLTRITON_NUM_THREADS"] == "1"
    times = measure({"mltriton": lambda: (clock.work(1e-3), clock.sleep(20e-3))}, rounds=1)
    assert times["mltriton"].median == pytest.approx(1e-3, rel=1e-2)


def test_the_ratio_is_that_of_the_best_of_the_others() -> None:
    times = {"mltriton": Times(2.0, 4.0), "numpy": Times(5.0, 6.0), "torch": Times(3.0, 8.0)}
    row = Measurement("gemm", "1", times, work=4e9)
    assert row.ratio("minimum") == 1.5
    assert row.ratio() == 1.5
    assert row.rate("mltriton") == 2.0
    assert math.isnan(Measurement("gemm", "1", {"mltriton": Times(1, 1)}).ratio())


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_costs_are_judged_by_the_median() -> None:
    cost = Cost("load", (1.0, 9.0, 3.0), budget=3.0)
    assert (cost.minimum, cost.median, cost.ok) == (1.0, 3.0, True)
    assert not Cost("load", (1.0, 9.0, 3.1), budget=3.0).ok


PROBES = """
import os, pathlib
def cache():
    folder = pathlib.Path(os.environ["MLTRITON_CACHE_DIR"])
    folder.mkdir(exist_ok=True)
    (folder / "entry").open("a").write("x")
    return (folder / "entry").stat().st_size
def bytecode():
    return float("PYTHONDONTWRITEBYTECODE" in os.environ)
def fails():
    raise ValueError("no such thing")
"""


@pytest.mark.parametrize("cached, sizes", [(False, (1.0, 1.0)), (True, (2.0, 3.0))])
def test_samples_come_from_fresh_processes(tmp_path: Path, cached: bool, sizes: tuple[float, ...]) -> None:
    file = tmp_path / "probes.py"
    file.write_text(PROBES)
    assert sample_in_processes(file, "cache", 2, cached=cached) == sizes


def test_a_probe_has_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "probes.py").write_text(PROBES)
    assert sample_in_processes(tmp_path / "probes.py", "bytecode", 1) == (0.0,)


def test_a_probe_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "probes.py").write_text(PROBES)
    with pytest.raises(OptionError, match=r"fails of .* failed") as error:
        sample_in_processes(tmp_path / "probes.py", "fails", 1)
    assert error.value.found == "ValueError: no such thing"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "two.py").write_text(SOURCE)
    return tmp_path


def test_tables_and_json(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = directory / "out.json"
    taken = run_benchmarks(["two"], directory=directory, quick=False, json=file)
    out = capsys.readouterr().out
    lines = [line.replace("│", " ").split() for line in out.splitlines()]
    assert ["job", "2x2", "500.000", "1000.000", "9000.000", "2.0", "GFLOP/s", "2.00", "4.00", "-"] in lines
    assert ["job", "geometric", "mean", "2.00", "4.00", "-"] in lines
    assert ["start", "2.00", "us", "250.0", "ms", "200.0", "ms", "above"] in lines
    assert len(taken) == 2
    saved = json.loads(file.read_text())
    assert saved[0]["times"]["numpy"] == {"minimum": 1.0, "median": 4.0}
    assert saved[1]["budget"] == 0.2


def test_all_of_them_and_quickly(directory: Path) -> None:
    taken = run_benchmarks([], directory=directory, quick=True, json=None)
    rows = [row for row in taken if isinstance(row, Measurement)]
    assert [row.ratio("minimum") for row in rows] == [0.5, 0.5]


def test_an_unknown_name(directory: Path) -> None:
    with pytest.raises(OptionError, match="unknown benchmark") as error:
        run_benchmarks(["three"], directory=directory, quick=True, json=None)
    assert error.value.expected == "one, two"


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no benchmarks in"):
        run_benchmarks([], directory=tmp_path, quick=True, json=None)


NAMES = [
    "attention",
    "attention_backward",
    "gemm",
    "gemm_fused",
    "overheads",
    "paged_attention",
    "rows",
    "scaling",
    "warp_level",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_benchmarks_run(name: str) -> None:
    assert run_benchmarks([name], directory=BENCHMARKS, quick=True, json=None)


def test_the_benchmarks_are_known() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == set(NAMES)
