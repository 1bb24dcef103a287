"""Reading arguments: each is checked against what its kernel was specialised for, and fills a slot.

Level: runtime, machine code (see `translation`). Functions that look at an argument give `FITS`, `DIFFERS` or `RAISED`.
Arguments are borrowed: the caller's frame keeps them alive.
"""

from __future__ import annotations

from .language import Struct, alwaysinline, cast, f32_bits, f64_bits, i1, i32, i64, moved, ptr, unsigned
from .python import (
    FALSE, FLOAT_TYPE, INTEGER_TYPE, TRUE, Objects, Overflow, PyErr_Clear, PyErr_Occurred, PyFloat_AsDouble,
    PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong, PyObject, PyObject_RichCompareBool,
)  # fmt: skip

# What functions that look at an argument give.
FITS, DIFFERS, RAISED = 0, 1, -1  # it fits, it does not, a Python exception is set

# Kinds of `Param`; those from SAME on take no slot.
TENSOR, INTEGER, BOOL, F32, F64, SAME, EQUAL, FLOAT = 0, 1, 2, 3, 4, 5, 6, 7

SIGN = -1 << 63
EQUALS = 2  # of Python's comparisons


class Param(Struct):
    """What a kernel was specialised for in one argument. A value or an address passes the masks if value & zero_mask is
    0 and, unless some_mask is 0, value & some_mask is not.

    * TENSOR: `first` is the address of the numpy descriptor, `second` torch's dtype (see `read_torch`); 0: not taken.
      With flags 1 the kernel writes to it. A torch tensor's device must be of the type `hole_low` and have the index
      `hole_high`, which may be `ANY`.
    * INTEGER: first <= value <= second, and not hole_low <= value <= hole_high, without a sign with flags 1.
    * SAME: a constant that must be the object at `first`; EQUAL: or equal to it and of the same type (int, str).
    * FLOAT: a constant with the bits `second`.
    """

    kind: i32
    flags: i32
    first: i64
    second: i64
    zero_mask: i64
    some_mask: i64
    hole_low: i64
    hole_high: i64


class Slot(Struct):
    """Eight bytes for one argument of a kernel."""

    value: i64


# Set from Python: where tuples have their items and bytes objects their bytes, which differs between Python's versions.

tuple_items: i64 = 0
bytes_start: i64 = 0


@alwaysinline
def at(tuple: PyObject, number: i64) -> PyObject:
    """An item of a tuple that has it."""
    return cast(Objects, moved(tuple, tuple_items))[number]


@alwaysinline
def bytes_of(object: PyObject) -> ptr:
    """What a bytes object has."""
    return moved(object, bytes_start)


# Numbers


@alwaysinline
def read_integer(object: PyObject, out: Slot) -> i32:
    """Read an int that fits 64 signed bits; bools, numpy integers and other subclasses do not fit."""
    if object.type is not INTEGER_TYPE:
        return DIFFERS
    overflow = Overflow()
    out.value = PyLong_AsLongLongAndOverflow(object, overflow)
    if overflow.value != 0:
        return DIFFERS
    if out.value == -1 and PyErr_Occurred() is not None:
        return RAISED
    return FITS


@alwaysinline
def read_unsigned(object: PyObject, out: Slot) -> i32:
    """Read an int that fits 64 unsigned bits."""
    if object.type is not INTEGER_TYPE:
        return DIFFERS
    out.value = PyLong_AsUnsignedLongLong(object)
    if out.value == -1 and PyErr_Occurred() is not None:
        PyErr_Clear()
        return DIFFERS
    return FITS


@alwaysinline
def passes_masks(param: Param, value: i64) -> i1:
    """Whether the value passes the record's masks."""
    return (value & param.zero_mask) == 0 and ((value & param.some_mask) != 0 or param.some_mask == 0)


def fill_integer(param: Param, object: PyObject, slot: Slot) -> i32:
    """An integer within its bounds."""
    bias = 0
    if param.flags == 0:
        status = read_integer(object, slot)
    else:
        status = read_unsigned(object, slot)
        bias = SIGN  # turns a comparison with a sign into one without
    if status != FITS:
        return status
    value = slot.value ^ bias
    in_range = value >= (param.first ^ bias) and value <= (param.second ^ bias)
    outside_hole = value < (param.hole_low ^ bias) or value > (param.hole_high ^ bias)
    return FITS if in_range and outside_hole and passes_masks(param, slot.value) else DIFFERS


def fill_bool(object: PyObject, slot: Slot) -> i32:
    """True or False."""
    slot.value = unsigned(object is TRUE)
    return FITS if object is TRUE or object is FALSE else DIFFERS


@alwaysinline
def read_float(object: PyObject, out: Slot) -> i32:
    """Read an exact float; an int or a numpy scalar does not fit."""
    if object.type is not FLOAT_TYPE:
        return DIFFERS
    value = PyFloat_AsDouble(object)
    out.value = f64_bits(value)
    if value == -1.0 and PyErr_Occurred() is not None:
        return RAISED
    return FITS


def fill_f32(object: PyObject, slot: Slot) -> i32:
    """A float, rounded."""
    status = read_float(object, slot)
    if status == FITS:
        slot.value = f32_bits(slot.value)
    return status


# Constants


def check_equal(param: Param, object: PyObject) -> i32:
    """Equality of two exact ints or strings cannot run the user's code."""
    wanted = cast(PyObject, param.first)
    if object is wanted:
        return FITS
    if object.type is not wanted.type:
        return DIFFERS
    equal = PyObject_RichCompareBool(object, wanted, EQUALS)
    if equal < 0:
        return RAISED
    return FITS if equal == 1 else DIFFERS


def check_float(param: Param, object: PyObject) -> i32:
    """A float with the same bits."""
    found = Slot()
    status = read_float(object, found)
    if status == FITS and found.value != param.second:
        return DIFFERS
    return status
