"""Conversions of small floats by their formula: the function that stands for the assembly of that name.

Level: `llvm`. Each lane has its own elements, and gives its own results.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import Type
from mltriton.targets.llvm.writer import Module
from mltriton.targets.xe.llvm.small_floats import Widening, halves, pairs_of_halves


def write(module: Module, symbol: str, widening: Widening, result: Type) -> str:
    """A function with the parameter and the result of the one that has this name."""
    name = "emulated_" + symbol.replace(".", "_")
    f = module.function(name, result, [("held", widening.source)], extra="noinline ")
    [held] = f.parameters
    is_bytes = widening.source.bits == 8
    f.ret(halves(f, widening.kind, held) if is_bytes else f.joined(list(pairs_of_halves(f, widening.kind, held))))
    return name
