"""The fastest of several on a machine that does other things: simulated machines, no clock."""

from __future__ import annotations

import random

import pytest

from mltriton.runtime.ranking import Candidate, fastest
from mltriton.runtime.tuning_report import Plain, Rich, Row, reporter


class Machine:
    """Programs of known milliseconds on a machine that has slow spells and single slow runs; `log` says who ran."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.log = []
        self.spell = 1.0

    def candidate(self, name, milliseconds, fails_at=None):
        runs = 0

        def run():
            nonlocal runs
            runs += 1
            if runs == fails_at:
                raise RuntimeError(name)
            self.log.append(name)
            if self.random.random() < 0.02:
                self.spell = self.random.choice((1.0, 1.0, 3.0))
            hiccup = 20.0 if self.random.random() < 0.05 else 1.0
            return milliseconds * self.spell * hiccup * self.random.uniform(1.0, 1.1)

        return Candidate(run)


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_choose(seed):
    machine = Machine(seed)
    times = [0.3 * 1.25**number for number in range(12)]
    machine.random.shuffle(times)
    candidates = [machine.candidate(str(number), time) for number, time in enumerate(times)]
    best = fastest(candidates, 0.0, 100.0)
    assert times[candidates.index(best)] == min(times)
    spent = sum(times[int(name)] for name in machine.log)
    assert spent < 600


def test_candidates_take_turns():
    machine = Machine(0)
    fastest([machine.candidate(name, 1.0) for name in "abc"], 0.0, 96.0)
    assert machine.log[:12] == list("abcabcabcabc")


def test_a_hopeless_one_runs_once():
    machine = Machine(1)
    slow, quick = machine.candidate("slow", 5000.0), machine.candidate("quick", 1.0)
    assert fastest([slow, quick], 0.0, 50.0) is quick
    assert machine.log.count("slow") == 1
    assert slow.timings[0] >= 5000


def test_one_that_fails_leaves():
    machine = Machine(2)
    at_once, later = machine.candidate("at once", 0.1, 1), machine.candidate("later", 0.1, 5)
    good = machine.candidate("good", 1.0)
    assert fastest([at_once, later, good], 0.0, 50.0) is good
    assert str(at_once.error) == "at once" and str(later.error) == "later"
    assert fastest([machine.candidate("alone", 1.0, 1)], 0.0, 50.0) is None


ROWS = [Row("BLOCK: 16", (1.5, 1.25, 1.75), "and 3 more"), Row("BLOCK: 8", None, "failed: OptionError: no")]


def test_results_as_text(capsys):
    Plain().table("autotuning f", ROWS)
    assert capsys.readouterr().err.splitlines() == [
        "autotuning f",
        "    1.5000 (1.2500-1.7500)  BLOCK: 16  [and 3 more]",
        "                    failed  BLOCK: 8  [failed: OptionError: no]",
    ]


def test_results_with_rich(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "120")
    shown = Rich("f")
    for done in range(3):
        shown.step("compiled", done, 3)
    shown.close()
    shown.table("autotuning f", ROWS)
    text = capsys.readouterr().err
    assert "1.5000 (1.2500-1.7500)" in text and "and 3 more" in text and "OptionError: no" in text


def test_who_shows(monkeypatch):
    monkeypatch.delenv("MLTRITON_PRINT_AUTOTUNING", raising=False)
    assert not isinstance(reporter("f"), Plain | Rich)
    monkeypatch.setenv("MLTRITON_PRINT_AUTOTUNING", "1")
    assert isinstance(reporter("f"), Plain)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    assert isinstance(reporter("f"), Plain)
