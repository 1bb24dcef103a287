"""Loading objects: relocatable object files (bytes) become callable addresses in this process.

Level: `binary`. Takes what LLVM's `emit_object` gives for this machine; undefined symbols are looked up in the process
(the C library, CPython, libraries loaded globally). Guarantees: an object's symbols never meet another object's, and
its code stays mapped exactly as long as the `LoadedObject` lives.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import BackendError

if TYPE_CHECKING:
    from llvmlite import binding

_serial_numbers = count()
_lock = threading.Lock()


class ObjectLoadError(BackendError):
    """An object file cannot be linked into this process: not an object of this machine, or symbols are missing."""


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """Machine code in this process. `addresses` gives the exported symbols; they are valid while this object lives."""

    addresses: MappingProxyType[str, int]
    _tracker: binding.ResourceTracker


def load_object(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link `image`, a relocatable object file of this machine, and return the addresses of `symbols`.

    Raises `ObjectLoadError` if it is no such file, lacks one of `symbols` or needs one that the process does not have.
    """
    from llvmlite import binding

    check_format(image)
    builder = binding.JITLibraryBuilder()
    builder.add_object_img(image)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        with _lock:
            tracker = builder.link(_linker(), f"mltriton.{next(_serial_numbers)}")
    except RuntimeError as error:
        raise ObjectLoadError(f"an object file cannot be linked: {error}") from None
    return LoadedObject(MappingProxyType({symbol: tracker[symbol] for symbol in symbols}), tracker)


@cache
def _linker() -> binding.LLJIT:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.create_lljit_compiler(suppress_errors=True)


def check_format(image: bytes) -> None:
    """Raise `ObjectLoadError` unless `image` begins like an object file: LLVM aborts the process on some that do not."""
    if len(image) < 64 or not image.startswith((b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe", b"\x64\x86", b"\x64\xaa")):
        raise ObjectLoadError("this is not a 64-bit ELF, Mach-O or COFF object file", found=repr(image[:8]))
