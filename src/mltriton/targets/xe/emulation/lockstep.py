"""Lanes that run one after the other, kept in step where they access memory.

Level: `llvm` text. Intel's runtime for CPUs runs the lanes of a kernel that it does not optimise one after the other,
up to the next function of the warp. Those of a GPU do each instruction together, so that a lane never sees what
another one writes later in the program. Guarantees: between a write and any other access of memory that lanes share
stands a barrier of the warp; none stands where lanes may differ.
"""

from __future__ import annotations

import re

from mltriton.records import NamedTuple
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Scope, Semantics

_MEMORIES = Semantics.SEQUENTIALLY_CONSISTENT | Semantics.WORKGROUP_MEMORY | Semantics.GLOBAL_MEMORY
_BARRIER = f"  call void @{xe.BARRIER.symbol}(i32 {Scope.SUBGROUP}, i32 {Scope.SUBGROUP}, i32 {int(_MEMORIES)})"
_DECLARED = f"declare void @{xe.BARRIER.symbol}("

# What all lanes of a warp take alike, by the first part of its labels. Lanes may differ in anything else.
_UNIFORM = {"if", "i", "while", "whole", "surfaces", "block", "assert"}
_STARTS, _ENDS = {"then", "head"}, {"end", "exit"}

_KERNEL = re.compile(r"^(define spir_kernel .*\nentry:\n)(.*?)(?=^}$)", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"([a-z]+)\.([a-z]+)\d*:$")
_TARGET = re.compile(r"  br .*?label %([a-z]+)\.(?:then|head)\d*(?:,|$)")
_SHARED = r"ptr addrspace\([13]\)"
_READ = re.compile(rf"  %\w+ = load .*{_SHARED}|.* @\w*load\w*\(", re.IGNORECASE)
_WRITE = re.compile(rf"  store .*{_SHARED}|.* = (?:atomicrmw|cmpxchg) |.* @\w*store\w*\(", re.IGNORECASE)
_MEETING = re.compile(rf".* @(?:{xe.BARRIER.symbol}|{xe.BARRIER_WAIT.symbol})\(")


class Since(NamedTuple):
    """What may have happened since the lanes met last."""

    read: bool = False
    written: bool = False


_ANYTHING = Since(read=True, written=True)


def rewrite(text: str) -> str:
    """The kernel in `text` with barriers of the warp."""
    found = _KERNEL.sub(lambda kernel: kernel[1] + "".join(_in_step(kernel[2].splitlines())), text)
    if _BARRIER in found and _DECLARED not in found:
        found = f"{_DECLARED}i32, i32, i32)\n{found}"
    return found


def _in_step(lines: list[str]) -> list[str]:
    made: list[str] = []
    since, apart = Since(), 0  # how many pieces of code that lanes may not all take are open
    for line in lines:
        if (label := _LABEL.match(line)) is not None:
            if label[1] not in _UNIFORM:
                apart += (label[2] in _STARTS) - (label[2] in _ENDS)
            elif not apart:
                since = _ANYTHING
        elif not apart:
            reads, writes = _accesses(line)
            if (since.written and (reads or writes)) or (since.read and writes):
                made.append(f"{_BARRIER}\n")
                since = Since()
            since = Since() if _MEETING.match(line) else Since(since.read or reads, since.written or writes)
        made.append(f"{line}\n")
    return made


def _accesses(line: str) -> tuple[bool, bool]:
    """Whether a line reads and writes memory that lanes share; what they may take apart does both."""
    target = _TARGET.match(line)
    if target is not None:
        return (False, False) if target[1] in _UNIFORM else (True, True)
    return _READ.match(line) is not None, _WRITE.match(line) is not None
