"""Atomic loads, stores and waiting: `tl.atomic_load`, `tl.atomic_store`, `tl.atomic_poll`.

Takes pointers or blocks of pointers; guarantees that a value is read or written whole, and in order with other accesses
as an atomic update is, because it is one: 32 and 64 bits are read by an update that changes nothing. 8 and 16 bits are
plain accesses, which machines do whole.
"""

from __future__ import annotations

from typing import Any, cast

from mltriton.errors import OptionError, TypeMismatchError
from mltriton.frontend.function import LanguageFunction
from mltriton.language import types
from mltriton.language.arithmetic import floordiv, invert
from mltriton.language.atomics import atomic_cas, atomic_or, atomic_xchg
from mltriton.language.building import builtin, inline
from mltriton.language.casting import cast as convert
from mltriton.language.casting import reinterpret
from mltriton.language.comparison import equal, greater_than
from mltriton.language.memory import load, store
from mltriton.language.reductions import sum
from mltriton.language.semantic import broadcast_all, stored_as, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import pointer_type

__all__ = ["atomic_load", "atomic_poll", "atomic_store"]

POLL_NS = 20  # what a poll counts for in `timeout_ns`: targets have no clock
_POLLED = (16, 32, 64)  # bits


def _check_order(name: str, sem: str | None, *allowed: str) -> None:
    if sem not in (None, "", "relaxed", *allowed):
        listed = " and ".join((*allowed, "relaxed"))
        raise OptionError(f"{name} only supports {listed} semantics", expected=listed, found=repr(sem))


def _pointee(pointer: object, name: str) -> types.dtype:
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr() or pointer.is_block_pointer:
        found = pointer.type.name if isinstance(pointer, tensor) else repr(pointer)
        raise TypeMismatchError(f"Unsupported ptr type in `tl.{name}`", expected="pointers", found=found)
    return cast(pointer_type, pointer.dtype).element_ty


@builtin
def atomic_load(pointer: object, mask: object = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """What `pointer` points to, read whole; unspecified where `mask` is false. `sem` is "acquire" or "relaxed"."""
    _check_order("atomic_load", sem, "acquire")
    element = _pointee(pointer, "atomic_load")
    source = cast(tensor, pointer)
    if element.bits < 32:
        return load(source, mask, volatile=True)
    integer = types.get_int_dtype(element.bits, signed=True)
    bits = atomic_or(convert(source, pointer_type(integer)), 0, mask, sem or "acquire", scope)
    return reinterpret(bits, element)


@builtin
def atomic_store(
    pointer: object, val: object, mask: object = None, sem: str | None = None, scope: str | None = None
) -> None:
    """Write `val`, whole, where `mask` is true. `sem` is "release" or "relaxed"."""
    _check_order("atomic_store", sem, "release")
    if _pointee(pointer, "atomic_store").bits < 32:
        store(pointer, val, mask)
    else:
        atomic_xchg(pointer, val, mask, sem or "release", scope)


@builtin
def atomic_poll(
    pointer: object,
    expected_value: object,
    sem: str | None = None,
    scope: str | None = None,
    timeout_ns: object = None,
) -> tensor:
    """Wait until `pointer` points to `expected_value` everywhere; true where it was seen, false where `timeout_ns`
    ended before (counted in polls of 20 ns, at least one).

    A program may wait for those before it in the grid only: later ones may start when it has ended. Integers of 16, 32
    or 64 bits.
    """
    _check_order("atomic_poll", sem, "acquire")
    element = _pointee(pointer, "atomic_poll")
    if not element.is_int() or element.bits not in _POLLED:
        raise TypeMismatchError(
            "atomic_poll only supports integer elements with width {16, 32, 64}",
            expected="integers of 16, 32 or 64 bits",
            found=str(element),
        )
    pointers, expected = broadcast_all(cast(tensor, pointer), stored_as(expected_value, element))
    return inline(_WAIT, [pointers, expected, _polls(timeout_ns), sem or "acquire", scope])


def _polls(timeout_ns: object) -> object:
    if timeout_ns is None:
        return None
    if isinstance(timeout_ns, int) and timeout_ns < 0:
        raise OptionError("atomic_poll timeout_ns must be non-negative", found=str(timeout_ns))
    budget = to_tensor(timeout_ns)
    if budget.type.is_block() or not budget.dtype.is_int():
        raise TypeMismatchError("atomic_poll timeout_ns must be a scalar integer", found=budget.type.name)
    return floordiv(convert(budget, types.int64), POLL_NS)


@builtin
def _seen(pointer: tensor, expected: tensor, sem: str, scope: str | None) -> tensor:
    """Where the expected value is: it is replaced by itself."""
    return equal(atomic_cas(pointer, expected, expected, sem, scope), expected)


@builtin
def _is_missing(found: tensor) -> tensor:
    return greater_than(sum(convert(invert(found), types.int32)), 0) if found.type.is_block() else invert(found)


def _wait(pointer: Any, expected: Any, polls: Any, sem: Any, scope: Any) -> Any:
    """Written in the language."""
    found = _seen(pointer, expected, sem, scope)
    if polls is None:
        while _is_missing(found):
            found = found | _seen(pointer, expected, sem, scope)
    else:
        while _is_missing(found) & (polls > 0):
            found = found | _seen(pointer, expected, sem, scope)
            polls -= 1
    return found


_WAIT = LanguageFunction(_wait)
