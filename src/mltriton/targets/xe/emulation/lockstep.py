"""Lanes that run one after the other, kept in step where they access memory.

Level: `llvm`. Intel's runtime for CPUs runs the lanes of a kernel that it does not optimise one after the other, up to
the next function of the warp. Those of a GPU do each instruction together, so that a lane never sees what another one
writes later in the program. Guarantees: between a write and any other access of memory that lanes share stands a
barrier of the warp; none stands where lanes may differ.
"""

from __future__ import annotations

from mltriton.records import NamedTuple
from mltriton.targets.llvm.instruction import LABEL, Instruction
from mltriton.targets.llvm.types import GLOBAL_PTR, SHARED_PTR
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Scope, Semantics

_MEMORIES = Semantics.SEQUENTIALLY_CONSISTENT | Semantics.WORKGROUP_MEMORY | Semantics.GLOBAL_MEMORY
_MEETING = (xe.BARRIER.symbol, xe.BARRIER_WAIT.symbol)

# What all lanes of a warp take alike, by the first part of its labels. Lanes may differ in anything else.
_UNIFORM = {"if", "i", "while", "whole", "surfaces", "block", "assert"}
_STARTS, _ENDS = ("then", "head"), ("end", "exit")
_SHARED = (GLOBAL_PTR, SHARED_PTR)
_ATOMIC = ("atomicrmw", "cmpxchg")


class Since(NamedTuple):
    """What may have happened since the lanes met last."""

    read: bool = False
    written: bool = False


_ANYTHING = Since(read=True, written=True)


def rewrite(f: Function) -> None:
    """Give a kernel barriers of the warp."""
    since, apart = Since(), 0  # how many pieces of code that lanes may not all take are open
    for made in f.taken():
        if made.op == LABEL:
            name, _, part = made.text.partition(".")
            if name not in _UNIFORM:
                apart += part.startswith(_STARTS) - part.startswith(_ENDS)
            elif not apart:
                since = _ANYTHING
        elif not apart:
            reads, writes = _accesses(made)
            if (since.written and (reads or writes)) or (since.read and writes):
                xe.BARRIER.call(f, Scope.SUBGROUP, Scope.SUBGROUP, int(_MEMORIES))
                since = Since()
            meets = made.op == "call" and made.names[0] in _MEETING
            since = Since() if meets else Since(since.read or reads, since.written or writes)
        f.lines.append(made)


def _accesses(made: Instruction) -> tuple[bool, bool]:
    """Whether an instruction reads and writes memory that lanes share; what they may take apart does both."""
    if made.op == "br":
        entered = [name for name, _, part in (label.partition(".") for label in made.names) if part.startswith(_STARTS)]
        apart = bool(entered) and entered[0] not in _UNIFORM
        return apart, apart
    if made.op == "call":
        name = made.names[0].lower()
        return "load" in name, "store" in name
    shared = bool(made.operands) and made.operands[-1].type in _SHARED
    return made.op == "load" and shared, (made.op == "store" and shared) or made.op in _ATOMIC
