"""`tl.core`: upstream's module of types and builtins. Here they all are in `mltriton.language`.

Gives every name of `mltriton.language`, and those that only upstream's `core` has.
"""

from __future__ import annotations

import builtins
from typing import Any

import mltriton.language as language
from mltriton.language import aggregates
from mltriton.language.building import builtin as builtin
from mltriton.language.building import builtin as extern  # pyright: ignore[reportUnusedImport] # noqa: F401
from mltriton.language.building import is_builtin as is_builtin
from mltriton.language.constants import constexpr as constexpr
from mltriton.language.constants import constexpr_type as constexpr_type
from mltriton.language.constants import unwrap
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

slice = builtins.slice
base_value = tensor
base_type = dtype
CONSTEXPR_0 = constexpr(0)
TRITON_BUILTIN = "is_builtin"
_unwrap_if_constexpr = builtin(unwrap)


def _unwrap_shape(shape: Any) -> list[Any]:  # pyright: ignore[reportUnusedFunction] - upstream's name
    """A shape with plain numbers for constants."""
    return [unwrap(size) for size in unwrap(shape)]


def __getattr__(name: str) -> Any:
    """A name of `mltriton.language`."""
    if name in ("_aggregate", "aggregate_replace"):
        return getattr(aggregates, name.removeprefix("_"))
    return getattr(language, name)


def __dir__() -> list[str]:
    """What there is."""
    return sorted({*globals(), *dir(language)})
