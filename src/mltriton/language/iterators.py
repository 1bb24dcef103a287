"""Loops: what `for i in tl.range(...)` and `for i in tl.static_range(...)` go over, and `while tl.condition(...)`.

These objects only hold their arguments: the front end makes the loop. Imports nothing of the compiler.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any, Self

from mltriton.errors import CompilationError, ConstexprError
from mltriton.language.constants import constexpr, unwrap

__all__ = ["condition", "range", "static_range"]


class _Bounds:
    """start, stop and step as Python's range takes them."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        self.start: Any = 0 if arg2 is None else arg1
        self.end: Any = arg1 if arg2 is None else arg2
        self.step: Any = 1 if step is None else step

    @property
    def stop(self) -> Any:
        """The bound, which the loop does not reach."""
        return self.end


class static_range(_Bounds):  # noqa: N801 - upstream's name
    """A loop that is unrolled when compiling; the bounds are constexpr and so is the counter."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        super().__init__(arg1, arg2, step)
        for name in ("start", "end", "step"):
            value = unwrap(getattr(self, name))
            if not isinstance(value, int):
                raise ConstexprError(
                    f"the {name} of tl.static_range must be known when compiling",
                    expected="an int or a tl.constexpr",
                    found=repr(value),
                    hint="use tl.range for a loop that runs when the kernel does",
                )
            setattr(self, name, value)

    def __iter__(self) -> Iterator[constexpr]:
        return (constexpr(i) for i in builtins.range(self.start, self.end, self.step))


class range(_Bounds):  # noqa: N801 - upstream's name
    """A loop that runs when the kernel does, with hints.

    Software pipelining stages, unrolling, and those of GPUs, which other targets ignore.
    """

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        super().__init__(arg1, arg2, step)
        self.num_stages: int | None = unwrap(num_stages)
        self.loop_unroll_factor: int | None = unwrap(loop_unroll_factor)
        self.disallow_acc_multi_buffer = bool(disallow_acc_multi_buffer)
        self.flatten = bool(flatten)
        self.warp_specialize = bool(warp_specialize)
        self.disable_licm = bool(disable_licm)

    def __iter__(self) -> Iterator[Any]:
        raise CompilationError("tl.range was used outside a kernel's `for`", hint="iterate over Python's range there")


class condition:  # noqa: N801 - upstream's name
    """`while tl.condition(c, disable_licm=...)`: a condition with a hint."""

    def __init__(self, arg1: Any, disable_licm: bool = False) -> None:
        self.condition: Any = arg1
        self.disable_licm = bool(disable_licm)

    def __iter__(self) -> Self:
        raise CompilationError("tl.condition belongs in a `while`")
