"""`triton._utils`, and small functions that upstream has elsewhere.

Level: user. Paths lead through tuples and lists: `(0, 2)` is the third item of the first.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from mltriton.frontend.signature import SCALARS
from mltriton.language.types import MAX_BLOCK_ELEMENTS as TRITON_MAX_TENSOR_NUMEL
from mltriton.language.types import by_name, checked_shape
from mltriton.runtime.specialization import SIGNATURE_NAMES

__all__ = ["TRITON_MAX_TENSOR_NUMEL", "type_canonicalisation_dict"]

F = TypeVar("F", bound=Callable[..., Any])
Path = tuple[int, ...]

type_canonicalisation_dict: dict[str, str] = dict(SIGNATURE_NAMES) | dict(SCALARS)


def must_use_result(fn: Any, reason: str | bool = True) -> Any:
    """Mark a function whose value a kernel must use; with a text, `@must_use_result("why")`, the error says it, too."""
    if isinstance(fn, str):
        return partial(must_use_result, reason=fn)
    fn._must_use_result = reason
    return fn


def is_iterable(value: Any) -> bool:
    """Whether a path may lead into a value."""
    return isinstance(value, list | tuple)


def find_paths_if(values: Any, predicate: Callable[[Path, Any], bool]) -> list[Path]:
    """The paths of all items (not of containers) for which `predicate(path, item)` holds."""
    return [path for path, item in _items(values, ()) if predicate(path, item)]


def _items(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if is_iterable(value):
        for position, item in enumerate(cast("Sequence[Any]", value)):
            yield from _items(item, (*path, position))
    else:
        yield path, value


def get_iterable_path(values: Any, path: Sequence[int]) -> Any:
    """The item at a path."""
    for position in path:
        values = values[position]
    return values


def set_iterable_path(values: Any, path: Sequence[int], item: Any) -> None:
    """Put an item at a path."""
    get_iterable_path(values, path[:-1])[path[-1]] = item


def apply_with_path(values: Any, fn: Callable[[Path, Any], object]) -> None:
    """Call `fn(path, item)` for all items."""
    for path, item in _items(values, ()):
        fn(path, item)


def is_namedtuple(kind: Any) -> bool:
    """Whether a class is that of tuples with names."""
    return isinstance(kind, type) and issubclass(kind, tuple) and "_fields" in dir(cast("type", kind))


def canonicalize_dtype(dtype: Any) -> str:
    """The signature's name of a dtype: `torch.float32` is fp32."""
    name = str(dtype).rpartition(".")[2]
    return type_canonicalisation_dict.get(name, name)


def canonicalize_ptr_dtype(dtype: Any, is_const: bool) -> str:
    """The signature's name of a pointer to a dtype."""
    return f"*{'k' * bool(is_const)}{canonicalize_dtype(dtype)}"


def get_primitive_bitwidth(dtype: str) -> int:
    """The bits of an element, by its signature's name."""
    return by_name(dtype).primitive_bitwidth


def is_power_of_two(number: int) -> bool:
    """Whether a number is one."""
    return number > 0 and number & (number - 1) == 0


def validate_block_shape(shape: Sequence[int]) -> int:
    """The number of elements of a block of that shape; an error where there is no such block."""
    return math.prod(checked_shape(shape))


def _base32(key: str) -> str:  # pyright: ignore[reportUnusedFunction] - upstream's name
    """A hexadecimal key by 32 letters, as upstream names folders of its cache."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")
