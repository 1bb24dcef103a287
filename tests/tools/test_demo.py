"""The demo: what it runs, counts, checks and reports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from mltriton.ir.parser import parse_module
from mltriton.tools import demo, jobs
from mltriton.tools.demo import Case, count_operations, level_errors, run_demo
from ptx_emulator.launch import install

LEVELS = ["tt", "ttg", "warp", "intrinsic"]


@pytest.fixture(scope="module", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_it_reports_every_kernel_and_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        Case(partial(jobs.gemm, 60, 50, 40), partial(jobs.gemm, 20, 30, 40)),
        Case(partial(jobs.softmax, 5, 70), partial(jobs.softmax, 2, 30)),
    ]
    monkeypatch.setattr(demo, "_cases", lambda *_: cases)
    monkeypatch.setattr(demo, "measure", partial(demo.measure, rounds=1))
    steps: list[tuple[str, int, int]] = []
    reports = run_demo(quick=True, seed=0, on_step=lambda *step: steps.append(step))
    assert [report.name for report in reports] == ["gemm float32", "softmax float32"]
    assert [done for _, done, _ in steps] == list(range(9))
    assert {total for *_, total in steps} == {8}
    for report in reports:
        assert report.ok
        assert list(report.operations) == [*LEVELS, "llvm", "asm"]
        assert list(report.level_errors) == [*LEVELS, "cpu"]
        assert {"mltriton", "numpy"} <= set(report.seconds)
        assert 0 < report.error < report.tolerance


@pytest.mark.parametrize("quick", [False, True])
def test_its_kernels(quick: bool) -> None:
    names = {case.small().name for case in demo._cases(quick, 0)}
    assert {"gemm float32", "attention float32", "causal attention float32"} <= names
    assert {"paged attention by workgroups float32", "paged attention by warps float32"} <= names
    assert {"softmax float32", "layer norm float32"} <= names
    assert ("gemm bfloat16" in names) == jobs.has_torch()


def test_operations_are_those_of_the_levels() -> None:
    launch, _ = jobs.softmax(3, 40).make_launch()
    kernel = launch.compiled()
    counts = count_operations(kernel)
    for level in LEVELS:
        assert counts[level] == sum(1 for _ in parse_module(kernel.asm[level]).walk()) - 1 > 10
    assert counts["llvm"] > counts["intrinsic"]


def test_a_wrong_result_at_one_level_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.softmax(3, 40)

    def broken(module, args, grid, **options) -> None:
        demo_run(module, args, grid, **options)
        if str(module).find('mltriton.level = "warp"') >= 0:
            args[1][...] = 0

    demo_run = demo.run
    monkeypatch.setattr(demo, "run", broken)
    errors = level_errors(job)
    assert [level for level, error in errors.items() if error > job.tolerance] == ["warp"]


@pytest.mark.parametrize("make", [jobs.softmax, jobs.layer_norm])
def test_contenders_do_the_same(make) -> None:
    job = make(7, 90)
    assert all(job.error(run()) < job.tolerance for run in job.contenders.values())


@pytest.mark.parametrize("causal", [False, True])
def test_contenders_attend_alike(causal: bool) -> None:
    job = jobs.attention(1, 2, 50, 32, causal)
    assert all(job.error(run()) < job.tolerance for run in job.contenders.values())
    assert job.work == 4 * 2 * 50 * 50 * 32 / (2 if causal else 1)


@pytest.mark.parametrize("warp_level", [False, True])
def test_contenders_attend_to_pages_alike(warp_level: bool) -> None:
    job = jobs.paged_attention((70, 33), 4, 2, 32, warp_level)
    assert all(job.error(run()) < job.tolerance for run in job.contenders.values())
    assert job.work == 2 * (70 + 33) * 2 * 32 * 4


def test_levels_are_those_of_what_a_launch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine stores no rows that end at 100 bytes, so that the launch takes the kernel that does without it."""
    install(monkeypatch)
    errors = level_errors(jobs.gemm(20, 50, 40, "float16", where=jobs.Where("cuda:90")))
    assert list(errors) == [*LEVELS, "cuda:90"] and max(errors.values()) < jobs.TOLERANCE["float16"]


def test_an_error_is_scaled_by_the_largest_value() -> None:
    job = jobs.gemm(4, 4, 4)
    wrong = job.reference.copy()
    largest = np.abs(job.reference).max()
    wrong[1, 2] += 0.5 * largest
    assert job.error(wrong) == pytest.approx(0.5)


def test_levels_run_with_arguments_in_tuples() -> None:
    found = [job for case in demo._cases(True, 0) if (job := case.small()).name.startswith("paged")]
    assert len(found) == 2 and all(max(level_errors(job).values()) < 1e-4 for job in found)
