"""The table of emission functions: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mltriton.dialects import arith as arithmetic
from mltriton.dialects import tile as tiles
from mltriton.dialects import tt
from mltriton.ir.operation import Operation
from mltriton.targets.cpu.llvm.emit import chunk_accesses, functions, tile
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.emit import arith, casts, control, floats


def _later(module: str) -> Rule:
    """The rules of a module that is loaded when a program first needs it."""

    def rule(e: Emitter, op: Operation) -> Any:
        return import_module(f"{__package__}.{module}").RULES[type(op)](e, op)

    return rule


RULES: Rules = {
    **arith.RULES,
    **floats.RULES,
    **functions.RULES,
    **casts.RULES,
    **dict.fromkeys((arithmetic.MaxNumF, arithmetic.MinNumF, arithmetic.TruncF), _later("avx512")),
    **control.RULES,
    **chunk_accesses.RULES,
    **tile.RULES,
    **dict.fromkeys((tt.Reduce, tt.Scan), _later("reduce")),
    **dict.fromkeys((tt.AtomicRMW, tt.AtomicCAS), _later("atomics")),
    **dict.fromkeys((tt.Print, tiles.Print, tt.Assert, tt.Assume), _later("debug")),
    **dict.fromkeys((tt.InlineAsm, tt.VolatileAsm), _later("assembly")),
}
