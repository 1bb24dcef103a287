"""The configurations of a launch as candidates: those that give the same program here are one.

Level: runtime. What a target makes no use of (`Target.unused_options`) makes no difference, unless the kernel, its
heuristics, its grid or a configuration's hook look at it. Guarantees: configurations are one candidate only where the
job, the grid and the hook are the same; each has the error of its failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from mltriton.errors import AutotuneError, TritonError
from mltriton.runtime.configs import Config
from mltriton.runtime.heuristics import Launchable, plan_of
from mltriton.runtime.jit import COMPILE_HOOKS, JITFunction
from mltriton.runtime.jobs import Plan, key_of
from mltriton.runtime.ranking import Candidate, Timings
from mltriton.runtime.tuning_report import Row, Silent
from mltriton.tracebacks import raised_by_signal

if TYPE_CHECKING:
    from concurrent.futures import Executor

FAILED: Timings = (math.inf, math.inf, math.inf)


@dataclass
class Group:
    """Configurations that give one program and one grid; `error` is why it cannot be run."""

    configs: list[Config]
    plan: Plan | None
    error: Exception | None = None
    timings: Timings = field(default=FAILED)

    @property
    def config(self) -> Config:
        """The one that is compiled and run."""
        return self.configs[0]

    def order(self) -> Timings:
        """What the fastest has least of."""
        return self.timings

    def take(self, measured: Candidate) -> None:
        """Its times, or why it failed."""
        self.error = measured.error
        self.timings = FAILED if measured.error is not None else measured.timings

    def time_with(self, do_bench: Callable[..., Any], run: Callable[[], float]) -> None:
        """Measure by the user's own function: median, 20 % and 80 % quantiles, or one number."""
        try:
            found = do_bench(run, quantiles=(0.5, 0.2, 0.8))
        except Exception as error:
            if raised_by_signal(error):
                raise
            self.error = error
        else:
            self.timings = tuple(cast("Sequence[float]", found)) if isinstance(found, list | tuple) else (found,)


def grouped(
    fn: Launchable, configs: Sequence[Config], grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Group]:
    """The candidates, in the order of their first configurations."""
    found: dict[Any, Group] = {}
    for config in configs:
        try:
            plan = plan_of(fn, grid, args, {**kwargs, **config.keywords})
        except Exception as error:
            if raised_by_signal(error):
                raise
            found[id(config), "failed"] = Group([config], None, error)
            continue
        key = _identity(plan, config)
        if key in found:
            found[key].configs.append(config)
        else:
            found[key] = Group([config], plan)
    return list(found.values())


def _identity(plan: Plan | None, config: Config) -> Any:
    if plan is None:
        return id(config)
    return key_of(plan.job, plan.job.used_options), plan.grid, id(config.pre_hook)


def planned_after_hook(
    fn: Launchable, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], named: Mapping[str, Any], group: Group
) -> Plan | None:
    """What a launch compiles after the configuration's hook; None where the hook fails, as it then does there."""
    hook, keywords = group.config.pre_hook, group.config.keywords
    try:
        if group.plan is not None and hook is not None:
            hook({**named, **keywords})
            return plan_of(fn, grid, args, {**kwargs, **keywords})
    except Exception as error:
        if raised_by_signal(error):
            raise
        return None
    return group.plan


def prepare(
    kernel: JITFunction,
    groups: Sequence[Group],
    executor: Executor | None,
    report: Silent,
    planned: Callable[[Group], Plan | None],
) -> None:
    """Compile what is not there yet, all at once.

    A hook of a configuration may change the arguments, and with them what is compiled: `planned` says what a launch
    would compile after it, None where that cannot be said.
    """
    if executor is None or COMPILE_HOOKS:
        return
    waiting = [(group, plan.job) for group in groups if (plan := planned(group)) is not None]
    waiting = [(group, job) for group, job in waiting if job.target.can_run and not kernel.knows(job)]
    if len(waiting) < 2:
        return
    from mltriton.runtime.compile_ahead import compile_all  # Few launches need it.

    jobs = [job for _, job in waiting]
    report.step("compiled", 0, len(jobs))
    made = compile_all(jobs, executor, lambda done: report.step("compiled", done, len(jobs)))
    for (group, job), compiled in zip(waiting, made, strict=True):
        if isinstance(compiled, Exception):
            group.error = compiled
        else:
            kernel.remember(job, compiled)


def no_configuration(name: str, failures: Mapping[Config, Exception]) -> Exception:
    """The error of a search that found nothing: the configurations' own where it is the same mistake in all."""
    first = next(iter(failures.values()))
    if isinstance(first, TritonError) and len({_reason(error) for error in failures.values()}) == 1:
        return first
    lines = [f"{config}: {_reason(error)}" for config, error in failures.items()]
    made = AutotuneError(f"none of the {len(failures)} configurations of {name} can be run", hint="\n".join(lines))
    made.__cause__ = first
    return made


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, TritonError) else str(error)
    return f"{type(error).__name__}: {text}"


def results(name: str, key: tuple[Any, ...], groups: Sequence[Group], best: Group | None) -> tuple[str, list[Row]]:
    """Title and rows of the table of results, the fastest first."""
    count = sum(len(group.configs) for group in groups)
    chosen = f"best is {best.config} ({best.timings[0]:.4f} ms)" if best is not None else "all failed"
    title = f"autotuning {name} for {key}: {count} configurations, {len(groups)} programs; {chosen}"
    ordered = sorted(groups, key=lambda group: (group is not best, group.error is not None, group.timings))
    return title, [row for group in ordered for row in _rows(group)]


def _rows(group: Group) -> list[Row]:
    if group.error is not None:
        return [Row(str(config), None, f"failed: {_reason(group.error)}") for config in group.configs]
    first, *others = group.configs
    same = f"and {len(others)} more that give the same program" if others else ""
    return [Row(str(first), group.timings, same)]
