"""The operations of a loop nest in the region of a `tile.nest`, and out of it again.

Level: warp. `enclose` puts stretches of a block into nests, with what only one of them needs; `flatten` takes them out
and says to which nest each operation belonged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import gcd

from mltriton.dialects import tile, tt
from mltriton.errors import TargetError
from mltriton.ir.attributes import Attribute, DenseArrayAttr, IntegerAttr
from mltriton.ir.operation import Block, Operation, OpResult, Region, Value
from mltriton.ir.types import I32, TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.directions import Direction
from mltriton.passes.intrinsic.tile_loops.operations import is_virtual, member_of
from mltriton.records import NamedTuple, record


@record()
class Stretch:
    """The members of a nest in their order, with the numbers of their loops: the nest is from the first to the last.
    `prefetched` are the numbers of stores that the loop before theirs prefetches. `direction`: that of the lanes of a
    single store, where it is another than the last dimension's.
    """

    members: list[Operation] = field(default_factory=list[Operation])
    loops: list[int] = field(default_factory=list[int])
    prefetched: Sequence[int] = ()
    direction: Direction | None = None

    def attributes(self) -> dict[str, Attribute]:
        """Those of the nest."""
        loops: dict[str, Attribute] = {"loops": DenseArrayAttr(tuple(self.loops), I32)}
        if self.prefetched:
            loops["prefetched"] = DenseArrayAttr(tuple(self.prefetched), I32)
        numbers = self.direction._asdict() if self.direction is not None else {}
        return loops | {name: IntegerAttr(number, I32) for name, number in numbers.items() if number or name == "along"}


def enclose(block: Block, stretches: Sequence[Stretch]) -> None:
    """Make a `tile.nest` of each stretch; they are in the order of the block and do not overlap."""
    ops: list[Operation] = []
    nests: dict[Operation, list[Operation]] = {}
    first: dict[Operation, Stretch | None] = {stretch.members[0]: stretch for stretch in stretches}
    inside: Stretch | None = None
    nest = block.terminator  # of the stretch at hand
    for op in block.ops:
        inside = first.get(op, inside)
        if inside is None:
            ops.append(op)
            continue
        if op is inside.members[0]:
            nest = tile.Nest((), (), inside.attributes(), (), op.loc)
            nests[nest] = []
            ops.append(nest)
        nests[nest].append(op)
        if op is inside.members[-1]:
            ops += _left_behind(nests[nest], inside.members)
            inside = None
    block.ops = _sunk(ops, nests)
    for op in block.ops:
        op.block = block
        if op in nests:
            _fill_region(op, nests[op])


def store_before(place: Operation, value: Value) -> None:
    """Let a nest of its own store a block, before an operation of the block of operations in which it is made."""
    body, loc = Block(), place.loc
    body.append(tile.Fill([value], loc=loc))
    body.append(tile.Yield((), (), {}, (), loc, (0,)))
    assert place.block is not None
    place.block.insert_before(place, tile.Nest((), (), Stretch(loops=[0]).attributes(), [Region([body])], loc))


def _left_behind(inner: list[Operation], members: Sequence[Operation]) -> list[Operation]:
    """What stands between members and is of no use to them, which is taken out."""
    used = set(members)
    for op in reversed(inner):
        if not (op.pure and is_virtual(op)) or any(user in used for result in op.results for user in result.users):
            used.add(op)
    unused = [op for op in inner if op not in used]
    inner[:] = [op for op in inner if op in used]
    return unused


def _sunk(ops: Sequence[Operation], nests: dict[Operation, list[Operation]]) -> list[Operation]:
    """What is left outside when each nest has taken the blocks before it that nothing else needs."""
    holder = {op: nest for nest, inner in nests.items() for op in inner}
    kept: list[Operation] = []
    taken: dict[Operation, list[Operation]] = {}
    for op in reversed(ops):
        nest = None if op in nests else _only_user(op, holder)
        if nest is None:
            kept.append(op)
        else:
            holder[op] = nest
            taken.setdefault(nest, []).append(op)
    for nest, more in taken.items():
        nests[nest][:0] = more[::-1]
    return kept[::-1]


def _only_user(op: Operation, holder: dict[Operation, Operation]) -> Operation | None:
    """The nest whose operations are the only ones that use a block that is computed where it is needed."""
    if not is_virtual(op) or not all(isinstance(result.type, TensorType) for result in op.results):
        return None
    users = {holder.get(user) for result in op.results for user in result.users}
    return users.pop() if len(users) == 1 else None


def _fill_region(nest: Operation, ops: Sequence[Operation]) -> None:
    """Give a nest its operations; what others use of them become its results."""
    body = Block()
    for op in ops:
        body.append(op)
    yielded: list[Value] = []
    for value in [result for op in ops for result in op.results]:
        outside = [user for user in value.users if user.ancestor_in(body) is None]
        if outside:
            _replace(value, _result_for(nest, value), outside)
            yielded.append(value)
    body.append(tile.Yield(yielded, (), {}, (), nest.loc, (len(yielded),)))
    nest.regions = [Region([body])]
    nest.regions[0].parent = nest


def _result_for(nest: Operation, value: Value) -> OpResult:
    result = OpResult(value.type, nest, len(nest.results))
    result.hint = value.hint
    nest.results.append(result)
    return result


def _replace(value: Value, other: Value, users: Sequence[Operation]) -> None:
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand is value:
                user.set_operand(number, other)


class Membership(NamedTuple):
    """Where a member stands: in which nest, and in which of the loops of a row; whether the loop before prefetches."""

    nest: tile.Nest
    loop: int
    prefetched: bool


def flatten(block: Block) -> dict[Operation, Membership]:
    """Put the operations of all nests in place of them, inner blocks included; says where members stood."""
    members: dict[Operation, Membership] = {}
    ops: list[Operation] = []
    for op in block.ops:
        if not isinstance(op, tile.Nest):
            ops.append(op)
            for inner in op.blocks:
                members |= flatten(inner)
            continue
        members |= _members_of(op)
        *stood, end = op.body.block.ops
        for result, value in zip(op.results, end.operands, strict=True):
            result.replace_by(value)
        end.drop_operands()
        ops += stood
    for op in ops:
        op.block = block
    block.ops = ops
    return members


def _members_of(nest: tile.Nest) -> dict[Operation, Membership]:
    members = [op for op in nest.body.block.ops if member_of(op) is not None]
    if len(members) != len(nest.loops):
        raise TargetError(
            "a loop nest says of each of its members in which loop of a row it runs",
            location=nest.loc.in_source,
            expected=f"{len(members)} numbers",
            found=f"{len(nest.loops)}",
        )
    if nest.along >= 0 and not _may_go_along(members[0], nest.along, nest.squares):
        message = "lanes go along a dimension of a block that a loop nest stores, in squares that divide it"
        raise TargetError(message, location=nest.loc.in_source, found=f"along {nest.along}, squares of {nest.squares}")
    stood = zip(members, nest.loops, strict=True)
    return {op: Membership(nest, loop, number in nest.prefetched) for number, (op, loop) in enumerate(stood)}


def _may_go_along(op: Operation, along: int, squares: int) -> bool:
    if not isinstance(op, tt.Store | tt.DescriptorStore):
        return False
    shape = shape_of(op.value.type)
    return along < len(shape) - 1 and not (squares and gcd(shape[along], shape[-1]) % squares)
