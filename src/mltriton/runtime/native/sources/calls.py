"""What stands behind kernel[grid] once a launch of it has gone through machine code.

Level: runtime, machine code (see `translation`). Calls like that one are put into the order of the parameters and
handed to the launcher without the interpreter's help. Python's launcher takes all others.

What the function object's `self`, a tuple, has: Python's launcher; two lists, of hooks and of what must be looked up
(tuples of a callable, what to ask it, and what it must give); and a list of known calls. A known call is a tuple: a
bytes object with a `Call`, its places and its values; the keywords' names (None: no keywords); a list and what its
first item must be; what the call gives; then what keeps the launcher and the values alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .arguments import DIFFERS, EQUALS, FITS, RAISED, at, bytes_of
from .language import Address, Array, Struct, addresses, after, cast, copy, exported, i32, i64, noinline, up_to
from .python import (
    NONE, Objects, Py_DecRef, Py_NewRef, PyList_GetItem, PyList_Size, PyObject, PyObject_CallOneArg,
    PyObject_RichCompareBool, PyObject_Vectorcall,
)  # fmt: skip

PYTHON, HOOKS, WATCHED, CALLS = 0, 1, 2, 3  # of the function object's `self`
CALL, NAMES, LIST, MARK, GIVES = 0, 1, 2, 3, 4  # of a known call


class Call(Struct):
    """What is known of a call, and the launcher: a function of this code and its `self`.

    Places: from 0 on those of the call's arguments, below that of values left out, -1 the first. Behind them are the
    values: grid x, y and z, those that the options must be, and those of the parameters that the call leaves out.
    """

    launch: Callable[[PyObject, Objects, i64], PyObject | None]
    holder: Address[PyObject]
    positional: i64  # arguments without names
    count: i64  # arguments that the launcher takes
    options: i64
    places: Annotated[Array[i64], 0]  # of the options, then of the launcher's arguments


def look_up(watched: PyObject) -> i32:
    """Whether everything that must be looked up is what it was."""
    for number in up_to(PyList_Size(watched)):
        item = PyList_GetItem(watched, number)
        if item is None:
            return RAISED
        found = PyObject_CallOneArg(at(item, 0), at(item, 1))
        if found is None:
            return RAISED
        Py_DecRef(found)
        if found is not at(item, 2):
            return DIFFERS
    return FITS


def is_like(known: PyObject, call: Call, arguments: Objects, positional: i64, names: PyObject | None) -> i32:
    """Whether a call is like a known one."""
    if positional != call.positional:
        return DIFFERS
    given = NONE if names is None else names
    if given is not at(known, NAMES):
        equal = PyObject_RichCompareBool(given, at(known, NAMES), EQUALS)
        if equal < 0:
            return RAISED
        if equal == 0:
            return DIFFERS
    for number in up_to(call.options):
        if arguments[call.places[number]] is not values_of(call)[number + 3]:
            return DIFFERS
    if PyList_GetItem(at(known, LIST), 0) is not at(known, MARK):
        return DIFFERS
    return FITS


def values_of(call: Call) -> Objects:
    """The values behind the places."""
    return cast(Objects, after(call.places, call.options + call.count))


@noinline
def launch_like(call: Call, arguments: Objects) -> PyObject | None:
    """Hand a call that is like a known one to the launcher, and give what that gives."""
    places = after(call.places, call.options)
    values = values_of(call)
    objects = addresses(call.count + 3)
    copy(objects, values, 24)
    for number in up_to(call.count):
        place = places[number]
        if place >= 0:
            objects[number + 3] = arguments[place]
        else:
            objects[number + 3] = values[2 + call.options - place]
    return call.launch(call.holder, objects, call.count + 3)


@exported
def launch_known(self: PyObject, arguments: Objects, positional: i64, names: PyObject | None) -> PyObject | None:
    """Launch."""
    if PyList_Size(at(self, HOOKS)) == 0:
        looked = look_up(at(self, WATCHED))
        if looked == RAISED:
            return None
        number = 0
        while looked == FITS and number < PyList_Size(at(self, CALLS)):
            known = Py_NewRef(PyList_GetItem(at(self, CALLS), number))  # Another thread may forget it meanwhile.
            call = cast(Call, bytes_of(at(known, CALL)))
            status = is_like(known, call, arguments, positional, names)
            if status == FITS:
                status = launched(launch_like(call, arguments))
            answer = at(known, GIVES)
            if status == FITS:
                Py_NewRef(answer)
            Py_DecRef(known)
            if status == FITS:
                return answer
            if status == RAISED:
                return None
            number += 1
    return PyObject_Vectorcall(at(self, PYTHON), arguments, positional, names)


def launched(result: PyObject | None) -> i32:
    """Whether a launcher has done it: it gives None then."""
    if result is None:
        return RAISED
    Py_DecRef(result)
    return FITS if result is NONE else DIFFERS
