"""Choosing by measurement: `autotune` and `Config`.

Level: runtime. An autotuned kernel is launched like any other; the first time it sees new values of its key arguments
its configurations are compiled (`compile_ahead.py`), those that give one program once (`candidates.py`), and run on the
arguments of that launch (`ranking.py`); the fastest is kept. Guarantees: arguments that the kernel changes can be reset
or restored between the timed runs (`reset_to_zero`, `restore_value`); a configuration that fails never ends the search,
and when all fail that is a named error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mltriton.errors import ArgumentError, OptionError, calling_location
from mltriton.runtime import config as settings
from mltriton.runtime.cache import default_cache, digest
from mltriton.runtime.candidates import Group, grouped, no_configuration, planned_after_hook, prepare, results
from mltriton.runtime.configs import ArgumentState, Hook, Pruning
from mltriton.runtime.configs import Config as Config
from mltriton.runtime.fingerprint import compiler_fingerprint
from mltriton.runtime.heuristics import Heuristics as Heuristics
from mltriton.runtime.heuristics import Launchable, by_name, checked, kernel_of
from mltriton.runtime.heuristics import heuristics as heuristics
from mltriton.runtime.interface import KernelInterface
from mltriton.runtime.jit import JITFunction
from mltriton.runtime.ranking import Candidate, Timings, fastest
from mltriton.runtime.tuned_machine import Machine, identity, machine_of
from mltriton.runtime.tuning_report import Silent, reporter
from mltriton.targets.target import clock_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

_WARMUP, _REP = 10.0, 100.0  # Milliseconds.
listeners: list[Callable[..., object]] = []  # `mltriton.knobs.autotuning.listener`: at most one


class Autotuner(KernelInterface[Any]):
    """A kernel with configurations to choose from.

    `best_config` is the configuration of the last launch, `cache` the chosen ones by key, `configs_timings` the times
    (milliseconds: median, 20 % and 80 % quantiles) of the last tuning, `failures` the errors of those that failed.
    """

    def __init__(
        self,
        fn: Launchable,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
        executor: Executor | None = None,
    ) -> None:
        self.fn = fn
        self.configs = list(configs) or [Config({})]
        self.arg_names = list(arg_names)
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._check_names("reset_to_zero", self.reset_to_zero)
        self._check_names("restore_value", self.restore_value)
        pruning = Pruning(prune_configs_by or {})
        self.early_config_prune, self.perf_model = pruning.early, pruning.model
        self.configs_top_k = pruning.top_k
        self._prune = pruning
        self._arguments = ArgumentState(self.reset_to_zero, self.restore_value, pre_hook, post_hook)
        # What subclasses of other packages look at, and replace.
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook: Callable[..., Any] = self._before
        self.post_hook: Callable[..., Any] = self._arguments.after
        self._do_bench = do_bench
        self.executor = executor
        self._cache_results = cache_results
        self.cache: dict[tuple[Any, ...], Config] = {}  # of the machine that was launched on last
        self._machine: Machine | None = None
        self._elsewhere: dict[Machine, dict[tuple[Any, ...], Config]] = {}
        self.configs_timings: dict[Config, Timings] = {}
        self.failures: dict[Config, Exception] = {}
        self.best_config: Config | None = None
        self.nargs: dict[str, Any] | None = None
        self.bench_time = 0.0  # Seconds that the last tuning took.

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, and copied, as Python's functions are: by the name."""
        return by_name(self)

    @property
    def base_fn(self) -> JITFunction:
        """The kernel itself."""
        return kernel_of(self.fn)

    def _before(self, named: dict[str, Any], reset_only: bool = False) -> None:
        """Make the arguments what every timed run shall see; with `reset_only` set to zero what must be."""
        if reset_only:
            self._arguments.reset(named)
        else:
            self._arguments.before(named)

    def _check_names(self, what: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.arg_names:
                raise OptionError(
                    f"{what} of autotune names {name!r}, which is no parameter of {kernel_of(self.fn).__name__}",
                    expected=f"one of {', '.join(self.arg_names)}",
                )

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The launcher for a grid."""
        if type(self).run is not Autotuner.run:  # A subclass's.
            return partial(self.run, grid=grid, warmup=False)
        return self._launcher(grid)

    def _launcher(self, grid: Any) -> Callable[..., Any]:
        launch_with = self.fn[grid]

        def launch(*args: Any, **kwargs: Any) -> Any:
            config = self.choose(grid, args, kwargs)
            if config.pre_hook is not None:
                config.pre_hook(self._named(args, kwargs) | config.all_kwargs())
            return launch_with(*args, **kwargs, **config.keywords)

        return launch

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch over `grid`, or with `warmup` only compile."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self._launcher(grid)(*args, **kwargs)

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        """The configurations worth timing for the arguments `nargs`: for subclasses, which set those."""
        return self._prune.configs(self.configs, self.nargs or {}, kwargs)

    def _bench(self, *args: Any, config: Config, grid: Any, warmup: bool = False, **kwargs: Any) -> Timings:
        """Median, 20 % and 80 % quantiles of a configuration, infinite where it fails: for subclasses."""
        (group,) = grouped(self.fn, [config], grid, args, kwargs)
        if group.error is None:
            with clock_of(_target([group])) as milliseconds:
                run = self._run(group, milliseconds, grid, args, kwargs, self._named(args, kwargs))
                group.time_with(self.do_bench, run)
        return group.timings

    @property
    def do_bench(self) -> Callable[..., Any]:
        """What measures: the user's function, or `mltriton.testing.do_bench`."""
        from mltriton.testing import do_bench  # Few launches need it.

        return self._do_bench or do_bench

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> list[Any]:
        """Compile every configuration for these arguments."""
        configs = self._prune.configs(self.configs, self._named(args), kwargs)
        return [self.fn.warmup(*args, grid=grid, **kwargs, **config.all_kwargs()) for config in configs]

    def choose(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        """The configuration for these arguments, measured if they are new."""
        named = self._named(args, kwargs)
        key = self._key(named)
        machine = machine_of(named)
        if machine != self._machine:
            self._move_to(machine)
        config = self.cache.get(key)
        if config is None:
            self._check_conflicts(kwargs)
            config = self.cache[key] = self._tune(grid, key, args, kwargs, named)
        self.best_config = config
        return config

    def _move_to(self, machine: Machine) -> None:
        """Take the choices made on another machine; the first one has those that are there."""
        if self._machine is not None and type(self.cache) is dict:  # Other packages put other mappings there.
            self._elsewhere[self._machine] = self.cache
            self.cache = self._elsewhere.pop(machine, {})
        self._machine = machine

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] = {}) -> dict[str, Any]:
        return {**dict(zip(self.arg_names, args, strict=False)), **kwargs}

    def _key(self, named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Values of the key arguments, and the dtype of every array: upstream's keys, which other packages make too."""
        values = [named[name] for name in self.keys if name in named]
        return (*values, *(str(value.dtype) for value in named.values() if hasattr(value, "dtype")))

    def _check_conflicts(self, kwargs: Mapping[str, Any]) -> None:
        for config in self.configs:
            if both := config.kwargs.keys() & kwargs.keys():
                raise ArgumentError(
                    f"the launch and a configuration both give a value for {', '.join(sorted(both))}",
                    hint="Leave to autotune what its configurations choose.",
                    location=calling_location(),
                )

    def _tune(
        self, grid: Any, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
    ) -> Config:
        configs = self._prune.configs(self.configs, self._named(args), kwargs)
        if len(configs) == 1:
            return configs[0]
        result_key = self._result_key(key, configs, machine_of(named), kwargs.get("target"))
        stored = self._stored(result_key, configs)
        if stored is not None:
            self._tell(key, stored, None)
            return stored
        from mltriton.runtime.compile_ahead import executor_for  # Nothing else needs it, or the modules of executors.

        started = time.perf_counter()
        report = reporter(kernel_of(self.fn).__name__)
        try:
            groups = grouped(self.fn, configs, grid, args, kwargs)
            with executor_for(self.executor) as executor:
                planned = partial(planned_after_hook, self.fn, grid, args, kwargs, named)
                prepare(kernel_of(self.fn), groups, executor, report, planned)
            best = self._measure(groups, grid, args, kwargs, named, report)
        finally:
            report.close()
        self.bench_time = time.perf_counter() - started
        self.configs_timings = {config: group.timings for group in groups for config in group.configs}
        self.failures = {config: group.error for group in groups if group.error for config in group.configs}
        report.table(*results(kernel_of(self.fn).__name__, key, groups, best))
        if best is None:
            raise no_configuration(kernel_of(self.fn).__name__, self.failures)
        self.pre_hook(named, reset_only=True)
        self._store(result_key, best.config)
        self._tell(key, best.config, self.bench_time)
        return best.config

    def _tell(self, key: tuple[Any, ...], best: Config, duration: float | None) -> None:
        """Call the listener, if there is one, by upstream's keywords; nothing was measured without a `duration`."""
        for listener in listeners:
            told = {"best_config": best, "configs_timings": self.configs_timings, "duration": duration}
            listener(fn=kernel_of(self.fn), key=key, **told, cache_hit=duration is None)

    def _measure(
        self,
        groups: Sequence[Group],
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        named: dict[str, Any],
        report: Silent,
    ) -> Group | None:
        """The fastest of the groups that can be run; None where there is none."""
        usable = [group for group in groups if group.error is None]
        with clock_of(_target(usable)) as milliseconds:
            runs = [self._run(group, milliseconds, grid, args, kwargs, named) for group in usable]
            return self._fastest(usable, runs, report)

    def _fastest(self, usable: Sequence[Group], runs: Sequence[Callable[[], float]], report: Silent) -> Group | None:
        if self._do_bench is not None:
            for done, (group, run) in enumerate(zip(usable, runs, strict=True)):
                report.step("timed", done, len(usable))
                group.time_with(self._do_bench, run)
            return min((group for group in usable if group.error is None), key=Group.order, default=None)
        candidates = [Candidate(run) for run in runs]
        warmup, rep = self.num_warmups, self.num_reps
        best = fastest(
            candidates,
            _WARMUP if warmup is None else warmup,
            _REP if rep is None else rep,
            lambda left: report.step("timed", len(usable) - left, len(usable)),
        )
        for group, candidate in zip(usable, candidates, strict=True):
            group.take(candidate)
        return None if best is None else usable[candidates.index(best)]

    def _run(
        self,
        group: Group,
        milliseconds: Callable[[Callable[[], object]], float],
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        named: dict[str, Any],
    ) -> Callable[[], float]:
        """A launch with a configuration, and what the user wants around it; it gives the launch's milliseconds."""
        launch, config = self.fn[grid], group.config
        keywords = config.all_kwargs()

        def run() -> float:
            if config.pre_hook is not None:
                config.pre_hook(named | keywords)
            self.pre_hook(named)
            failure: Exception | None = None
            try:
                return milliseconds(lambda: launch(*args, **kwargs, **keywords))
            except Exception as error:
                failure = error
                raise
            finally:  # Whatever ends it, Ctrl-C too.
                self.post_hook(named, exception=failure)

        return run

    def _result_key(self, key: tuple[Any, ...], configs: Sequence[Config], machine: Machine, target: Any) -> str:
        if not self._keeps_results:
            return ""
        kernel = kernel_of(self.fn)
        parts = [str(part) for part in key], [str(config) for config in configs]
        where = identity(machine, target or kernel.default_target)
        return digest("autotune", compiler_fingerprint(), kernel.cache_key, where, *parts)

    @property
    def _keeps_results(self) -> bool:
        return self._cache_results or settings.CACHE_AUTOTUNING.get()

    def _stored(self, result_key: str, configs: Sequence[Config]) -> Config | None:
        """The choice of an earlier process, where `cache_results` asks for it."""
        if not self._keeps_results:
            return None
        files = default_cache().get(result_key)
        try:
            found = json.loads((files or {})["autotune.json"])
            best = next((config for config in configs if str(config) == found["best"]), None)
            times = {config: tuple(found["milliseconds"][str(config)]) for config in configs}
        except (KeyError, TypeError, ValueError):  # It is not there, or damaged.
            return None
        self.configs_timings = times
        return best

    def _store(self, result_key: str, best: Config) -> None:
        if self._keeps_results:
            times = {str(config): list(found) for config, found in self.configs_timings.items()}
            text = json.dumps({"best": str(best), "milliseconds": times})
            default_cache().put(result_key, {"autotune.json": text.encode()})


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    executor: Executor | None = None,
) -> Callable[[Launchable], Autotuner]:
    """Choose among `configs` by measurement, anew for each combination of values of the arguments named in `key`.

    Configurations that give the same program on the target are compiled and timed once, for all of them. `executor`
    (`concurrent.futures`) compiles; else that of `AsyncCompileMode`, of `mltriton.knobs.autotuning.executor`, or
    threads. `warmup` are milliseconds before times count, `rep` those of the fastest ones; `do_bench(run,
    quantiles=...)` replaces the measurement; `cache_results` keeps the choice on disk for later processes;
    `use_cuda_graph` changes nothing. A name in `key` that is no parameter has no say (as upstream); elsewhere it is an
    `OptionError`.
    """

    def decorate(fn: Launchable) -> Autotuner:
        return Autotuner(
            fn, checked(fn, "autotune").arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook,
            prune_configs_by, warmup, rep, use_cuda_graph, do_bench, cache_results, executor,
        )  # fmt: skip

    return decorate


def _target(groups: Sequence[Group]) -> str:
    """What these are compiled for."""
    return next((group.plan.job.target.name for group in groups if group.plan is not None), "cpu")
