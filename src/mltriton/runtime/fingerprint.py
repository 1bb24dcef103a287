"""What the compiler itself is: the part of every cache key that changes when the compiler does.

Level: runtime. Guarantees: another version, an edited source file of the compiler, another Python minor version or
another LLVM give another fingerprint. Files are identified by size and time of change, which costs a millisecond;
their text would cost twenty.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder

import mltriton
from mltriton.runtime.digests import digest_of

LLVM_LIBRARIES = ("libllvmlite.so", "libllvmlite.dylib", "llvmlite.dll")  # LLVM is in them.
_SOURCES = (".py", ".pyi", ".ll")
# Kernels are in the key with their own text; the executor only checks results; launchers are no part of kernels
# (`native/sources`, `native/translation`); the others only call the compiler.
_NOT_COMPILER = frozenset({"executor", "kernels", "sources", "translation", "tools", "as_triton", "triton_plugin"})


@cache
def compiler_fingerprint(without: frozenset[str] = frozenset()) -> str:
    """The fingerprint of this compiler, computed once in a process, but for folders that a target has no use for."""
    files = sorted(source_files(os.path.dirname(mltriton.__file__), _NOT_COMPILER | without))
    known = (mltriton.__version__, *sys.version_info[:2], llvm_version())
    return digest_of("\n".join([repr(known), *files]).encode("utf-8", "surrogateescape"))


@cache
def llvm_version() -> str:
    """What llvmlite's own file says of its version, and its LLVM library's size and time; llvmlite is not loaded."""
    found = PathFinder.find_spec("llvmlite")
    if found is None or found.origin is None:
        return ""
    root = os.path.dirname(found.origin)
    known: list[object] = []
    for name in LLVM_LIBRARIES:
        with suppress(FileNotFoundError):
            status = os.stat(f"{root}/binding/{name}")
            known += [name, status.st_size, status.st_mtime_ns]
    with suppress(FileNotFoundError), open(f"{root}/_version.py", encoding="utf-8") as file:
        known.append(file.read())
    return repr(known)


def source_files(root: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Path, size and time of change of every source file under a folder, but for folders of such names: asked on every
    start, so one plain loop.

    Where the system can, files are asked for by their names in an open folder: by their paths it takes half as long
    again.
    """
    found: list[str] = []
    folders = [""]
    for folder in folders:  # Grows while folders in it are found.
        opened = os.open(root + folder, os.O_RDONLY) if os.scandir in os.supports_fd else None
        try:
            with os.scandir(root + folder if opened is None else opened) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(_SOURCES):
                        status = entry.stat()
                        found.append(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}")
                    elif "." not in name and name != "__pycache__" and name not in without:
                        folders.append(f"{folder}/{name}")
        finally:
            if opened is not None:
                os.close(opened)
    return found
