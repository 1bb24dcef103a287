"""An address that says what an access asks of the caches.

Level: `llvm`. SPIR-V decorates the pointer that an access takes; an access with a hint gets a pointer of its own, since
others may use the same address.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import I64, Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.cache_hints import Controls

DECORATED = "decorated inttoptr"  # of the instruction


def decorated(f: Function, pointer: Value, asked: Controls | None) -> Value:
    """The address of an access with these hints. It goes through an integer, or else LLVM would see that it is the
    same pointer and drop the decoration, or put it on a parameter.
    """
    if asked is None:
        return pointer
    node = f.module.node
    levels = [node(f"i32 {asked.decoration}, i32 {level}, i32 {int(what)}") for level, what in enumerate(asked[1:])]
    number = f.cast("ptrtoint", pointer, I64)
    text = f"inttoptr {number} to {pointer.type}, !spirv.Decorations {node(', '.join(levels))}"
    return f.pure(text, pointer.type, DECORATED, (number,))
