"""Calls of the library that were made before: how they were computed, for later ones of the same kind.

Level: user. A call is known by its arrays' shapes, strides, dtypes and devices, and by its options. Of one that was
computed by launches of its own arrays, and of arrays that it made, the launches are kept; a later one makes its arrays
and launches. Guarantees: nothing is kept of a call that copied an argument, two of whose arrays begin at one address,
or that torch records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from mltriton.kernels.arrays import Array, addresses, empty, is_torch
from mltriton.kernels.launch import Launch
from mltriton.records import NamedTuple
from mltriton.runtime.native.launcher import num_threads

Key = tuple[Any, ...]
_PLAIN = frozenset((type(None), bool, int, float, str))  # whose value alone says whether two are the same


def key_of(function: Callable[..., Any], arrays: Sequence[Array | None], *options: Any) -> Key | None:
    """What decides how `function` is computed of arrays, the first of them never None; None where it is computed anew
    each time: for arrays that are no plain ones of numpy or torch, for other options than numbers, strings and None,
    and where torch is to record it.
    """
    for option in options:
        if type(option) not in _PLAIN:
            return None
    first: Any = arrays[0]
    kind = cast(type[Any], type(first))
    torch: Any = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor:
        described = _tensors(arrays, kind, torch.is_grad_enabled())
        threads = num_threads() if first.is_cpu else 0
    elif kind is np.ndarray:
        described, threads = _numpy_arrays(arrays), num_threads()
    else:
        return None
    return None if described is None else (function, threads, *options, *described)


def _tensors(arrays: Sequence[Array | None], kind: type, records: bool) -> Key | None:
    """What tensors are, besides where they begin; `kind` is torch's class. None where one is of another, or where torch
    `records` what is done with it.
    """
    found: list[Any] = []
    for x in arrays:
        if x is None:
            found.append(None)
        elif type(x) is not kind or (records and x.requires_grad):
            return None
        else:
            found += x.shape, x.stride(), x.dtype, x.device
    return tuple(found)


def _numpy_arrays(arrays: Sequence[Array | None]) -> Key | None:
    if any(x is not None and type(x) is not np.ndarray for x in arrays):
        return None
    return tuple(None if x is None else (x.shape, x.strides, x.dtype) for x in arrays)


class _Step(NamedTuple):
    """A launch: its arguments, of which those at `places` are arrays with a number each."""

    launch: Launch
    places: tuple[tuple[int, int], ...]

    def run(self, arrays: Sequence[Array | None]) -> None:
        arguments = list(self.launch.arguments)
        for place, number in self.places:
            arguments[place] = arrays[number]
        self.launch.kernel[self.launch.grid](*arguments, **self.launch.constants)


class _Plan(NamedTuple):
    """Shapes and dtypes of what a call makes, how many of these are its results, and its launches."""

    made: tuple[tuple[tuple[int, ...], str | None], ...]
    results: int
    steps: tuple[_Step, ...]


_PLANS: dict[Key | None, _Plan] = {}
_MOST_PLANS = 4096


def is_known(key: Key | None) -> bool:
    """Whether there is a plan."""
    return key in _PLANS


def again(key: Key | None, arrays: Sequence[Array | None]) -> list[Array] | None:
    """The results of a call of which there is a plan; None where there is none."""
    plan = _PLANS.get(key)
    if plan is None:
        return None
    like = arrays[0]
    made = [empty(shape, like, dtype) for shape, dtype in plan.made]
    for step in plan.steps:
        step.run((*arrays, *made))
    return made[: plan.results]


def remember(
    key: Key | None,
    arrays: Sequence[Array | None],
    results: Sequence[Array],
    scratch: Sequence[Array],
    launches: Sequence[Launch],
) -> None:
    """Keep how a call of `key` was computed, if by launches that take only its arrays, its contiguous results and
    scratch memory, each of which has no element in common with another.
    """
    made = [*results, *scratch]
    known = [*arrays, *made]
    places = [_places(launch.arguments, known) for launch in launches]
    starts = addresses([x for x in known if x is not None]) if key is not None else []
    if key is None or None in places or len(set(starts)) < len(starts):
        return
    steps = tuple(
        _Step(_without_arrays(launch, found), found)
        for launch, found in zip(launches, places, strict=True)
        if found is not None
    )
    first: Any = arrays[0]
    like = first.dtype
    shapes = tuple((tuple(x.shape), None if x.dtype == like else str(x.dtype).removeprefix("torch.")) for x in made)
    if len(_PLANS) >= _MOST_PLANS:
        _PLANS.clear()
    _PLANS[key] = _Plan(shapes, len(results), steps)


def _places(arguments: Sequence[Any], known: Sequence[Array | None]) -> tuple[tuple[int, int], ...] | None:
    """Where arguments of a launch are arrays, and which; None where one is an array that is not known."""
    found: list[tuple[int, int]] = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) or is_torch(argument):
            number = next((i for i, x in enumerate(known) if x is not None and _is_same(argument, x)), None)
            if number is None:
                return None
            found.append((place, number))
    return tuple(found)


def _is_same(one: Array, other: Array) -> bool:
    """Whether two are one array, or the same elements in the same memory: a launch only takes where these begin."""
    if one is other:
        return True
    if type(one) is not type(other) or one.dtype != other.dtype or _size(one) != _size(other):
        return False
    return addresses([one]) == addresses([other])


def _size(x: Array) -> int:
    return x.numel() if is_torch(x) else x.size


def _without_arrays(launch: Launch, places: Sequence[tuple[int, int]]) -> Launch:
    """The launch without its arrays, so that a plan keeps no memory."""
    arguments = list(launch.arguments)
    for place, _ in places:
        arguments[place] = None
    return launch._replace(arguments=tuple(arguments))
