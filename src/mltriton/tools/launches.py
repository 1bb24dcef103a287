"""What `mltriton verify` runs a kernel with: the caller's arguments, the kernel's own example, or a guess.

Level: runtime. A kernel's file may bring its own example: a function `mltriton_verify(name, rng)` that returns
`(arguments, grid, options)` for the kernel called `name` (or None): a dict from parameters to arrays, descriptions of
arrays (`"128x64:fp32"`), numbers and constants; the grid; and a dict of compile options such as `num_warps`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import OptionError, SignatureError, TritonError
from mltriton.executor import run
from mltriton.executor.faults import OutOfBounds
from mltriton.frontend.signature import Argument, Constant, Entry, of_parameter, parse_signature, with_parts
from mltriton.ir.types import PointerType, Type
from mltriton.runtime.parameters import parameters_of as arguments_of
from mltriton.runtime.parts import Part, entry_of, parts_of
from mltriton.tools.inference.launch import choose
from mltriton.tools.samples import (
    TYPES,
    Sample,
    allocate,
    array_of,
    array_type_name,
    is_described,
    parse_argument,
    random_values,
    short_name,
)

if TYPE_CHECKING:
    from mltriton.compiler import Job
    from mltriton.frontend.function import LanguageFunction
    from mltriton.ir.module import Module

HOOK = "mltriton_verify"
_SMALLEST, _LARGEST = 1 << 8, 1 << 24  # elements of an array whose size must be found


@dataclass(frozen=True)
class Launch:
    """What is said of a launch: values by parameter (arrays, their descriptions, numbers, constants), grid, options."""

    values: dict[str, Any]
    grid: tuple[int, ...] | None
    options: dict[str, Any]


Arguments = Mapping[str, Any] | Sequence[str]


def named(args: Arguments) -> dict[str, Any]:
    """Arguments by name: a dict as it is, texts `name=value` read."""
    return dict(args) if isinstance(args, Mapping) else dict(map(parse_argument, args))


def parse_grid(text: str | None) -> tuple[int, ...] | None:
    """Read `8` or `8,4,1`; OptionError for anything else."""
    if text is None:
        return None
    sizes = [size.strip() for size in text.split(",")]
    if len(sizes) > 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise OptionError(f"cannot read the grid {text!r}", expected="one to three positive integers: 8 or 8,4,1")
    return tuple(map(int, sizes))


def launch_of(
    fn: LanguageFunction, args: Arguments | None, grid: Sequence[int] | None, *, has_signature: bool, seed: int
) -> Launch:
    """The caller's arguments over those of the kernel's own example, which is not asked where there is a signature."""
    example = None if has_signature else _example(fn, seed)
    if example is None and args is None and not has_signature:
        raise SignatureError(
            f"there is nothing to run {fn.__name__} with",
            expected=f"a signature, arguments, or a function {HOOK}(name, rng) in its file",
            hint='For instance: --signature "*fp32:16, i32, 1024" --arg n=1000, or --arg x=128x64:fp32 --arg n=1000.',
        )
    known = example or Launch({}, None, {})
    values = {**known.values, **named(args or {})}
    for name in values:
        if name not in fn.signature.parameters:
            raise OptionError(f"{fn.__name__} has no parameter {name!r}", expected=fn.signature_text)
    return Launch(values, tuple(map(int, grid)) if grid is not None else known.grid, known.options)


def _example(fn: LanguageFunction, seed: int) -> Launch | None:
    hook = getattr(sys.modules.get(fn.__module__), HOOK, None)
    found = hook(fn.__name__, np.random.default_rng(seed)) if hook is not None else None
    if found is None:
        return None
    values, grid, options = found
    return Launch(dict(values), tuple(map(int, grid)), dict(options))


def entries_of(
    fn: LanguageFunction, signature: str | Mapping[str, str] | None, values: Mapping[str, Any]
) -> dict[str, Entry]:
    """What the compiler is told: what the signature says, else what a launch with these values would say."""
    parameters = fn.signature.parameters
    if signature is not None:
        found = with_parts(parse_signature(signature, list(parameters)))
    else:
        found = {part.name: _entry(part) for part in _parts(fn, values)}
    entries: dict[str, Entry] = {}
    for name, parameter in parameters.items():
        parts = of_parameter(name, found)
        if not parts and parameter.default is parameter.empty:
            hint = f"Add --arg {name}=..."
            raise SignatureError(f"there is no value for the parameter {name} of {fn.__name__}", hint=hint)
        entries |= parts or {name: Constant(parameter.default)}
    return entries


def _parts(fn: LanguageFunction, values: Mapping[str, Any]) -> list[Part]:
    """The parts of the values that are given."""
    known = [parameter for parameter in arguments_of(fn, (), ()) if parameter.name in values]
    return parts_of(known, [values[parameter.name] for parameter in known])


def _entry(part: Part) -> Entry:
    if is_described(part.value) and not part.parameter.is_constexpr:
        return Argument(array_type_name(part.name, part.value), is_pointer=True, divisibility=16)
    return entry_of(part)


def sample_of_job(job: Job, launch: Launch, rng: np.random.Generator) -> Sample:
    """Arrays and numbers for the parameters of a kernel: those that are given, random ones for the others.

    An array without a size is made as long as the kernel reaches; integers without a value are chosen by what the
    kernel does with them (`tools/inference`).
    """
    given = {part.name: part.value for part in _parts(job.fn, launch.values)}
    given |= _described_parts(job.entries, given, rng)
    chosen = choose(job.fn, job.entries, given, rng)
    guessed = {name: value for name, value in chosen.values.items() if not hasattr(value, "shape")}
    given |= {name: value for name, value in chosen.values.items() if hasattr(value, "shape")}
    said = ", ".join(f"{name} = {value}" for name, value in guessed.items())
    sample = Sample({}, {}, launch.grid or chosen.grid, [f"chosen: {said}"] if said else [])
    for name, entry in job.entries.items():
        if isinstance(entry, Constant):
            sample.values[name] = entry.value
        elif not entry.is_pointer:
            sample.values[name] = given[name] if name in given else guessed.get(name, float(rng.uniform(0.25, 2.0)))
        else:
            sample.types[name] = TYPES[entry.scalar]
            if name in given:
                loose = entry.divisibility == 1
                sample.values[name], _ = array_of(name, given[name], entry.scalar, rng, misaligned=loose)
    if any(name not in sample.values for name in sample.types):
        find_sizes(job.module("tt"), None, sample, rng)
    return sample


def _described_parts(
    entries: Mapping[str, Entry], given: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """The parts of descriptors: of whole arrays that are given or described in their place."""
    found: dict[str, Any] = {}
    for part, entry in entries.items():
        name, dot, field = part.rpartition(".")
        if (dot, field) != (".", "base") or part in given:
            continue
        if name not in given:
            hint = f"Give them: --arg {name}=128x64"
            raise OptionError(f"the sizes of the tensor descriptor {name} are not known", hint=hint)
        assert isinstance(entry, Argument)
        array, _ = array_of(name, given[name], entry.scalar, rng)
        found[part] = array
        found |= {f"{name}.shape.{dim}": size for dim, size in enumerate(array.shape)}
        found |= {f"{name}.strides.{dim}": step // array.itemsize for dim, step in enumerate(array.strides)}
    return found


def sample_of_module(module: Module, function: str | None, launch: Launch, rng: np.random.Generator) -> Sample:
    """The same for a function of a module; every number must be given."""
    sample = Sample({}, {}, launch.grid or (1,))
    for name, type in parameters_of(module, function):
        given = launch.values.get(name)
        if given is None and not isinstance(type, PointerType):
            raise OptionError(f"there is no value for the parameter {name}: {type}", hint=f"Add --arg {name}=...")
        if not isinstance(type, PointerType):
            sample.values[name] = given
            continue
        sample.types[name] = type.pointee
        if given is not None:
            sample.values[name], _ = array_of(name, given, short_name(type.pointee), rng)
    if any(name not in sample.values for name in sample.types):
        find_sizes(module, function, sample, rng)
    return sample


def parameters_of(module: Module, function: str | None) -> list[tuple[str, Type]]:
    """Names and types of the parameters of a function of the module, the first public one when None."""
    functions = [op for op in module.body.block.ops if isinstance(op, tt.Func) and function in (None, op.sym_name)]
    public = [op for op in functions if op.sym_visibility == "public"] or functions
    if not public:
        raise OptionError("the module has no such function", expected=function or "a tt.func")
    return [(argument.hint or f"arg{argument.index}", argument.type) for argument in public[0].body.block.arguments]


def find_sizes(module: Module, function: str | None, sample: Sample, rng: np.random.Generator) -> None:
    """Make the missing arrays as long as the program reaches: run it, and double what turns out to be too short."""
    names = [name for name, _ in parameters_of(module, function)]
    sizes = {name: _SMALLEST for name in sample.types if name not in sample.values}
    while True:
        for name, size in sizes.items():
            sample.values[name] = allocate(random_values(rng, sample.types[name], (size,)))
        try:
            run(module, sample.arguments(names, sample.copies()), sample.grid, function=function)
        except OutOfBounds as fault:
            name = fault.segment
            if name not in sizes or fault.is_before or sizes[name] >= _LARGEST:
                raise
            sizes[name] *= 2
        except TritonError:
            return  # a fault of another kind: the comparison shows it
        else:
            return
