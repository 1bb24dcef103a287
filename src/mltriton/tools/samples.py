"""Inputs for `mltriton verify`: descriptions of arrays, from the command line or an example, made into random numbers.

Level: runtime. An array is described as `128x64:fp32` (sizes and a signature's type name) or given as it is (numpy,
torch). Arrays are held as numpy arrays of bit patterns where numpy lacks the type (bf16: uint16, fp8: uint8).
Guarantees: random numbers are never zero, so that a product or a missing element cannot hide; every copy of an array
has its own memory, with the original's strides and its address modulo 64, between guard bytes that show what wrote
outside.
"""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mltriton.errors import OptionError
from mltriton.executor.arguments import as_array
from mltriton.executor.values import encode, memory_dtype, rounder
from mltriton.frontend.signature import SCALARS
from mltriton.ir.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    FloatType,
    IntegerType,
    Type,
)

TYPES: Mapping[str, Type] = {
    "fp16": F16,
    "bf16": BF16,
    "fp32": F32,
    "fp64": F64,
    "fp8e4nv": F8E4M3,
    "fp8e5": F8E5M2,
    "fp8e4b8": I8,
    "fp8e4b15": I8,
    "fp8e5b16": I8,
    "i1": I1,
    **{f"{sign}{type.width}": type for sign in "iu" for type in (I8, I16, I32, I64)},
}
ALIGNMENT = 64
GUARD = 256  # bytes before and after an array
_GUARD_BYTE = 0xA5
_ARRAY = re.compile(r"(?P<sizes>\d+(?:x\d+)*)(?::(?P<dtype>\w+))?$")


@dataclass(frozen=True)
class ArrayText:
    """An array to be filled with random numbers.

    `dtype` is a signature's type name, None where the signature says it.
    """

    shape: tuple[int, ...]
    dtype: str | None = None


def parse_argument(text: str) -> tuple[str, Any]:
    """Read `name=128x64:fp32`, `name=1000`, `name=0.5`, `name=True`, `name='ieee'`; OptionError for anything else."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise OptionError(f"cannot read the argument {text!r}", expected="NAME=SHAPE:TYPE or NAME=VALUE")
    return name, parse_value(value.strip())


def parse_value(text: str) -> Any:
    """A number, a constant, or `ArrayText` for `128x64` and `128:fp32`."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        match = _ARRAY.match(text)
    if match is None or (match["dtype"] is not None and match["dtype"] not in SCALARS):
        raise OptionError(
            f"{text!r} is neither a value nor an array",
            expected="1000, 0.5, True, 'text', or sizes and a type: 128x64:fp32",
        )
    dtype = SCALARS[match["dtype"]] if match["dtype"] else None
    return ArrayText(tuple(int(size) for size in match["sizes"].split("x")), dtype)


def random_values(rng: np.random.Generator, type: Type, shape: tuple[int, ...], *, signed: bool = True) -> Any:
    """Random numbers of a scalar type as they lie in memory.

    Floats around 1 in size, small integers, none of them zero.
    """
    if isinstance(type, FloatType):
        values = rng.uniform(0.25, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
        return encode(rounder(type)(values), type)
    assert isinstance(type, IntegerType)
    if type.width == 1:
        return rng.integers(0, 2, shape).astype(np.uint8)
    values = rng.integers(1, 9, shape) * (rng.choice([-1, 1], shape) if signed else 1)
    return values.astype(memory_dtype(type))


class Copy:
    """An array in memory of its own.

    `array` has the shape, strides and alignment of `source` and, at first, its contents; `whole` are its bytes and
    those around it.
    """

    def __init__(self, source: Any) -> None:
        address: int = source.__array_interface__["data"][0]
        low, high = np.lib.array_utils.byte_bounds(source) if source.size else (address, address)
        size = high - low
        self.whole = whole = np.full(size + 2 * GUARD + ALIGNMENT, _GUARD_BYTE, np.uint8)
        start = GUARD + (low - whole.ctypes.data - GUARD) % ALIGNMENT
        self._before, self._after = whole[:start], whole[start + size :]
        self.array: Any = np.ndarray(
            source.shape, source.dtype, _part(whole, start, size), address - low, source.strides
        )
        self.array[...] = source

    @property
    def is_guarded(self) -> bool:
        """Whether the bytes around the array are as they were."""
        return bool((self._before == _GUARD_BYTE).all() and (self._after == _GUARD_BYTE).all())


def _part(whole: Any, start: int, size: int) -> Any:
    """Some bytes of a buffer, without the buffer as base: whoever looks for an array's buffer finds no more."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_buffer(whole, start)) if size else whole[:0].copy()


def allocate(values: Any, *, misaligned: bool = False) -> Any:
    """The values at an address that is a multiple of 64 bytes, or one element beside it."""
    size = values.size * values.itemsize
    whole = np.zeros(size + 2 * ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT + (values.itemsize if misaligned else 0)
    made: Any = np.ndarray(values.shape, values.dtype, whole[start : start + size])
    made[...] = values
    return made


@dataclass
class Sample:
    """The arguments of one launch by parameter name: arrays, numbers and constants. `types` are those of the arrays."""

    values: dict[str, Any]
    types: dict[str, Type]
    grid: tuple[int, ...]
    notes: list[str] = field(default_factory=list[str])

    def copies(self) -> dict[str, Copy]:
        """Fresh copies of the arrays."""
        return {name: Copy(self.values[name]) for name in self.types}

    def arguments(self, names: Iterable[str], copies: Mapping[str, Copy]) -> list[Any]:
        """The values of parameters in that order, arrays taken from `copies`."""
        return [copies[name].array if name in copies else self.values[name] for name in names]

    def __str__(self) -> str:
        return ", ".join(f"{name}={self._text(name)}" for name in self.values)

    def _text(self, name: str) -> str:
        value = self.values[name]
        if name not in self.types:
            return repr(value)
        return f"{'x'.join(map(str, value.shape)) or 'scalar'}:{short_name(self.types[name])}"


def short_name(type: Type) -> str:
    """What signatures call a scalar type."""
    return next(name for name, known in TYPES.items() if known is type)


def array_of(
    name: str, value: Any, dtype: str, rng: np.random.Generator, *, misaligned: bool = False
) -> tuple[Any, Type]:
    """The array that a description, a length or a user's own array stands for, and the type of its elements.

    `dtype` is a signature's name, which a description may override; `misaligned` puts a random array one element
    beside a multiple of 64 bytes.
    """
    described = parse_value(value) if isinstance(value, str) else value
    if isinstance(described, int) and not isinstance(described, bool):
        described = ArrayText((described,))
    if not isinstance(described, ArrayText):
        return as_array(described, TYPES[dtype], name), TYPES[dtype]
    chosen = described.dtype or dtype
    numbers = random_values(rng, TYPES[chosen], described.shape, signed=not chosen.startswith("u"))
    return allocate(numbers, misaligned=misaligned), TYPES[chosen]


def is_described(value: Any) -> bool:
    """Whether a value is not an array but describes one."""
    return isinstance(value, ArrayText) or (isinstance(value, str) and ":" in value and _ARRAY.match(value) is not None)


def array_type_name(name: str, value: Any) -> str:
    """The signature's name of the element type that a description of an array states; OptionError where it does not."""
    described = parse_value(value) if isinstance(value, str) else value
    if not isinstance(described, ArrayText) or described.dtype is None:
        raise OptionError(f"the type of {name} is not known", hint=f"Say it with the sizes: {name}=128x64:fp32")
    return described.dtype
