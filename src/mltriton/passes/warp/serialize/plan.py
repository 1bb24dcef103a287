"""What a warp keeps from one piece to another, and where.

Level: warp. Takes the pieces (`units.py`) and what depends on the warp (`varying.py`). A value that another piece needs
is computed there again from what it was computed from, if that is cheap and pure or a load of memory that nobody
writes meanwhile; otherwise it is kept in a buffer that has a part for each warp. What a fork carries or gives has a
buffer; an initial or yielded value is written to it where it is computed, if their lives do not overlap
(`buffers.py`), and copied otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mltriton.analysis.aliasing import may_alias, reads_in, through_other_parameter, waits_for_programs, writes_in
from mltriton.analysis.effects import is_needed
from mltriton.dialects import gpu, scf, tt
from mltriton.errors import TargetError
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import MemDescType, PointerType, TensorDescType, TensorType, bit_width, element_type
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Costs
from mltriton.passes.intrinsic.tile_loops.operations import LOADS, is_virtual
from mltriton.passes.intrinsic.tile_loops.slots import is_block_pointer
from mltriton.passes.warp.serialize.buffers import Buffer, Lifetime
from mltriton.passes.warp.serialize.units import Cut, ForkUnit, Piece, used_from_outside
from mltriton.passes.warp.serialize.varying import Varying


@dataclass(frozen=True)
class Copy:
    """At the end of a piece a value goes to the buffer of `slot`, a fork's argument or result, which needs it until a
    position."""

    source: Value
    slot: Value
    piece: Piece
    until: int


class Plan:
    """`needs`: the values that a piece takes from elsewhere; `kept`: the buffers; `copies`: what pieces end with.

    `only_written`: values whose buffer is that of a fork's slot, for the fork alone: the fork may overwrite them, and
    pieces that need them compute them again.
    """

    def __init__(self, cut: Cut, varying: Varying) -> None:
        self.cut = cut
        self.varying = varying
        self.needs: dict[Piece, dict[Value, None]] = {}
        self.kept: dict[Value, Buffer] = {}
        self.copies: dict[Piece, list[Copy]] = {}
        self.last_need: dict[Value, int] = {}
        self.only_written: set[Value] = set()
        wanted = [copy for fork in cut.forks.values() for copy in self._copies_of(fork)]
        self._ends: dict[Piece, set[Value]] = {}
        for copy in wanted:
            self._ends.setdefault(copy.piece, set()).add(copy.source)
        for piece in cut.pieces():
            self._needs_of(piece)
        for fork in cut.forks.values():
            self._needs_of_fork(fork)
        for copy in wanted:
            self.need(copy.source, copy.piece)
        self._wanted = wanted

    def place(self) -> None:
        """Decide which values share buffers, when everything that is needed is known."""
        for copy in sorted(self._wanted, key=lambda copy: -copy.piece.at):
            self._place(copy)

    # What pieces need

    def _needs_of(self, piece: Piece) -> None:
        for op in self.work(piece):
            for value in used_from_outside(op):
                self.need(value, piece)

    def work(self, piece: Piece) -> list[Operation]:
        """The operations of a piece that are done for each warp and have an effect, and what they use."""
        done: set[Operation] = set()
        needed = set(self._ends.get(piece, ()))
        for op in reversed(piece.ops):
            if self.varying.is_uniform(op, piece):
                continue
            if is_needed(op) or any(result in needed or result in self.kept for result in op.results):
                done.add(op)
                needed.update(used_from_outside(op))
        return [op for op in piece.ops if op in done]

    def _needs_of_fork(self, fork: ForkUnit) -> None:
        op = fork.op
        if isinstance(op, scf.While):
            condition = op.before.block.terminator.operands[0]
            self.need(condition, self.cut.conditions[op.before.block])
        else:
            for value in op.operands[:3] if isinstance(op, scf.For) else op.operands:
                self.need(value, fork.needs)

    def need(self, value: Value, piece: Piece) -> None:
        """A piece needs a value: find out how it comes there."""
        if value not in self.varying or self.cut.is_dealt_counter(value):
            return
        op = value.defining_op
        home = self.cut.piece_of.get(op) if op is not None else None
        if home is piece or value in self.needs.setdefault(piece, {}):
            return
        if value not in self.kept and op is not None and self._again(op, value, piece):
            for operand in op.operands:
                self.need(operand, piece)
            self.needs[piece][value] = None
            return
        if value not in self.kept:
            self._keep(value)
        self.needs[piece][value] = None
        self.last_need[value] = max(self.last_need.get(value, 0), self._position(value, piece))

    def _position(self, value: Value, piece: Piece) -> int:
        """Until when a value lives that a piece needs: to the end of the loops between them."""
        at, block, home = piece.at, piece.block, value.defining_block
        while block is not home:
            parent = block.parent_op
            assert parent is not None
            if not isinstance(parent, scf.If):
                at = self.cut.forks[parent].end
            assert parent.block is not None
            block = parent.block
        return at

    # Again or kept

    def _again(self, op: Operation, value: Value, piece: Piece) -> bool:
        """Whether a piece computes a value of another piece again."""
        if isinstance(op, gpu.SubgroupId):
            return True
        if op.regions or not (op.pure or self._loads_the_same(op, piece)):
            return False
        if isinstance(value.type, MemDescType | TensorDescType) or isinstance(element_type(value.type), PointerType):
            return True
        if not isinstance(value.type, TensorType):
            return op.pure
        if not is_virtual(op) or _is_filled_every_time(op, value, piece):
            return False
        if Costs(self.kept).of(value) >= EXPENSIVE:
            return False
        return sum(map(_bits, self.would_keep(value, piece))) <= _bits(value)

    def would_keep(self, value: Value, piece: Piece) -> list[Value]:
        """What would have to be kept for a piece to have a value."""
        return self._would_keep(value, piece, set())

    def _would_keep(self, value: Value, piece: Piece, seen: set[Value]) -> list[Value]:
        if value in seen or value not in self.varying or value in self.kept:
            return []
        seen.add(value)
        op = value.defining_op
        if op is None or op in self.cut.forks:
            return []
        if op.regions or not (op.pure or self._loads_the_same(op, piece)) or isinstance(op, tt.Dot):
            return [value]
        return [found for operand in op.operands for found in self._would_keep(operand, piece, seen)]

    def _loads_the_same(self, op: Operation, piece: Piece) -> bool:
        """Whether a load of a block gives the same in another piece: nothing may write there from its own piece on to
        the end of the other, but a warp what it has read, through another parameter.
        """
        home = self.cut.piece_of.get(op)
        if home is None or not isinstance(op.results[0].type if op.results else None, TensorType):
            return False
        if reads_in(op) != [op]:
            return False
        end = self._position(op.results[0], piece)
        for other in self.cut.pieces():
            if not home.at <= other.at <= end:
                continue
            if any(map(waits_for_programs, other.ops)):
                return False
            once = other is piece and piece.at == end
            for write in (write for inner in other.ops for write in writes_in(inner)):
                if may_alias(op, write) and not (once and through_other_parameter(op, write)):
                    return False
        return True

    def _keep(self, value: Value) -> None:
        if isinstance(value.type, MemDescType) or is_block_pointer(value):
            place = value.defining_op.loc.in_source if value.defining_op is not None else None
            raise TargetError(
                "which block in memory this is depends on the warp, and it is used after a barrier",
                location=place,
                found=str(value.type),
                hint="Choose between offsets into one block.",
            )
        self.kept[value] = Buffer(value.type)
        op = value.defining_op
        if op is not None and op in self.cut.piece_of:
            home = self.cut.piece_of[op]
            self.kept[value].add(value, self._life(value))
            self._needs_of(home)

    def _life(self, value: Value) -> Lifetime:
        return Lifetime(self._start(value), lambda: self.last_need.get(value, 0))

    def _start(self, value: Value) -> int:
        """The position from which a value's buffer holds it."""
        op = value.defining_op
        if op is None:
            block = value.defining_block
            parent = block.parent_op
            assert parent is not None
            fork = self.cut.forks[parent]
            return fork.middle if isinstance(parent, scf.While) and block is parent.after.block else fork.begin
        if op in self.cut.forks:
            fork = self.cut.forks[op]
            return fork.middle if isinstance(op, scf.While) else fork.end
        return self.cut.piece_of[op].at

    # What forks carry

    def _copies_of(self, fork: ForkUnit) -> list[Copy]:
        """The values that go to the buffers of a fork's arguments and results."""
        cut, op = self.cut, fork.op
        before = cut.before(fork)
        if isinstance(op, scf.For):
            body = op.body.block
            self._slots(op.carried, op.results)
            return [
                *self._joined(op.inits, op.carried, before, fork.begin),
                *self._joined(body.terminator.operands, op.carried, cut.last(body), fork.end),
            ]
        if isinstance(op, scf.While):
            first, after = op.before.block, op.after.block
            self._slots(first.arguments)
            self._slots(after.arguments, op.results)
            return [
                *self._joined(op.inits, first.arguments, before, fork.begin),
                *self._joined(first.terminator.operands[1:], after.arguments, cut.last(first), fork.middle),
                *self._joined(after.terminator.operands, first.arguments, cut.last(after), fork.end),
            ]
        self._slots(op.results)
        sides = op.blocks
        return [
            copy
            for side in sides
            for copy in self._joined(side.terminator.operands, op.results, cut.last(side), cut.last(side).at)
        ]

    def _slots(self, *values: Sequence[Value]) -> None:
        """One buffer for an argument and the result that it becomes, where they depend on the warp."""
        for group in zip(*values, strict=True):
            if group[0] in self.varying:
                buffer = Buffer(group[0].type)
                for value in group:
                    buffer.add(value, self._life(value))
                    self.kept[value] = buffer

    def _joined(self, sources: Sequence[Value], slots: Sequence[Value], piece: Piece, until: int) -> list[Copy]:
        return [
            Copy(source, slot, piece, until)
            for source, slot in zip(sources, slots, strict=True)
            if slot in self.varying
        ]

    def _place(self, copy: Copy) -> None:
        """Let a value be computed into a fork's buffer, or copy it there."""
        slot, source = self.kept[copy.slot], copy.source
        found = self.kept.get(source)
        if found is not None and found.same(slot):
            return
        op = source.defining_op
        ends_here = op is not None and self.cut.piece_of.get(op) is copy.piece and source in self.varying
        if found is not None or ends_here:
            known = self.last_need.get(source, 0)
            self.last_need[source] = max(known, copy.until)
            mine = found
            if mine is None:
                mine = Buffer(source.type)
                mine.add(source, self._life(source))
            if mine.merge(slot):
                self.kept[source] = mine
                if found is None:
                    self.only_written.add(source)
                return
            self.last_need[source] = known
        slot.add(copy, Lifetime(copy.piece.at, lambda: copy.until))
        self.copies.setdefault(copy.piece, []).append(copy)


def _is_filled_every_time(op: Operation, value: Value, piece: Piece) -> bool:
    """Whether a loop would compute a block anew in each iteration to bring it to memory, as a dot's left operand."""
    if isinstance(op, LOADS) or not any(isinstance(user, tt.Dot) and user.a is value for user in piece.ops):
        return False
    block = piece.block
    while block is not op.block:
        parent = block.parent_op
        assert parent is not None and parent.block is not None
        if isinstance(parent, scf.For | scf.While):
            return True
        block = parent.block
    return False


def _bits(value: Value) -> int:
    """The size of a value."""
    type = value.type
    return bit_width(element_type(type)) * (type.size if isinstance(type, TensorType) else 1)
