"""From a launch's arguments to values of the function's parameters.

Level: all. Takes, in the order of the parameters, arrays for pointers, numbers for scalars and descriptions for
descriptors; gives addresses in the simulated memory and numpy scalars. Every array's whole base buffer becomes a
segment, so that a view with offsets in its base is legal; views of one buffer share it.

    array                      for a pointer to
    numpy of the same width    its kind (u4 and i4 both for i32; u2, or ml_dtypes' bfloat16, for bf16; u1 for fp8)
    torch CPU tensor           its dtype, without a copy
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import ArgumentError, DeviceError
from mltriton.executor.blocks import TensorView
from mltriton.executor.segments import Memory, Segment, bytes_at
from mltriton.executor.values import Array, is_block, memory_dtype, scalar
from mltriton.ir.operation import Value
from mltriton.ir.types import FloatType, IntegerType, PointerType, TensorDescType, Type
from mltriton.records import record

ALIGNMENT = 64  # what is kept of an array's real address: its remainder by this


def bind(function: tt.Func, args: Sequence[Any], memory: Memory) -> list[Any]:
    """Values for the parameters of the function, whose arrays are put into `memory`.

    ArgumentError for what does not fit.
    """
    parameters = function.body.block.arguments
    args = _taken_apart(parameters, args)
    if len(parameters) != len(args):
        raise ArgumentError(
            f"@{function.sym_name} takes {len(parameters)} arguments and got {len(args)}",
            expected=", ".join(f"{_name(p)}: {p.type}" for p in parameters),
        )
    ranges = Ranges(memory, [_arrays_of(p, arg) for p, arg in zip(parameters, args, strict=True)])
    return [_value(parameter, arg, ranges) for parameter, arg in zip(parameters, args, strict=True)]


def _taken_apart(parameters: Sequence[Value], args: Sequence[Any]) -> list[Any]:
    """The arguments with host descriptors as their parts, where the function takes these (`runtime/parts.py`)."""
    flat: list[Any] = []
    for arg in args:
        is_pointer = len(flat) < len(parameters) and isinstance(parameters[len(flat)].type, PointerType)
        if is_pointer and hasattr(arg, "block_shape"):
            flat += [arg.base, *arg.shape, *arg.strides[:-1]]
        else:
            flat.append(arg)
    return flat


class Ranges:
    """The buffers of all arrays: overlapping ones are one segment."""

    def __init__(self, memory: Memory, arrays: Sequence[tuple[str, Array] | None]) -> None:
        self.segments: list[tuple[int, int, Segment]] = []  # first and last real address, segment
        spans = sorted(
            (*_extent(array), name, array.flags.writeable) for entry in arrays if entry for name, array in [entry]
        )
        merged: list[tuple[int, int, str, bool]] = []
        for low, high, name, writable in spans:
            if merged and low < merged[-1][1]:
                before = merged.pop()
                merged.append((before[0], max(before[1], high), f"{before[2]} and {name}", before[3] or writable))
            else:
                merged.append((low, high, name, writable))
        for low, high, name, writable in merged:
            segment = memory.add(name, bytes_at(low, high - low), alignment=low % ALIGNMENT, writable=writable)
            self.segments.append((low, high, segment))

    def address(self, array: Array) -> np.int64:
        """The simulated address of an array's first element."""
        real = int(array.__array_interface__["data"][0])
        low, _, segment = next(
            entry for entry in self.segments if entry[0] <= real <= entry[1] and (real < entry[1] or not array.size)
        )
        return np.int64(segment.start + real - low)


def _extent(array: Array) -> tuple[int, int]:
    """First and one-past-last real address of the buffer that the array is a view of."""
    base: Array = array
    while is_block(base.base):
        base = base.base
    low, high = np.lib.array_utils.byte_bounds(base) if base.size else (int(base.__array_interface__["data"][0]),) * 2
    return low, high


def _name(parameter: Value) -> str:
    return parameter.hint or f"argument {cast(Any, parameter).index}"


def _arrays_of(parameter: Value, arg: Any) -> tuple[str, Array] | None:
    """The array that an argument brings with it, and what to call its memory."""
    if isinstance(parameter.type, PointerType):
        return _name(parameter), as_array(arg, parameter.type.pointee, _name(parameter))
    if isinstance(parameter.type, TensorDescType):
        return _name(parameter), as_array(arg.base, parameter.type.block.element, _name(parameter))
    return None


def _value(parameter: Value, arg: Any, ranges: Ranges) -> Any:
    type, name = parameter.type, _name(parameter)
    if isinstance(type, PointerType):
        return ranges.address(as_array(arg, type.pointee, name))
    if isinstance(type, TensorDescType):
        base = ranges.address(as_array(arg.base, type.block.element, name))
        return TensorView(int(base), tuple(arg.shape), tuple(arg.strides), (0,) * len(arg.shape), _pads_nan(arg))
    number: Any = arg.item() if hasattr(arg, "item") else arg
    if isinstance(type, IntegerType) and not isinstance(number, int):
        raise ArgumentError(f"{name} is no integer", expected=str(type), found=repr(number))
    if isinstance(type, FloatType) and not isinstance(number, int | float):
        raise ArgumentError(f"{name} is no number", expected=str(type), found=repr(number))
    return scalar(number, type)


def _pads_nan(descriptor: Any) -> bool:
    return getattr(descriptor, "padding", None) in ("nan", "pad_nan")


@record(frozen=True)
class Bits:
    """An argument whose memory is elements of the parameter's type, whatever its own are."""

    array: Any


def as_array(arg: Any, element: Type, name: str) -> Array:
    """An argument for a pointer to `element` as a numpy array that shares its memory."""
    given = arg.array if isinstance(arg, Bits) else arg
    array: Array = _tensor_array(given, name) if is_tensor(given) else given
    if not is_block(array):
        raise ArgumentError(f"{name} is no array", expected=f"an array of {element}", found=type(arg).__name__)
    wanted, dtype = memory_dtype(element), array.dtype
    if isinstance(arg, Bits):
        return array
    if dtype.itemsize != wanted.itemsize or (dtype.kind == "f") != (wanted.kind == "f"):
        raise ArgumentError(f"{name} has another element type", expected=f"{wanted} (for {element})", found=str(dtype))
    return array


def is_tensor(arg: Any) -> bool:
    """Whether the argument is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(arg, torch.Tensor)


def _tensor_array(tensor: Any, name: str) -> Array:
    """A numpy view of a CPU tensor within its whole storage; types that numpy has not become unsigned integers."""
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise DeviceError(f"{name} lies on {tensor.device}", expected="a CPU tensor")
    width = tensor.element_size()
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    try:
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:
        dtype = np.dtype(f"u{width}")
    strides = tuple(step * width for step in tensor.stride())
    return np.ndarray(tuple(tensor.shape), dtype, storage, tensor.storage_offset() * width, strides)
