"""Kernels that run in the reference executor: what `@jit` makes where `MLTRITON_INTERPRET` is set.

Level: runtime. Guarantees: launched, specialised and checked like other kernels; only the target is another one, so
that an access out of bounds is an error at the kernel's line instead of a crash.
"""

from __future__ import annotations

from mltriton.errors import InterpreterError as InterpreterError
from mltriton.runtime.interface import KernelInterface as KernelInterface
from mltriton.runtime.jit import JITFunction


class InterpretedFunction(JITFunction):
    """A kernel whose launches run in numpy."""

    default_target = "interpreter"
