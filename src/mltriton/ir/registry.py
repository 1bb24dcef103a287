"""What dialects tell the IR: operations by name, and custom syntax. Level: all.

The tables are the dialects' (`dialects/registry.py`, `region_syntax.py`), which are loaded when first asked: the
IR itself knows none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mltriton.ir.operation import Operation
    from mltriton.ir.syntax_elements import Element


def find_operation(name: str) -> type[Operation] | None:
    """The class of that name, None where there is none."""
    return import_module("mltriton.dialects.registry").find_operation(name)


@cache
def custom_elements() -> Mapping[str, Element]:
    """The elements that formats name `custom<...>`."""
    return import_module("mltriton.dialects.region_syntax").CUSTOM
