"""What identifies the arguments of a compilation in every process: their part of the cache's key."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

from mltriton.frontend.dependencies import dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Entry
from mltriton.language.types import dtype


def entry_key(entry: Entry) -> object:
    """What identifies an entry in every process, as `runtime.cache.digest` takes it."""
    return str(entry) if isinstance(entry, Argument) else ("constant", constant_key(entry.value))


def constant_key(value: Any) -> object:
    """What identifies a constant in every process.

    An object that nothing identifies gets a key that no other process has.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return (type(value).__name__, value)
    if isinstance(value, tuple):
        return tuple(constant_key(item) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, dtype):
        return ("dtype", value.name)
    if isinstance(value, LanguageFunction):
        return ("function", dependencies(value).parts)
    if isinstance(value, Enum):
        return ("enum", type(value).__qualname__, value.name)
    return ("object", os.urandom(16))


def functions_in(constants: Iterable[Any]) -> list[LanguageFunction]:
    """The functions among constants, also inside tuples."""
    flat = (
        functions_in(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else [value] for value in constants
    )
    return [item for items in flat for item in items if isinstance(item, LanguageFunction)]
