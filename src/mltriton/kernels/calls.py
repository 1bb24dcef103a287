"""Calls of the library that were made before: how they were computed, for later ones of the same kind.

Level: user. A call is known by its arrays' shapes, strides, dtypes and devices, and by its options. Of one that was
computed by launches of its own arrays, and of arrays that it made, the launches are kept; a later one makes its arrays
and launches. Guarantees: nothing is kept of a call that copied an argument or that torch records; what is kept of one
some of whose arrays begin at one address is for calls of which the same do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mltriton.kernels.arrays import Array, addresses, empty, empty_as, is_torch
from mltriton.kernels.launch import Launch
from mltriton.records import NamedTuple
from mltriton.runtime.native.launcher import describe_tensors, num_threads

if TYPE_CHECKING:
    from mltriton.runtime.jit import JITFunction

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
    described = describe_tensors()(*arrays)
    if described is NotImplemented:
        described = _described(arrays)
    return None if described is None else (function, described, *options)


def _described(arrays: Sequence[Array | None]) -> Key | None:
    """What machine code does not describe."""
    first: Any = arrays[0]
    kind = cast(type[Any], type(first))
    torch: Any = sys.modules.get("torch")
    tensors = (torch.Tensor, torch.nn.Parameter) if torch is not None else ()
    if torch is not None and kind in tensors:
        described = _tensors(arrays, tensors, torch.is_grad_enabled())
    elif kind is np.ndarray:
        described = _numpy_arrays(arrays)
    else:
        return None
    return None if described is None else (num_threads(), *described)


def _tensors(arrays: Sequence[Array | None], kinds: tuple[type, ...], records: bool) -> Key | None:
    """What tensors are, besides where they begin; `kinds` are torch's classes. None where one is of another, or where
    torch `records` what is done with it.
    """
    found, starts = list[Any](), list[int]()
    for x in arrays:
        if x is None:
            found.append(None)
        elif type(x) not in kinds or (records and x.requires_grad):
            return None
        else:
            found += x.shape, x.stride(), x.dtype, x.device
            starts.append(x.data_ptr())
    return (*found, *_shared(starts))


def _numpy_arrays(arrays: Sequence[Array | None]) -> Key | None:
    """The same of numpy's, of which to ask for an address takes longer than to compare them."""
    if any(x is not None and type(x) is not np.ndarray for x in arrays):
        return None
    described = [None if x is None else (x.shape, x.strides, x.dtype) for x in arrays]
    return (*described, *_shared([id(x) for x in arrays if x is not None]))


def _shared(starts: Sequence[int]) -> tuple[int, ...]:
    """Of each array the first one that begins there; nothing where all begin elsewhere."""
    return () if len(set(starts)) == len(starts) else tuple(map(starts.index, starts))


Run = Callable[[Sequence[Any]], list[Array] | None]


class _Step(NamedTuple):
    """A launch: `pick` takes its arguments from a call's arrays, those that it makes, and the `values`."""

    kernel: JITFunction
    grid: tuple[int, ...]
    values: tuple[Any, ...]
    pick: Callable[[Sequence[Any]], tuple[Any, ...]]
    constants: dict[str, Any]


def _plan(makers: Sequence[Callable[[Array], Array]], results: int, steps: Sequence[_Step]) -> Run:
    """What computes a call: it makes arrays like the first one, of which so many are the results, and launches. Most
    calls make one and launch once.
    """

    def run(arrays: Sequence[Any]) -> list[Array]:
        made = [make(arrays[0]) for make in makers]
        for kernel, grid, values, pick, constants in steps:
            kernel[grid](*pick((*arrays, *made, *values)), **constants)
        return made[:results]

    if not len(makers) == results == len(steps) == 1:
        return run
    make, (kernel, grid, values, pick, constants) = makers[0], steps[0]

    def run_once(arrays: Sequence[Any]) -> list[Array]:
        made = make(arrays[0])
        kernel[grid](*pick((*arrays, made, *values)), **constants)
        return [made]

    return run_once


_PLANS: dict[Key | None, Run] = {}
_MOST_PLANS = 4096


def is_known(key: Key | None) -> bool:
    """Whether there is a plan."""
    return key in _PLANS


def again(key: Key | None, arrays: Sequence[Array | None]) -> list[Array] | None:
    """The results of a call of which there is a plan; None where there is none, or it does not fit these arrays."""
    run = _PLANS.get(key)
    return None if run is None else run(arrays)


def keep(key: Key | None, run: Run) -> None:
    """Let calls of `key` be computed so: `run` gives the results for a call's arrays, or None where it cannot."""
    if key is None:
        return
    if len(_PLANS) >= _MOST_PLANS:
        _PLANS.clear()
    _PLANS[key] = run


def remember(
    key: Key | None,
    arrays: Sequence[Array | None],
    results: Sequence[Array],
    scratch: Sequence[Array],
    launches: Sequence[Launch],
) -> None:
    """Keep how a call of `key` was computed, if by launches that take only its arrays, its contiguous results and
    scratch memory, which have no element in common.
    """
    made = [*results, *scratch]
    known = [*arrays, *made]
    positions = [_positions(launch.arguments, known) for launch in launches]
    if key is None or None in positions or not _is_told(arrays, made):
        return
    steps = tuple(
        _step(launch, dict(found), len(known))
        for launch, found in zip(launches, positions, strict=True)
        if found is not None
    )
    keep(key, _plan([_maker(x, arrays[0]) for x in made], len(results), steps))


def _maker(x: Array, first: Any) -> Callable[[Array], Array]:
    """What makes arrays like `x`, of any that is like `first`."""
    maker = empty_as(x, first)
    if maker is not None:
        return maker
    shape = tuple(x.shape)
    dtype = None if x.dtype == first.dtype else str(x.dtype).removeprefix("torch.")
    return lambda like: empty(shape, like, dtype)


def _is_told(arrays: Sequence[Array | None], made: Sequence[Array]) -> bool:
    """Whether the key says which arrays begin at one address, of which is none that was made."""
    given = [x for x in arrays if x is not None]
    starts = addresses([*given, *made])
    own = starts[len(given) :]
    if len({*own}) < len(own) or not {*own}.isdisjoint(starts[: len(given)]):
        return False
    return is_torch(given[0]) or _shared(starts[: len(given)]) == _shared([id(x) for x in given])


def _positions(arguments: Sequence[Any], known: Sequence[Array | None]) -> tuple[tuple[int, int], ...] | None:
    """Where arguments of a launch are arrays, and which; None where one is an array that is not known."""
    found: list[tuple[int, int]] = []
    for position, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) or is_torch(argument):
            number = next((i for i, x in enumerate(known) if x is not None and _is_same(argument, x)), None)
            if number is None:
                return None
            found.append((position, number))
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


def _step(launch: Launch, arrays: Mapping[int, int], count: int) -> _Step:
    """A launch without its arrays, so that a plan keeps no memory: the number of each is known by its position, and
    there are `count` of them.
    """
    values = [(position, value) for position, value in enumerate(launch.arguments) if position not in arrays]
    numbers = {**arrays, **{position: count + number for number, (position, _) in enumerate(values)}}
    chosen = [numbers[position] for position in range(len(launch.arguments))]
    pick = itemgetter(*chosen) if len(chosen) > 1 else itemgetter(slice(chosen[0], chosen[0] + 1))
    return _Step(launch.kernel, launch.grid, tuple(value for _, value in values), pick, launch.constants)
