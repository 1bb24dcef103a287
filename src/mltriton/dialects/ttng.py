"""`ttng`: matrix products that several warps compute together and that go on by themselves.

Level: ttg to intrinsic. Names are upstream TritonNvidiaGPU's. The four warps of a group start a product of operands in
shared memory and go on; its result, and the operands' memory, are theirs again behind a wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mltriton.dialects import scf
from mltriton.dialects.tt.compute import Dot
from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import require, require_types, types_of
from mltriton.ir.definition import boolean, integer, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import Type


class WarpGroupDot(Dot, name="ttng.warp_group_dot", pure=False, reads=True, writes=True):
    """`ttng.warp_group_dot %a, %b, %c {isAsync = true}`: c + a b, as `tt.dot`. With `isAsync` it goes on after the
    operation, as a group of its own, or (`continues`) as one group with the next.

    Guarantees (verified): until a wait nobody takes the result but products that add to it and loops that carry it.
    """

    is_async = boolean(text="isAsync")
    continues = boolean()

    def verify(self) -> None:
        super().verify()
        require(self, self.is_async or not self.continues, "a product that is waited for at once ends its group")
        if self.is_async:
            for value in in_flight(self.result):
                for user in value.users:
                    if not _may_take(user, value):
                        reject(self, f"its result is taken by {user.name} before it was waited for")


class WarpGroupDotWait(Operation, name="ttng.warp_group_dot_wait", reads=True, writes=True):
    """`%r, ... = ttng.warp_group_dot_wait %x, ... {pendings = 1}`: waits until at most `pendings` groups are under
    way; the results are those products' that are done, and what else was given.
    """

    syntax = "$inputs attr-dict `:` functional-type($inputs, results)"
    inputs = variadic()
    pendings = integer(0)

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return types_of(operands)

    def verify(self) -> None:
        require(self, self.pendings >= 0, "pendings counts groups", "0 or more", self.pendings)
        require_types(self, "the results", types_of(self.results), types_of(self.inputs))


class FenceAsyncShared(Operation, name="ttng.fence_async_shared", reads=True, writes=True):
    """`ttng.fence_async_shared`: what the warp has written to shared memory is seen by products and tensor copies that
    start behind the next barrier.
    """

    syntax = "attr-dict"

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []


def in_flight(value: Value) -> Iterator[Value]:
    """A value, and those that loops and branches hand on in its place."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        yield value
        found = [after for user in value.users for after in _handed_on(user, value)]
        pending += [after for after in found if after not in seen]
        seen.update(found)


def _handed_on(user: Operation, value: Value) -> Iterator[Value]:
    """What stands for an operand in a loop and behind it, or behind a branch."""
    parent = user.parent_op
    if isinstance(user, scf.For):
        for index, init in enumerate(user.inits):
            if init is value:
                yield user.carried[index]
                yield user.results[index]
    elif isinstance(user, scf.Yield) and isinstance(parent, scf.For | scf.If):
        for index, operand in enumerate(user.operands):
            if operand is value:
                yield parent.results[index]
                if isinstance(parent, scf.For):
                    yield parent.carried[index]


def _may_take(user: Operation, value: Value) -> bool:
    if isinstance(user, WarpGroupDot):
        return value not in (user.a, user.b)
    if isinstance(user, scf.Yield):
        return isinstance(user.parent_op, scf.For | scf.If)
    return isinstance(user, WarpGroupDotWait | scf.For)
