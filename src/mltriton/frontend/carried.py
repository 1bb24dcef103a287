"""The variables that a loop carries from one iteration to the next.

Level: Python syntax tree -> `tt`. Used by `loops.py`: `enter` a region (block arguments become the variables' values),
compile it, `leave` it (the values to hand on), and `finish` with the results of the loop. Guarantees: what is handed on
has the types of what came in; a variable that every iteration leaves as it is becomes no argument of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mltriton.errors import LoopCarriedTypeError, NameNotFoundError
from mltriton.frontend.assignment import set_hinted, stored
from mltriton.frontend.values import describe, is_number, is_runtime, is_same_constant, is_same_type, is_tuple, rebuilt
from mltriton.ir.operation import Block, BlockArgument, Value
from mltriton.ir.promises import attach
from mltriton.language.building import deferred
from mltriton.language.tensor import flatten, unflatten

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame
    from mltriton.frontend.scope import Scope


class ConstantChangedError(Exception):
    """The loop changes the number that the variable `name` holds: it must be carried as a tensor."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Carried:
    """The carried variables of one loop: those of `assigned` that have a value before it.

    `inits` are their values before the loop, with the numbers of `as_tensors` made tensors; `handles` the IR values
    those consist of.
    """

    def __init__(self, frame: Frame, stmt: ast.stmt, assigned: Sequence[str], as_tensors: set[str]) -> None:
        self.frame = frame
        self.stmt = stmt
        self._before: Scope = frame.scope
        self._entered: list[tuple[Block, list[BlockArgument]]] = []
        self._lost: dict[str, str] = {}
        frame.mark(stmt)
        names = [name for name in dict.fromkeys(assigned) if name in frame.scope]
        self.inits: dict[str, Any] = {
            name: stored(frame.scope[name]) if name in as_tensors else frame.scope[name] for name in names
        }
        self.handles: list[Value] = flatten(tuple(self.inits.values()))
        self._is_invariant = [False] * len(self.handles)

    def enter(self, block: Block) -> None:
        """Add the variables to the arguments of `block`, and give them their values there."""
        inner, scope = self.frame.scope, self._before.copy()
        for name in inner:
            if name not in scope:
                scope.lose(name, "gets its value in the condition of the loop: give it one before the loop too")
        arguments = [block.add_argument(handle.type) for handle in self.handles]
        self._entered.append((block, arguments))
        self.frame.scope = scope
        with self.frame.builder.inside(block):
            values = self._apart(arguments)
        for name, value in values.items():
            set_hinted(self.frame, name, value)

    def _apart(self, handles: Sequence[Value]) -> dict[str, Any]:
        """The variables' values made of IR values, by name."""
        return dict(zip(self.inits, unflatten(tuple(self.inits.values()), handles), strict=True))

    def leave(self) -> list[Value]:
        """The values to hand on at the end of the region that was entered last."""
        scope = self.frame.scope
        _, arguments = self._entered[-1]
        handed: list[Value] = []
        for name, init in self.inits.items():
            own = arguments[len(handed) : len(handed) + len(flatten(init))]
            handed.extend(flatten(self._checked(name, init, scope[name])) if name in scope else self._lose(name, own))
        return handed

    def _checked(self, name: str, init: Any, value: Any) -> Any:
        """A variable's value after the body in the form it had before.

        Raises `LoopCarriedTypeError`, `ConstantChangedError`.
        """
        if is_same_constant(init, value):
            return value
        if is_tuple(init) and is_tuple(value) and len(init) == len(value):
            return rebuilt(value, [self._checked(name, a, b) for a, b in zip(init, value, strict=True)])
        if is_number(init) and (is_number(value) or is_runtime(value)):
            raise ConstantChangedError(name)
        if is_runtime(init) and is_number(value):
            self.frame.mark(self.stmt)
            value = stored(value)
        if is_same_type(init, value):
            return value
        raise self._mismatch(name, init, value)

    def _mismatch(self, name: str, init: Any, value: Any) -> LoopCarriedTypeError:
        inner = self.frame.scope
        error = LoopCarriedTypeError(
            f"the loop in line {self.stmt.lineno} changes the type of {name}",
            expected=f"{describe(init)}, which it has before the loop{self._before.where(name)}",
            found=f"{describe(value)}{inner.where(name)}",
            hint="Give it its type before the loop, or convert the new value with .to(...).",
            upstream=f"Loop-carried variable {name} has initial type {describe(init)} but is re-assigned to "
            f"{describe(value)} in loop! Please make sure that the type stays consistent.",
        )
        location = inner.locations.get(name)
        return error.at(location, self.frame.source.line(location)) if location else error

    def _lose(self, name: str, arguments: Sequence[BlockArgument]) -> Sequence[Value]:
        """A variable without a value at the end of the body: fine if no iteration starts by reading it."""
        why = self._lost[name] = self.frame.scope.lost.get(name, "has no value at the end of the loop")
        if any(argument.uses for argument in arguments):
            raise self.frame.error(NameNotFoundError, self.stmt, f"in the next iteration {name} {why}")
        return arguments

    def drop_invariant(self) -> None:
        """Take out the arguments that every region hands on as they are.

        Called when the regions have their terminators.
        """
        count = len(self.handles)
        handed = [block.terminator.operands[-count:] for block, _ in self._entered] if count else []
        self._is_invariant = [
            all(values[i] is arguments[i] for values, (_, arguments) in zip(handed, self._entered, strict=True))
            for i in range(count)
        ]
        for block, arguments in self._entered:
            for init, argument, is_invariant in zip(self.handles, arguments, self._is_invariant, strict=True):
                if is_invariant:
                    argument.replace_by(init)
                    attach(init, deferred().pop(argument, {}), deferred())
            self._shrink(block, arguments)

    def _shrink(self, block: Block, arguments: Sequence[BlockArgument]) -> None:
        dropped = {id(a) for a, is_invariant in zip(arguments, self._is_invariant, strict=True) if is_invariant}
        block.arguments = [argument for argument in block.arguments if id(argument) not in dropped]
        for index, argument in enumerate(block.arguments):
            argument.index = index
        terminator = block.terminator
        leading = len(terminator.operands) - len(arguments)
        handed = zip(terminator.operands[leading:], self._is_invariant, strict=True)
        kept = [value for value, is_invariant in handed if not is_invariant]
        segments = (len(kept),) if leading == 0 else (leading, len(kept))
        terminator.set_operands([*terminator.operands[:leading], *kept], segments)

    @property
    def carried_handles(self) -> list[Value]:
        """The initial values of the arguments that are left."""
        return [h for h, is_invariant in zip(self.handles, self._is_invariant, strict=True) if not is_invariant]

    def finish(self, results: Sequence[Value]) -> None:
        """Give the variables the results of the loop, and lose those that only the body had."""
        inner, scope = self.frame.scope, self._before.copy()
        for name in [*inner, *inner.lost]:
            if name not in scope:
                why = f"has a value only inside the loop in line {self.stmt.lineno}{inner.where(name)}"
                scope.lose(name, inner.lost.get(name, why))
        self.frame.scope = scope
        fresh = iter(results)
        both = zip(self.handles, self._is_invariant, strict=True)
        merged = [handle if is_invariant else next(fresh) for handle, is_invariant in both]
        for name, value in self._apart(merged).items():
            if name in self._lost:
                scope.lose(name, self._lost[name])
            else:
                set_hinted(self.frame, name, value, inner.locations.get(name))

    def discard(self) -> None:
        """Forget the regions compiled so far."""
        for block, _ in self._entered:
            for op in block.ops:
                op.drop_operands()
