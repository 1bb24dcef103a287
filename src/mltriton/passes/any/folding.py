"""The greedy driver: folds operations and removes those that nobody needs, until nothing changes.

Level: all. Takes a module and changes it in place. Each operation says through `fold` which value or constant it
equals; constants are placed once at the start of the enclosing function (or combine region). Guarantees: what the
program computes does not change; an operation with an effect stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_folding import SIMPLIFICATIONS
from mltriton.ir.attributes import Attribute
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.promises import takes_over

Rules = Mapping[type[Operation], Callable[[Any], Sequence[Value] | None]]


def fold_all(root: Operation, patterns: Rules = MappingProxyType({})) -> bool:
    """Fold and clean up everything inside `root`; returns whether anything changed.

    `patterns` are tried where an operation neither folds nor simplifies: a rule returns the values that stand for the
    results, or None; what it creates or moves stands right before the operation.
    """
    return _Driver(root, patterns).run()


def is_removable(op: Operation) -> bool:
    """Whether an operation whose results nobody uses may go: it writes nothing, and neither does what it holds."""
    if op.terminator or op.writes or isinstance(op, scf.While | tt.Func):
        return False
    if not op.regions:
        return op.pure or op.reads
    inner = (inner for block in op.blocks for inner in block.ops)
    return all(other.terminator or is_removable(other) for other in inner)


def is_used(op: Operation) -> bool:
    """Whether some result has a user."""
    return any(result.users for result in op.results)


def constant_home(op: Operation) -> Block:
    """The block at whose start constants for `op` are placed: the body of its function or combine region."""
    block = op.block
    assert block is not None
    while isinstance(parent := block.parent_op, scf.For | scf.If | scf.While) and parent.block is not None:
        block = parent.block
    return block


def _around(op: Operation) -> list[Operation | None]:
    """What may change with an operation: what it takes, what its regions hand on, and what uses their arguments."""
    found = [value.defining_op for value in op.operands]
    for block in op.blocks:
        found.extend(value.defining_op for value in block.terminator.operands)
        found.extend(user for argument in block.arguments for user in argument.users)
    return found


class _Driver:
    """Work list of operations; an operation is visited again when an operand or a user of it changes, and when
    something in its regions is gone (once all else is done).
    """

    def __init__(self, root: Operation, patterns: Rules) -> None:
        self.patterns = patterns
        self.work: list[Operation] = []
        self.queued: set[Operation] = set()
        self.around: dict[Operation, None] = {}  # what has lost operations in its regions, in this order
        self.gone: set[Operation] = set()
        self.constants: dict[tuple[Block, Attribute], Value] = {}
        self.leading: dict[Block, int] = {}  # number of constants at the start of a home
        self.emptied: set[Block] = set()  # blocks in which operations that are gone still stand
        self.changed = False
        self._gather(root)
        self.push(*reversed([op for op in root.walk() if op is not root]))

    def _gather(self, root: Operation) -> None:
        """Move every constant to its home and let equal ones be one."""
        found: dict[Block, list[Operation]] = {}
        for op in list(root.walk()):
            if isinstance(op, arith.Constant) and op.block is not None:
                home = constant_home(op)
                self.emptied.add(op.block)
                op.block = None
                known = self.constants.setdefault((home, op.value), op.result)
                if known is op.result:
                    found.setdefault(home, []).append(op)
                else:
                    op.result.replace_by(known)
                    self.changed = True
        self._tidy()
        for home, constants in found.items():
            for op in constants:
                op.block = home
            home.ops[:0] = constants
            self.leading[home] = len(constants)

    def run(self) -> bool:
        """Work until the list is empty."""
        while self.work or self.around:
            if not self.work:
                self.push(*self.around)
                self.around = {}
                continue
            op = self.work.pop()
            self.queued.discard(op)
            if op not in self.gone:
                self.visit(op)
        self._tidy()
        return self.changed

    def _tidy(self, around: Operation | None = None) -> None:
        """Take the operations that are gone out of their blocks, all of a block at once: that is linear.

        The blocks around an operation are left for later; all others have to be as they seem when it is simplified.
        """
        later: set[Block] = set()
        while around is not None and around.block is not None:
            later.add(around.block)
            around = around.parent_op
        for block in self.emptied - later:
            block.ops[:] = [op for op in block.ops if op.block is block]
        self.emptied &= later

    def visit(self, op: Operation) -> None:
        """Remove, simplify or fold one operation."""
        if op.regions:
            self._tidy(around=op)
        if not is_used(op) and is_removable(op):
            self.erase(op)
            return
        simplify = SIMPLIFICATIONS.get(type(op))
        if simplify is not None:
            self.simplify(op, simplify)
        elif len(op.results) <= 1 and not isinstance(op, arith.Constant):
            self.fold(op)
        pattern = self.patterns.get(type(op))
        if pattern is not None and op not in self.gone:
            self.simplify(op, pattern)

    def fold(self, op: Operation) -> None:
        """Replace an operation by what it equals."""
        before = list(op.operands)
        folded = op.fold()
        if isinstance(folded, Attribute):
            self.replace(op, [self.constant(op, folded)])
        elif folded is not None and takes_over(folded, op):
            self.replace(op, [folded])
        elif before != op.operands:
            self.changed = True
            self.push(op)
        if before != op.operands:
            self.push(*(value.defining_op for value in before))

    def simplify(self, op: Operation, rule: Callable[[Operation], Sequence[Value] | None]) -> None:
        """Replace an operation by what a pattern makes of it."""
        touched = _around(op)
        results = rule(op)
        if results is not None:
            for value in results:
                takes_over(value, op)
            self.push(*(inner for value in results for inner in value.users))
            self.push(*(value.defining_op for value in results), *touched)
            self.replace(op, results)

    def constant(self, op: Operation, value: Attribute) -> Value:
        """The constant `value` as seen from `op`."""
        home = constant_home(op)
        known = self.constants.get((home, value))
        if known is None:
            made = arith.Constant((), [op.result.type], {"value": value}, loc=op.loc)
            made.block = home
            home.ops.insert(self.leading.get(home, 0), made)
            self.leading[home] = self.leading.get(home, 0) + 1
            known = self.constants[home, value] = made.result
        return known

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Let `values` stand for the results."""
        for result, value in zip(op.results, values, strict=True):
            self.push(*result.users)
            if value.hint is None and not isinstance(value.defining_op, arith.Constant):
                value.hint = result.hint
            result.replace_by(value)
        self.erase(op)

    def erase(self, op: Operation) -> None:
        """Remove an operation; what it used may be unused now."""
        self.changed = True
        inside = list(op.walk())
        used = [value.defining_op for inner in inside for value in inner.operands]
        self.gone.update(inside)
        if isinstance(op, arith.Constant):
            home = constant_home(op)
            if self.constants.get((home, op.value)) is op.result:  # a pattern places its constants where it stands
                del self.constants[home, op.value]
                self.leading[home] -= 1
        if op.parent_op is not None:
            self.around[op.parent_op] = None
        if op.block is not None:
            self.emptied.add(op.block)
            op.block = None
        op.drop_operands()
        self.push(*used)

    def push(self, *ops: Operation | None) -> None:
        """Visit operations (again)."""
        for op in ops:
            if op is not None and op not in self.queued and op not in self.gone:
                self.queued.add(op)
                self.work.append(op)
