"""`ttng` on the machine: products of several warps that go on by themselves.

Level: ttg to intrinsic. A product reads its operands when it starts; what they lie in may not be written, and its
result not be taken, until it was waited for: either raises `Unfinished`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, cast

from mltriton.dialects import ttng
from mltriton.executor.code import Handler, Table
from mltriton.executor.dialects import tensor_copies, tt_dot
from mltriton.executor.faults import Unfinished
from mltriton.executor.machine import Warp
from mltriton.executor.shared import SharedView
from mltriton.executor.values import Array
from mltriton.ir.operation import Operation
from mltriton.ir.types import MemDescType


class InFlight:
    """The result of a product under way, which stands for its values once it is done."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.shape = values.shape
        self.dtype = values.dtype
        self.done = False

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._taken()

    def __array_ufunc__(self, *_: Any, **__: Any) -> NoReturn:
        self._taken()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._taken()

    def _taken(self) -> NoReturn:
        raise Unfinished("a result is taken of a product for which nobody has waited")


def start(op: ttng.WarpGroupDot) -> Handler:
    """c + a b, which goes on."""
    multiply = cast(Callable[..., Array], tt_dot.dot(op))
    is_async, ends = op.is_async, not op.continues
    in_memory = [isinstance(operand.type, MemDescType) for operand in (op.a, op.b)]

    def call(warp: Warp, a: Any, b: Any, c: Any) -> Any:
        made = multiply(warp, a, b, c.values if isinstance(c, InFlight) else c)
        if not is_async:
            return made
        result, views = InFlight(made), [v for v, there in zip((a, b), in_memory, strict=True) if there]
        for view in views:
            cast(SharedView, view).hold(1)

        def complete() -> None:
            result.done = True
            for view in views:
                cast(SharedView, view).hold(-1)
                cast(SharedView, view).kept(warp.id)

        warp.products.start(complete)
        if ends:
            warp.products.commit()
        return result

    return call


def wait(op: ttng.WarpGroupDotWait) -> Handler:
    """Let the oldest products end."""
    most_left, single = op.pendings, len(op.results) == 1

    def call(warp: Warp, *values: Any) -> Any:
        warp.products.wait(most_left)
        results = tuple(v.values if isinstance(v, InFlight) and v.done else v for v in values)
        return results[0] if single else results

    return call


def fence(op: Operation) -> Handler:
    """The engine that copies blocks sees what this warp has written, too."""

    def call(warp: Warp) -> None:
        warp.instance.shared.fence(warp.id)

    return call


def nothing(op: Operation) -> Handler:
    """Launches follow each other."""

    def call(warp: Warp) -> None:
        return None

    return call


TABLE: Table = {
    ttng.GridDependencyWait: nothing,
    ttng.LaunchDependents: nothing,
    ttng.WarpGroupDot: start,
    ttng.WarpGroupDotWait: wait,
    ttng.FenceAsyncShared: fence,
    **tensor_copies.TABLE,
}
