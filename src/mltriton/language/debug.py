"""Printing and assertions, when the kernel is compiled (`static_*`) and when it runs (`device_*`)."""

from __future__ import annotations

import sys
from typing import cast as cast_type

from mltriton.dialects import tt
from mltriton.errors import AssertionFailed, ConstexprError, TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import bitwise_or, invert
from mltriton.language.building import builtin, current, is_debugging
from mltriton.language.casting import cast
from mltriton.language.semantic import broadcast, to_tensor
from mltriton.language.tensor import tensor

__all__ = ["device_assert", "device_print", "static_assert", "static_print"]


@builtin
def static_print(*values: object, sep: str = " ", end: str = "\n", file: object = None, flush: bool = False) -> None:
    """Print values when the kernel is compiled; a tensor shows as its type (`fp32[constexpr[16]]`), as upstream."""
    sys.stdout.write(sep.join(map(_shown, values)) + end)
    sys.stdout.flush()


def _shown(value: object) -> str:
    return (
        str([_shown(item) for item in cast_type("tuple[object, ...]", value)])
        if isinstance(value, tuple)
        else str(value)
    )


@builtin
def static_assert(cond: object, msg: object = "") -> None:
    """Stop the compilation with `msg` (`AssertionFailed`) if a condition known when compiling is false."""
    if isinstance(cond, tensor):
        raise ConstexprError(
            "tl.static_assert needs a condition known when compiling",
            expected="a constexpr",
            found=cond.type.name,
            hint="use tl.device_assert",
        )
    if not cond:
        raise AssertionFailed(f"static assertion failed: {msg}" if msg else "static assertion failed")


@builtin
def device_print(prefix: object, *args: object, hex: bool = False) -> None:
    """Print `prefix` and the elements of `args` from every program, with `hex` integers in base 16: a line for each, in
    upstream's form: `pid (0, 0, 0) idx ( 3) x: 1.000000`.
    """
    if not isinstance(prefix, str):
        raise ConstexprError(
            "tl.device_print needs a text first",
            expected="a string",
            found=repr(prefix),
            hint='tl.device_print("x", x)',
        )
    values = [_printable(to_tensor(arg)) for arg in args]
    text = f"{prefix.removesuffix(' ').removesuffix(':')}: " if values else prefix
    if len(text) > 2 and not text.startswith(" "):
        text = f" {text}"
    current().create(
        tt.Print, [value.handle for value in values], prefix=text, hex=True if hex else None, result_types=[]
    )


def _printable(value: tensor) -> tensor:
    """An unsigned integer in the next wider signed dtype: the IR's print reads integers as signed."""
    unsigned = value.dtype.is_int_unsigned() and 1 < value.dtype.bits < 64
    return cast(value, types.get_int_dtype(2 * value.dtype.bits, signed=True)) if unsigned else value


@builtin
def device_assert(cond: object, msg: object = "", mask: object = None) -> None:
    """Stop the launch with `msg` if `cond` is false for an element (where `mask` is true).

    Checked in kernels compiled with `debug=True` or under `TRITON_DEBUG=1`; anywhere else it does nothing.
    """
    condition = to_tensor(cond)
    if not condition.dtype.is_bool():
        raise TypeMismatchError(
            "tl.device_assert needs a condition",
            expected="int1",
            found=condition.type.name,
            hint="compare first: x < n",
        )
    if not is_debugging():
        return
    if mask is not None:
        condition, off = broadcast(condition, invert(cast(to_tensor(mask), types.int1)))
        condition = bitwise_or(condition, off)
    current().create(tt.Assert, condition.handle, None, message=str(msg), result_types=[])
