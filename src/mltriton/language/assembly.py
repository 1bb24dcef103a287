"""`tl.inline_asm_elementwise`: machine code of the target's own on the elements of blocks.

Takes text that belongs to one machine (on the CPU x86 or ARM assembly, as LLVM reads it), or text in LLVM's language,
and blocks, which broadcast. Each result of each of `pack` neighbouring elements of a pure fragment is an operation of
its own; LLVM makes one of those that are alike. A fragment that is not pure is one operation, which stays where it is.
Source: upstream's function of that name; the constraints are those of LLVM's inline assembly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import OptionError, ShapeMismatchError, TypeMismatchError
from mltriton.ir.attributes import ArrayAttr, TypeAttr
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast as converted
from mltriton.language.constants import unwrap
from mltriton.language.mapping import apart, together
from mltriton.language.semantic import broadcast_all, constexpr_int, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

__all__ = ["inline_asm_elementwise"]

LANGUAGES = ("assembly", "llvm")


@builtin
def inline_asm_elementwise(
    asm: object,
    constraints: object,
    args: Sequence[object],
    dtype: dtype | Sequence[dtype],
    is_pure: bool,
    pack: int,
    language: str = "assembly",
) -> Any:
    """What `asm` gives for the elements of `args`: a block of `dtype`, or a tuple of blocks where it is a sequence.

    `constraints` are LLVM's ("=r,r,r": results first). `pack` neighbouring elements of every argument are passed at
    once: those of less than 32 bits together in registers of up to 32, the first in the lowest bits; the others in a
    register each. A fragment that is not `is_pure` runs even if nobody takes its results, in the order of the program;
    where lanes or warps hold the same element each of them runs it. With `language="llvm"`, `asm` is the body of a
    function in LLVM's language of `%0`, `%1`, ... (the packed elements one by one) that ends in `ret` (a struct where
    there are several results), and `constraints` is "".
    Raises `OptionError`, `ShapeMismatchError`, `TypeMismatchError`; `AssemblyError` when it is compiled for a machine
    whose assembly it is not.
    """
    text, rules, kind = _text(asm, "asm"), _text(constraints, "constraints"), _text(language, "language")
    if kind not in LANGUAGES:
        raise OptionError("language of tl.inline_asm_elementwise", expected=" or ".join(LANGUAGES), found=kind)
    count = constexpr_int(pack, "the pack of tl.inline_asm_elementwise")
    if count < 1 or count & (count - 1):
        raise OptionError("pack of tl.inline_asm_elementwise", expected="a power of two", found=str(count))
    blocks = [_whole(block) for block in broadcast_all(*map(to_tensor, args))]
    given = unwrap(dtype)
    is_listed = isinstance(given, tuple | list)
    wanted = [_result(item) for item in (cast("Sequence[object]", given) if is_listed else (given,))]
    shape = blocks[0].type.shape if blocks else ()
    parts = _parts(blocks, count)
    emit = _emit if unwrap(is_pure) else _emit_once
    made = emit(parts, wanted, count, {"assembly": text, "constraints": rules, "is_llvm": kind == "llvm"})
    results = [together(made[at : at + count], shape) if shape else made[at] for at in range(0, len(made), count)]
    return tuple(results) if is_listed else results[0]


def _text(value: object, name: str) -> str:
    found = unwrap(value)
    if not isinstance(found, str):
        raise TypeMismatchError(f"{name} of tl.inline_asm_elementwise", expected="a string", found=repr(found))
    return found


def _whole(block: tensor) -> tensor:
    """A block of bytes in place of one of bits."""
    return converted(block, types.int8) if block.dtype == types.int1 else block


def _result(wanted: object) -> dtype:
    found = unwrap(wanted)
    if not isinstance(found, dtype) or found == types.int1 or found.is_packed():
        raise TypeMismatchError(
            "assembly gives integers and floats", expected="a dtype such as tl.int32", found=repr(found)
        )
    return found


def _parts(blocks: Sequence[tensor], count: int) -> list[tensor]:
    """The elements that one fragment gets."""
    if count == 1 or not blocks:
        return list(blocks)
    size = blocks[0].numel.value if blocks[0].type.shape else 1
    if size % count:
        message = f"pack of tl.inline_asm_elementwise does not divide the number of elements, {size}"
        raise ShapeMismatchError(message, found=str(count))
    return [part for block in blocks for part in apart(block, count)]


def _emit(parts: Sequence[tensor], wanted: Sequence[dtype], count: int, attributes: dict[str, Any]) -> list[tensor]:
    """Each element of each result, by an operation of its own."""
    handles, attributes = [part.handle for part in parts], {**attributes, "gives": _gives(wanted), "packed": count}
    made: list[tensor] = []
    for number, kind in enumerate(_kinds(parts, wanted, count)):
        handle = current().emit(tt.InlineAsm, handles, result_types=[kind.to_ir()], number=number, **attributes)
        made.append(tensor(handle, kind))
    return made


def _emit_once(
    parts: Sequence[tensor], wanted: Sequence[dtype], count: int, attributes: dict[str, Any]
) -> list[tensor]:
    """The same by one operation."""
    kinds = _kinds(parts, wanted, count)
    op = current().create(
        tt.VolatileAsm,
        [part.handle for part in parts],
        result_types=[kind.to_ir() for kind in kinds],
        gives=_gives(wanted),
        packed=count,
        **attributes,
    )
    return [tensor(result, kind) for result, kind in zip(op.results, kinds, strict=True)]


def _gives(wanted: Sequence[dtype]) -> ArrayAttr:
    return ArrayAttr(tuple(TypeAttr(kind.to_ir()) for kind in wanted))


def _kinds(parts: Sequence[tensor], wanted: Sequence[dtype], count: int) -> list[Any]:
    """The type of each result."""
    return [parts[0].type.with_element(kind) if parts else kind for kind in wanted for _ in range(count)]
