"""Launching what was compiled ahead of time: the arguments must be what the signature said.

Level: runtime. Guarantees: an argument of another type, or one that is not aligned as promised, is an `ArgumentError`
that names it. The first launch takes some hundred microseconds; those after it are left to machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.errors import ArgumentError, TritonError, calling_location
from mltriton.frontend.signature import Argument, Constant, Entry, of_parameters
from mltriton.language.constants import unwrap
from mltriton.records import NamedTuple
from mltriton.runtime.arrays import check_arrays
from mltriton.runtime.grid import normalize
from mltriton.runtime.native.params import INTEGER_RANGES, ParamSpec
from mltriton.runtime.parameters import parameters_of
from mltriton.runtime.parts import parts_of
from mltriton.runtime.slots import slots_of
from mltriton.runtime.specialization import check_devices, guard, specialize

if TYPE_CHECKING:
    from mltriton.compiler import CompiledKernel


def launch_compiled(kernel: CompiledKernel, grid: Any, arguments: Sequence[Any]) -> None:
    """Launch `kernel` over `grid`; `arguments` are all of its parameters, or those that are not constants."""
    entries = kernel.job.entries
    try:
        named = _named(kernel, [unwrap(argument) for argument in arguments])
        check_devices(named, kernel.job.target.takes, kernel.metadata.target)
        check_arrays(named)
        for name, value in named.items():
            _check(name, entries[name], value)
        values = [_counted(entries[name], value) for name, value in named.items()]
        slots = slots_of(entries, values, kernel.metadata.written)
        if all(size := normalize(grid)):
            kernel.loaded.run(size, slots)
    except TritonError as error:
        error.at(calling_location())
        raise


def relaunch(
    kernel: CompiledKernel, run: Callable[..., None], constants: Constants | None, grid: Any, arguments: Sequence[Any]
) -> None:
    """`launch_compiled` by the kernel's `runner`, where the arguments are all, or all but `constants`."""
    if constants is None or len(arguments) not in (constants.parameters, constants.parameters - len(constants.values)):
        launch_compiled(kernel, grid, arguments)
        return
    if len(arguments) != constants.parameters:
        completed = [*arguments]
        for index, value in constants.values:
            completed.insert(index, value)
        arguments = completed
    try:
        size = normalize(grid)
    except TritonError as error:
        error.at(calling_location())
        raise
    if all(size):
        run(*size, 0, None, None, None, None, None, *arguments)
    else:
        launch_compiled(kernel, grid, arguments)


class Constants(NamedTuple):
    """The constants among a kernel's parameters, by index, in order; and how many parameters there are."""

    parameters: int
    values: tuple[tuple[int, Any], ...]


def constants_of(kernel: CompiledKernel) -> Constants | None:
    """The constants that a launch need not give; None where parameters have parts or a constant was not compiled in."""
    entries, parameters = kernel.job.entries, parameters_of(kernel.job.fn, (), ())
    if list(entries) != [parameter.name for parameter in parameters]:
        return None
    known = [(parameter.index, entries[parameter.name]) for parameter in parameters if parameter.is_constexpr]
    values = tuple((index, entry.value) for index, entry in known if isinstance(entry, Constant))
    return Constants(len(parameters), values) if len(values) == len(known) else None


def runner(kernel: CompiledKernel) -> Callable[..., None]:
    """Upstream's `run(x, y, z, stream, function, metadata, launch_metadata, enter_hook, exit_hook, *arguments)`.

    The arguments are those of all parameters, constants included. Machine code checks them; one that does not pass is
    looked at again in Python, which launches all the same or says what is wrong.
    """
    launch = kernel.loaded.launcher([_spec(name, entry, kernel) for name, entry in kernel.job.entries.items()])
    is_plain = all("." not in name for name in kernel.job.entries)  # Nothing has parts.

    def run(
        x: int,
        y: int,
        z: int,
        stream: int,
        function: object,
        metadata: object,
        launch_metadata: object,
        enter_hook: Callable[[object], object] | None,
        exit_hook: Callable[[object], object] | None,
        *arguments: Any,
    ) -> None:
        if enter_hook:
            enter_hook(launch_metadata)
        if not is_plain or launch(x, y, z, *arguments) is NotImplemented:
            launch_compiled(kernel, (x, y, z), arguments)
        if exit_hook:
            exit_hook(launch_metadata)

    if not is_plain:
        return run
    from mltriton.runtime.native.launcher import described  # Not every target that launches has it loaded.

    return described(launch, run)


def _spec(name: str, entry: Entry, kernel: CompiledKernel) -> ParamSpec:
    """What machine code checks of an argument: its type, and what the kernel was promised."""
    promised = isinstance(entry, Argument) and entry.divisibility > 1
    writes = name in kernel.metadata.written
    return guard(entry, writes=writes, is_annotated=True, by_value=False, by_alignment=promised)


def _named(kernel: CompiledKernel, arguments: Sequence[Any]) -> Mapping[str, Any]:
    """The values of all parameters by name, taken apart into those that the kernel was compiled for."""
    entries, texts = kernel.job.entries, of_parameters(kernel.job.entries)
    parameters = parameters_of(kernel.job.fn, (), ())
    variable = tuple(parameter for parameter in parameters if not parameter.is_constexpr)
    if len(arguments) == len(variable):  # As upstream: those that a launch gives and an autotuner does not.
        constants = [entries[parameter.name] for parameter in parameters if parameter.is_constexpr]
        given = iter([*arguments])
        arguments = (
            [
                cast(Constant, entries[parameter.name]).value if parameter.is_constexpr else next(given)
                for parameter in parameters
            ]
            if all(isinstance(entry, Constant) for entry in constants)
            else arguments
        )
    if len(arguments) != len(parameters):
        left = {name.partition(".")[0] for name, entry in entries.items() if isinstance(entry, Argument)}
        counts = f"{len(left)} arguments, or {len(parameters)} with its constants"
        parameters = tuple(parameter for parameter in parameters if parameter.name in left)
        if len(arguments) != len(parameters):
            raise ArgumentError(
                f"{kernel.name} takes {counts}, and got {len(arguments)}",
                expected=", ".join(f"{parameter.name}: {texts[parameter.name]}" for parameter in parameters),
            )
    given = {part.name: part.value for part in parts_of(parameters, arguments)}
    for parameter, argument in zip(parameters, arguments, strict=True):
        wanted, found = (
            [name for name in names if name.partition(".")[0] == parameter.name] for names in (entries, given)
        )
        if wanted != found:
            raise _unfitting(parameter.name, texts[parameter.name], type(argument).__name__)
    return {name: given[name] if name in given else cast(Constant, entry).value for name, entry in entries.items()}


def _check(name: str, entry: Entry, value: Any) -> None:
    """Raise `ArgumentError` unless a value is what the kernel was compiled for."""
    if isinstance(entry, Constant):
        if type(entry.value) is not type(value) or entry.value != value:
            raise ArgumentError(f"{name} was compiled in as {entry.value!r}", found=repr(value))
        return
    is_integer = not entry.is_pointer and entry.scalar in INTEGER_RANGES
    annotation = entry.scalar if isinstance(value, float) or (is_integer and isinstance(value, int)) else None
    found = specialize(name, _counted(entry, value), annotation=annotation, by_value=False, by_alignment=True)
    if not isinstance(found, Argument) or not _fits(found, entry):
        raise _unfitting(name, str(entry), str(found))


def _counted(entry: Entry, value: Any) -> Any:
    """The value; True and False are 1 and 0 where the kernel takes a wider integer, as in Python and upstream."""
    takes_integer = isinstance(entry, Argument) and not entry.is_pointer and entry.scalar in INTEGER_RANGES
    return int(value) if isinstance(value, bool) and takes_integer else value


def _unfitting(name: str, expected: str, found: str) -> ArgumentError:
    return ArgumentError(f"the argument {name} is not what {name} was compiled for", expected=expected, found=found)


def _fits(found: Argument, entry: Argument) -> bool:
    same_type = (found.scalar, found.is_pointer) == (entry.scalar, entry.is_pointer)
    return same_type and found.divisibility >= entry.divisibility
