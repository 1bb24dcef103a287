"""Memory of one chunk: through tensors of pointers, block pointers and descriptors.

Level: warp to intrinsic. All three become a form of addresses and a form of the mask. Stride 1 is a `tile.load` or
`tile.store`, a uniform address a scalar access, anything else a gather or scatter. A block pointer is its base, shape,
strides and offsets as scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, tile, tt
from mltriton.errors import TargetError
from mltriton.ir.attributes import Attribute, EnumAttr, IntegerAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, I32, I64, FloatType, PointerType, TensorType, Type, byte_width
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.emitter import NO_ATTRIBUTES, refuse
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Uniform, Vector, constant_index, is_uniform
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator

INT32_MAX = (1 << 31) - 1


class BlockPointer(NamedTuple):
    """A block in memory: element i of dimension d is at (offsets[d] + i) * strides[d] from the base, inside the tensor
    where 0 <= offsets[d] + i < shape[d]. All are new scalars; `pads_nan` says what a descriptor gives outside.
    """

    base: Value
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    offsets: tuple[Value, ...]
    pads_nan: bool = False


class Access(NamedTuple):
    """Addresses, and where they may be touched (None: everywhere)."""

    address: Form
    mask: Form | None


def block_pointer(e: Evaluator, value: Value) -> BlockPointer:
    """What a block pointer or descriptor stands for."""
    found = e.pointers.get(value)
    if found is None:
        op = value.defining_op
        if isinstance(op, tt.MakeTensorPtr | tt.MakeTensorDesc):
            offsets = [e.scalar(v) for v in op.offsets] if isinstance(op, tt.MakeTensorPtr) else []
            nan = isinstance(op, tt.MakeTensorDesc) and op.padding == "pad_nan"
            shape, strides = ([e.scalar(v) for v in group] for group in (op.shape, op.strides))
            found = BlockPointer(e.scalar(op.base), tuple(shape), tuple(strides), tuple(offsets), nan)
        elif op is not None:
            raise refuse(op, "a block pointer must be known where it is used")
        else:
            raise TargetError(
                "this target takes no descriptor as a parameter",
                found=str(value.type),
                hint="Pass the pointer, shape and strides, and call tl.make_tensor_descriptor in the kernel.",
            )
        e.pointers[value] = found
    return found


def add_scalars(e: Evaluator, a: Value, b: Value) -> Value:
    """a + b, folded where both are known."""
    return e.arithmetic.scalar(combine(e, arith.AddI, [e.arithmetic.wrap(a), e.arithmetic.wrap(b)], a.type, 1, {}))


def access_at(e: Evaluator, op: Operation, index: Index, lanes: int) -> Access:
    """Where a load, store or atomic touches memory for the element at `index`."""
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        pointer = block_pointer(e, op.desc)._replace(offsets=tuple(e.scalar(v) for v in op.indices))
        index = (constant_index(0),) * (len(pointer.offsets) - len(index)) + index
        return block_access(e, pointer, () if op in e.unmasked else tuple(range(len(index))), index, lanes)
    assert isinstance(op, tt.Load | tt.Store)
    if isinstance(op.ptr.type, PointerType) and isinstance(op.ptr.type.pointee, TensorType):
        checked = () if op in e.unmasked else op.boundary_check
        return block_access(e, block_pointer(e, op.ptr), checked, index, lanes)
    mask = None if op.mask is None or op in e.unmasked else e.at(op.mask, index, lanes)
    return Access(e.at(op.ptr, index, lanes), None if is_true(e, mask) else mask)


def address_at(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """The same without its mask."""
    if isinstance(op, tt.Load | tt.Store) and isinstance(op.ptr.type, TensorType):
        return e.at(op.ptr, index, lanes)
    return access_at(e, op, index, lanes).address


def is_true(e: Evaluator, mask: Form | None) -> bool:
    """Whether a mask is known to hold everywhere."""
    return isinstance(mask, Uniform) and e.emitter.integers.get(mask.value) == 1


def block_access(e: Evaluator, block: BlockPointer, checked: tuple[int, ...], index: Index, lanes: int) -> Access:
    """An element of a block, relative to its offsets. Addresses of the uniform dimensions come first, so that they
    stand outside the loop over the lanes.
    """
    wrap = e.arithmetic.wrap
    address: Form = wrap(block.base)
    mask: Form | None = None
    order = sorted(range(len(index)), key=lambda dim: (not is_uniform(index[dim]), e.arithmetic.depth(index[dim])))
    for dim in order:
        coordinate = combine(e, arith.AddI, [wrap(block.offsets[dim]), index[dim]], I32, lanes, {})
        wide = combine(e, arith.ExtSI, [coordinate], I64, lanes, {})
        step = wrap(block.strides[dim])
        if block.strides[dim].type is not I64:
            step = combine(e, arith.ExtSI, [step], I64, 1, {})
        moved = combine(e, arith.MulI, [wide, step], I64, lanes, {})
        address = combine(e, tt.AddPtr, [address, moved], block.base.type, lanes, {})
        if dim in checked:
            inside = compare(e, "ult", coordinate, wrap(extent_of(e, block.shape[dim])), lanes)
            mask = inside if mask is None else combine(e, arith.AndI, [mask, inside], I1, lanes, {})
    return Access(address, mask)


def extent_of(e: Evaluator, extent: Value) -> Value:
    """A dimension of a tensor as an i32: coordinates are, so that a larger one holds them all; a negative one none."""
    if extent.type is I32:
        largest = e.emitter.integers.get(extent)
        zero = e.emitter.integer(0)
        return extent if largest is not None and largest >= 0 else e.emitter.pure(arith.MaxSI, (extent, zero), I32)
    known = e.emitter.integers.get(extent)
    if known is not None:
        return e.emitter.integer(max(0, min(known, INT32_MAX)))
    clamped = e.emitter.pure(arith.MinSI, (extent, e.emitter.integer(INT32_MAX, I64)), I64)
    clamped = e.emitter.pure(arith.MaxSI, (clamped, e.emitter.integer(0, I64)), I64)
    return e.emitter.pure(arith.TruncI, (clamped,), I32)


def compare(e: Evaluator, predicate: str, a: Form, b: Form, lanes: int) -> Form:
    """An integer comparison."""
    return combine(e, arith.CmpI, [a, b], I1, lanes, _predicate(predicate))


@cache
def _predicate(name: str) -> dict[str, EnumAttr]:
    return {"predicate": EnumAttr("cmpi", name)}


# Loads and stores


def load_at(e: Evaluator, op: tt.Load | tt.DescriptorLoad, index: Index, lanes: int) -> Form:
    """The element of a load at `index`."""
    access = access_at(e, op, index, lanes)
    element = cast(TensorType, op.result.type).element
    other: Form | None = None
    if isinstance(op, tt.Load) and op.other is not None:
        other = e.at(op.other, index, lanes)
    elif _pads_nan(e, op) and isinstance(element, FloatType):
        other = Uniform(e.emitter.number(float("nan"), element))
    if access.mask is None and is_uniform(access.address) and not lasting(op):
        return _read_once(e, op, access.address, element)
    return read(e, access.address, access.mask, other, element, lanes, lasting(op))


def _read_once(e: Evaluator, op: tt.Load | tt.DescriptorLoad, address: Form, element: Type) -> Form:
    """The one element that all chunks of a step have at the same address: it is loaded for the first of them, so that
    what is computed from it is written once, too. A load happens at one time, so what is stored after it is not meant.
    """
    memo = e.emitter.scopes[-1].memo
    found = memo.get((op, address))
    if found is None:
        found = memo[op, address] = read(e, address, None, None, element, 1)
    return found


def lasting(op: Operation) -> Mapping[str, Attribute]:
    """What of a load holds for the accesses that are made of it."""
    return {"volatile": op.attributes["volatile"]} if isinstance(op, tt.Load) and op.volatile else {}


def _pads_nan(e: Evaluator, op: tt.Load | tt.DescriptorLoad) -> bool:
    if isinstance(op, tt.Load):
        return op.padding == "pad_nan"
    return block_pointer(e, op.desc).pads_nan


def read(
    e: Evaluator,
    address: Form,
    mask: Form | None,
    other: Form | None,
    element: Type,
    lanes: int,
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
) -> Form:
    """Elements of memory; where the mask is false, `other` or 0. `attributes` are what the accesses say."""
    arithmetic, emitter = e.arithmetic, e.emitter
    if mask is None:
        other = None
    if is_uniform(address) and (mask is None or is_uniform(mask)) and (other is None or is_uniform(other)):
        operands = [None if form is None else arithmetic.scalar(form) for form in (address, mask, other)]
        return arithmetic.wrap(emitter.effect(tt.Load, operands, (element,), attributes).results[0])
    lanes = max(lanes, *(_lanes(form) for form in (address, mask, other)))
    rest = [None if form is None else arithmetic.chunk(form, lanes) for form in (mask, other)]
    type = emitter.chunk_type(element, lanes)
    if isinstance(address, Affine) and address.stride == 1:
        attributes = {**_alignment(e, address, element, lanes), **attributes}
        made = emitter.effect(tile.Load, [arithmetic.scalar(address), *rest], (type,), attributes)
    else:
        made = emitter.effect(tt.Load, [arithmetic.chunk(address, lanes), *rest], (type,), attributes)
    return Vector(made.results[0])


def _lanes(form: Form | None) -> int:
    return cast(TensorType, form.value.type).size if isinstance(form, Vector) else 1


def write(e: Evaluator, address: Form, mask: Form | None, value: Form, lanes: int) -> None:
    """Store elements where the mask is true."""
    arithmetic, emitter = e.arithmetic, e.emitter
    if is_uniform(address) and is_uniform(value) and (mask is None or is_uniform(mask)):
        operands = [None if form is None else arithmetic.scalar(form) for form in (address, value, mask)]
        emitter.effect(tt.Store, operands)
        return
    lanes = max(lanes, *(_lanes(form) for form in (address, mask, value)))
    chunk, chunk_mask = arithmetic.chunk(value, lanes), None if mask is None else arithmetic.chunk(mask, lanes)
    if isinstance(address, Affine) and address.stride == 1:
        element = cast(TensorType, chunk.type).element
        attributes = _alignment(e, address, element, lanes)
        emitter.effect(tile.Store, [arithmetic.scalar(address), chunk, chunk_mask], (), attributes)
    else:
        emitter.effect(tt.Store, [arithmetic.chunk(address, lanes), chunk, chunk_mask])


def _alignment(e: Evaluator, address: Affine, element: Type, lanes: int) -> dict[str, IntegerAttr]:
    """What is known of the address's alignment: scratch tiles start at cache lines."""
    base = address.base
    assert base is not None
    offset = address.const * byte_width(element)
    op = base.defining_op
    while isinstance(op, tt.AddPtr):
        offset |= e.emitter.multiple_of(op.offset) * byte_width(element)
        op = op.ptr.defining_op
    if not isinstance(op, tile.Scratch):
        return {}
    align = min(64, lanes * byte_width(element))
    return _aligned(align) if offset % align == 0 else {}


@cache
def _aligned(align: int) -> dict[str, IntegerAttr]:
    return {"align": IntegerAttr(align, I32)}
