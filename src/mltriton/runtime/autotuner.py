"""Choosing by measurement: `autotune`, `Config`, and `heuristics`.

Level: runtime. An autotuned kernel is launched like any other; the first time it sees new values of its key arguments
it times every configuration on the arguments of that launch and keeps the fastest. Guarantees: arguments that the
kernel changes can be reset or restored between the timed runs (`reset_to_zero`, `restore_value`); a configuration that
cannot be compiled for these arguments is left out, and when none is left its error is raised.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pickle import PicklingError
from typing import Any, Protocol, cast

from mltriton.errors import ArgumentError, OptionError, TritonError, calling_place
from mltriton.runtime import config as settings
from mltriton.runtime.cache import default_cache, digest
from mltriton.runtime.configs import ArgumentState, Hook, Pruning
from mltriton.runtime.configs import Config as Config
from mltriton.runtime.interface import KernelInterface
from mltriton.runtime.jit import JITFunction

Timings = tuple[float, ...]


class Launchable(Protocol):
    """A kernel, or what wraps one: tuned, or with heuristics."""

    arg_names: list[str]

    def __getitem__(self, grid: Any, /) -> Callable[..., Any]:
        """The launcher for a grid."""
        ...

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile without launching."""
        ...


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
        self._do_bench = do_bench or _bench_with(warmup, rep)
        self._cache_results = cache_results
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.configs_timings: dict[Config, Timings] = {}
        self.failures: dict[Config, TritonError] = {}
        self.best_config: Config | None = None

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

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> list[Any]:
        """Compile every configuration for these arguments."""
        named = self._named(args, kwargs)
        configs = self._prune.configs(self.configs, named, kwargs)
        return [self.fn.warmup(*args, grid=grid, **kwargs, **config.all_kwargs()) for config in configs]

    def choose(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        """The configuration for these arguments, measured if they are new."""
        named = self._named(args, kwargs)
        key = self._key(named)
        config = self.cache.get(key)
        if config is None:
            self._check_conflicts(kwargs)
            config = self.cache[key] = self._tune(grid, key, args, kwargs, named)
        self.best_config = config
        return config

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False)) | kwargs

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
                    place=calling_place(),
                )

    def _tune(
        self, grid: Any, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
    ) -> Config:
        configs = self._prune.configs(self.configs, named, kwargs)
        if len(configs) == 1:
            return configs[0]
        stored = self._stored(key, configs)
        if stored is not None:
            return stored
        self.configs_timings = self._time_all(configs, grid, args, kwargs, named)
        best = min(self.configs_timings, key=self.configs_timings.__getitem__)
        self.pre_hook(named, reset_only=True)
        self._report(key, best)
        self._store(key, configs, best)
        return best

    def _time_all(
        self,
        configs: Sequence[Config],
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        named: dict[str, Any],
    ) -> dict[Config, Timings]:
        """The times of all configurations; infinite for one that fails, whose error `failures` has.

        Raises the first one's error when all fail.
        """
        timings: dict[Config, Timings] = {}
        self.failures = {}
        for config in configs:
            try:
                timings[config] = self._time(config, grid, args, kwargs, named)
            except TritonError as error:
                timings[config] = (math.inf,)
                self.failures[config] = error
        if len(self.failures) == len(timings):
            raise next(iter(self.failures.values()))
        return timings

    def _time(
        self, config: Config, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
    ) -> Timings:
        """Milliseconds of one configuration: median, 20 % and 80 % quantiles."""
        launch = self.fn[grid]
        keywords = config.all_kwargs()

        def run() -> None:
            if config.pre_hook is not None:
                config.pre_hook(named | keywords)
            self.pre_hook(named)
            failure: Exception | None = None
            try:
                launch(*args, **kwargs, **keywords)
            except Exception as error:
                failure = error
                raise
            finally:  # Whatever ends it, Ctrl-C too.
                self.post_hook(named, exception=failure)

        from mltriton.testing import do_bench

        measured = (self._do_bench or do_bench)(run, quantiles=(0.5, 0.2, 0.8))
        return tuple(cast("Sequence[float]", measured)) if isinstance(measured, list | tuple) else (measured,)

    def _report(self, key: tuple[Any, ...], best: Config) -> None:
        if settings.PRINT_AUTOTUNING.get():
            median = self.configs_timings[best][0]
            name = kernel_of(self.fn).__name__
            print(
                f"autotuning {name} for {key}: best of {len(self.configs_timings)} is {best} ({median:.4f} ms)",
                *(f"  {config} failed: {error.message}" for config, error in self.failures.items()),
                sep="\n",
                file=sys.stderr,
            )

    def _result_key(self, key: tuple[Any, ...], configs: Sequence[Config]) -> str:
        return digest("autotune", kernel_of(self.fn).cache_key, [str(part) for part in key], [str(c) for c in configs])

    @property
    def _keeps_results(self) -> bool:
        return self._cache_results or settings.CACHE_AUTOTUNING.get()

    def _stored(self, key: tuple[Any, ...], configs: Sequence[Config]) -> Config | None:
        """The choice of an earlier process, where `cache_results` asks for it."""
        if not self._keeps_results:
            return None
        files = default_cache().get(self._result_key(key, configs))
        try:
            chosen = json.loads((files or {})["autotune.json"])["best"]
        except (KeyError, TypeError, ValueError):  # It is not there, or damaged.
            return None
        return next((config for config in configs if str(config) == chosen), None)

    def _store(self, key: tuple[Any, ...], configs: Sequence[Config], best: Config) -> None:
        if self._keeps_results:
            times = {str(config): list(found) for config, found in self.configs_timings.items()}
            text = json.dumps({"best": str(best), "milliseconds": times})
            default_cache().put(self._result_key(key, configs), {"autotune.json": text.encode()})


class Heuristics(KernelInterface[Any]):
    """A kernel some of whose parameters are computed from the others at every launch."""

    def __init__(self, fn: Launchable, values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        self.fn = fn
        self.values = dict(values)
        self.arg_names = fn.arg_names

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, and copied, as Python's functions are: by the name."""
        return by_name(self)

    def _with_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        for name, compute in self.values.items():
            named[name] = kwargs[name] = compute(named)
        return kwargs

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The launcher for a grid."""
        launch = self.fn[grid]
        return lambda *args, **kwargs: launch(*args, **self._with_values(args, kwargs))

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch over `grid`, or with `warmup` only compile."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments without launching."""
        return self.fn.warmup(*args, grid=grid, **self._with_values(args, kwargs))


def by_name(launchable: Any) -> tuple[Any, ...]:
    """How to find again what `autotune` or `heuristics` made of a kernel. Raises `PicklingError` where no name says."""
    kernel = kernel_of(launchable)
    where = (kernel.__module__, kernel.__qualname__)
    if _named(*where) is not launchable:
        raise PicklingError(f"{'.'.join(where)} is another object than what is pickled")
    return _named, where


def _named(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def kernel_of(fn: Any) -> JITFunction:
    """The kernel inside what `autotune` and `heuristics` made of it."""
    while not isinstance(fn, JITFunction):
        fn = fn.fn
    return fn


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
) -> Callable[[Launchable], Autotuner]:
    """Choose among `configs` by measurement, anew for each combination of values of the arguments named in `key`.

    `warmup` and `rep` are the milliseconds to warm up and to measure; `do_bench(run, quantiles=...)` replaces the
    measurement; `cache_results` keeps the choice on disk for later processes; `use_cuda_graph` changes nothing. A name
    in `key` that is no parameter has no say (as upstream); elsewhere it is an `OptionError`.
    """

    def decorate(fn: Launchable) -> Autotuner:
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            prune_configs_by,
            warmup,
            rep,
            use_cuda_graph,
            do_bench,
            cache_results,
        )

    return decorate


def _bench_with(warmup: float | None, rep: float | None) -> Callable[..., Any] | None:
    if warmup is None and rep is None:
        return None

    given = {name: value for name, value in (("warmup", warmup), ("rep", rep)) if value is not None}

    def bench(run: Callable[[], None], quantiles: Sequence[float]) -> Any:
        from mltriton.testing import do_bench

        return partial(do_bench, **given)(run, quantiles=quantiles)

    return bench


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Launchable], Heuristics]:
    """Compute parameters from the named arguments of each launch: `@heuristics({"EVEN": lambda args.

    Args["n"] % 2 == 0})`.
    """
    return lambda fn: Heuristics(fn, values)
