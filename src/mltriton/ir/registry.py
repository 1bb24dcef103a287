"""What dialects tell the IR: operations by name, and custom syntax. Level: all.

The table is filled by the dialects (`dialects/registry.py`), which are loaded when somebody first asks: the IR itself
knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mltriton.ir.operation import Operation
    from mltriton.ir.syntax_elements import Element


class Known(NamedTuple):
    """`find(name)`: the class of an operation, None where there is none. `elements`: those that formats name
    `custom<...>`.
    """

    find: Callable[[str], type[Operation] | None]
    elements: Mapping[str, Element]


@cache
def dialects() -> Known:
    """What the dialects have told."""
    return import_module("mltriton.dialects.registry").KNOWN
