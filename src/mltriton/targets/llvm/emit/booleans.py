"""How values are held in memory, for loads and stores of every kind.

Level: intrinsic -> llvm. Guarantees: i1 is a byte, 0 or 1, in memory.
"""

from __future__ import annotations

from mltriton.targets.llvm.emit.context import Emitter
from mltriton.targets.llvm.types import Type, Value


def in_memory(type_: Type) -> Type:
    """The type a value has in memory."""
    return type_.with_element("i8") if type_.bits == 1 else type_


def from_memory(e: Emitter, value: Value, type_: Type) -> Value:
    """A loaded value as values are held."""
    return e.function.icmp("ne", value, 0) if type_.bits == 1 else value


def to_memory(e: Emitter, value: Value) -> Value:
    """A value as it is stored."""
    return e.function.cast("zext", value, in_memory(value.type)) if value.type.bits == 1 else value
