"""verify-encodings: ttg to intrinsic, changes nothing.

Takes a program whose passes say that its encodings fit; raises `LayoutError` where those of one operation do not: such
a program would run and give wrong results. It is the part of the verifier that every launch can afford (a walk with
one rule for each class of operation, `passes/agreement.py`), so it ends the passes of each level that has encodings.
"""

from __future__ import annotations

from mltriton.errors import LayoutError, VerificationError
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.passes.levels import verify_encodings


class VerifyEncodings(Pass):
    """Stop where the encodings of an operation do not fit each other."""

    name = "verify-encodings"

    def run(self, module: Module) -> Module:
        try:
            verify_encodings(module)
        except VerificationError as error:
            found = LayoutError(error.message, expected=error.expected, found=error.found, hint=error.hint)
            raise found.at(error.location) from error
        return module
