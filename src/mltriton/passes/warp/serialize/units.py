"""A program cut at its barriers: pieces, and the control flow that holds barriers.

Level: warp. A block with a barrier in it is a list of units: pieces (operations that a warp does without waiting) and
forks (loops and branches with a barrier inside, which all warps take alike, `check-warp-level`). A piece comes before
and after every fork, so that there is a place for what a fork takes and gives. Positions count up in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mltriton.dialects import gpu, scf
from mltriton.ir.operation import Block, Operation, Value

Fork = scf.For | scf.If | scf.While


@dataclass(eq=False)
class Piece:
    """Operations of one block that run without waiting, at a position of the program; `once`: only scalars that a
    fork needs, the same for every warp."""

    block: Block
    at: int
    once: bool = False
    ops: list[Operation] = field(default_factory=list[Operation])


@dataclass(eq=False)
class ForkUnit:
    """Control flow that holds barriers, from position `begin` to `end`; `needs` is where its condition or bounds are
    computed, `middle` where the body of a `while` begins.
    """

    op: Fork
    needs: Piece
    begin: int = 0
    middle: int = 0
    end: int = 0


Unit = Piece | ForkUnit


class Cut:
    """The units of every block that holds a barrier, and of the function's.

    `dealt`: loops that are cut to count for all warps together, and how far each warp is ahead of the one before it
    (`sharing.py`).
    """

    def __init__(self, body: Block, is_fork: Callable[[Operation], bool], dealt: Mapping[Operation, int]) -> None:
        self.is_fork = is_fork
        self.dealt = dealt
        self.units: dict[Block, list[Unit]] = {}
        self.forks: dict[Operation, ForkUnit] = {}
        self.piece_of: dict[Operation, Piece] = {}
        self.conditions: dict[Block, Piece] = {}  # the block `before` of a `while` -> where its condition is computed
        self._clock = 0
        self._block(body)

    def first(self, block: Block) -> Piece:
        """The piece that a block starts with."""
        return self._piece(block, 0)

    def last(self, block: Block) -> Piece:
        """The piece that a block ends with."""
        return self._piece(block, -1)

    def before(self, fork: ForkUnit) -> Piece:
        """The piece right before a fork."""
        assert fork.op.block is not None
        units = self.units[fork.op.block]
        found = units[units.index(fork) - 1]
        assert isinstance(found, Piece)
        return found

    def pieces(self) -> list[Piece]:
        """All pieces that loop over the warps."""
        return [unit for units in self.units.values() for unit in units if isinstance(unit, Piece)]

    def is_dealt_counter(self, value: Value) -> bool:
        """Whether a value is the counter of a loop whose iterations are dealt out to the warps."""
        loop = value.defining_block.parent_op
        return isinstance(loop, scf.For) and loop in self.dealt and value is loop.counter

    def _piece(self, block: Block, index: int) -> Piece:
        found = self.units[block][index]
        assert isinstance(found, Piece)
        return found

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _block(self, block: Block) -> None:
        units: list[Unit] = [Piece(block, self._tick())]
        self.units[block] = units
        for op in block.ops[:-1]:
            if isinstance(op, gpu.Barrier):
                units.append(Piece(block, self._tick()))
            elif self.is_fork(op):
                units.append(self._fork(op))
                units.append(Piece(block, self._tick()))
            else:
                piece = units[-1]
                assert isinstance(piece, Piece)
                piece.ops.append(op)
                self.piece_of[op] = piece

    def _fork(self, op: Operation) -> ForkUnit:
        assert isinstance(op, Fork) and op.block is not None
        unit = ForkUnit(op, Piece(op.block, self._tick(), once=True))
        self.forks[op] = unit
        unit.begin = self._tick()
        for block in op.blocks:
            if block.parent_op is op and isinstance(op, scf.While) and block is op.after.block:
                unit.middle = self._tick()
            self._block(block)
            if isinstance(op, scf.While) and block is op.before.block:
                self.conditions[block] = Piece(block, self._tick(), once=True)
        unit.end = self._tick()
        return unit


def has_barrier(op: Operation) -> bool:
    """Whether warps wait for each other in an operation."""
    return any(isinstance(inner, gpu.Barrier) for inner in op.walk())


def used_from_outside(op: Operation) -> list[Value]:
    """The values that an operation and everything in its regions use and that are defined outside of it."""
    if not op.regions:
        return list(dict.fromkeys(op.operands))
    inside: set[Value] = set()
    used: dict[Value, None] = {}
    for inner in op.walk():
        used.update(dict.fromkeys(inner.operands))
        if inner is not op:
            inside.update(inner.results)
        inside.update(argument for block in inner.blocks for argument in block.arguments)
    return [value for value in used if value not in inside]
