"""`tl.load` and `tl.store` through pointers, blocks of pointers and block pointers.

Takes pointers of any element type; guarantees that masks, values and pointers have one shape in the IR, that a bool
is read and written as one byte, and that a pointer is used as its kind allows (`PointerError`). Hints (cache,
eviction) never change a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import PointerError, ShapeMismatchError, TypeMismatchError
from mltriton.language import types
from mltriton.language.access_options import EVICTION, LOAD_CACHE, PADDING, STORE_CACHE, option
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast as convert_dtype
from mltriton.language.semantic import broadcast_all, broadcast_to, common_shape, stored_as, to_tensor, wrapped_axis
from mltriton.language.tensor import composite, tensor
from mltriton.language.types import block_type, dtype, pointer_type

__all__ = ["load", "store"]


@builtin
def load(
    pointer: object,
    mask: object = None,
    other: object = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """What `pointer` points to: a scalar for a pointer, a block for a block of pointers or a block pointer.

    Of a pointer into shared memory (`tl.alloc`) always the whole block.

    `mask` (int1, broadcast) says which elements are read; the others are `other`, or 0. For a block pointer
    `boundary_check` lists the dimensions that may reach outside the tensor; what lies outside is 0, or NaN with
    `padding_option="nan"`.
    """
    if isinstance(pointer, composite):
        from mltriton.language.shared_memory import forbid_options, load_shared, shared_pointer  # Few kernels have any.

        if isinstance(pointer, shared_pointer):
            options = {"boundary_check": boundary_check, "padding_option": padding_option}
            forbid_options("tl.load", mask=mask, other=other, **options)
            return load_shared(pointer)
    source = _pointer(pointer, "tl.load")
    hints: dict[str, Any] = {
        "cache": option(LOAD_CACHE, cache_modifier, "cache_modifier of tl.load"),
        "evict": option(EVICTION, eviction_policy, "eviction_policy"),
        "volatile": True if volatile else None,
    }
    padding = option(PADDING, padding_option, "padding_option")
    if source.is_block_pointer:
        _forbid_masks(mask, other, "tl.load")
        return _load_block(source, boundary_check, padding, hints)
    _forbid_checks(boundary_check, padding)
    if mask is None and other is not None:
        raise PointerError(
            "`other` of tl.load says what masked-off elements are, and there is no mask",
            hint="add mask=..., or leave out other=",
            upstream="`other` cannot be provided without `mask`",
        )
    return _load_elements(source, mask, other, hints)


def _load_elements(source: tensor, mask: object, other: object, hints: Mapping[str, Any]) -> tensor:
    element = _pointee(source)
    stored = types.int8 if element.is_bool() else element
    parts = [_as_bytes(source)]
    if mask is not None:
        parts.append(_mask(mask))
    if other is not None:
        parts.append(stored_as(other, stored))
    _forbid_blocks(source, parts[1:], "tl.load")
    handles = [part.handle for part in broadcast_all(*parts)]
    shape = broadcast_shape(parts)
    made = block_type(stored, shape) if shape else stored
    operands = [*handles, None, None][:3]
    loaded = tensor(current().emit(tt.Load, *operands, **hints), made)
    return convert_dtype(loaded, types.int1) if element.is_bool() else loaded


def broadcast_shape(values: Sequence[tensor]) -> tuple[int, ...]:
    """The common shape of several values."""
    shape: tuple[int, ...] = ()
    for value in values:
        shape = common_shape(shape, value.type.shape)
    return shape


def _load_block(source: tensor, boundary_check: Sequence[int], padding: str | None, hints: Mapping[str, Any]) -> tensor:
    made = cast(block_type, _pointee(source))
    if padding == "pad_nan" and not made.is_floating():
        raise PointerError(
            "padding_option='nan' needs floats",
            expected="a block of floats",
            found=made.name,
            hint="use padding_option='zero'",
        )
    checks = _checked_dimensions(boundary_check, made)
    handle = current().emit(tt.Load, source.handle, None, None, boundary_check=checks or None, padding=padding, **hints)
    return tensor(handle, made)


@builtin
def store(
    pointer: object,
    value: object,
    mask: object = None,
    boundary_check: Sequence[int] = (),
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write `value`, converted to the element type and broadcast, where `mask` is true.

    Through a block pointer inside the tensor along `boundary_check`.
    """
    if isinstance(pointer, composite):
        from mltriton.language.shared_memory import forbid_options, shared_pointer, store_shared  # As above.

        if isinstance(pointer, shared_pointer):
            forbid_options("tl.store", mask=mask, boundary_check=boundary_check)
            store_shared(pointer, value)
            return
    target = _pointer(pointer, "tl.store")
    check_writable(target, "tl.store")
    hints: dict[str, Any] = {
        "cache": option(STORE_CACHE, cache_modifier, "cache_modifier of tl.store"),
        "evict": option(EVICTION, eviction_policy, "eviction_policy"),
    }
    if target.is_block_pointer:
        _forbid_masks(mask, None, "tl.store")
        _store_block(target, value, boundary_check, hints)
    else:
        _forbid_checks(boundary_check, None)
        _store_elements(target, value, mask, hints)


def _store_elements(target: tensor, value: object, mask: object, hints: Mapping[str, Any]) -> None:
    element = _pointee(target)
    parts = [_as_bytes(target), convert_dtype(stored_as(value, element), types.int8 if element.is_bool() else element)]
    if mask is not None:
        parts.append(_mask(mask))
    _forbid_blocks(target, parts[1:], "tl.store")
    shape = broadcast_shape(parts)
    if shape != target.type.shape:
        raise ShapeMismatchError(
            "the pointers of tl.store have a smaller shape than what is stored",
            expected=f"pointers of shape {list(shape)}",
            found=f"{list(target.type.shape)}",
            hint="every element needs its own pointer: broadcast the offsets before adding them to the pointer",
            upstream=f"Expected pointer argument to have shape {list(shape)} but got {list(target.type.shape)}",
        )
    handles = [part.handle for part in broadcast_all(*parts)]
    current().create(tt.Store, *[*handles, None][:3], **hints)


def _store_block(target: tensor, value: object, boundary_check: Sequence[int], hints: Mapping[str, Any]) -> None:
    made = cast(block_type, _pointee(target))
    converted = stored_as(value, made.scalar)
    if converted.type.shape != made.shape and common_shape(converted.type.shape, made.shape) != made.shape:
        raise ShapeMismatchError(
            "the value does not fit the block pointer", expected=made.name, found=converted.type.name
        )
    checks = _checked_dimensions(boundary_check, made)
    current().create(
        tt.Store,
        target.handle,
        broadcast_to(converted, made.shape).handle,
        None,
        boundary_check=checks or None,
        **hints,
    )


def _pointer(value: object, what: str) -> tensor:
    if not isinstance(value, tensor) or not value.dtype.is_ptr():
        found = value.type.name if isinstance(value, tensor) else repr(value)
        raise PointerError(
            f"{what} needs a pointer",
            expected="a pointer, a block of pointers or a block pointer",
            found=found,
            hint=_descriptor_hint(value),
            upstream=f"Unsupported ptr type {found} in `{what}`",
        )
    return value


def _descriptor_hint(value: object) -> str | None:
    return (
        "a descriptor has methods: desc.load([i, j]), desc.store([i, j], value)"
        if hasattr(value, "block_shape")
        else None
    )


def _pointee(pointer: tensor) -> dtype:
    return cast(pointer_type, pointer.dtype).element_ty


def check_writable(pointer: tensor, what: str) -> None:
    """`PointerError` for a pointer to constant memory."""
    if pointer.dtype.is_const():
        raise PointerError(
            f"{what} through a pointer that is const: Cannot store to a constant pointer",
            found=pointer.type.name,
            hint="the parameter is annotated tl.const",
        )


def _as_bytes(pointer: tensor) -> tensor:
    """A pointer to bool as a pointer to int8: a bool takes a byte in memory."""
    kind = cast(pointer_type, pointer.dtype)
    return (
        convert_dtype(pointer, pointer_type(types.int8, kind.address_space, kind.const))
        if kind.element_ty.is_bool()
        else pointer
    )


def _mask(mask: object) -> tensor:
    made = to_tensor(mask)
    if not made.dtype.is_bool():
        raise TypeMismatchError(
            "a mask needs booleans", expected="int1", found=made.type.name, hint="compare first: offsets < n"
        )
    return made


def _forbid_blocks(pointer: tensor, others: Sequence[tensor], what: str) -> None:
    for other in others:
        if other.type.is_block() and not pointer.type.is_block():
            raise PointerError(
                f"{what} got a scalar pointer with a block",
                expected="a block of pointers",
                found=f"{pointer.type.name} with {other.type.name}",
                hint="add a block of offsets to the pointer: ptr + tl.arange(0, BLOCK)",
                upstream=f"{'Mask' if other.dtype.is_bool() else 'Value'} argument cannot be block type if pointer "
                "argument is not a block",
            )


def _forbid_masks(mask: object, other: object, what: str) -> None:
    if mask is not None or other is not None:
        raise PointerError(
            f"{what} through a block pointer takes no mask and no other",
            hint="use boundary_check=(0, 1) for dimensions that may reach outside, padding_option for what lies there",
        )


def _forbid_checks(boundary_check: Sequence[int], padding: str | None) -> None:
    if boundary_check or padding:
        raise PointerError(
            "boundary_check and padding_option are for block pointers", hint="use mask= and other= with pointers"
        )


def _checked_dimensions(boundary_check: object, block: block_type) -> tuple[int, ...]:
    listed: tuple[object, ...] = (
        tuple(cast("Sequence[object]", boundary_check))
        if isinstance(boundary_check, tuple | list)
        else (boundary_check,)
    )
    return tuple(sorted({wrapped_axis(dim, len(block.shape), "boundary_check") for dim in listed}))
