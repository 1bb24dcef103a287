"""Python's own functions in a kernel: `range`, `len`, `min`, `max`, `int`, `isinstance`, ...

Level: Python syntax tree -> `tt`. On constants they mean what Python means; where a tensor takes part they are the
language's function of the same meaning, or a `ConstexprError` that names it. `PYTHON_FUNCTIONS` is the table.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from functools import reduce
from types import ModuleType
from typing import Any

from mltriton import language
from mltriton.errors import ConstexprError, OptionError, TypeMismatchError
from mltriton.frontend.debugging import print_, prints_in_python
from mltriton.frontend.environment import attribute_of_module
from mltriton.frontend.values import describe, is_runtime, is_tuple
from mltriton.language.constants import compute, constexpr, unwrap
from mltriton.runtime import arithmetic


class Range:
    """Python's `range` with values of the kernel, as `for` takes it."""

    def __init__(self, *arguments: Any) -> None:
        if not 1 <= len(arguments) <= 3:
            raise TypeMismatchError("range takes one to three arguments", found=str(len(arguments)))
        first, second = (constexpr(0), arguments[0]) if len(arguments) == 1 else arguments[:2]
        self.start, self.end = first, second
        self.step = arguments[2] if len(arguments) == 3 else constexpr(1)


def constant_range(found: Any) -> range | None:
    """The Python range of a range whose bounds are constants; None if they are not, or if it is no range."""
    bounds = [unwrap(getattr(found, part, None)) for part in ("start", "end", "step")]
    return range(*bounds) if all(isinstance(bound, int) for bound in bounds) else None


def static_items(found: Any = ()) -> tuple[Any, ...]:
    """What a value iterates over when compiling: the elements of a tuple, the numbers of a range of constants."""
    numbers = constant_range(found)
    if numbers is None and not is_tuple(found):
        raise ConstexprError("this must be a tuple, or a range known when compiling", found=describe(found))
    return tuple(found if numbers is None else numbers)


def _language(name: str) -> Callable[..., Any]:
    return getattr(language, name)


def _extremum(name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`: Python's on constants, the language's element by element where a tensor takes part."""

    def call_either(*arguments: Any) -> Any:
        first = arguments[0] if len(arguments) == 1 else arguments
        items = first if is_tuple(first) else arguments
        if is_runtime(items):
            return reduce(_language(name), items)
        numbers = [unwrap(item) for item in items]
        for number in numbers:
            _check_ordered(python.__name__, number)
        return compute(python, numbers)

    call_either.__name__ = python.__name__
    return call_either


def _check_ordered(name: str, number: Any) -> None:
    """What Python would choose then depends on the order of the arguments, so upstream refuses it as well."""
    is_negative_zero = isinstance(number, float) and str(number) == "-0.0"
    if is_negative_zero or (isinstance(number, float) and math.isnan(number)):
        what = "NaN values" if math.isnan(number) else "negative zero"
        raise ConstexprError(
            f"constexpr {name} does not support {what}",
            found=repr(number),
            hint=f"tl.{name}imum takes values that the kernel computes.",
        )


def _length(value: Any) -> int:
    if is_runtime(value) and not is_tuple(value):
        if not value.type.shape:
            raise TypeMismatchError("a scalar has no length", found=describe(value))
        return value.type.shape[0]
    return len(unwrap(value))


def _absolute(value: Any) -> Any:
    return _language("abs")(value) if is_runtime(value) else compute(abs, unwrap(value))


def _conversion(kind: Callable[..., Any], hint: str | None = None) -> Callable[..., Any]:
    """`int(x)` and the like: of constants only."""

    def convert(*arguments: Any) -> Any:
        if any(is_runtime(argument) for argument in arguments):
            raise ConstexprError(f"{kind.__name__} needs a constant", found=describe(arguments), hint=hint)
        return compute(kind, *[unwrap(argument) for argument in arguments])

    convert.__name__ = kind.__name__
    return convert


def _is_instance(value: Any, kinds: Any) -> bool:
    kinds = unwrap(kinds)
    return isinstance(value, kinds) or isinstance(unwrap(value), kinds)


def _get_attribute(value: Any, name: Any, *default: Any) -> Any:
    if isinstance(value, ModuleType) and not default:
        return attribute_of_module(value, unwrap(name))
    return getattr(value if is_runtime(value) else unwrap(value), unwrap(name), *default)


def _has_attribute(value: Any, name: Any) -> bool:
    return hasattr(value if is_runtime(value) else unwrap(value), unwrap(name))


def _cdiv(x: Any, y: Any) -> Any:
    """`triton.cdiv`, of constants or tensors."""
    return _language("cdiv")(x, y) if is_runtime((x, y)) else compute(arithmetic.cdiv, unwrap(x), unwrap(y))


def _print(*arguments: Any, **keywords: Any) -> None:
    """Python's own where Python runs the kernel, `tl.device_print` elsewhere."""
    if prints_in_python():
        return print_(*arguments, **keywords)
    if unknown := sorted(keywords.keys() - {"hex"}):
        raise OptionError(
            f"print has no {unknown[0]} in a kernel",
            hint="It is tl.device_print(prefix, *values), one line an element.",
        )
    return _language("device_print")(*arguments, **keywords)


def _enumerate(items: Any, start: Any = 0) -> tuple[Any, ...]:
    return tuple(enumerate(static_items(items), unwrap(start)))


def _zip(*parts: Any, strict: Any = False) -> tuple[Any, ...]:
    return tuple(zip(*map(static_items, parts), strict=bool(strict)))


# Python's own functions that mean something on the values of a kernel.
PYTHON_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    builtins.range: Range,
    builtins.len: _length,
    builtins.abs: _absolute,
    builtins.min: _extremum("minimum", min),
    builtins.max: _extremum("maximum", max),
    builtins.int: _conversion(int, "Use x.to(tl.int32)."),
    builtins.float: _conversion(float, "Use x.to(tl.float32)."),
    builtins.bool: _conversion(bool, "Use x.to(tl.int1)."),
    builtins.list: static_items,
    builtins.tuple: static_items,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.isinstance: _is_instance,
    builtins.getattr: _get_attribute,
    builtins.hasattr: _has_attribute,
    builtins.print: _print,
    arithmetic.cdiv: _cdiv,
    arithmetic.next_power_of_2: _conversion(arithmetic.next_power_of_2),
}
