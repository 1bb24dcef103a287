"""Configurations of autotuned kernels: which are worth timing, and what is done to arguments between timed runs.

Level: runtime. Used by `autotuner.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from mltriton.errors import OptionError

Hook = Callable[..., None]


@dataclass
class Config:
    """One way to compile a kernel: values for its `tl.constexpr` parameters, and options. Fields may be given other
    values, and objects attributes of a program's own (Inductor adds some).

    `pre_hook` is called with the named arguments before each run. `ir_override` is upstream's path of a program to take
    instead of the compiler's; it must be None here.
    """

    kwargs: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    pre_hook: Hook | None = field(default=None, compare=False)
    ir_override: str | None = None

    def __post_init__(self) -> None:
        if self.ir_override is not None:
            raise OptionError(
                "a Config takes no ir_override", hint="Compile the text with triton.compile and launch what it gives."
            )

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; the keywords are made again."""
        object.__setattr__(self, name, value)
        self.__dict__.pop("keywords", None)

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """The keywords of a launch; not to be changed."""
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages, "num_ctas": self.num_ctas}
        return self.kwargs | options | ({} if self.maxnreg is None else {"maxnreg": self.maxnreg})

    def all_kwargs(self) -> dict[str, Any]:
        """A copy of the keywords of a launch."""
        return dict(self.keywords)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())


class Pruning:
    """Which configurations are worth timing: `prune_configs_by` of autotune.

    `early_config_prune(configs, named_args, **kwargs)` gives those that make sense (`named_args` are the arguments that
    a launch gives by position); of these `perf_model(**arguments)` estimates times, and the `top_k` best are timed (a
    number, or a share of them below 1).
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        known = ("early_config_prune", "perf_model", "top_k")
        for name in rules:
            if name not in known:
                raise OptionError(f"prune_configs_by has no rule {name!r}", expected=f"one of {', '.join(known)}")
        self.early = rules.get("early_config_prune")
        self.model = rules.get("perf_model")
        self.top_k = rules.get("top_k", 1.0)

    def configs(self, configs: Sequence[Config], named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[Config]:
        """The configurations to time. Raises `OptionError` when none is left."""
        left = list(configs)
        if self.early is not None:
            left = list(self.early(left, named, **kwargs))
            if not left:
                raise OptionError(
                    "early_config_prune left no configuration",
                    upstream="No valid autotuner configs after pruning. `early_config_prune` should return at least "
                    "one config.",
                )
        if self.model is None or len(left) <= 1:
            return left
        count = int(len(left) * self.top_k) if self.top_k <= 1.0 else int(self.top_k)
        estimates = {config: self.model(**{**named, **kwargs, **config.all_kwargs()}) for config in left}
        return sorted(left, key=estimates.__getitem__)[: max(count, 1)]


class ArgumentState:
    """What is done to the arguments around each timed run, so that every run sees the same ones."""

    def __init__(
        self, reset: Sequence[str], restore: Sequence[str], pre_hook: Hook | None, post_hook: Hook | None
    ) -> None:
        self._reset = tuple(reset)
        self._restore = tuple(restore)
        self._pre_hook = pre_hook
        self._post_hook = post_hook
        self._copies: dict[str, Any] = {}

    def before(self, named: dict[str, Any]) -> None:
        """Reset and remember arguments (None is no array); then the user's hook."""
        self.reset(named)
        self._copies = {name: _copy(named[name]) for name in self._restore if named[name] is not None}
        if self._pre_hook is not None:
            self._pre_hook(named)

    def after(self, named: dict[str, Any], exception: Exception | None) -> None:
        """Restore arguments, even where Ctrl-C comes in between; then the user's hook."""
        try:
            self._put_back(named)
        except BaseException:
            self._put_back(named)
            raise
        if self._post_hook is not None:
            self._post_hook(named, exception=exception)

    def _put_back(self, named: Mapping[str, Any]) -> None:
        for name, copy in self._copies.items():
            _assign(named[name], copy)

    def reset(self, named: Mapping[str, Any]) -> None:
        """Set to zero what `reset_to_zero` names."""
        for name in self._reset:
            if named[name] is not None:
                _assign(named[name], 0)


def _copy(array: Any) -> Any:
    return cast(Any, array).copy() if isinstance(array, np.ndarray) else array.clone()


def _assign(array: Any, value: Any) -> None:
    """Set every element of an array."""
    if isinstance(array, np.ndarray):
        array[...] = value
    elif isinstance(value, int):
        array.zero_()
    else:
        array.copy_(value)
