"""Loops: `for` over ranges and tuples, `while`.

Level: Python syntax tree -> `tt`. A range becomes an `scf.for`, a `while` (and a `for` with `break`) an `scf.while`;
tuples and `tl.static_range` are unrolled. The variables that a loop carries are those its body assigns and that had a
value before. Guarantees: each keeps its type from iteration to iteration (`LoopCarriedTypeError` otherwise, naming both
locations); variables that only the body has are gone after it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import scf
from mltriton.errors import ConstexprError, SyntaxNotSupportedError, TypeMismatchError
from mltriton.frontend import assignment, control_flow, names
from mltriton.frontend.carried import Carried, ConstantChangedError
from mltriton.frontend.flow import Body, Flow, running
from mltriton.frontend.values import describe, is_runtime, known_truth
from mltriton.ir.operation import Block, Region
from mltriton.language.building import is_debugging
from mltriton.language.casting import cast as cast_to
from mltriton.language.constants import constexpr, unwrap
from mltriton.language.iterators import static_range
from mltriton.language.semantic import to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import int32, int64

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame

# The counter of a `for` that is compiled as a `while`.
_COUNTER = "<counter>"
_COUNTER_IS_LOST = "is the counter of a loop, and has no value after it"


def for_(frame: Frame, stmt: ast.For) -> Flow:
    """`for target in range(...)`, `tl.range(...)`, `tl.static_range(...)` or a tuple."""
    if stmt.orelse:
        raise frame.error(SyntaxNotSupportedError, stmt.orelse[0], "a kernel cannot contain the else of a loop")
    found = frame.evaluate(stmt.iter)
    if isinstance(found, tuple | static_range):
        return _unrolled(frame, stmt, cast("Iterable[Any]", found))
    if not all(hasattr(found, part) for part in ("start", "end", "step")):
        hint = "for takes range, tl.range, tl.static_range or a tuple."
        raise frame.error(TypeMismatchError, stmt.iter, f"{describe(found)} cannot be iterated", hint=hint)
    if not isinstance(stmt.target, ast.Name):
        raise frame.error(SyntaxNotSupportedError, stmt.target, "the counter of a range must be a single variable")
    bounds = _bounds(frame, stmt, found)
    if ast.Break in names.exits(stmt.body):
        _for_with_break(frame, stmt, stmt.target, bounds)
    else:
        _for(frame, stmt, stmt.target, bounds, found)
    return Flow.NEXT


def _unrolled(frame: Frame, stmt: ast.For, items: Iterable[Any]) -> Flow:
    """A loop over values known when compiling: the body once for each."""
    frame.bodies.append(Body.UNROLLED)
    try:
        for item in items:
            assignment.bind_constant(frame, stmt.target, item)
            flow = frame.execute(stmt.body)
            if flow is Flow.RETURN:
                return flow
            if flow is Flow.BREAK:
                break
    finally:
        frame.bodies.pop()
    return Flow.NEXT


class _Bounds:
    """A counted loop in the form that `scf.for` has: counts up from `lower` by `step` while below `upper`.

    `value` is the user's counter.
    """

    def __init__(self, lower: tensor, upper: tensor, step: tensor, value: Callable[[tensor], tensor]) -> None:
        self.lower, self.upper, self.step, self.value = lower, upper, step, value


def _bounds(frame: Frame, stmt: ast.For, found: Any) -> _Bounds:
    step = unwrap(found.step)
    if isinstance(step, int) and step == 0:
        raise frame.error(ConstexprError, stmt.iter, "the step of a range must not be 0")
    is_descending = isinstance(step, int) and step < 0
    parts = [unwrap(found.start), unwrap(found.end), -step if is_descending else step]
    frame.mark(stmt.iter)
    scalars = [to_tensor(part) for part in parts]
    for scalar in scalars:
        if scalar.type.is_block() or not scalar.type.is_int():
            raise frame.error(
                TypeMismatchError, stmt.iter, "the bounds of a range must be integers", found=describe(scalar)
            )
    counter = _counter_type(scalars)
    start, end, stride = (cast_to(scalar, counter) for scalar in scalars)
    if is_descending:  # Counts up from the end; the user's counter runs against it.
        return _Bounds(end, start, stride, lambda count: start - (count - end))
    if is_runtime(step) and is_debugging():
        end = _where_it_counts_up(start, end, stride)
    return _Bounds(start, end, stride, lambda count: count)


def _where_it_counts_up(start: tensor, end: tensor, step: tensor) -> tensor:
    """The end of a range; one that would never end, or that counts down, is a failed assertion and has no iteration."""
    from mltriton.language.comparison import where  # Few kernels are debugged.
    from mltriton.language.debug import device_assert

    is_positive = step > 0
    device_assert(is_positive, "a range whose step is known only when the kernel runs must count up")
    return where(is_positive, end, start)


def _counter_type(scalars: Sequence[tensor]) -> Any:
    """int32, or int64 where a bound needs it: `scf.for` compares as signed."""
    needs_64 = any(s.type.bits > 32 or (s.type.bits == 32 and s.type.is_int_unsigned()) for s in scalars)
    return int64 if needs_64 else int32


def _for(frame: Frame, stmt: ast.For, target: ast.Name, bounds: _Bounds, found: Any) -> None:
    def attempt(carried: Carried) -> None:
        block = Block()
        frame.mark(target)
        counter = tensor(block.add_argument(bounds.lower.handle.type, target.id), bounds.lower.type)
        carried.enter(block)
        with frame.builder.inside(block):
            frame.scope.set(target.id, bounds.value(counter), frame.source.in_source(target))
            _body(frame, stmt.body)
            frame.mark(stmt)
            frame.builder.create(scf.Yield, carried.leave(), result_types=[])
        carried.drop_invariant()
        frame.mark(stmt)
        loop = frame.builder.create(
            scf.For,
            *(bound.handle for bound in (bounds.lower, bounds.upper, bounds.step)),
            carried.carried_handles,
            result_types=[handle.type for handle in carried.carried_handles],
            regions=[Region([block])],
            num_stages=unwrap(getattr(found, "num_stages", None)),
            unroll=unwrap(getattr(found, "loop_unroll_factor", None)),
            warp_specialize=getattr(found, "warp_specialize", False) or None,
        )
        carried.finish(loop.results)
        frame.scope.lose(target.id, _COUNTER_IS_LOST)

    _carry(frame, stmt, [name for name in names.assigned(stmt.body) if name != target.id], attempt)


def _for_with_break(frame: Frame, stmt: ast.For, target: ast.Name, bounds: _Bounds) -> None:
    """A counted loop with a `break`: a `while` that counts."""

    def is_below() -> Any:
        frame.mark(stmt.iter)
        return frame.scope[_COUNTER] < bounds.upper

    def body() -> None:
        count: tensor = frame.scope[_COUNTER]
        frame.scope.set(target.id, bounds.value(count), frame.source.in_source(target))
        _body(frame, stmt.body)
        frame.mark(stmt)
        frame.scope.set(_COUNTER, count + bounds.step)

    frame.scope.set(_COUNTER, bounds.lower)
    carried_names = [*names.assigned(stmt.body), _COUNTER]
    _while(frame, stmt, carried_names, is_below, body)
    for name in (_COUNTER, target.id):
        frame.scope.lose(name, _COUNTER_IS_LOST)


def while_(frame: Frame, stmt: ast.While) -> Flow:
    """`while condition`; a condition known when compiling must be false, or the body must break."""
    if stmt.orelse:
        raise frame.error(SyntaxNotSupportedError, stmt.orelse[0], "a kernel cannot contain the else of a loop")

    def condition() -> Any:
        found = frame.evaluate(stmt.test)
        found = getattr(found, "condition", found)  # tl.condition(...) carries hints.
        known = known_truth(found)
        if known and ast.Break not in names.exits(stmt.body):
            raise frame.error(ConstexprError, stmt.test, "the condition is always true, so that the loop never ends")
        return control_flow.truth(frame, stmt.test, found) if known is None else constexpr(known)

    _while(frame, stmt, list(names.assigned([stmt.test, *stmt.body])), condition, lambda: _body(frame, stmt.body))
    return Flow.NEXT


def _while(
    frame: Frame,
    stmt: ast.For | ast.While,
    carried_names: Sequence[str],
    condition: Callable[[], Any],
    body: Callable[[], None],
) -> None:
    """An `scf.while`: `condition` gives the condition and may assign, `body` compiles one iteration."""
    has_break, goes_on_name = ast.Break in names.exits(stmt.body), running(frame.bodies)
    if has_break:
        frame.scope.set(goes_on_name, constexpr(True), frame.source.in_source(stmt))

    def attempt(carried: Carried) -> None:
        before, after = Block(), Block()
        carried.enter(before)
        with frame.builder.inside(before):
            goes_on = _unless_broken(frame, stmt, condition) if has_break else condition()
            handle = assignment.stored(goes_on).handle
            frame.mark(stmt)
            frame.builder.create(scf.Condition, handle, carried.leave(), result_types=[])
        carried.enter(after)
        with frame.builder.inside(after):
            body()
            frame.mark(stmt)
            frame.builder.create(scf.Yield, carried.leave(), result_types=[])
        carried.drop_invariant()
        frame.mark(stmt)
        loop = frame.builder.create(
            scf.While,
            carried.carried_handles,
            result_types=[handle.type for handle in carried.carried_handles],
            regions=[Region([before]), Region([after])],
        )
        carried.finish(loop.results)

    _carry(frame, stmt, [*carried_names, goes_on_name] if has_break else carried_names, attempt)
    if has_break:
        frame.scope.lose(goes_on_name, "")


def _unless_broken(frame: Frame, stmt: ast.For | ast.While, condition: Callable[[], Any]) -> Any:
    """The condition, not evaluated after a break."""
    goes_on = frame.scope[running(frame.bodies)]
    if not is_runtime(goes_on):
        return condition()
    branches = control_flow.Branches(frame, stmt, goes_on)
    saved = frame.scope
    values = [branches.run(condition), branches.run(lambda: constexpr(False))]
    frame.scope = saved
    return branches.join({"": values})[""]


def _body(frame: Frame, stmts: Sequence[ast.stmt]) -> None:
    frame.bodies.append(Body.LOOP)
    try:
        frame.execute(stmts)
    finally:
        frame.bodies.pop()


def _carry(
    frame: Frame, stmt: ast.For | ast.While, assigned: Sequence[str], attempt: Callable[[Carried], None]
) -> None:
    """Compile a loop.

    Constants are taken to stay as they are; where the body changes one, the loop is compiled again with it as a tensor.
    """
    before = frame.scope
    bodies = list(frame.bodies)
    as_tensors: set[str] = set()
    while True:
        frame.scope = before.copy()
        carried = Carried(frame, stmt, assigned, as_tensors)
        try:
            attempt(carried)
            return
        except ConstantChangedError as change:
            carried.discard()
            frame.bodies[:] = bodies
            as_tensors.add(change.name)
