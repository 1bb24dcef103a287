"""LLVM's library as llvmlite ships it: text in; object code or assembly out.

Level: `llvm` -> `binary`. Importing llvmlite takes 30 ms of CPU time, a sixth of a product's first compilation, most of
it for classes that nobody here asks for; so its library's C functions are called directly. Guarantees: what LLVM makes
in a call is freed in it; calls do not overlap, and a fork waits for the one under way. Raises `OSError` where there is
no library, `RejectedError` with LLVM's words for what it does not take.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ctypes import CDLL, POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p, string_at
from functools import cache
from importlib.machinery import PathFinder
from typing import Any, TypeVar

from mltriton.runtime.fingerprint import LLVM_LIBRARIES
from mltriton.runtime.forking import LLVM_LOCK

T = TypeVar("T")

_LLVM_VERSION = 22  # That of llvmlite 0.50, whose functions these are.
_TEXT, _OUT, _OBJECT = c_char_p, POINTER(c_char_p), c_void_p

# What each function gives and takes. `_OUT` is a string that LLVM writes, and that is freed here.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "GetVersionInfo": (c_uint,),
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeNativeAsmParser": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "SetCommandLine": (None, _TEXT, _TEXT),
    "DisposeString": (None, _TEXT),
    "GetProcessTriple": (None, _OUT),
    "GetHostCPUName": (None, _OUT),
    "GetHostCPUFeatures": (c_int, _OUT),
    "ContextCreate": (_OBJECT,),
    "ContextDispose": (None, _OBJECT),
    "ParseAssembly": (_OBJECT, _OBJECT, _TEXT, _OUT),
    "VerifyModule": (c_bool, _OBJECT, _OUT),
    "SetTarget": (None, _OBJECT, _TEXT),
    "SetDataLayout": (None, _OBJECT, _TEXT),
    "DisposeModule": (None, _OBJECT),
    "GetTargetFromTriple": (_OBJECT, _TEXT, _OUT),
    "CreateTargetMachine": (_OBJECT, _OBJECT, *[_TEXT] * 3, c_int, *[_TEXT] * 2, c_int, c_int, _TEXT),
    "CreateTargetMachineData": (_OBJECT, _OBJECT),
    "CopyStringRepOfTargetData": (None, _OBJECT, _OUT),
    "DisposeTargetData": (None, _OBJECT),
    "TargetMachineEmitToMemory": (_OBJECT, _OBJECT, _OBJECT, c_int, _OUT),
    "DisposeTargetMachine": (None, _OBJECT),
    "GetBufferStart": (c_void_p, _OBJECT),
    "GetBufferSize": (c_size_t, _OBJECT),
    "DisposeMemoryBuffer": (None, _OBJECT),
}


class RejectedError(Exception):
    """LLVM does not take a text, or knows no such machine."""


def host() -> tuple[str, str, str]:
    """This machine as LLVM sees it: triple, CPU name, `+flag,-flag` attributes."""
    with LLVM_LOCK:
        triple, cpu, attributes = (
            _written(_functions()[f"Get{name}"])[1] for name in ("ProcessTriple", "HostCPUName", "HostCPUFeatures")
        )
    return triple, cpu, attributes


def verify(text: str) -> None:
    """Check IR with LLVM's verifier."""
    with LLVM_LOCK, _module(text):
        pass


def code(
    text: str, triple: str, cpu: str, attributes: str, *, as_text: bool, reduce_strength: bool, optimization: int
) -> bytes:
    """An object file of IR, or its assembly. The code generator optimizes; no pass runs on the text before it."""
    llvm = _functions()
    with (
        LLVM_LOCK,
        _module(text) as module,
        _machine(triple, cpu, attributes, optimization) as machine,
        _strength_reduction(reduce_strength),
    ):
        llvm["SetTarget"](module, triple.encode())
        llvm["SetDataLayout"](module, _data_layout(machine))
        buffer, complaint = _written(lambda out: llvm["TargetMachineEmitToMemory"](machine, module, not as_text, out))
        if not buffer:
            raise RejectedError(complaint)
        made = string_at(llvm["GetBufferStart"](buffer), llvm["GetBufferSize"](buffer))
        llvm["DisposeMemoryBuffer"](buffer)
        return made


@cache
def set_option(option: str) -> None:
    """Set one of LLVM's command line options, for the rest of the process."""
    with LLVM_LOCK:
        _functions()["SetCommandLine"](b"mltriton", option.encode())


@cache
def know_all_machines() -> None:
    """Let LLVM know every machine; this one's own alone takes a third of the time."""
    with LLVM_LOCK:
        for name in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
            _functions()[f"InitializeAll{name}"]()


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """The library's functions by their names, when LLVM knows this machine."""
    found = PathFinder.find_spec("llvmlite")
    if found is None or found.origin is None:
        raise OSError("no llvmlite is installed")
    paths = [os.path.join(os.path.dirname(found.origin), "binding", name) for name in LLVM_LIBRARIES]
    library = CDLL(next(filter(os.path.exists, paths), paths[0]))
    made: dict[str, Callable[..., Any]] = {}
    for name, (result, *taken) in _FUNCTIONS.items():
        made[name] = function = getattr(library, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, taken
    version = made["GetVersionInfo"]() >> 16
    if version != _LLVM_VERSION:
        raise OSError(f"llvmlite has LLVM {version}, not {_LLVM_VERSION}")
    for name in ("Target", "AsmPrinter", "AsmParser"):  # The parser is that of inline assembly.
        made[f"InitializeNative{name}"]()
    return made


def _written(call: Callable[[Any], T]) -> tuple[T, str]:
    """What a function gives, and the string that it writes where its argument says."""
    out = c_char_p()
    result = call(byref(out))
    text = (out.value or b"").decode()
    _functions()["DisposeString"](out)
    return result, text


@contextmanager
def _module(text: str) -> Generator[int]:
    """A verified module, in a context of its own: nothing of it stays."""
    llvm = _functions()
    context = llvm["ContextCreate"]()
    module = None
    try:
        module, complaint = _written(lambda out: llvm["ParseAssembly"](context, text.encode(), out))
        if complaint or not module:
            raise RejectedError(complaint)
        is_wrong, complaint = _written(lambda out: llvm["VerifyModule"](module, out))
        if is_wrong:
            raise RejectedError(complaint)
        yield module
    finally:
        if module:
            llvm["DisposeModule"](module)
        llvm["ContextDispose"](context)


@contextmanager
def _machine(triple: str, cpu: str, attributes: str, optimization: int) -> Generator[int]:
    llvm = _functions()
    target, complaint = _written(lambda out: llvm["GetTargetFromTriple"](triple.encode(), out))
    if not target:
        raise RejectedError(complaint)
    names = (name.encode() for name in (triple, cpu, attributes))
    machine = llvm["CreateTargetMachine"](target, *names, optimization, b"pic", b"small", False, False, b"")
    if not machine:
        raise RejectedError(f"no code generator for {triple}")
    try:
        yield machine
    finally:
        llvm["DisposeTargetMachine"](machine)


@contextmanager
def _strength_reduction(wanted: bool) -> Generator[None]:
    """LLVM's loop strength reduction or none: an option of the process, so that it is set back at once."""
    set_line = _functions()["SetCommandLine"]
    if not wanted:
        set_line(b"mltriton", b"-disable-lsr=true")
    try:
        yield
    finally:
        if not wanted:
            set_line(b"mltriton", b"-disable-lsr=false")


def _data_layout(machine: int) -> bytes:
    llvm = _functions()
    data = llvm["CreateTargetMachineData"](machine)
    layout = _written(lambda out: llvm["CopyStringRepOfTargetData"](data, out))[1]
    llvm["DisposeTargetData"](data)
    return layout.encode()
