"""The demo: GEMM, FlashAttention-2, paged attention, softmax and layer norm on random data, through every level.

Each kernel is compiled and its operations counted level by level; a small problem is run at every level, in the
reference executor and as machine code, and the real one natively; every result is compared with numpy in float64. Then
the real problem is timed, and so are numpy and, where it is installed, torch: in phases, each with all cores; on a GPU
by its own events, torch's tensors and a plain copy beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from mltriton.compiler import CompiledKernel
from mltriton.compiler import Job as Compilation
from mltriton.executor import run
from mltriton.executor.faults import NoTensorMap
from mltriton.frontend.signature import Argument
from mltriton.kernels.launch import Launch
from mltriton.runtime.parts import parts_of
from mltriton.tools import jobs
from mltriton.tools.demo_display import IN_PHASES, JobReport, OnStep
from mltriton.tools.gpu_bench import compared_on_gpu, is_on_gpu, name_of_gpu
from mltriton.tools.jobs import HERE, Job, Where
from mltriton.tools.side_by_side import OURS, REST, Times, measure

STEPS = ("compile", "run every level", "check", "time")


@dataclass(frozen=True)
class Case:
    """A kernel on a real problem, and on one that the reference executor runs in a moment."""

    real: Callable[[], Job]
    small: Callable[[], Job]


def how_timed(target: str) -> str:
    """How the times of a demo on a target come about. Raises `DeviceError` for a GPU that is not there."""
    return f"by events on {name_of_gpu()}, in turns" if is_on_gpu(target) else IN_PHASES


def run_demo(*, quick: bool, seed: int, on_step: OnStep, target: str = "cpu") -> list[JobReport]:
    """Run all kernels on a target; `quick` takes small problems. `on_step` hears what is done next, and of how many
    steps.
    """
    cases = list(_cases(quick, seed, target))
    total = len(cases) * len(STEPS)
    reports: list[JobReport] = []
    for number, case in enumerate(cases):
        first = number * len(STEPS)
        reports.append(
            _report(case, 0.3 if quick else 2.0, lambda text, step, first=first: on_step(text, first + step, total))
        )
    on_step("done", total, total)
    return reports


def _cases(quick: bool, seed: int, target: str = "cpu") -> Iterator[Case]:
    """The demo's problems; bfloat16 needs torch, since numpy does not have it. Small ones lie in main memory."""
    on_gpu = is_on_gpu(target)
    real = {"where": Where(target, "cuda") if on_gpu else HERE}
    small = {"where": Where(target) if on_gpu else HERE}
    size, rows, sequence = (512, 1024, 512) if quick else (1024, 4096, 1024)
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        gemm = partial(jobs.gemm, dtype=dtype, seed=seed)
        yield Case(partial(gemm, size, size, size, **real), partial(gemm, 40, 50, 70, **small))
    for causal in (False, True):
        attention = partial(jobs.attention, causal=causal, seed=seed)
        yield Case(partial(attention, 1, 8, sequence, 64, **real), partial(attention, 1, 2, 40, 24, **small))
    for warp_level in (False, True):
        paged = partial(jobs.paged_attention, warp_level=warp_level, seed=seed)
        lens = (sequence, sequence // 3) if quick else (4000, 3500, 4096, 1000)
        yield Case(partial(paged, lens, 32, 8, 128, **real), partial(paged, (70, 5), 4, 2, 24, **small))
    for make in (jobs.softmax, jobs.layer_norm):
        yield Case(partial(make, rows, 1024, seed=seed, **real), partial(make, 3, 200, seed=seed, **small))


def _report(case: Case, seconds: float, on_step: Callable[[str, int], None]) -> JobReport:
    """One kernel; timing takes about `seconds`."""
    job, small = case.real(), case.small()
    on_step(f"{job.name}: {STEPS[0]}", 0)
    launch, _ = job.make_launch()
    operations = count_operations(launch.compiled())
    on_step(f"{job.name}: {STEPS[1]}", 1)
    levels = level_errors(small)
    on_step(f"{job.name}: {STEPS[2]}", 2)
    error = job.error(job.contenders[OURS]())
    on_step(f"{job.name}: {STEPS[3]}", 3)
    times = _times(job, launch.constants.get("target"), seconds)
    medians = {name: taken.median for name, taken in times.items()}
    return JobReport(job.name, job.problem, operations, error, job.tolerance, medians, levels)


def _times(job: Job, target: str | None, seconds: float) -> Mapping[str, Times]:
    if target is None:
        return measure(job.contenders, budget=seconds, rest=REST)
    return compared_on_gpu(job.name, job.problem, job.contenders, work=job.work, unit=job.unit).times


def count_operations(kernel: CompiledKernel) -> Mapping[str, int]:
    """Operations of each level; instructions of LLVM's and of the first text below it."""
    counts = {level: sum(1 for _ in module.walk()) - 1 for level, module in kernel.job.modules()}
    below = next(iter(kernel.job.target.texts))
    return {**counts, **{level: _instructions(kernel.asm[level]) for level in ("llvm", below)}}


def _instructions(text: str) -> int:
    """Indented lines of assembly or LLVM's text that are neither comments nor directives."""
    return sum(1 for line in text.splitlines() if line[:1] in " \t" and line.strip()[:1] not in ("", ";", "#", "."))


def level_errors(job: Job) -> Mapping[str, float]:
    """The scaled error of a problem's result at each level of what a launch runs, and of the machine code's."""
    launch, _ = job.make_launch()
    kernel = launch.compiled()
    try:
        errors = _executed(job, kernel, kernel.job)
    except NoTensorMap:
        errors = _executed(job, kernel, kernel.job.unconditional())
    launch, result = job.make_launch()
    launch.run()
    return {**errors, kernel.job.target.name: job.error(result)}


def _executed(job: Job, kernel: CompiledKernel, compiled: Compilation) -> dict[str, float]:
    """The scaled error at each level of a compilation."""
    errors: dict[str, float] = {}
    for level, module in compiled.modules():
        launch, result = job.make_launch()
        run(module, _passed(launch, kernel), launch.grid)
        errors[level] = job.error(result)
    return errors


def _passed(launch: Launch, kernel: CompiledKernel) -> list[object]:
    """The arguments that are not compiled in, those of tuples one by one."""
    given, entries = launch.named(), kernel.job.entries
    parameters = [parameter for parameter in launch.kernel.parameters if parameter.name in given]
    parts = parts_of(parameters, [given[parameter.name] for parameter in parameters])
    return [part.value for part in parts if isinstance(entries[part.name], Argument)]
