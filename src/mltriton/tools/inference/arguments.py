"""Random arguments for a kernel: which constants and sizes to try next, and arrays that fit them.

Level: runtime. Sizes are odd, so that blocks stick out of the tensors at every end; arrays of bounds hold sequences of
odd lengths. Of many candidates the one is tried that lets most calls be reached that no input has reached yet, and
that gives flags a value that they did not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mltriton import language
from mltriton.tools.inference.roles import FLOATS, Roles, is_dtype

ELEMENTS = 1 << 18
# Ends that stick out, then whole blocks, for kernels that need them; then many blocks in one direction.
EXTENTS = ((20, 24, 37), (40, 48, 50), (16, 16, 32), (64, 64, 64), (32, 32, 64), (128, 128, 64), (100, 40, 37))
LONG = ((232, 24, 37), (24, 20, 150), (40, 232, 21))
LONG_GRIDS = ((18, 1, 1), (1, 18, 1))
GRIDS = ((2, 2, 2), (2, 2, 2), (2, 5, 2), (1, 4, 2), (5, 1, 2), (4, 2, 1))
_BLOCKS = (16, 32)
_MIXED_BLOCKS = (16, 16, 32, 32, 64)  # for kernels with blocks of several sizes; large ones take long
_CANDIDATES = 48
_IN_ORDER = 3  # plans that take the sizes in their order, as long as nothing open asks for others
_LENGTHS = (37, 20, 50, 1, 33, 16)  # of sequences, over and over
_SEQUENCES = 12
_TYPES = (np.float32, np.float16)
_ANYHOW = 3
_T = TypeVar("_T")


@dataclass(frozen=True)
class Plan:
    """What is tried: the constants, the sizes, the grid and the types of arrays of numbers (by parameter)."""

    constants: Mapping[str, Any]
    extents: tuple[int, int, int]
    grid: tuple[int, int, int]
    types: Mapping[str, Any]
    block: int
    odd_strides: bool


@dataclass
class Search:
    """What was tried of a kernel, and what to try next. `defaults` are those of its parameters."""

    roles: Roles
    defaults: Mapping[str, Any]
    rng: np.random.Generator
    attempts: int = 0
    tried: set[tuple[str, Any]] = field(default_factory=set[tuple[str, Any]])
    failed: Counter[tuple[str, Any]] = field(default_factory=Counter[tuple[str, Any]])
    types: dict[str, Any] | None = None  # of arrays, that worked

    def next(self, open_calls: Callable[[Mapping[str, Any]], int]) -> Plan:
        """The next plan; `open_calls` says how many calls that were not reached some constants may let be reached."""
        number = self.attempts
        self.attempts += 1
        if number == 0:
            return self._plan(0, dict.fromkeys(self.roles.flags, True) | dict.fromkeys(self._unlikely, False))
        free = number >= _IN_ORDER
        plans = [self._plan(number, self._random_flags(), shuffled=free or bool(i % 2)) for i in range(_CANDIDATES)]
        return max(plans, key=lambda plan: self._worth(plan, open_calls(plan.constants)))

    def passed(self, plan: Plan) -> None:
        """The old kernel ran with a plan."""
        self.types = dict(plan.types)
        for item in self._items(plan):
            self.tried.add(item)
            self.failed[item] = 0

    def refused(self, plan: Plan) -> None:
        """The old kernel did not run with a plan."""
        self.failed.update(self._items(plan))

    def missing(self, names: set[str]) -> list[str]:
        """Values of flags that were not tried, as text."""
        flags = sorted(names & self.roles.flags)
        return [f"{name}={value}" for name in flags for value in (True, False) if (name, value) not in self.tried]

    @property
    def _unlikely(self) -> set[str]:
        return {name for name in self.roles.flags if "VARLEN" in name or "CONTINUOUS" in name}

    def _items(self, plan: Plan) -> list[tuple[str, Any]]:
        chosen = self.roles.flags | set(self.roles.texts)
        return [(name, value) for name, value in plan.constants.items() if name in chosen]

    def _worth(self, plan: Plan, open_calls: int) -> float:
        untried = [item for item in self._items(plan) if item not in self.tried]
        failures = max((self.failed[item] for item in untried), default=0)
        return open_calls + sum(3 / (1 + self.failed[item]) for item in untried) - 0.7 * failures

    def _random_flags(self) -> dict[str, bool]:
        return {name: bool(self.rng.integers(0, 2)) for name in sorted(self.roles.flags)}

    def _plan(self, number: int, flags: Mapping[str, bool], *, shuffled: bool = False) -> Plan:
        extents = self._any(EXTENTS + LONG) if shuffled else EXTENTS[number % len(EXTENTS)]
        grid = self._any(GRIDS + LONG_GRIDS) if shuffled else GRIDS[number % len(GRIDS)]
        block = _BLOCKS[number % 2] if number < len(EXTENTS) else _BLOCKS[0]
        mixed = shuffled and bool(self.rng.integers(0, 4))
        constants = {
            name: self._constant(name, number, extents, self._any(_MIXED_BLOCKS) if mixed else block, flags)
            for name in sorted(self.roles.constants)
        }
        # Chunks of sequences are as long as the block that is named for time.
        block = next((constants[name] for name in ("BT", "BC", "BS") if name in self.roles.blocks), block)
        return Plan(constants, extents, grid, self._types(number), block, bool(number % 2))

    def _any(self, choices: Sequence[_T]) -> _T:
        return choices[int(self.rng.integers(0, len(choices)))]

    def _types(self, number: int) -> dict[str, Any]:
        """The type of each array of numbers: what worked before, all alike, results in the smaller one, or anyhow."""
        names = [name for name, held in self.roles.pointers.items() if held == "numbers"]
        if self.types is not None and number % 2:
            return self.types
        pattern = number // 2 % 4 if self.types is not None else min(number, _ANYHOW)
        if pattern < len(_TYPES):
            return dict.fromkeys(names, _TYPES[pattern])
        wide, stored = self.roles.wide if number % 4 else set[str](), self.roles.stored
        if pattern == _ANYHOW:
            return {name: _TYPES[0] if name in wide else self._any(_TYPES) for name in names}
        return {name: _TYPES[name in stored - wide] for name in names}

    def _constant(
        self, name: str, number: int, extents: tuple[int, int, int], block: int, flags: Mapping[str, bool]
    ) -> Any:
        roles = self.roles
        if name in roles.texts:
            return self._any(roles.texts[name]) if number else roles.texts[name][0]
        if name in roles.axes:
            return roles.axes[name]
        if "PRECISION" in name:
            return "ieee"
        if "LEVEL" in name:
            return 1 + number % 4 if number < _IN_ORDER else 1 if "MIN" in name else self._any(range(1, 11))
        if name in roles.blocks:
            return block
        if name in roles.flags:
            return flags[name]
        if name in roles.units:
            return 1
        if name in roles.strides:
            return extents[2] + 3
        if name in roles.floats or any(part in name.lower() for part in FLOATS):
            return 0.5
        if name in self.defaults and not isinstance(self.defaults[name], int):
            return self.defaults[name]
        if is_dtype(name):
            return language.float32
        return _number_constant(name, extents, block)


_HEADS = frozenset({"H", "HQ", "HV", "HK", "G", "NG", "N", "B", "NC", "NK", "NV", "NT", "NS", "NB", "GROUP_SIZE", "W"})


def _number_constant(name: str, extents: tuple[int, ...], block: int) -> int:
    if name in _HEADS:
        return 1 if name in ("NG", "G", "NK", "NV", "NB") else 2
    if name.startswith("B") and len(name) <= 3:
        return block
    return extents[0] if name == "K" else extents[1]


def arguments_for(roles: Roles, plan: Plan, rng: np.random.Generator) -> dict[str, Any]:
    """Arguments for every parameter, by name."""
    values: dict[str, Any] = {}
    for name, held in roles.pointers.items():
        values[name] = _numbers(rng, plan.types[name]) if held == "numbers" else integers(held, plan.block, rng)
    for name in roles.floats:
        values[name] = float(rng.uniform(0.25, 1.0))
    for index, name in enumerate(roles.numbers):
        values[name] = _number(name, index, roles, plan)
    return values | dict(plan.constants)


def _numbers(rng: np.random.Generator, kind: Any) -> Any:
    return rng.uniform(-1.0, 1.0, ELEMENTS).astype(kind)


def integers(held: str, block: int, rng: np.random.Generator) -> Any:
    """Integers of one of the kinds of `roles.HOLDS`; the sequences of all are the same."""
    lengths = [_LENGTHS[i % len(_LENGTHS)] for i in range(_SEQUENCES)]
    chunks = [-(-length // block) for length in lengths]
    if held == "integers":
        return rng.integers(0, 2, ELEMENTS).astype(np.int32)
    if held == "pairs":
        pairs = [(sequence, chunk) for sequence, count in enumerate(chunks) for chunk in range(count)]
        return np.resize(np.array(pairs, np.int32).ravel(), ELEMENTS)
    ends = np.cumsum([0, *(lengths if held == "bounds" else chunks)]).astype(np.int32)
    return np.concatenate([ends, np.full(ELEMENTS - len(ends), ends[-1], np.int32)])


def is_count(name: str, roles: Roles) -> bool:
    """Whether an integer counts sequences, heads or groups, by its name."""
    return len(name) == 1 and name in "BHNGZ" and name not in roles.extents


def _number(name: str, index: int, roles: Roles, plan: Plan) -> int:
    extents = plan.extents
    if name in roles.units:
        return 1
    if name in roles.strides:
        return extents[2] + 3 + 4 * index + plan.odd_strides
    if is_count(name, roles):
        return 2
    return extents[2] if name == "T" else extents[index % len(extents)]
