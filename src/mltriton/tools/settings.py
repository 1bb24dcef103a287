"""`mltriton settings`: the environment variables that are read, what each does, and what they say now.

Level: user. The list is the one that the compiler and the runtime read: `runtime/config.py`.
"""

from __future__ import annotations

from textwrap import indent, wrap
from typing import cast

from mltriton.runtime.config import SETTINGS


def list_settings() -> str:
    """A paragraph for each variable. Raises `ConfigError` for one whose text is no value."""
    return "\n".join(
        "\n".join([f"{setting.name} (now: {_text(setting.get())})", indent("\n".join(wrap(setting.doc, 100)), "    ")])
        for setting in SETTINGS
    )


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(sorted(cast("frozenset[str]", value))) or "unset"
    return "unset" if value is None else str(value)
