"""How a rule says that an operation breaks it.

Level: all. Imports nothing of text or of verification, so that dialects may declare rules cheaply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mltriton.errors import VerificationError

if TYPE_CHECKING:
    from mltriton.ir.operation import Operation


class OperationError(VerificationError):
    """A `VerificationError` that still knows its operation; `ir/verifier.py` adds the text and the location."""

    def __init__(self, op: Operation, message: str, expected: str | None = None, found: str | None = None) -> None:
        super().__init__(f"{op.name}: {message}", expected=expected, found=found)
        self.op = op


def reject(op: Operation, message: str, *, expected: str | None = None, found: str | None = None) -> NoReturn:
    """Raise a `VerificationError` about `op`."""
    raise OperationError(op, message, expected, found)
