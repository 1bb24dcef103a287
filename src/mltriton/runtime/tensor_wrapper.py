"""`mltriton.reinterpret`: an array whose memory a kernel takes as elements of another dtype.

Level: runtime. Takes a numpy array, a torch tensor or any object with a dtype and `data_ptr()`. Guarantees: nothing is
copied, and the address fits elements of the new dtype (`ArgumentError`). The way to pass bf16 and fp8 in numpy's
unsigned integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mltriton.errors import ArgumentError, calling_location
from mltriton.kernels.arrays import strides_of
from mltriton.language.types import by_name
from mltriton.runtime.specialization import address, array_like_dtype, device_kind, is_array


class TensorWrapper:
    """An array (`base`) as kernels see it: of another `dtype`. Shape and strides count elements of the base."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.shape = base.shape

    @property
    def device(self) -> Any:
        """Where the array lies."""
        return getattr(self.base, "device", "cpu")

    @property
    def data(self) -> Any:
        """The array's memory, as the base names it. Another array takes the base's place."""
        return self.base.data

    @data.setter
    def data(self, array: Any) -> None:
        self.base, self.shape = array, array.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self.base)

    def stride(self, *args: int) -> Any:
        """The base's strides, or one of them, in its elements."""
        if hasattr(self.base, "stride"):
            return self.base.stride(*args)
        strides = strides_of(self.base)
        return strides[args[0]] if args else strides

    def element_size(self) -> int:
        """Bytes of an element of the base."""
        return int(self.base.dtype.itemsize)

    def cpu(self) -> TensorWrapper:
        """The same in main memory."""
        return self if device_kind(self.base) == "cpu" else TensorWrapper(self.base.cpu(), self.dtype)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone() if hasattr(self.base, "clone") else self.base.copy(), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """An array of other sizes whose elements are not set, with the same dtypes and on the same device."""
        new = getattr(self.base, "new_empty", None)
        return TensorWrapper(np.empty(sizes, self.base.dtype) if new is None else new(sizes), self.dtype)

    def copy_(self, other: Any) -> None:
        """Copy the elements of another wrapper's base here."""
        self.base[...] = other.base

    def to(self, device: Any) -> TensorWrapper:
        """The same on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def __repr__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """The array as an argument of another dtype (the language's, numpy's or torch's); itself where it has that dtype.

    `ArgumentError` for what is no array or dtype, and for an address that elements of the dtype do not have.
    """
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    name = array_like_dtype(dtype)
    if not is_array(base) or name is None:
        what, expected = ("an array", "a numpy array or a torch tensor") if name else ("a dtype", "tl.float8e5, say")
        found = type(base).__name__ if name else repr(dtype)
        raise ArgumentError(f"reinterpret needs {what}", expected=expected, found=found, location=calling_location())
    kind = by_name(name)
    if address(base) % kind.itemsize:
        expected = f"an address that is a multiple of {kind.itemsize}"
        raise ArgumentError(f"the array does not lie where {kind} may", expected=expected, location=calling_location())
    return base if array_like_dtype(base.dtype) == name else TensorWrapper(base, kind)
