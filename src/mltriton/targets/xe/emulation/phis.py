"""Kernels without phi instructions: what a block is given is stored by those before it and loaded at its start.

Level: `llvm`. Intel's runtime for CPUs gives all lanes the value of the last one where a phi takes another phi from the
other side of a function of the warp, which variables in memory never suffer. Guarantees: a phi becomes a variable of
its own, so that those of one block change together.
"""

from __future__ import annotations

from mltriton.targets.llvm.instruction import LABEL
from mltriton.targets.llvm.types import Value
from mltriton.targets.llvm.writer import Function


def rewrite(f: Function) -> None:
    """Give a kernel variables for phis."""
    body = f.taken()
    variables = {made.name: f.alloca(made.type) for made in body if made.op == "phi"}
    given: dict[str, list[tuple[Value, Value]]] = {}
    for made in (made for made in body if made.op == "phi"):
        for value, block in zip(made.operands, made.names, strict=True):
            given.setdefault(block, []).append((value, variables[made.name]))
    for made in body:
        if made.op == "phi":
            variable = variables[made.name]
            f.define(Value(made.type, made.name), f"load {made.type}, {variable}, align 64", "load", (variable,))
            continue
        if made.op == "br":
            for value, variable in given.get(f.current_block, ()):
                f.store(value, variable, align=64)
        elif made.op == LABEL:
            f.current_block = made.text
        f.lines.append(made)
