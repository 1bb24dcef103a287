"""Layouts as text: `#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>`.

Level: ttg and warp. Each class says its own fields (`base.LayoutAttr`); `FAMILIES` says where the classes of a dialect
are defined. Guarantees: what is written reads back as the same object. Fields that upstream writes and that mean one
block per cluster are read and dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from mltriton.layouts.base import KNOWN, LayoutAttr
from mltriton.layouts.fields import EncodingTextError as EncodingTextError
from mltriton.layouts.fields import Field as Field
from mltriton.layouts.fields import Fields, require, shape

# The modules that define the layouts of a dialect, imported when text names one of it.
FAMILIES = {
    "ttg": ("mltriton.layouts.encodings", "mltriton.layouts.nvidia", "mltriton.layouts.shared"),
    "ttig": ("mltriton.targets.xe.layouts.encodings",),
}


def encoding_text(encoding: LayoutAttr, nested: Callable[[LayoutAttr], str] | None = None) -> str:
    """The text of a layout; `nested` writes those inside it (with aliases, say)."""
    inner = nested or encoding_text
    fields = (f"{name} = {_field_text(value, inner)}" for name, value in encoding.fields().items())
    return f"#{encoding.mnemonic}<{{{', '.join(fields)}}}>"


def build_encoding(name: str, fields: Fields) -> LayoutAttr:
    """The layout of that name (`ttg.blocked`; upstream's older `triton_gpu.blocked` too) with the fields read.

    Raises `EncodingTextError`.
    """
    found = _class_of(name)
    if found is None:
        raise EncodingTextError(f"unknown encoding #{name} (known: {', '.join(KNOWN)})")
    return found.build(_without_clusters(fields))


def is_encoding_name(name: str) -> bool:
    """Whether `ttg.blocked` names a layout."""
    return _class_of(name) is not None


def _class_of(name: str) -> type[LayoutAttr] | None:
    name = name.replace("triton_gpu.", "ttg.")
    if name not in KNOWN:
        for module in FAMILIES.get(name.partition(".")[0], ()):
            import_module(module)
    return KNOWN.get(name)


def _without_clusters(fields: Fields) -> Fields:
    for name in ("CTAsPerCGA", "CTASplitNum"):
        alone = math.prod(shape({name: (), **fields}, name)) == 1
        require(alone, f"{name} must be 1 in every dimension: clusters of blocks are not supported")
    return {name: value for name, value in fields.items() if name not in ("CTAsPerCGA", "CTASplitNum", "CTAOrder")}


def _field_text(value: Field, nested: Callable[[LayoutAttr], str]) -> str:
    if isinstance(value, LayoutAttr):
        return nested(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_field_text(item, nested) for item in cast('tuple[Any, ...]', value))}]"
    return str(value).lower()
