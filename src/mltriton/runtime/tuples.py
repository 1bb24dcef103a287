"""Tuples as arguments of a kernel: each of their parts is a parameter of its own to the compiler and the launcher.

Level: runtime. The parts of the argument `t` are called `t.0`, `t.1`, `t.0.1`, ...; a tuple given to a `tl.constexpr`
parameter stays one constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mltriton.runtime.parameters import Parameter

Launch = Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """An argument, or a part of one that is a tuple; `parameter` says how it is specialised."""

    name: str
    parameter: Parameter
    value: Any


def parts_of(parameters: Sequence[Parameter], arguments: Sequence[Any], *, constants: bool = False) -> list[Part]:
    """The arguments with tuples taken apart; with `constants` also those of `tl.constexpr` parameters."""
    return [
        part
        for parameter, value in zip(parameters, arguments, strict=True)
        for part in _parts(parameter.name, parameter, value, constants)
    ]


def _parts(name: str, parameter: Parameter, value: Any, constants: bool) -> Iterator[Part]:
    if isinstance(value, tuple) and (constants or not parameter.is_constexpr):
        for index, item in enumerate(cast("tuple[Any, ...]", value)):
            yield from _parts(f"{name}.{index}", parameter, item, constants)
    else:
        yield Part(name, parameter, value)


def taking_tuples(launch: Launch, parameters: Sequence[Parameter], arguments: Sequence[Any]) -> Launch:
    """A launcher of parts (constants' too) as one of arguments.

    NotImplemented for other tuples than `arguments` has.
    """
    expected = [part.name for part in parts_of(parameters, arguments, constants=True)]

    def launch_parts(x: int, y: int, z: int, *given: Any) -> Any:
        parts = parts_of(parameters, given, constants=True)
        if [part.name for part in parts] != expected:
            return NotImplemented
        return launch(x, y, z, *[part.value for part in parts])

    return launch_parts
