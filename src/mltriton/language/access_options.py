"""What programs may say of accesses to memory beside what is accessed: by upstream's words, and the IR's keywords."""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.errors import OptionError

LOAD_CACHE = {"": None, ".ca": "ca", ".cg": "cg", ".cs": "cs", ".cv": "cv"}
STORE_CACHE = {"": None, ".wb": "wb", ".cg": "cg", ".cs": "cs", ".wt": "wt"}
EVICTION = {"": None, "evict_normal": None, "evict_first": "evict_first", "evict_last": "evict_last"}
PADDING = {"": None, "zero": "pad_zero", "nan": "pad_nan"}
# How upstream calls options, by a word of ours.
_UPSTREAM = {
    "cache": "Cache modifier",
    "eviction": "Eviction policy",
    "padding": "Padding option",
    "sem": "Memory semantic",
    "scope": "Memory semantic",
}


def option(table: Mapping[str, str | None], value: object, name: str) -> str | None:
    """The IR's keyword for an option; `OptionError` for one that is not in the table."""
    value = "" if value is None else value
    if not isinstance(value, str) or value not in table:
        known = ", ".join(map(repr, table))
        kind = next((words for word, words in _UPSTREAM.items() if word in name), "Option")
        raise OptionError(
            f"unknown {name}", expected=f"one of {known}", found=repr(value), upstream=f"{kind} {value} not supported"
        )
    return table[value]
