"""Passes and the pass manager.

Level: all. A pass is a small frozen dataclass with a `name`; its fields are its options (`-p "pass-name{option=value},other"`). `run` changes the module in place
or returns a new one. The manager times passes, verifies after each when asked, shows the program after each when asked, and turns a failure inside a pass
into a `PassError` with a saved reproducer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mltriton.dialects.builtin import Module


@dataclass(frozen=True)
class Pass:
    """Base of passes."""

    name: ClassVar[str] = ""

    def run(self, module: Module) -> Module:
        """Do the work; returns the module to go on with (the same one, changed, or a new one)."""
        raise NotImplementedError
