"""PTX inside of LLVM IR, with the letters of its operands found by their types.

Level: `llvm`. In a text `$0`, `$1`, ... are results, then operands. Guarantees: what is not said to be pure stays where
it is, in the control flow of all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.targets.llvm.types import Type, Value
from mltriton.targets.llvm.writer import Function

# The letter of a register by the size and kind of what it holds. There is none for bytes.
_INTEGERS = {1: "b", 16: "h", 32: "r", 64: "l"}
_LETTERS = {"float": "f", "double": "d"}


def letter(type_: Type) -> str:
    """How LLVM's inline assembly calls a register for values of that type."""
    return _LETTERS.get(type_.element) or _INTEGERS[type_.bits * type_.lanes]


def ptx(f: Function, text: str, results: Sequence[Type], *operands: Value, pure: bool = False) -> list[Value]:
    """Append instructions; gives their results."""
    constraints = [*(f"={letter(type_)}" for type_ in results), *(letter(value.type) for value in operands)]
    return f.assembly(text, ",".join(constraints), results, *operands, pure=pure)


def tied(f: Function, text: str, results: Sequence[Value], *operands: Value, pure: bool = False) -> list[Value]:
    """The same where each result begins with a value: `$0`, ... are in and out, then come the operands.

    Operands are numbered behind the results; what these begin with has no number of its own in the text.
    """
    outputs = [f"={letter(value.type)}" for value in results]
    inputs = [letter(value.type) for value in operands]
    constraints = ",".join([*outputs, *inputs, *map(str, range(len(results)))])
    return f.assembly(text, constraints, [value.type for value in results], *operands, *results, pure=pure)
