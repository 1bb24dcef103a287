"""`tl.core`: upstream's module of types and builtins. Here they all are in `mltriton.language`.

Gives every name of `mltriton.language`, and those that only upstream's `core` has.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar

import mltriton.language as language
from mltriton.language import aggregates, building
from mltriton.language.building import is_builtin as is_builtin
from mltriton.language.constants import constexpr as constexpr
from mltriton.language.constants import constexpr_type as constexpr_type
from mltriton.language.constants import unwrap
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

F = TypeVar("F", bound=Callable[..., Any])

slice = builtins.slice
base_value = tensor
base_type = dtype
CONSTEXPR_0 = constexpr(0)
TRITON_BUILTIN = "is_builtin"


def builtin(fn: F) -> F:
    """Mark a function that a kernel may call; unlike those of `mltriton.language` it gets constants as `constexpr`."""
    fn.__dict__["is_builtin"] = True
    return fn


extern = builtin
_unwrap_if_constexpr = building.builtin(unwrap)


def _unwrap_shape(shape: Any) -> list[Any]:  # pyright: ignore[reportUnusedFunction] - upstream's name
    """A shape with plain numbers for constants."""
    return [unwrap(size) for size in unwrap(shape)]


def __getattr__(name: str) -> Any:
    """A name of `mltriton.language`."""
    return aggregates.aggregate if name == "_aggregate" else getattr(language, name)


def __dir__() -> list[str]:
    """What there is."""
    return sorted({*globals(), *dir(language)})
