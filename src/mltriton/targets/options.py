"""Compile options that a target declares for itself: read by name, checked, listed.

Level: user. A target's options are the fields (`option`) of a subclass of `TargetOptions`, found through `DECLARED`.
Guarantees: an option that a target does not have is an `OptionError` unless it is left at its default or may be ignored
there; a value that an option cannot have is one, too. Importing this module imports no target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from functools import cache
from importlib import import_module
from typing import Any, Self

from mltriton.errors import OptionError
from mltriton.records import record

# The families that have options of their own: `module:Class`.
DECLARED: dict[str, str] = {
    "cuda": "mltriton.targets.nvidia.options:CudaOptions",
    "generic": "mltriton.targets.xe.options:RegisterOptions",
    "xe": "mltriton.targets.xe.options:XeOptions",
}


@record(frozen=True)
class TargetOptions:
    """The options of a target: none, if it declares none."""

    def attributes(self) -> Mapping[str, bool | int | str]:
        """The attributes of the module that tell passes and the target what was asked for."""
        return {}

    def unconditional(self) -> Self:
        """Of a program that asks nothing of the memory of its arguments: what a launch runs that cannot give that."""
        return self

    def in_one_round(self) -> Self:
        """Of programs that share a multiprocessor, where the usual one has it to itself (`Facts` say so)."""
        return self


def option(default: Any, says: str, *, choices: Sequence[str] = (), ignorable: bool = False) -> Any:
    """A field of a target's options: what it `says`, the texts it may be (None: a default that is none of them), and
    whether targets without it ignore it because programs compute the same without.
    """
    return field(default=default, metadata={"says": says, "choices": tuple(choices), "ignorable": ignorable})


def declared_by(family: str) -> type[TargetOptions]:
    """The class of a family's options."""
    if family not in DECLARED:
        return TargetOptions
    module, _, name = DECLARED[family].partition(":")
    return getattr(import_module(module), name)


@cache
def known_options() -> dict[str, tuple[Field[Any], tuple[str, ...]]]:
    """Every option that some target declares, by name, with the families that have it."""
    found: dict[str, tuple[Field[Any], tuple[str, ...]]] = {}
    for family in DECLARED:
        for item in fields(declared_by(family)):
            _, families = found.get(item.name, (item, ()))
            found[item.name] = (item, (*families, family))
    return found


def options_for(target: str, given: Mapping[str, Any]) -> TargetOptions:
    """What is given of the options that targets declare, as the target's own. Raises `OptionError`."""
    kind = declared_by(target.partition(":")[0])
    own = {item.name for item in fields(kind)}
    for name, value in given.items():
        item, _ = known_options()[name]
        if name not in own and not item.metadata["ignorable"] and value != item.default:
            raise OptionError(f"the target {target} has no {name}", found=repr(value), hint="Leave the option out.")
        _check(item, value)
    return kind(**{name: value for name, value in given.items() if name in own})


def _check(item: Field[Any], value: Any) -> None:
    if type(item.default) is bool and type(value) is not bool:
        raise OptionError(f"{item.name} must be a bool", found=repr(value))
    choices: tuple[str, ...] = item.metadata["choices"]
    if choices and value != item.default and str(value) not in choices:
        raise OptionError(f"there is no {item.name} {value!r}", expected=f"one of {', '.join(choices)}")
