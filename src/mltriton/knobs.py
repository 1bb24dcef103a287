"""`mltriton.knobs`: what upstream lets programs set of the runtime, by upstream's names.

Level: user. There are the launch hooks, `knobs.runtime.launch_enter_hook` and `launch_exit_hook`: `add(hook)` and
`remove(hook)`, or assign a function (None: no hook). A hook gets an object whose `get()` gives a dict with the kernel's
`name` and what its `launch_metadata` adds. Everything else is set by environment variables (`runtime/config.py`); a
knob that there is not is an `OptionError` and an `AttributeError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mltriton.errors import OptionError, calling_place
from mltriton.runtime import hooks

__all__ = ["runtime"]

_CHAINS: Mapping[str, hooks.HookChain] = {"launch_enter_hook": hooks.enter, "launch_exit_hook": hooks.leave}


class UnknownKnobError(OptionError, AttributeError):
    """A knob that there is not: `getattr(knobs.runtime, name, default)` gives the default."""


class Runtime:
    """The knobs of launches."""

    def __getattr__(self, name: str) -> hooks.HookChain:
        if name.startswith("__"):
            raise AttributeError(name)
        return _CHAINS.get(name) or _unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        (_CHAINS.get(name) or _unknown(name)).set(value)


def _unknown(name: str) -> hooks.HookChain:
    raise UnknownKnobError(
        f"there is no knob runtime.{name}", expected=f"one of {', '.join(_CHAINS)}", place=calling_place()
    )


runtime = Runtime()
