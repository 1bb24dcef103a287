"""The launcher: a C function that Python calls as launcher(grid_x, grid_y, grid_z, *arguments).

Level: runtime, machine code (see `translation`). One function serves every kernel: what it must check is a table of
`Param` records, which the function object carries. It returns None after the launch; NotImplemented, with no exception
set, when an argument is not what the kernel was specialised for; or null with a Python exception set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .arguments import (
    BOOL, DIFFERS, EQUAL, F32, F64, FITS, FLOAT, INTEGER, RAISED, SAME, TENSOR, Param, Slot, at, bytes_of,
    check_equal, check_float, fill_bool, fill_f32, fill_integer, read_float, read_integer,
)  # fmt: skip
from .language import (
    Array, Struct, address_of, addresses, after, alwaysinline, as_number, below, cast, copy, exported, f64, i1, i8, i32,
    i64, multiplied, noinline, ptr, signed, smax, umin, unsigned, up_to, words,
)  # fmt: skip
from .pieces import Check, Kernel
from .pool import Pace, gomp_parallel, is_held_up, run, workers
from .python import (
    NONE, NOT_IMPLEMENTED, Objects, Py_DecRef, Py_NewRef, PyDict_GetItemWithError,
    PyErr_CheckSignals, PyErr_Occurred, PyErr_SetString, PyEval_RestoreThread, PyEval_SaveThread, PyGILState_Ensure,
    PyGILState_Release, PyObject, PyObject_CallNoArgs, PyObject_IsTrue, PyObject_Vectorcall,
)  # fmt: skip
from .system import pthread_self
from .tensors import fill_tensor

MOST_THREADS = 1024  # scratch buffers
SCRATCH_MESSAGE = b"there is no memory for the kernel's scratch buffers\0"


class Table(Struct):
    """A bytes object that the function object's `self`, a tuple, begins with. The pace, what launches before took, is
    the one field that changes.
    """

    kernel: Kernel
    scratch_bytes: i64
    serial_below: i64  # programs, from which on the calling thread does not run them all
    params_count: i32
    slots_count: i32
    pace: f64
    params: Annotated[Array[Param], 0]


# Set from Python.

torch_get_num_threads: Callable[[], i32]
torch_is_bound: i8 = 0  # 1 once torch's types, functions and threads are known
wants_workers: i8 = 0  # 1 once a launch has found that OpenMP is held up, or that there is none
threads: i64 = 0  # of a launch; 0: as many as torch uses
main_thread: i64 = 0  # pthread_self() of the thread in which Python runs signal handlers
prepare: PyObject  # Python callable () -> None: binds torch if it is loaded, starts missing workers
modules: PyObject  # sys.modules
name_torch: PyObject  # interned strings
scratch_error: PyObject  # the exception for a launch that got no scratch memory


# Reading the arguments


@alwaysinline
def fill(param: Param, kind: i32, object: PyObject, slot: Slot) -> i32:
    """Check one argument against its record and, if it takes a slot, fill that."""
    if kind == TENSOR:
        return fill_tensor(param, object, slot)
    if kind == INTEGER:
        return fill_integer(param, object, slot)
    if kind == BOOL:
        return fill_bool(object, slot)
    if kind == F32:
        return fill_f32(object, slot)
    if kind == F64:
        return read_float(object, slot)
    if kind == EQUAL:
        return check_equal(param, object)
    if kind == FLOAT:
        return check_float(param, object)
    return FITS if as_number(object) == param.first else DIFFERS


def fill_slots(params: Array[Param], count: i64, objects: Objects, slots: Array[Slot]) -> i32:
    """Check all arguments and fill the slots."""
    slot = 0
    for number in up_to(count):
        param = params[number]
        kind = param.kind
        status = fill(param, kind, objects[number], slots[slot])
        if status != FITS:
            return status
        if kind < SAME:
            slot += 1
    return FITS


def fill_grid(objects: Objects, slots: Array[Slot], programs: Slot) -> i32:
    """Read the three grid dimensions, each an int from 0 to 2^31 - 1, and the number of programs, which must fit 63
    bits.
    """
    product = 1
    for number in up_to(3):
        slot = slots[number]
        status = read_integer(objects[number], slot)
        if status != FITS:
            return status
        if not below(slot.value, 1 << 31):
            return DIFFERS
        product, overflows = multiplied(product, slot.value)
        if overflows:
            return DIFFERS
    programs.value = product
    return FITS


# Choosing the threads


@noinline
def call_prepare() -> i1:
    """Call Python's side of the pool. Gives whether it succeeded; otherwise a Python exception is set."""
    result = PyObject_CallNoArgs(prepare)
    if result is None:
        return False
    Py_DecRef(result)
    return True


@alwaysinline
def torch_has_appeared() -> i32:
    """1 if torch is loaded and not bound yet, 0 if there is nothing to do, -1 with a Python exception set."""
    if torch_is_bound != 0:
        return 0
    if PyDict_GetItemWithError(modules, name_torch) is not None:
        return 1
    return 0 if PyErr_Occurred() is None else -1


@exported
def thread_count() -> i64:
    """How many threads a launch may use now, from 1 to the number of scratch buffers."""
    count = threads
    if count == 0:
        count = signed(torch_get_num_threads())
    return umin(smax(count, 1), MOST_THREADS)


def choose_team(programs: i64) -> i64:
    """The size of the team for a launch of two or more programs, or 0 with a Python exception set."""
    global wants_workers
    appeared = torch_has_appeared()
    if appeared < 0 or (appeared == 1 and not call_prepare()):
        return 0
    count = thread_count()
    if gomp_parallel is not None and not is_held_up():
        return count  # An OpenMP library destroys threads when its team shrinks, so it always gets the whole team.
    wants_workers = 1
    if below(workers, count - 1) and not call_prepare():
        return 0
    return umin(count, programs)


# Launching


def check_signals() -> i1:
    """Run Python's handlers of signals that have arrived; whether one raised an exception."""
    state = PyGILState_Ensure()
    failure = PyErr_CheckSignals()
    PyGILState_Release(state)
    return failure != 0


@exported
def run_released(
    kernel: Kernel, slots: ptr | None, programs: i64, scratch_bytes: i64, team: i64, pace: Pace | None
) -> i32:
    """Do what `run` does, without the interpreter's lock. With 2, a Python exception is set."""
    check: Check | None = check_signals
    if pthread_self() != main_thread:
        check = None
    state = PyEval_SaveThread()
    outcome = run(kernel, slots, programs, scratch_bytes, team, pace, check)
    PyEval_RestoreThread(state)
    return outcome


@exported
def launch(self: PyObject, objects: Objects, count: i64) -> PyObject | None:
    """Check, fill and run."""
    table = cast(Table, bytes_of(at(self, 0)))
    if count != unsigned(table.params_count) + 3:
        return Py_NewRef(NOT_IMPLEMENTED)
    slots_count = unsigned(table.slots_count)
    slots = words(slots_count + 4)
    programs = Slot()
    status = fill_grid(objects, after(slots, slots_count), programs)
    if status == FITS:
        status = fill_slots(table.params, unsigned(table.params_count), after(objects, 3), slots)
    if status == FITS and programs.value != 0:
        status = run_table(table, slots, programs.value)
    if status == FITS:
        return Py_NewRef(NONE)
    if status == DIFFERS:
        return Py_NewRef(NOT_IMPLEMENTED)
    return None


def run_table(table: Table, slots: Array[Slot], programs: i64) -> i32:
    """Run what a table says; gives whether that worked, or that a Python exception is set."""
    team = 1
    if not below(programs, table.serial_below):
        team = choose_team(programs)
        if team == 0:
            return RAISED
    pace = cast(Pace, address_of(table.pace))
    outcome = run_released(table.kernel, cast(ptr, slots), programs, table.scratch_bytes, team, pace)
    if outcome == 1:
        PyErr_SetString(scratch_error, SCRATCH_MESSAGE)
    return FITS if outcome == 0 else RAISED


@exported
def launch_described(self: PyObject, objects: Objects, count: i64) -> PyObject | None:
    """Upstream's way to launch. The function object's `self` is a tuple of a launcher and of what does the same in
    Python. The objects: x, y, z, stream, function, metadata, launch metadata, enter hook, exit hook, arguments. Where
    there are no hooks the launcher gets the grid and the arguments; whatever it does not take, and launches with hooks,
    Python gets whole.
    """
    if not below(count, 9):
        hooks = PyObject_IsTrue(objects[7]) | PyObject_IsTrue(objects[8])
        if hooks == -1:
            return None
        if hooks == 0:
            short = addresses(count - 6)
            copy(short, objects, 24)
            copy(after(short, 3), after(objects, 9), (count - 9) << 3)
            result = PyObject_Vectorcall(at(self, 0), short, count - 6, None)
            if result is None or result is not NOT_IMPLEMENTED:
                return result
            Py_DecRef(result)
    return PyObject_Vectorcall(at(self, 1), objects, count, None)
