"""Functions of CUDA's and AMD's libraries by their symbols: `extern_elementwise`, as programs wrap them themselves.

Level: above `tt`. A symbol (`__nv_expf`, `__ocml_exp_f32`) means the function of that name in `extra/libdevice.py`, or
in `tl.math`: nothing of a library is loaded. Guarantees: a symbol without such a function is a `TargetError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from mltriton.errors import TargetError, TypeMismatchError
from mltriton.language.building import builtin
from mltriton.language.extra import libdevice
from mltriton.language.semantic import broadcast, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

__all__ = ["extern_elementwise"]

# Functions of CUDA's library whose symbols are not their names.
_SYMBOLS = {"fabs": "abs", "llabs": "abs", "fmin": "min", "fmax": "max", "llmin": "min", "llmax": "max"}


def by_symbol(symbol: str) -> Callable[..., tensor]:
    """The function of a library's symbol. Raises `TargetError`."""
    stem = symbol.removeprefix("__nv_").removeprefix("__ocml_").removesuffix("_f32").removesuffix("_f64")
    names = [stem, stem.removesuffix("f"), stem[1:], _SYMBOLS.get(stem.removesuffix("f"), "")]
    found = next((function for name in names if (function := getattr(libdevice, name, None)) is not None), None)
    if found is None:
        raise TargetError(f"there is no {symbol} here", hint="Write it with functions of tl and tl.math.")
    return found


@builtin
def extern_elementwise(
    lib_name: str,
    lib_path: str,
    args: Sequence[object],
    arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
    is_pure: bool,
    _semantic: object = None,
) -> tensor:
    """The function that `arg_type_symbol_dict` names for the dtypes of `args`, element by element."""
    values = [to_tensor(value) for value in args]
    kinds = tuple(value.dtype for value in values)
    if kinds not in arg_type_symbol_dict:
        known = " or ".join(", ".join(map(str, each)) for each in arg_type_symbol_dict)
        raise TypeMismatchError("the function is not known for these dtypes", expected=known, found=f"{kinds}")
    symbol, kind = arg_type_symbol_dict[kinds]
    whole: Any = reduce(lambda one, other: broadcast(one, other)[0], values)
    result: Any = by_symbol(symbol)(*(broadcast(value, whole)[0] for value in values))
    return result if result.dtype == kind else result.to(kind)
