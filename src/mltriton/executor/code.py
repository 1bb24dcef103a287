"""Functions made ready to run: each operation becomes one Python function, once.

Level: all. Two kinds of table say how (`table.py` gathers them): an *operation* maker takes the operation and returns
`(warp, *operands) -> result` (None, one value, or a tuple of values); a *flow* maker, for operations with regions or
calls, also takes the `Code` and returns a generator function `(warp, frame) -> results`, which may stop at a barrier.
A block runs as a generator; every `yield` in it is a barrier reached. Guarantees: a block value has the shape and
dtype of its type; whatever goes wrong names the operation, its source line, the program and the warp.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import ExecutionError
from mltriton.executor.faults import Fault, InvalidOperation
from mltriton.executor.values import value_dtype
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import TensorType

if TYPE_CHECKING:
    from mltriton.executor.machine import Warp

Frame = dict[Value, Any]
# What runs an operation: called with the warp and the operands. Spelled out by arity, so that type checkers know what
# the parameters of lambdas are.
Handler = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[..., Any]
)
Run = Generator[Operation, None, list[Any]]  # yields the barriers it reaches; returns the values of the terminator
Maker = Callable[..., Handler]
Flow = Callable[["Warp", Frame], Run]
FlowMaker = Callable[..., Flow]
Table = Mapping[type[Operation], Maker]
FlowTable = Mapping[type[Operation], FlowMaker]


@dataclass(slots=True)
class Step:
    """One operation of a block, ready to run."""

    op: Operation
    call: Callable[..., Any]
    flows: bool
    operands: list[Value]
    results: Sequence[Value]
    types: list[tuple[tuple[int, ...], np.dtype[Any]] | None]
    only: Value | None  # the result, where there is one


class Code:
    """The prepared blocks of a module; `table` and `flow` say how each operation runs."""

    def __init__(self, module: Module, table: Table, flow: FlowTable) -> None:
        self.table = table
        self.flow = flow
        self.functions = {op.sym_name: op for op in module.body.block.ops if isinstance(op, tt.Func)}
        self._blocks: dict[Block, ReadyBlock] = {}

    def block(self, block: Block) -> ReadyBlock:
        """The prepared form of a block, made when it is first asked for."""
        if block not in self._blocks:
            self._blocks[block] = ReadyBlock(block, self)
        return self._blocks[block]

    def function(self, name: str) -> tt.Func:
        """The function of that name; ExecutionError where there is none."""
        if name not in self.functions:
            raise ExecutionError(f"the module has no function @{name}", found=", ".join(self.functions) or "none")
        return self.functions[name]

    def step(self, op: Operation) -> Step:
        """Prepare one operation."""
        flows = type(op) in self.flow
        if not flows and type(op) not in self.table:
            raise InvalidOperation(f"{op.name} does not run inside a block")
        call = self.flow[type(op)](op, self) if flows else self.table[type(op)](op)
        only = op.results[0] if len(op.results) == 1 else None
        return Step(op, call, flows, op.operands, op.results, [_form(result.type) for result in op.results], only)


class ReadyBlock:
    """A block whose operations are prepared. `run` gives the operands of its terminator."""

    def __init__(self, block: Block, code: Code) -> None:
        self.arguments = block.arguments
        self.steps = [code.step(op) for op in block.ops[:-1]]
        self.returned = list(block.terminator.operands)

    def run(self, warp: Warp, frame: Frame, arguments: Iterable[Any] = ()) -> Run:
        """Run the block with values for its arguments; a generator that stops at every barrier."""
        for name, value in zip(self.arguments, arguments, strict=True):
            frame[name] = value
        step = None
        try:
            for step in self.steps:
                if step.flows:
                    flow: Run = step.call(warp, frame)
                    frame.update(zip(step.results, (yield from flow), strict=True))
                    continue
                warp.op = step.op
                outcome = step.call(warp, *[frame[name] for name in step.operands])
                while outcome is BLOCKED:
                    yield step.op
                    warp.op = step.op
                    outcome = step.call(warp, *[frame[name] for name in step.operands])
                if outcome is STOP:
                    yield step.op
                elif step.only is not None:
                    form = step.types[0]
                    if form is not None and (outcome.shape != form[0] or outcome.dtype is not form[1]):
                        _check(step, 0, outcome)
                    frame[step.only] = outcome
                else:
                    for i, (name, value) in enumerate(zip(step.results, outcome or (), strict=True)):
                        _check(step, i, value)
                        frame[name] = value
        except Fault as fault:
            assert step is not None
            raise fault.within(step.op.name, warp.program, warp.id, step.op.loc) from fault.__cause__
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            assert step is not None
            broken = InvalidOperation(f"{step.op.name} cannot take its operands: {error}", found=_signature(step.op))
            raise broken.within(step.op.name, warp.program, warp.id, step.op.loc) from error
        return [frame[name] for name in self.returned]

    def finish(self, warp: Warp, frame: Frame, arguments: Iterable[Any] = ()) -> list[Any]:
        """Run a block that has no barrier."""
        return finish(self.run(warp, frame, arguments))


class Stop:
    """What an operation returns to let the other warps run until they stop, too."""


STOP = Stop()
BLOCKED = Stop()  # the same, and to be asked again then


def finish(run: Run) -> list[Any]:
    """Run a generator that must not stop, and return its values."""
    try:
        barrier = next(run)
    except StopIteration as end:
        return end.value
    raise InvalidOperation(f"{barrier.name} where warps cannot wait")


def _form(type: Any) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    return (type.shape, value_dtype(type.element)) if isinstance(type, TensorType) else None


def _check(step: Step, index: int, value: Any) -> None:
    form = step.types[index]
    if form is not None and (value.shape != form[0] or value.dtype != form[1]):
        raise InvalidOperation(
            f"{step.op.name} gives another block than its type says",
            expected=str(step.results[index].type),
            found=f"shape {value.shape}, {value.dtype}",
        )


def _signature(op: Operation) -> str:
    operands, results = (", ".join(str(value.type) for value in values) for values in (op.operands, op.results))
    return f"({operands}) -> ({results})"
