"""What stands behind kernel[grid] once a launch of it has gone through machine code.

Level: runtime, machine code (see `translation`). Calls like that one are put into the order of the parameters and
handed to the launcher without the interpreter's help. Python's launcher takes all others.

What the function object's `self`, a tuple, has: Python's launcher; two lists, of hooks and of what must be looked up
(tuples of a callable, what to ask it, and what it must give); and a list of known calls. A known call is a tuple: a
bytes object with a `Call` and its places; the keywords' names (None: no keywords); a list and what its first item must
be; the launcher; what the call gives; grid x, y and z; then values: those that the options must be, and those of the
parameters that the call leaves out.
"""

from __future__ import annotations

from typing import Annotated

from .arguments import DIFFERS, EQUALS, FITS, RAISED
from .language import Array, Struct, addresses, after, cast, exported, i32, i64, noinline, up_to
from .python import (
    NONE, Objects, Py_DecRef, Py_NewRef, PyBytes_AsString, PyList_GetItem, PyList_Size, PyObject, PyObject_CallOneArg,
    PyObject_RichCompareBool, PyObject_Vectorcall, PyTuple_GetItem,
)  # fmt: skip

PYTHON, HOOKS, WATCHED, CALLS = 0, 1, 2, 3  # of the function object's `self`
CALL, NAMES, LIST, MARK, LAUNCHER, GIVES, X, Y, Z, VALUES = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9  # of a known call


class Call(Struct):
    """What is known of a call. Places: from 0 on those of the call's arguments, below that of values left out, -1 the
    first.
    """

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


def at(tuple: PyObject, number: i64) -> PyObject:
    """An item of a tuple that has it."""
    return cast(PyObject, PyTuple_GetItem(tuple, number))


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
        if arguments[call.places[number]] is not at(known, VALUES + number):
            return DIFFERS
    if PyList_GetItem(at(known, LIST), 0) is not at(known, MARK):
        return DIFFERS
    return FITS


@noinline
def launch_like(known: PyObject, call: Call, arguments: Objects) -> PyObject | None:
    """Hand a call that is like a known one to the launcher, and give what that gives."""
    places = after(call.places, call.options)
    objects = addresses(call.count + 3)
    for number in up_to(3):
        objects[number] = at(known, X + number)
    for number in up_to(call.count):
        place = places[number]
        if place >= 0:
            objects[number + 3] = arguments[place]
        else:
            objects[number + 3] = at(known, VALUES - 1 + call.options - place)
    return PyObject_Vectorcall(at(known, LAUNCHER), objects, call.count + 3, None)


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
            call = cast(Call, PyBytes_AsString(at(known, CALL)))
            status = is_like(known, call, arguments, positional, names)
            if status == FITS:
                status = launched(launch_like(known, call, arguments))
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
