"""What tensors are, and which of them begin at one address, as one object that can be compared.

Level: runtime, machine code (see `translation`).
"""

from __future__ import annotations

from collections.abc import Callable

from .language import after, copy, exported, i1, i8, i64, unsigned, up_to, words
from .launcher import call_prepare, thread_count, torch_has_appeared
from .python import (
    DLTensor, FALSE, NONE, NOT_IMPLEMENTED, Objects, PyBytes_FromStringAndSize, PyErr_Clear, PyObject,
    PyObject_GetAttr, Py_DecRef, Py_NewRef,
)  # fmt: skip
from .tensors import torch_describe, torch_parameter_type, torch_tensor_type

MOST_DIMENSIONS = 8
WORDS = 19  # of a tensor: its device, its dtype and rank, the first that begins there, as many sizes and strides

# Set from Python.

name_requires_grad: PyObject
torch_records: Callable[[], i8] | None = None  # whether torch records what is done with what requires a gradient


def is_recorded(asked: PyObject) -> i1:
    """Whether torch records what is done with a tensor that answered so whether it requires a gradient."""
    if asked is FALSE:
        return False
    return torch_records is None or torch_records() != 0


@exported
def describe_tensors(self: PyObject, objects: Objects, count: i64) -> PyObject | None:
    """Bytes that are the same where the number of threads of a launch and all tensors' devices, dtypes, sizes and
    strides are, and which of them begin where another does; None stands for no tensor. NotImplemented for anything but
    torch's own tensors and parameters, for one of which torch records what is done, and where torch does not describe
    them.
    """
    appeared = torch_has_appeared()
    if appeared < 0 or (appeared == 1 and not call_prepare()):
        return None
    room = words(count * WORDS + 1)
    starts = words(count)
    room[0].value = thread_count()
    used = 1
    for number in up_to(count):
        object = objects[number]
        if object is NONE:
            room[used].value = -1
            starts[number].value = -1
            used += 1
            continue
        is_torch = object.type is torch_tensor_type or object.type is torch_parameter_type
        if not is_torch or torch_describe is None:
            return Py_NewRef(NOT_IMPLEMENTED)
        asked = PyObject_GetAttr(object, name_requires_grad)
        if asked is None:
            return None
        Py_DecRef(asked)
        view = DLTensor()
        if torch_describe(object, view) != 0:
            PyErr_Clear()
            return Py_NewRef(NOT_IMPLEMENTED)
        rank = unsigned(view.rank)
        if is_recorded(asked) or rank > MOST_DIMENSIONS:
            return Py_NewRef(NOT_IMPLEMENTED)
        room[used].value = view.device
        room[used + 1].value = unsigned(view.dtype) | rank << 32
        starts[number].value = view.data + view.byte_offset
        first = 0
        while starts[first].value != starts[number].value:
            first += 1
        room[used + 2].value = first
        copy(after(room, used + 3), view.shape, rank << 3)
        copy(after(room, used + 3 + rank), view.strides, rank << 3)
        used += 3 + rank + rank
    return PyBytes_FromStringAndSize(room, used << 3)
