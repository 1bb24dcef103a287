"""What the CPU's emission functions share beyond `targets/llvm/emit/context.py`.

Instruction set, number of the running program, scratch memory.

Level: intrinsic -> llvm. A scalar becomes an LLVM scalar, a chunk (1D tensor) a vector of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mltriton.ir.operation import Operation
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.llvm.emit import context
from mltriton.targets.llvm.types import I64, PTR, Value, constant, poison
from mltriton.targets.llvm.writer import Function, Module

Rule = Callable[["Emitter", Any], Value | Sequence[Value] | None]
Rules = Mapping[type[Operation], Rule]


class Emitter(context.Emitter):
    """The state of one kernel's emission."""

    target_name = "the CPU"

    def __init__(self, module: Module, function: Function, features: CpuFeatures, rules: Rules) -> None:
        super().__init__(module, function, features.f16_conversion, rules)
        self.features = features
        self.linear_id: Value = constant(I64, 0)  # number of the running program
        self.scratch: Value = poison(PTR)
