"""Atomic operations on global memory.

Takes a pointer or a block of pointers, values (converted to the element type and broadcast) and a mask; every one
gives the old values. `KINDS` is the table: a new atomic is a row. Maxima and minima of floats run on their bits, as
upstream: floats of one sign are ordered like integers.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt
from mltriton.errors import PointerError, ShapeMismatchError, TypeMismatchError
from mltriton.language import types
from mltriton.language.access_options import option
from mltriton.language.arithmetic import bitwise_and, invert
from mltriton.language.building import builtin, current, made_builtin
from mltriton.language.casting import cast as convert_dtype
from mltriton.language.casting import reinterpret
from mltriton.language.comparison import less_than, where
from mltriton.language.memory import broadcast_shape, check_writable
from mltriton.language.semantic import broadcast_all, stored_as, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype, pointer_type
from mltriton.records import NamedTuple

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor",
]  # fmt: skip

SEM = {"": None, "acquire": "acquire", "release": "release", "acq_rel": "acq_rel", "relaxed": "relaxed"}
SCOPE = {"": None, "gpu": "gpu", "cta": "cta", "sys": "sys"}


class Kinds(NamedTuple):
    """The IR's kind of an atomic on signed integers, unsigned integers and floats, None where there is none; and what
    it does.
    """

    signed: str
    unsigned: str
    floating: str | None
    meaning: str


KINDS = {
    "add": Kinds("add", "add", "fadd", "Add `val` to what `pointer` points to."),
    "max": Kinds("max", "umax", None, "Keep the larger of `val` and what `pointer` points to."),
    "min": Kinds("min", "umin", None, "Keep the smaller of `val` and what `pointer` points to."),
    "and": Kinds("and", "and", None, "Bitwise and with `val`, of integers."),
    "or": Kinds("or", "or", None, "Bitwise or with `val`, of integers."),
    "xor": Kinds("xor", "xor", None, "Bitwise exclusive or with `val`, of integers."),
    "xchg": Kinds("exch", "exch", "exch", "Replace what `pointer` points to by `val`."),
}
# Floats that are not negative are ordered as signed integers are, negative ones the other way round as unsigned.
ON_BITS = {"max": ("max", "umin"), "min": ("min", "umax")}


class _Operands(NamedTuple):
    """Pointer, value and mask of one shape, and the memory order."""

    pointer: tensor
    value: tensor
    mask: tensor | None
    sem: str | None
    scope: str | None


def _operands(name: str, pointer: object, value: object, mask: object, sem: str | None, scope: str | None) -> _Operands:
    target = _target(name, pointer)
    element = cast(pointer_type, target.dtype).element_ty
    parts = [target, stored_as(value, element)]
    if mask is not None:
        parts.append(_mask(name, mask))
    shape = broadcast_shape(parts)
    if shape != target.type.shape:
        raise ShapeMismatchError(
            f"the pointers of tl.{name} have a smaller shape than the values",
            expected=f"pointers of shape {list(shape)}",
            found=str(list(target.type.shape)),
        )
    made = broadcast_all(*parts)
    return _Operands(
        made[0],
        made[1],
        made[2] if mask is not None else None,
        option(SEM, sem, f"sem of tl.{name}"),
        option(SCOPE, scope, f"scope of tl.{name}"),
    )


def _target(name: str, pointer: object) -> tensor:
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr() or pointer.is_block_pointer:
        found = pointer.type.name if isinstance(pointer, tensor) else repr(pointer)
        raise PointerError(f"tl.{name} needs a pointer", expected="a pointer or a block of pointers", found=found)
    check_writable(pointer, f"tl.{name}")
    return pointer


def _mask(name: str, mask: object) -> tensor:
    made = to_tensor(mask)
    if not made.dtype.is_bool():
        raise TypeMismatchError(f"the mask of tl.{name} needs booleans", expected="int1", found=made.type.name)
    return made


def _check_element(name: str, element: dtype) -> None:
    """32 and 64 bits for all, 16-bit floats for add."""
    wide = element.bits in (32, 64) and not element.is_ptr()
    if not wide and not (name == "add" and element in (types.float16, types.bfloat16)):
        extra = ", fp16 or bf16" if name == "add" else ""
        raise TypeMismatchError(
            f"tl.atomic_{name} does not work on {element}",
            expected=f"a dtype of 32 or 64 bits{extra}",
            found=str(element),
        )


def _update(name: str, pointer: object, value: object, mask: object, sem: str | None, scope: str | None) -> tensor:
    operands = _operands(f"atomic_{name}", pointer, value, mask, sem, scope)
    element = operands.value.dtype
    _check_element(name, element)
    if element.is_floating() and name in ON_BITS:
        return _on_bits(*ON_BITS[name], operands)
    kinds = KINDS[name]
    kind = kinds.floating if element.is_floating() else kinds.signed if element.is_int_signed() else kinds.unsigned
    if kind is None:
        raise TypeMismatchError(f"tl.atomic_{name} is for integers", expected="an integer dtype", found=str(element))
    return _rmw(kind, operands)


def _rmw(kind: str, operands: _Operands) -> tensor:
    pointer, value, mask, sem, scope = operands
    handle = current().emit(
        tt.AtomicRMW,
        pointer.handle,
        value.handle,
        mask.handle if mask is not None else None,
        kind=kind,
        sem=sem,
        scope=scope,
    )
    return tensor(handle, value.type)


def _on_bits(not_negative: str, negative: str, operands: _Operands) -> tensor:
    """An ordering atomic on floats as two masked atomics on their bits, of which one acts on each element."""
    bits = operands.value.dtype.bits
    signed, unsigned = types.get_int_dtype(bits, signed=True), types.get_int_dtype(bits, signed=False)
    is_negative = less_than(reinterpret(operands.value, signed), 0)
    old = [
        _rmw(kind, _as_integers(operands, integer, chosen))
        for kind, integer, chosen in ((not_negative, signed, invert(is_negative)), (negative, unsigned, is_negative))
    ]
    return reinterpret(where(is_negative, reinterpret(old[1], signed), old[0]), operands.value.dtype)


def _as_integers(operands: _Operands, integer: dtype, chosen: tensor) -> _Operands:
    pointer = convert_dtype(operands.pointer, pointer_type(integer))
    mask = chosen if operands.mask is None else bitwise_and(operands.mask, chosen)
    return operands._replace(pointer=pointer, value=reinterpret(operands.value, integer), mask=mask)


def _atomic(name: str):
    """The builtin of a row of `KINDS`."""

    def function(
        pointer: object, val: object, mask: object = None, sem: str | None = None, scope: str | None = None
    ) -> tensor:
        return _update(name, pointer, val, mask, sem, scope)

    return made_builtin(function, f"atomic_{name}", KINDS[name].meaning)


atomic_add, atomic_max, atomic_min = _atomic("add"), _atomic("max"), _atomic("min")
atomic_and, atomic_or, atomic_xor = _atomic("and"), _atomic("or"), _atomic("xor")
atomic_xchg = _atomic("xchg")


@builtin
def atomic_cas(pointer: object, cmp: object, val: object, sem: str | None = None, scope: str | None = None) -> tensor:
    """Replace what `pointer` points to by `val` where it has the bits of `cmp`."""
    operands = _operands("atomic_cas", pointer, val, None, sem, scope)
    element = operands.value.dtype
    if element.bits not in (16, 32, 64) or element.is_ptr():
        raise TypeMismatchError(
            f"tl.atomic_cas does not work on {element}", expected="a dtype of 16, 32 or 64 bits", found=str(element)
        )
    expected = broadcast_all(operands.pointer, stored_as(cmp, element))[1]
    if expected.type.shape != operands.value.type.shape:
        raise ShapeMismatchError(
            "the compared values of tl.atomic_cas do not fit the pointers",
            expected=operands.value.type.name,
            found=expected.type.name,
        )
    handle = current().emit(
        tt.AtomicCAS,
        operands.pointer.handle,
        expected.handle,
        operands.value.handle,
        sem=operands.sem,
        scope=operands.scope,
    )
    return tensor(handle, operands.value.type)
