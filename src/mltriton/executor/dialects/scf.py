"""`scf` and calls: generators that run the regions of an operation.

Level: tt to intrinsic. A barrier inside a region stops the warp in the middle of the loop; it goes on when every warp
has reached it.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import scf, tt
from mltriton.executor.code import Code, FlowTable, Frame, Run
from mltriton.executor.faults import InvalidOperation
from mltriton.executor.machine import Warp
from mltriton.executor.values import value_dtype
from mltriton.ir.attributes import SymbolRefAttr

Flow = Callable[[Warp, Frame], Run]


def for_loop(op: scf.For, code: Code) -> Flow:
    """Count from the lower bound up to, not including, the upper."""
    body, number = code.block(op.body.block), value_dtype(op.counter.type).type

    def run(warp: Warp, frame: Frame) -> Run:
        step = int(frame[op.step])
        if step <= 0:
            raise InvalidOperation(f"the step of a loop is {step}", expected="a positive step")
        values = [frame[name] for name in op.inits]
        for i in range(int(frame[op.lower]), int(frame[op.upper]), step):
            values = yield from body.run(warp, frame, [number(i), *values])
        return values

    return run


def if_else(op: scf.If, code: Code) -> Flow:
    """Run one of two blocks; a missing `else` gives nothing."""
    then = code.block(op.then.block)
    otherwise = code.block(op.otherwise.block) if op.otherwise.blocks and op.otherwise.block.ops else None

    def run(warp: Warp, frame: Frame) -> Run:
        chosen = then if frame[op.condition] else otherwise
        if chosen is None:
            return []
        return (yield from chosen.run(warp, frame))

    return run


def while_loop(op: scf.While, code: Code) -> Flow:
    """Run `before`; while its condition holds, run `after` with the values it passes on."""
    before, after = code.block(op.before.block), code.block(op.after.block)

    def run(warp: Warp, frame: Frame) -> Run:
        values = [frame[name] for name in op.inits]
        while True:
            condition, *passed = yield from before.run(warp, frame, values)
            if not condition:
                return passed
            values = yield from after.run(warp, frame, passed)

    return run


def call(op: tt.Call, code: Code) -> Flow:
    """Run another function of the module with a frame of its own."""
    callee = op.callee
    assert isinstance(callee, SymbolRefAttr)

    def run(warp: Warp, frame: Frame) -> Run:
        body = code.block(code.function(callee.name).body.block)
        return (yield from body.run(warp, {}, [frame[name] for name in op.arguments]))

    return run


FLOW: FlowTable = {scf.For: for_loop, scf.If: if_else, scf.While: while_loop, tt.Call: call}
