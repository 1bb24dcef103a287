"""Launches whose arguments are tuples: the launcher gets the items.

Level: runtime, machine code (see `translation`). Items are borrowed: the tuples are alive until the launch returns.

What the function object's `self`, a tuple, has: the launcher; a bytes object with `Parts` and its numbers; the types of
the tuples that are taken apart, in that order; constants.
"""

from __future__ import annotations

from typing import Annotated

from .arguments import at, bytes_of
from .language import Array, Struct, addresses, after, cast, copy, exported, i64, ptr, up_to
from .python import (
    NOT_IMPLEMENTED, Objects, Py_NewRef, PyObject, PyObject_Vectorcall, PyTuple_Size,
)  # fmt: skip

TAKER, PARTS, TYPES = 0, 1, 2  # of the function object's `self`


class Parts(Struct):
    """What launches consist of. Places: those of the arguments, and behind them of the items of each tuple in turn."""

    arguments: i64  # without the grid
    places: i64
    tuples: i64
    count: i64  # parts that the launcher takes
    numbers: Annotated[Array[i64], 0]  # each tuple's place and size; each part's place, or -1 - a constant's number


@exported
def launch_parts(self: PyObject, objects: Objects, count: i64) -> PyObject | None:
    """Launch. NotImplemented for tuples of other types or sizes."""
    parts = cast(Parts, bytes_of(at(self, PARTS)))
    if count != parts.arguments + 3:
        return Py_NewRef(NOT_IMPLEMENTED)
    found = addresses(parts.places)
    copy(found, after(objects, 3), parts.arguments << 3)
    used = parts.arguments
    for number in up_to(parts.tuples):
        whole = cast(PyObject, found[parts.numbers[number << 1]])
        size = parts.numbers[(number << 1) + 1]
        if whole.type is not cast(ptr, at(self, TYPES + number)) or PyTuple_Size(whole) != size:
            return Py_NewRef(NOT_IMPLEMENTED)
        for item in up_to(size):
            found[used + item] = at(whole, item)
        used += size
    flat = addresses(parts.count + 3)
    copy(flat, objects, 24)
    order = after(parts.numbers, parts.tuples << 1)
    for number in up_to(parts.count):
        place = order[number]
        if place >= 0:
            flat[number + 3] = found[place]
        else:
            flat[number + 3] = at(self, TYPES - 1 + parts.tuples - place)
    return PyObject_Vectorcall(at(self, TAKER), flat, parts.count + 3, None)
