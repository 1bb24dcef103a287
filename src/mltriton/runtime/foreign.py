"""Arrays of other libraries by what they say of themselves: `__cuda_array_interface__` (cupy, numba) and DLPack.

Level: runtime. `known_array` gives for such an object one that answers as a torch tensor does: dtype, shape, strides,
address and device. Guarantees: nothing is copied; numpy arrays and what has `data_ptr()` stay what they are; an array
that is described by neither, or with a type or a device that kernels do not have, is an `ArgumentError`.
Sources: numba's documentation of the CUDA array interface, version 3; dlpack.h 1.0.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mltriton.errors import ArgumentError, calling_location
from mltriton.records import record

_CUDA, _DLPACK = "__cuda_array_interface__", "__dlpack__"
_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # DLDeviceType: CPU, CUDA, pinned and managed memory
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}  # DLDataTypeCode
_FLOATS8 = {10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz"}


@record(frozen=True)
class Device:
    """A device, as torch names it."""

    type: str
    index: int


class ForeignArray:
    """An array of another library's. `base` is kept alive; strides count elements; `stream` is where the library works
    on it, if it says so.
    """

    stream: int | None = None
    is_read_only = False

    def __init__(
        self, base: Any, address: int, dtype: str, shape: Sequence[int], strides: Sequence[int] | None, device: Any
    ) -> None:
        self.base = base
        self.dtype = dtype
        self.shape = tuple(shape)
        self.device = device
        self._address = address
        dense = (math.prod(self.shape[dimension + 1 :]) for dimension in range(len(self.shape)))
        self._strides = tuple(dense if strides is None else strides)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._address

    def stride(self) -> tuple[int, ...]:
        """Distances of neighbours in each dimension."""
        return self._strides

    def element_size(self) -> int:
        """Bytes of an element."""
        digits = "".join(character for character in self.dtype.partition("_")[0] if character.isdigit())
        return int(digits or 8) // 8


def is_foreign(value: Any) -> bool:
    """Whether `known_array` makes another object of an argument."""
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "data_ptr"):
        return False
    return hasattr(value, _CUDA) or hasattr(value, _DLPACK)


def known_array(value: Any) -> Any:
    """An array as kernels' launchers ask it; anything else as it is."""
    if not is_foreign(value):
        return value
    return _by_cuda_interface(value) if hasattr(value, _CUDA) else _by_dlpack(value)


def _by_cuda_interface(value: Any) -> ForeignArray:
    from mltriton.targets.nvidia.driver import index_of  # Few launches need it.

    said = value.__cuda_array_interface__
    if said.get("mask") is not None:
        raise ArgumentError("an array has a mask, which kernels do not see", location=calling_location())
    address, dtype = said["data"][0], np.dtype(said["typestr"])
    strides = said.get("strides")
    in_elements = None if strides is None else [stride // dtype.itemsize for stride in strides]
    # An array without elements has the address 0, which lies nowhere.
    device = Device("cuda", index_of(address) if address else 0)
    found = ForeignArray(value, address, dtype.name, said["shape"], in_elements, device)
    found.stream, found.is_read_only = said.get("stream"), bool(said["data"][1])
    return found


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _by_dlpack(value: Any) -> ForeignArray:
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # of before DLPack 1.0
        capsule = value.__dlpack__()
    tensor, is_read_only = _described(capsule)
    device_type = _DEVICES.get(tensor.device_type)
    dtype = _FLOATS8.get(tensor.code) or f"{_KINDS.get(tensor.code, 'unknown')}{tensor.bits}"
    if device_type is None or tensor.lanes != 1 or dtype.startswith("unknown"):
        found = f"DLPack's device {tensor.device_type}, type {tensor.code} of {tensor.bits} bits, {tensor.lanes} lanes"
        message = f"an array of type {type(value).__name__} is not one that kernels know"
        raise ArgumentError(message, found=found, location=calling_location())
    shape = tensor.shape[: tensor.ndim]
    strides = tensor.strides[: tensor.ndim] if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    device = Device(device_type, tensor.device_id) if device_type == "cuda" else "cpu"
    dtype = "bool" if dtype == "bool8" else dtype
    # The capsule, which nobody takes, frees its description, but not the array, when it goes.
    found = ForeignArray((value, capsule), address, dtype, shape, strides, device)
    found.is_read_only = is_read_only
    return found


def _described(capsule: Any) -> tuple[_Tensor, bool]:
    """What a capsule holds, and whether it says that nobody may write."""
    if "versioned" in repr(capsule):
        whole = _Versioned.from_address(_pointer_in(capsule, b"dltensor_versioned") or 0)
        return whole.tensor, bool(whole.flags & 1)
    return _Tensor.from_address(_pointer_in(capsule, b"dltensor") or 0), False
