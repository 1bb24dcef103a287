"""Printing and assertions from a running kernel: what targets share.

Level: intrinsic -> llvm. A printed line has the form of the reference executor's: program, index, text, value. A false
assertion writes what `targets/assertions.py` reads; the first one that fails stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from mltriton.dialects import tt
from mltriton.ir.types import FloatType, IntegerType, PointerType
from mltriton.records import NamedTuple
from mltriton.targets.llvm.emit.context import Emitter
from mltriton.targets.llvm.types import I1, I32, I64, VOID, Type, Value, constant


class Printed(NamedTuple):
    """A value as C's printf takes it, and the conversion that shows it."""

    conversion: str
    value: Value


def printable(e: Emitter, value: Value, type_: object, as_hex: bool) -> Printed:
    """A value of element type `type_`, widened."""
    f = e.function
    if isinstance(type_, FloatType):
        wide = e.widen(value, type_)
        return Printed("%f", f.cast("fpext", wide, wide.type.with_element("double")))
    if isinstance(type_, PointerType):
        return Printed("0x%016lx", f.cast("ptrtoint", value, value.type.with_element("i64")))
    is_boolean = isinstance(type_, IntegerType) and type_.width == 1
    wide = f.cast("zext" if as_hex or is_boolean else "sext", value, value.type.with_element("i64"))
    return Printed(f"0x%0{max(1, value.type.bits // 4)}lx" if as_hex else "%ld", wide)


def prefixes(op: tt.Print) -> list[str]:
    """What stands before the values of each operand."""
    several = len(op.arguments) > 1
    return [f"{op.prefix}(operand {number}) " if several else str(op.prefix) for number in range(len(op.arguments))]


def line_form(e: Emitter, prefix: str, conversion: str, widths: Sequence[int], integer: str, pointer: Type) -> Value:
    """The address of printf's text of a line, which is upstream's: three i32 for the program, one `integer` (a
    conversion's letters) for each index of the element, and the value where there is a `conversion`.
    """
    indices = ", ".join(f"%{width or ''}{integer}" for width in widths)
    index = f" idx ({indices})" if conversion else ""
    text = f"pid (%d, %d, %d){index}{prefix.replace('%', '%%')}{conversion}\n"
    data = text.encode() + b"\0"
    return e.module.bytes_constant(f"print.{crc32(data):08x}", data, pointer)


def record_failure(e: Emitter, op: tt.Assert, program: Value, element: Value, scope: str = "") -> None:
    """Write an assertion that failed (program and element are i64) into `e.failure`, unless another one did before."""
    f, number = e.function, constant(I32, e.assertions[op])
    swap = f"cmpxchg {e.failure}, i32 0, {number} {scope}acq_rel acquire, align 8"
    swapped = f.emit(swap, VOID, "cmpxchg", (e.failure, number))
    with f.when(f.emit(f"extractvalue {{ i32, i1 }} {swapped.text}, 1", I1), "first"):
        f.store(program, f.gep(e.failure, 1, I64))
        f.store(element, f.gep(e.failure, 2, I64))
