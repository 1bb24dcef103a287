"""inline: calls become the called function's operations.

Level: tt. Takes modules whose functions may call each other, not recursively; changes them in place. Guarantees: no
`tt.call` is left, private functions are gone, and an inlined operation's location says where it was called from.
"""

from __future__ import annotations

from dataclasses import field

from mltriton.dialects import tt
from mltriton.errors import PassError
from mltriton.ir.attributes import SymbolRefAttr
from mltriton.ir.location import CallSiteLoc, Location
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.records import record


class Inline(Pass):
    """Inline every call and remove private functions."""

    name = "inline"

    def run(self, module: Module) -> Module:
        functions = {op.sym_name: op for op in module.body.block.ops if isinstance(op, tt.Func)}
        inliner = _Inliner(functions)
        for function in functions.values():
            inliner.clean(function)
        module.body.block.ops[:] = [
            op for op in module.body.block.ops if not (isinstance(op, tt.Func) and op.sym_visibility == "private")
        ]
        return module


@record()
class _Inliner:
    """Inlines into callees first; `active` are the functions whose calls are being inlined."""

    functions: dict[str, tt.Func]
    active: list[str] = field(default_factory=list[str])
    done: set[str] = field(default_factory=set[str])

    def clean(self, function: tt.Func) -> None:
        """Leave no call in a function."""
        name = function.sym_name
        if name in self.active:
            raise PassError(f"@{name} calls itself", found=" -> ".join([*self.active, name]))
        if name not in self.done:
            self.active.append(name)
            self._block(function.body.block)
            self.active.pop()
            self.done.add(name)

    def _block(self, block: Block) -> None:
        ops: list[Operation] = []
        for op in block.ops:
            for inner in op.blocks:
                self._block(inner)
            if isinstance(op, tt.Call):
                ops.extend(self._body(op, block))
            else:
                ops.append(op)
        block.ops[:] = ops

    def _body(self, call: tt.Call, block: Block) -> list[Operation]:
        """A copy of the called function's operations; what it returns stands for the results of the call."""
        callee = call.callee
        function = self.functions.get(callee.name) if isinstance(callee, SymbolRefAttr) else None
        if function is None:
            raise PassError(f"a call of a function that the module does not have: {callee}")
        self.clean(function)
        body = function.body.block
        values: dict[Value, Value] = dict(zip(body.arguments, call.operands, strict=True))
        copies = [op.clone(values) for op in body.ops[:-1]]
        for copy in copies:
            copy.block = block
            _locate(copy, call.loc)
        for result, returned in zip(call.results, body.terminator.operands, strict=True):
            result.replace_by(values.get(returned, returned))
        call.block = None
        call.drop_operands()
        return copies


def _locate(op: Operation, caller: Location) -> None:
    for inner in op.walk():
        inner.loc = CallSiteLoc(inner.loc, caller)
