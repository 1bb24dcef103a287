"""Atomic updates, with the order and the scope that the program asks for.

Level: `llvm`. Of `atomicrmw` LLVM makes an instruction without an order, so all here is PTX inline. Guarantees: gives
what was in memory before; `native` says for which elements there is an instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.targets.llvm.types import Type, Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.nvidia.accesses import space_of
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.calls import as_integer, from_integer

# An update by the name in the program -> PTX's operation and the letter of the type that it works on.
_INTEGERS = {
    "add": ("add", "u"),
    "and": ("and", "b"),
    "or": ("or", "b"),
    "xor": ("xor", "b"),
    "max": ("max", "s"),
    "min": ("min", "s"),
    "umax": ("max", "u"),
    "umin": ("min", "u"),
    "exch": ("exch", "b"),
}
_FLOATS = {"fadd": "add", "add": "add"}
_NARROW = {"f16": ".noftz.f16", "bf16": ".noftz.bf16"}
_WIDTHS = (32, 64)


def operation(kind: str, element: str, width: int, bf16: bool) -> str | None:
    """PTX's operation and type of an update of elements called so ("f16", "i32", ...); None where there is none."""
    if not element.startswith(("f", "bf")) or kind == "exch":
        name, letter = _INTEGERS[kind]
        return f"{name}.{letter}{width}" if width in _WIDTHS else None
    name = _FLOATS.get(kind)
    if name is None or (element == "bf16" and not bf16):
        return None
    return f"{name}{_NARROW[element]}" if element in _NARROW else f"{name}.{element}" if width in _WIDTHS else None


def update(f: Function, operation: str, pointer: Value, value: Value, sem: str, scope: str) -> Value:
    """What was in memory before an operation of `operation`."""
    by_bits = ".b" in operation or "16" in operation
    operand = as_integer(f, value) if by_bits else value
    text = f"atom.{sem}.{scope}{space_of(pointer.type)}.{operation} $0, [$1], $2;"
    (old,) = ptx(f, text, [operand.type], pointer, operand)
    return from_integer(f, old, value.type) if by_bits else old


def update_run(
    f: Function, operation: str, mask: Value, pointer: Value, values: Sequence[Value], sem: str, scope: str
) -> None:
    """Update neighbours, each by itself, where the mask holds; what was in memory before is not told."""
    operands = [as_integer(f, value) if "16" in operation else value for value in values]
    name, element = operation.rsplit(".", 1)
    places = ", ".join(f"${number + 2}" for number in range(len(values)))
    shape, listed = (f".v{len(values)}", f"{{{places}}}") if len(values) > 1 else ("", places)
    text = f"@$0 red.{sem}.{scope}{space_of(pointer.type)}.{name}{shape}.{element} [$1], {listed};"
    ptx(f, text, [], mask, pointer, *operands)


def compare_and_swap(f: Function, pointer: Value, expected: Value, new: Value, sem: str, scope: str) -> Value:
    """What was in memory before it was replaced by `new`, if that was `expected`; of 16 bits or more."""
    held: Type = as_integer(f, expected).type
    text = f"atom.{sem}.{scope}{space_of(pointer.type)}.cas.b{held.bits} $0, [$1], $2, $3;"
    (old,) = ptx(f, text, [held], pointer, as_integer(f, expected), as_integer(f, new))
    return from_integer(f, old, expected.type)
