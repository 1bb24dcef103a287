"""Addresses of arrays and tensors: numpy's read from the object, torch's asked for.

Level: runtime, machine code (see `translation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .arguments import DIFFERS, FITS, RAISED, Param, Slot, passes_masks, read_unsigned
from .language import (
    Array, Struct, address_of, addresses, as_number, below, cast, i1, i8, i32, i64, moved, noinline, ptr, unsigned,
)  # fmt: skip
from .python import (
    FALSE, TRUE, DLTensor, Py_DecRef, PyArray, PyErr_Clear, PyObject, PyObject_CallOneArg, PyObject_GetAttr,
    PyObject_VectorcallMethod,
)  # fmt: skip

ANY = -1  # of a device's index
SUSPECT = 2  # besides what other functions give: is there memory?
WRITEABLE = 0x400  # of numpy's flags
LOWEST = 1 << 36  # no program has memory below, except for small arrays where it does not lie at a random place

# Set from Python.

ndarray_type: ptr
torch_tensor_type: ptr
torch_parameter_type: ptr
array_types: Annotated[Array[ptr | None], 17]  # types derived from numpy's, whose arrays are taken like its own
tensor_types: Annotated[Array[ptr | None], 17]  # and from torch's; both end with a null
torch_describe: Callable[[PyObject, DLTensor], i32] | None = None  # of DLPack's exchange interface
torch_handle: i64 = 0  # where a torch tensor has its at::Tensor, in bytes; known where one of what follows is
torch_is_neg: Callable[[ptr], i8] | None = None  # of an at::Tensor; without it tensors are asked by their method
torch_data: Callable[[ptr, Slot], i32] | None = None  # of torch's stable C interface, of an at::Tensor, as the next
torch_layout: Callable[[ptr, ptr], i32]
torch_dtype: Callable[[ptr, ptr], i32]
torch_device_type: Callable[[ptr, ptr], i32]
torch_device_index: Callable[[ptr, ptr], i32]
torch_has_storage: Callable[[ptr], i8] | None = (
    None  # of a TensorImpl; asking for data that are not there logs an error
)
torch_stream: Callable[[i32, Slot], i32] | None = None  # of a CUDA device, asked by cuda.ll
has_memory: PyObject  # Python callable (array) -> bool, asked of arrays whose address looks like none
name_dtype: PyObject
name_is_cpu: PyObject
name_data_ptr: PyObject
name_is_neg: PyObject


@noinline
def is_listed(type: ptr, list: Array[ptr | None]) -> i1:
    """Whether a type is in a list that ends with a null."""
    number = 0
    while list[number] is not None:
        if list[number] is type:
            return True
        number += 1
    return False


def is_negated(tensor: PyObject) -> i1:
    """Whether a tensor is a view whose elements are those in memory negated. Of one that cannot say it is true."""
    if torch_is_neg is not None:
        return torch_is_neg(moved(tensor, torch_handle)) != 0
    answer = call_method(name_is_neg, tensor)
    if answer is None:
        PyErr_Clear()
        return True
    Py_DecRef(answer)
    return answer is not FALSE


def call_method(name: PyObject, object: PyObject) -> PyObject | None:
    """What a method without arguments gives."""
    objects = addresses(1)
    objects[0] = object
    return PyObject_VectorcallMethod(name, objects, 1, None)


class Handle(Struct):
    """An at::Tensor."""

    implementation: ptr


class Found(Struct):
    """What torch says of a tensor."""

    dtype: i32
    device_type: i32
    detail: i32  # in main memory the layout, 0: by strides; else the device's index


def read_torch(param: Param, tensor: PyObject, out: Slot) -> i32:
    """Read the address of a torch tensor's first element if it has the record's dtype and lies on its device (which
    older versions of torch are asked for in main memory only), by strides. A tensor without storage does not fit.
    """
    if torch_data is None:
        return read_attributes(param, tensor, out)
    handle = moved(tensor, torch_handle)
    found = Found()
    failed = torch_dtype(handle, address_of(found.dtype)) | torch_device_type(handle, address_of(found.device_type))
    is_right = unsigned(found.dtype) == param.second and unsigned(found.device_type) == param.hole_low
    if failed != 0 or not is_right:
        return DIFFERS
    if param.hole_high == ANY:  # Elsewhere what has another layout has no storage.
        failed = torch_layout(handle, address_of(found.detail))
        is_right = found.detail == 0
    else:
        failed = torch_device_index(handle, address_of(found.detail))
        is_right = unsigned(found.detail) == param.hole_high
    if failed != 0 or not is_right:
        return DIFFERS
    if torch_has_storage is not None and torch_has_storage(cast(Handle, handle).implementation) == 0:
        return DIFFERS
    return FITS if torch_data(handle, out) == 0 else DIFFERS


def read_attributes(param: Param, tensor: PyObject, out: Slot) -> i32:
    """The same by the tensor's own attributes."""
    dtype = PyObject_GetAttr(tensor, name_dtype)
    if dtype is None:
        PyErr_Clear()
        return DIFFERS
    Py_DecRef(dtype)
    if as_number(dtype) != param.second:
        return DIFFERS
    is_cpu = PyObject_GetAttr(tensor, name_is_cpu)
    if is_cpu is None:
        PyErr_Clear()
        return DIFFERS
    Py_DecRef(is_cpu)
    if is_cpu is not TRUE:
        return DIFFERS
    number = call_method(name_data_ptr, tensor)
    if number is None:
        PyErr_Clear()
        return DIFFERS
    status = read_unsigned(number, out)
    Py_DecRef(number)
    return status


def fill_tensor(param: Param, object: PyObject, slot: Slot) -> i32:
    """The address of an array's or tensor's first element."""
    type = object.type
    status = i32(DIFFERS)
    if type is ndarray_type:
        status = read_array(param, cast(PyArray, object), slot)
    elif type is torch_tensor_type or type is torch_parameter_type:
        status = read_tensor(param, object, slot)
    elif is_listed(type, array_types):
        status = read_array(param, cast(PyArray, object), slot)
    elif is_listed(type, tensor_types):
        status = read_tensor(param, object, slot)
    if status == SUSPECT:
        status = ask_for_memory(object)
    if status == FITS and not passes_masks(param, slot.value):
        return DIFFERS
    return status


def read_array(param: Param, array: PyArray, slot: Slot) -> i32:
    """Read the address of numpy's."""
    needed = param.flags * WRITEABLE
    slot.value = array.data
    if array.descr != param.first or (array.flags & needed) != needed:
        return DIFFERS
    return SUSPECT if slot.value == 0 else FITS


def read_tensor(param: Param, tensor: PyObject, slot: Slot) -> i32:
    """Read the address of torch's. A tensor without memory has an offset for an address."""
    status = read_torch(param, tensor, slot)
    if status != FITS:
        return status
    if is_negated(tensor):
        return DIFFERS
    return SUSPECT if below(slot.value, LOWEST) else FITS


def ask_for_memory(object: PyObject) -> i32:
    """Whether an array whose address looks like none has memory."""
    answer = PyObject_CallOneArg(has_memory, object)
    if answer is None:
        return RAISED
    Py_DecRef(answer)
    return FITS if answer is TRUE else DIFFERS
