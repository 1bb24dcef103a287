"""Launching what was compiled ahead of time: the arguments must be what the signature said.

Level: runtime. Guarantees: an argument of another type, or one that is not aligned as promised, is an `ArgumentError`
that names it. Takes some ten microseconds; a `JITFunction` is the fast way to launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mltriton.errors import ArgumentError, TritonError, calling_place
from mltriton.language.constants import unwrap
from mltriton.runtime.grid import normalize
from mltriton.runtime.native.params import INTEGER_RANGES
from mltriton.runtime.slots import slots_of
from mltriton.runtime.specialization import check_devices, specialize
from mltriton.tools.signature import Argument, Constant, Entry

if TYPE_CHECKING:
    from mltriton.compiler import CompiledKernel


def launch_compiled(kernel: CompiledKernel, grid: Any, arguments: Sequence[Any]) -> None:
    """Launch `kernel` over `grid`; `arguments` are all of its parameters, or those that are not constants."""
    entries = kernel.job.entries
    try:
        named = _named(kernel, [unwrap(argument) for argument in arguments])
        check_devices(named, kernel.job.target.takes, kernel.metadata.target)
        for name, value in named.items():
            _check(name, entries[name], value)
        slots = slots_of(entries, list(named.values()), kernel.metadata.written)
        kernel.loaded.run(normalize(grid), slots)
    except TritonError as error:
        error.at(calling_place())
        raise


def _named(kernel: CompiledKernel, arguments: Sequence[Any]) -> Mapping[str, Any]:
    """The values of all parameters by name."""
    entries = kernel.job.entries
    if len(arguments) == len(entries):
        return dict(zip(entries, arguments, strict=True))
    left = [name for name, entry in entries.items() if isinstance(entry, Argument)]
    if len(arguments) != len(left):
        counts = f"{len(left)} arguments, or {len(entries)} with its constants"
        raise ArgumentError(
            f"{kernel.name} takes {counts}, and got {len(arguments)}",
            expected=", ".join(f"{name}: {entries[name]}" for name in left),
        )
    given = dict(zip(left, arguments, strict=True))
    return {name: entry.value if isinstance(entry, Constant) else given[name] for name, entry in entries.items()}


def _check(name: str, entry: Entry, value: Any) -> None:
    """Raise `ArgumentError` unless a value is what the kernel was compiled for."""
    if isinstance(entry, Constant):
        if type(entry.value) is not type(value) or entry.value != value:
            raise ArgumentError(f"{name} was compiled in as {entry.value!r}", found=repr(value))
        return
    is_integer = not entry.is_pointer and entry.scalar in INTEGER_RANGES
    annotation = entry.scalar if isinstance(value, float) or (is_integer and isinstance(value, int)) else None
    found = specialize(name, value, annotation=annotation, by_value=False, by_alignment=True)
    if not isinstance(found, Argument) or not _fits(found, entry):
        raise ArgumentError(
            f"the argument {name} is not what {name} was compiled for", expected=str(entry), found=str(found)
        )


def _fits(found: Argument, entry: Argument) -> bool:
    same_type = (found.scalar, found.is_pointer) == (entry.scalar, entry.is_pointer)
    return same_type and found.divisibility >= entry.divisibility
