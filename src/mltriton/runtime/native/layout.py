"""What sources/ takes for granted of CPython, numpy and torch, checked before the code is used.

Level: runtime. The launcher reads four object layouts directly: a Python object's type, items of tuples and bytes,
three fields of a numpy array (fixed by numpy's C interface), and DLPack's table of functions (fixed by its version).
Guarantees: `is_as_expected` is True only where this process really has the first three; `find_describe` returns a
function only if the fourth fits.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any

import numpy as np

_TYPE_OFFSET = 8  # PyObject.ob_type
TUPLE_ITEMS, BYTES_START = tuple.__basicsize__, bytes.__basicsize__ - 1
_DATA_OFFSET, _DESCR_OFFSET, _FLAGS_OFFSET = 16, 56, 64  # PyArrayObject
_WRITEABLE = 0x400

_DLPACK_MAJOR_VERSION = 1
_DESCRIBE_INDEX = 5  # DLPackExchangeAPI: version, previous, allocator, from, to, dltensor_from_py_object_no_sync
_HANDLE_OFFSETS = (16, 24)  # Where torch's Python objects may have their at::Tensor, itself a pointer to a TensorImpl.
_IMPL_BYTES = 208  # Of a TensorImpl; the sizes of tensors of few dimensions are in it.
_DLTENSOR = struct.Struct("<QiiiIQQQ")  # data, device type, device, dimensions, dtype, shape, strides, byte offset


def is_as_expected() -> bool:
    """Return whether objects and numpy arrays of this process lie in memory as the launcher's code reads them."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or "t" in sys.abiflags:
        return False
    # Builds without the global lock ("t") and with Py_TRACE_REFS (`getobjects`) have other object headers.
    if ctypes.sizeof(ctypes.c_void_p) != 8 or hasattr(sys, "getobjects"):
        return False
    objects: tuple[Any, ...] = (1, 1.5, "text", None, (1, 2), np.zeros(3))
    types_fit = all(_read(item, _TYPE_OFFSET) == id(item.__class__) for item in objects)
    items_fit = all(_read(objects, TUPLE_ITEMS + 8 * place) == id(item) for place, item in enumerate(objects))
    bytes_fit = _read(b"8 bytes.", BYTES_START).to_bytes(8, "little") == b"8 bytes."
    return types_fit and items_fit and bytes_fit and all(map(_is_known, _sample_arrays()))


def _sample_arrays() -> list[np.ndarray[Any, Any]]:
    """Return arrays that differ in dtype, first element, shape and flags."""
    writeable = np.arange(12, dtype=np.float32).reshape(3, 4)
    constant = np.arange(5, dtype=np.int64)[2:]
    constant.flags.writeable = False
    unaligned = np.zeros(9, dtype=np.uint8)[1:].view(np.float64)
    return [writeable, writeable[1:, ::-1], constant, unaligned, np.zeros((), np.bool_), np.empty((0, 3), np.int8)]


def _is_known(array: np.ndarray[Any, Any]) -> bool:
    flags = _read(array, _FLAGS_OFFSET) & 0xFFFFFFFF
    return (
        _read(array, _DATA_OFFSET) == array.ctypes.data
        and _read(array, _DESCR_OFFSET) == id(array.dtype)
        and bool(flags & _WRITEABLE) == array.flags.writeable
    )


def _read(item: object, offset: int) -> int:
    """Return the 8 bytes at `offset` of an object."""
    return ctypes.c_uint64.from_address(id(item) + offset).value


def find_describe(tensor_type: type) -> int | None:
    """Return the address of torch's C function that describes a tensor as a DLTensor, if it has one we understand.

    torch has offered it since 2.10; `tensor_type` is `torch.Tensor`.
    """
    capsule = getattr(tensor_type, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    api = get_pointer(capsule, b"dlpack_exchange_api")
    if api is None or ctypes.c_uint32.from_address(api).value != _DLPACK_MAJOR_VERSION:
        return None
    return ctypes.c_void_p.from_address(api + 8 * _DESCRIBE_INDEX).value


def find_handle(describe: int, tensor: object) -> int | None:
    """Return where in the Python object of a torch tensor its at::Tensor is, in bytes; None if that cannot be told.

    `describe` is what `find_describe` found. It gives the address of the sizes, which are in the tensor itself.
    """
    view = ctypes.create_string_buffer(_DLTENSOR.size)
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(describe)(tensor, ctypes.addressof(view))
    sizes = _DLTENSOR.unpack(view.raw)[5]
    return next((offset for offset in _HANDLE_OFFSETS if 0 <= sizes - _read(tensor, offset) < _IMPL_BYTES), None)
