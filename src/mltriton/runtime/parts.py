"""Arguments that consist of several: tuples and tensor descriptors, and what stands for another: arrays, numbers.

Level: runtime. Each part is a parameter of its own to the compiler and the launcher. Those of the tuple `t` are called
`t.0`, `t.1`, `t.0.1`, ..., and of a named tuple `t.fields` besides (a constant, `field_text`); a tuple given to a
`tl.constexpr` parameter stays one constant, and so does whatever is given as `tl.constexpr(...)`. Those of the
descriptor `d` are `d.base` (an array), `d.shape.0`, ... (i32), `d.strides.0`, ... (i64, the last one a constant),
`d.block_shape` and `d.padding` (constants).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mltriton.frontend.signature import Argument, Entry
from mltriton.language.constants import constexpr, unwrap
from mltriton.records import record
from mltriton.runtime.foreign import known_array
from mltriton.runtime.parameters import Parameter
from mltriton.runtime.specialization import constant_of, specialize

if TYPE_CHECKING:
    from mltriton.runtime.native.launcher import Parts as NativeParts

Launch = Callable[..., Any]
Taker = Callable[[Any, list[Any]], bool]


@record(frozen=True)
class Part:
    """An argument, or a part of one that has parts; `parameter` says how it is specialised."""

    name: str
    parameter: Parameter
    value: Any


def entry_of(part: Part) -> Entry:
    """What the compiler is told about a part."""
    parameter = part.parameter
    if parameter.is_constexpr:
        return constant_of(part.name, part.value)
    entry = specialize(
        part.name,
        part.value,
        annotation=parameter.annotation,
        by_value=parameter.by_value,
        by_alignment=parameter.by_alignment,
    )
    is_const = parameter.is_const and isinstance(entry, Argument) and entry.is_pointer
    return replace(entry, is_const=True) if is_const else entry


def is_descriptor(value: Any) -> bool:
    """Whether an argument is a `TensorDescriptor`, whose module need not be loaded for the question."""
    return hasattr(value, "from_tensor") and hasattr(value, "block_shape")


def is_wrapper(value: Any) -> bool:
    """Whether an argument is an array that `reinterpret` gave another dtype."""
    wrappers: Any = sys.modules.get("mltriton.runtime.tensor_wrapper")
    return wrappers is not None and isinstance(value, wrappers.TensorWrapper)


def unwrapped(value: Any) -> Any:
    """The array itself, where `reinterpret` gave it another dtype."""
    return value.base if is_wrapper(value) else value


def has_parts(value: Any) -> bool:
    """Whether a launcher takes something else than the argument itself."""
    return isinstance(value, tuple | np.generic | constexpr) or is_descriptor(value) or is_wrapper(value)


def parts_of(parameters: Sequence[Parameter], arguments: Sequence[Any], *, constants: bool = False) -> list[Part]:
    """The arguments with tuples and descriptors taken apart; with `constants` also tuples that are constants."""
    return [
        part
        for parameter, value in zip(parameters, arguments, strict=True)
        for part in _parts(parameter.name, parameter, value, constants)
    ]


def _parts(name: str, parameter: Parameter, value: Any, constants: bool) -> Iterator[Part]:
    if isinstance(value, constexpr):
        value, parameter = value.value, replace(parameter, is_constexpr=True)
    is_tuple, is_whole = isinstance(value, tuple), parameter.is_constexpr
    if is_tuple and (constants or not is_whole):
        for index, item in enumerate(value):
            yield from _parts(f"{name}.{index}", parameter, item, constants)
        if text := field_text(value):
            yield Part(f"{name}.fields", replace(parameter, is_constexpr=True), text)
    elif is_descriptor(value) and not is_whole:
        value.check()
        for part, of_part, items in _fields(parameter, value):
            yield from _parts(f"{name}.{part}", of_part, items, constants)
    else:
        yield Part(name, parameter, value if is_whole else known_array(value))


def field_text(value: Any) -> str:
    """The name of a named tuple and those of its fields, with spaces between; nothing for a plain tuple."""
    return " ".join([type(value).__name__, *value._fields]) if hasattr(value, "_fields") else ""


def _fields(parameter: Parameter, descriptor: Any) -> Iterator[tuple[str, Parameter, Any]]:
    """A descriptor's fields by name; the last stride apart from the others."""
    constant, last = replace(parameter, is_constexpr=True), len(descriptor.strides) - 1
    yield "base", parameter, descriptor.base
    yield "shape", replace(parameter, annotation="i32"), tuple(map(unwrap, descriptor.shape))
    yield "strides", replace(parameter, annotation="i64"), tuple(map(unwrap, descriptor.strides[:last]))
    yield f"strides.{last}", constant, unwrap(descriptor.strides[last])
    yield "block_shape", constant, tuple(map(unwrap, descriptor.block_shape))
    yield "padding", constant, descriptor.padding


def taking_parts(launch: Launch, arguments: Sequence[Any]) -> Launch:
    """A launcher of parts (constants' too) as one of arguments.

    NotImplemented for arguments that do not consist of such parts as `arguments`. Tuples of what launchers take
    themselves cost machine code little; other parts are taken apart in Python.
    """
    if isinstance(launch, BuiltinFunctionType) and (tuples := _only_tuples(arguments)) is not None:
        return tuples.launcher(launch)
    takers = [_taker(argument) for argument in arguments]

    def launch_parts(x: int, y: int, z: int, *given: Any) -> Any:
        flat: list[Any] = []
        for take, value in zip(takers, given, strict=True):
            if take is None:
                flat.append(value)
            elif not take(value, flat):
                return NotImplemented
        return launch(x, y, z, *flat)

    return launch_parts


def _only_tuples(arguments: Sequence[Any]) -> NativeParts | None:
    """How arguments consist of their parts; None where one has parts and is no tuple."""
    from mltriton.runtime.native.launcher import Parts as NativeParts  # It is there: it made the launcher.

    tuples: list[tuple[int, type, int]] = []
    order: list[int] = []
    texts: list[str] = []
    waiting = list(enumerate(arguments))
    places = len(arguments)
    while waiting:
        place, value = waiting.pop(0)
        if place < 0 or not has_parts(value):
            order.append(place)
            continue
        if not isinstance(value, tuple):
            return None
        whole = cast("tuple[Any, ...]", value)
        tuples.append((place, type(whole), len(whole)))
        items: list[tuple[int, Any]] = list(enumerate(whole, places))
        places += len(whole)
        if text := field_text(whole):
            texts.append(text)
            items.append((-len(texts), text))
        waiting = items + waiting
    return NativeParts(len(arguments), tuples, order, texts)


def _taker(example: Any) -> Taker | None:
    """What appends the parts of a value to a list; false for values of other parts than the example. None: itself."""
    if isinstance(example, constexpr):
        return _constant_taker(example.value)
    if isinstance(example, tuple):
        return _tuple_taker(cast("tuple[Any, ...]", example))
    if is_descriptor(example):
        return _descriptor_taker(example.__class__, len(example.shape))
    if isinstance(example, np.generic):
        return _number_taker(cast(Any, example).__class__)
    return _wrapper_taker(example.__class__, example.dtype) if is_wrapper(example) else None


def _constant_taker(example: Any) -> Taker:
    inner = _taker(example)

    def take(value: Any, flat: list[Any]) -> bool:
        if type(value) is not constexpr:
            return False
        if inner is not None:
            return inner(value.value, flat)
        flat.append(value.value)
        return True

    return take


def _tuple_taker(example: tuple[Any, ...]) -> Taker:
    takers, kind, text = [_taker(item) for item in example], type(example), field_text(example)

    def take(value: Any, flat: list[Any]) -> bool:
        if type(value) is not kind or len(value) != len(takers):
            return False
        for taker, item in zip(takers, value, strict=True):
            if taker is None:
                flat.append(item)
            elif not taker(item, flat):
                return False
        if text:
            flat.append(text)
        return True

    return take


def _descriptor_taker(kind: type, rank: int) -> Taker:
    def take(value: Any, flat: list[Any]) -> bool:
        if type(value) is not kind or value.round_f32_to_tf32:
            return False
        shape, strides, block = value.shape, value.strides, value.block_shape
        if not len(shape) == len(strides) == len(block) == rank:
            return False
        flat += (value.base, *shape, *strides, *block, value.padding)
        return True

    return take


def _wrapper_taker(kind: type, dtype: Any) -> Taker:
    def take(value: Any, flat: list[Any]) -> bool:
        if type(value) is not kind or value.dtype is not dtype:
            return False
        flat.append(value.base)
        return True

    return take


def _number_taker(kind: type) -> Taker:
    """What takes one of numpy's scalars as Python's number."""

    def take(value: Any, flat: list[Any]) -> bool:
        if type(value) is not kind:
            return False
        flat.append(value.item())
        return True

    return take
