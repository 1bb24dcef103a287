"""What a pass is: a small frozen dataclass with a `name`, whose fields are its options (`-p "name{option=value}"`)."""

from __future__ import annotations

from typing import ClassVar

from mltriton.ir.module import Module
from mltriton.records import record


@record(frozen=True)
class Pass:
    """Base of passes."""

    name: ClassVar[str] = ""

    def run(self, module: Module) -> Module:
        """Do the work; returns the module to go on with (the same one, changed, or a new one)."""
        raise NotImplementedError
