"""Arrays of either kind: numpy and torch behind the few questions a kernel's wrapper asks.

Level: user. Nothing here copies data. Strides count elements. torch is only imported if the caller already did.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mltriton.errors import ArgumentError

Array = Any  # numpy.ndarray or torch.Tensor


def is_torch(x: Array) -> bool:
    """Whether `x` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def require_one_kind(**arrays: Array) -> None:
    """Raise `ArgumentError` unless all are numpy arrays or all are torch tensors."""
    kinds = _kinds(arrays)
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise ArgumentError("the arrays differ in kind", expected="all numpy or all torch", found=found)


def require_arrays(**arrays: Array) -> None:
    """Raise `ArgumentError` unless all are arrays of one kind and one dtype."""
    kinds = _kinds(arrays)
    if len(set(kinds.values())) > 1 or len({str(x.dtype) for x in arrays.values()}) > 1:
        found = ", ".join(f"{name}: {kinds[name]} {x.dtype}" for name, x in arrays.items())
        raise ArgumentError("the arrays differ in kind or dtype", expected="one kind and one dtype", found=found)


def require_count(name: str, value: Any) -> None:
    """Raise `ArgumentError` unless `value` is a positive integer; `name` begins with the function's."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(f"{name} must be an integer", expected="an int", found=f"{value!r}")
    if value < 1:
        raise ArgumentError(f"{name} must be positive", expected="1 or more", found=str(value))


def number(name: str, value: Any) -> float:
    """`value`, a number of Python, numpy or torch, as a float; `ArgumentError` for what is none."""
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise ArgumentError(f"{name} must be a number", expected="a float", found=f"{value!r}")


def _kinds(arrays: Mapping[str, Array]) -> dict[str, str]:
    """The kind of each array by name."""
    kinds = {
        name: ("torch" if is_torch(x) else "numpy" if isinstance(x, np.ndarray) else "") for name, x in arrays.items()
    }
    for name, kind in kinds.items():
        if not kind:
            raise ArgumentError(
                f"{name} is no array", expected="numpy.ndarray or torch.Tensor", found=type(arrays[name]).__name__
            )
    return kinds


def dtype_name(x: Array) -> str:
    """The dtype as numpy and torch both call it: "float32"."""
    return str(x.dtype).removeprefix("torch.")


def strides_of(x: Array) -> tuple[int, ...]:
    """Strides in elements."""
    if is_torch(x):
        return tuple(x.stride())
    return tuple(stride // x.itemsize for stride in x.strides)


def canonical_dtype(dtype: Any, like: Array) -> str:
    """The name of a dtype given as a name or as a dtype of numpy or torch. Raises `ArgumentError` where arrays of the
    kind of `like` cannot have it.
    """
    name = str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else np.dtype(dtype).name
    _native_dtype(name, like)
    return name


def _native_dtype(name: str, like: Array) -> Any:
    """The dtype that the library of `like` calls so."""
    if is_torch(like):
        torch = sys.modules["torch"]
        found = getattr(torch, name, None)
        if isinstance(found, torch.dtype):
            return found
    else:
        try:
            return np.dtype(name)
        except TypeError:
            pass
    kind = "torch" if is_torch(like) else "numpy"
    raise ArgumentError(f"{kind} has no such dtype", expected="a name such as float32", found=name)


def empty(shape: Sequence[int], like: Array, dtype: str | None = None) -> Array:
    """An uninitialised contiguous array of the kind and device of `like`, and of its dtype unless another is named."""
    native = like.dtype if dtype is None else _native_dtype(dtype, like)
    count, shape = math.prod(shape), tuple(shape)
    size = count * native.itemsize
    if is_torch(like):
        if size < _LARGE or like.device.type != "cpu":
            return like.new_empty(shape, dtype=native)
        memory, start = _beside(like.data_ptr(), size)
        return sys.modules["torch"].frombuffer(memory, dtype=native, count=count, offset=start).view(shape)
    if size < _LARGE:
        return np.empty(shape, native)
    return np.ndarray(shape, native, *_beside(like.__array_interface__["data"][0], size))


# From this size on, memory comes through numpy, which asks for huge pages: the first writes then take half the
# time, since the operating system clears 2 MB at a fault and not 4 KB. Whole cache lines are stored faster.
_LARGE = 4 << 20
_ALIGNMENT = 64
_PAGE = 4096


def _beside(address: int, size: int) -> tuple[Array, int]:
    """Memory, and where so many bytes of it start: with a cache line, as far from a page's start as the line at an
    address. Cores take a load for one of what they have just stored where the two are less than a line apart in their
    pages, and then rows of 4096 take twice as long.
    """
    memory = np.empty(size + _PAGE, np.uint8)
    return memory, (address // _ALIGNMENT * _ALIGNMENT - memory.__array_interface__["data"][0]) % _PAGE


def empty_as(x: Array, like: Array) -> Callable[[Array], Array] | None:
    """torch's own function that gives arrays like the contiguous `x` of any that is as `like`; None where it would not
    be the memory that `empty` gives.
    """
    is_same = is_torch(like) and x.dtype == like.dtype and x.shape == like.shape and x.stride() == like.stride()
    if not is_same or (x.device.type == "cpu" and x.nbytes >= _LARGE):
        return None
    return sys.modules["torch"].empty_like


def item_size(x: Array) -> int:
    """Bytes of one element."""
    return x.element_size() if is_torch(x) else x.itemsize


def requires_gradient(*arrays: Any) -> bool:
    """Whether torch is to record what is computed from the arrays."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled() and any(is_torch(x) and x.requires_grad for x in arrays)


def recorded(function: str, arrays: Mapping[str, Array | None], **options: Any) -> Any:
    """What the function of that name makes of torch's arrays, for torch to differentiate (`gradients.py`)."""
    from mltriton.kernels.gradients import record  # Gradients need torch.

    return record(function, arrays, options)


def require_no_gradient(function: str, *arrays: Array | None) -> None:
    """Raise `ArgumentError` where torch is to record what `function`, which has no backward pass, computes from the
    arrays: its result would silently be a constant.
    """
    if requires_gradient(*arrays):
        raise ArgumentError(
            f"{function} cannot be differentiated",
            expected="tensors that require no gradient",
            found="one with requires_grad=True",
            hint="Call it under torch.no_grad(), pass x.detach(), or wrap it in a torch.autograd.Function.",
        )


def addresses(arrays: Sequence[Array]) -> list[int]:
    """The addresses of the first elements of arrays of one kind."""
    if is_torch(arrays[0]):
        return [x.data_ptr() for x in arrays]
    return [x.__array_interface__["data"][0] for x in arrays]


def all_strides(arrays: Sequence[Array]) -> list[tuple[int, ...]]:
    """`strides_of` each of several arrays of one kind and dtype."""
    if is_torch(arrays[0]):
        return [x.stride() for x in arrays]
    size = arrays[0].itemsize
    return [tuple(stride // size for stride in x.strides) for x in arrays]


def expand(x: Array, shape: Sequence[int]) -> Array:
    """`x` broadcast to `shape` without a copy (stride 0)."""
    return x.expand(tuple(shape)) if is_torch(x) else np.broadcast_to(x, tuple(shape))


APART = 64  # elements: what rows may lie apart in 2D block messages is a multiple of bytes, and at least a row


def with_apart_rows(x: Array) -> Array:
    """[batch, rows, columns] with a distance from row to row that 2D block messages take where there is only one row,
    so that nothing depends on it.
    """
    distances = strides_of(x)
    if x.shape[1] != 1 or distances[2] != 1:
        return x
    apart = (distances[0], -(-x.shape[2] // APART) * APART, 1)
    if is_torch(x):
        return x.as_strided(x.shape, apart)
    return np.lib.stride_tricks.as_strided(x, x.shape, [stride * x.itemsize for stride in apart])


def as_rows(x: Array) -> tuple[Array, int]:
    """`x` as rows of its last dimension: (view or contiguous copy of shape [rows, columns], elements between rows)."""
    columns = x.shape[-1]
    rows = x.reshape(-1, columns) if x.ndim != 2 else x
    if strides_of(rows)[-1] != 1 and columns > 1:
        rows = rows.contiguous() if is_torch(rows) else np.ascontiguousarray(rows)
    return rows, strides_of(rows)[0]
