"""One instruction of LLVM IR as data beside its text.

Level: `llvm`. Where something other than LLVM is to read a function (`Function.keeps_parts`), its lines are
instructions, of which SPIR-V or an emulation is made by operands and names; nobody reads the text but LLVM. Elsewhere
lines are texts, which take a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from mltriton.targets.llvm.types import VOID, Type, Value

Operands: TypeAlias = tuple[Value, ...]
Names: TypeAlias = tuple[str, ...]

LABEL = "label"  # the start of a block, which LLVM does not call an instruction


class Instruction(NamedTuple):
    """`op` is LLVM's name, empty where the text is all that is known; `name` is the result's, of type `type` (of the
    type of what an alloca makes room for). `names` are what stands beside values: a predicate, the labels of a branch
    or a phi, the function that is called.
    """

    text: str
    op: str = ""
    name: str = ""
    type: Type = VOID
    operands: Operands = ()
    names: Names = ()

    def __str__(self) -> str:
        if self.op == LABEL:
            return f"{self.text}:"
        return f"  {self.name} = {self.text}" if self.name else f"  {self.text}"


# In order; a list among them is a place that was filled later.
Lines: TypeAlias = "list[Instruction | str | Lines]"


def in_order(lines: Lines) -> Iterator[Instruction | str]:
    """What stands in lines without the lists around it."""
    for line in lines:
        if isinstance(line, list):
            yield from in_order(line)
        else:
            yield line
