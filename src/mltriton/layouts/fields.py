"""The fields of an encoding's text: `{versionMajor = 2, warpsPerCTA = [4, 1], parent = #mma}` as Python values.

Level: ttg and warp. Takes what the parser read; gives typed fields. Raises `EncodingTextError`, to which the parser
adds the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Shape = tuple[int, ...]
Field = Any  # an integer, a boolean, an encoding, or a tuple of fields
Fields = Mapping[str, Field]


class EncodingTextError(ValueError):
    """Fields that do not make an encoding."""


def require(holds: bool, message: str) -> None:
    """Raise `EncodingTextError` unless it holds."""
    if not holds:
        raise EncodingTextError(message)


def integer(fields: Fields, name: str, default: int | None = None) -> int:
    """A number; `default` where the field is absent."""
    value = fields.get(name, default)
    require(isinstance(value, int) and not isinstance(value, bool), f"{name} must be an integer")
    return cast(int, value)


def power(fields: Fields, name: str, default: int | None = None) -> int:
    """A power of two."""
    value = integer(fields, name, default)
    require(is_power(value), f"{name} must be a power of two")
    return value


def boolean(fields: Fields, name: str, default: bool | None = None) -> bool:
    """`true` or `false`."""
    value = fields.get(name, default)
    require(isinstance(value, bool), f"{name} must be true or false")
    return cast(bool, value)


def shape(fields: Fields, name: str) -> Shape:
    """A list of numbers."""
    value = fields.get(name)
    numbers = isinstance(value, tuple) and all(isinstance(item, int) for item in cast("tuple[Any, ...]", value))
    require(numbers, f"{name} must be a list of integers")
    return cast(Shape, value)


def powers(fields: Fields, name: str) -> Shape:
    """A list of powers of two."""
    value = shape(fields, name)
    require(all(map(is_power, value)), f"{name} must be a list of powers of two")
    return value


def bases(fields: Fields, name: str) -> tuple[Shape, ...]:
    """A list of lists of numbers."""
    value = fields.get(name)
    lists = isinstance(value, tuple) and all(isinstance(item, tuple) for item in cast("tuple[Any, ...]", value))
    require(lists, f"{name} must be a list of bases, such as [[0, 1], [0, 2]]")
    return cast("tuple[Shape, ...]", value)


def check_ranks(order: Shape, *sizes: Shape) -> None:
    """`order` lists each dimension once; the other lists have a size for each."""
    require(sorted(order) == list(range(len(order))), "order must list every dimension once")
    fits = all(len(size) == len(order) and min(size, default=1) >= 1 for size in sizes)
    require(fits, f"every list must have {len(order)} sizes from 1 on, as order has dimensions")


def is_power(value: int) -> bool:
    """Whether a number is a power of two."""
    return value > 0 and value & (value - 1) == 0
