"""Loading objects: relocatable object files (bytes) become callable addresses in this process.

Level: `binary`. Takes what LLVM's `emit_object` gives for this machine, or an image that `linker` made of it; undefined
symbols are looked up in the process (the C library, CPython, libraries loaded globally). ELF objects are linked by
`linker`, without importing llvmlite, where `relocations` has a table for the machine; others by LLVM's LLJIT.
Guarantees: an object's symbols never meet another object's, and its code stays mapped as long as the `LoadedObject`
lives (LLJIT's until LLVM is used the next time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING

from ...errors import BackendError
from ..forking import fork_lock
from .images import MAGIC, ImageError, LinkedImage

if TYPE_CHECKING:
    from llvmlite import binding

_FORMATS = (b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe", b"\x64\x86", b"\x64\xaa")  # 64-bit ELF, Mach-O, COFF
_serial_numbers = count()
_lock = fork_lock()


class ObjectLoadError(BackendError):
    """An object file cannot be linked into this process: not an object of this machine, or symbols are missing."""


class LoadedObject:
    """Machine code in this process. `addresses` gives the symbols asked for; they are valid while this object lives."""

    __slots__ = ("_owner", "addresses")

    def __init__(self, addresses: Mapping[str, int], owner: object) -> None:
        self.addresses = addresses
        self._owner = owner


def load_object(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Load what `linked` gives, or link `image`, a relocatable object file of this machine; return the addresses of
    `symbols`.

    Raises `ObjectLoadError` if it is no such file, lacks one of `symbols` or needs one that the process does not have.
    """
    if image.startswith(MAGIC):
        return _load_image(image, symbols)
    if len(image) < 64 or not image.startswith(_FORMATS):  # LLVM aborts the process on some files that are no objects.
        raise ObjectLoadError("this is not a 64-bit ELF, Mach-O or COFF object file", found=repr(image[:8]))
    from . import relocations  # What is linked needs no table.

    return load_elf(image, symbols) if relocations.this_machine() else load_with_llvm(image, symbols)


def linked(image: bytes) -> bytes:
    """What is loaded in place of an object file, sooner: its image, or itself where our linker does not take it."""
    from . import elf, linker

    try:
        return linker.linked(image)
    except (elf.ElfError, ImageError):  # Loading it says what is wrong.
        return image


def load_elf(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Do what `load_object` does for the machines of `relocations`, without LLVM."""
    from . import elf, linker

    try:
        return _load_image(linker.linked(image), symbols)
    except (elf.ElfError, ImageError) as error:
        raise ObjectLoadError(f"an object file cannot be linked: {error}") from None


def _load_image(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    try:
        loaded = LinkedImage(image)
    except ImageError as error:
        raise ObjectLoadError(f"an object file cannot be linked: {error}") from None
    defined = loaded.addresses
    missing = [symbol for symbol in symbols if symbol not in defined]
    if missing:
        raise ObjectLoadError(f"an object file does not define {', '.join(missing)}")
    return LoadedObject({symbol: defined[symbol] for symbol in symbols}, loaded)


def load_with_llvm(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Do what `load_object` does for any machine, through LLVM's LLJIT."""
    from ..llvm_thread import call_llvm

    return call_llvm(partial(_load_with_llvm, image, symbols))


def _load_with_llvm(image: bytes, symbols: Sequence[str]) -> LoadedObject:
    from llvmlite import binding

    from ..llvm_thread import Kept

    builder = binding.JITLibraryBuilder()
    builder.add_object_img(image)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        with _lock:
            tracker = builder.link(_lljit(), f"mltriton.{next(_serial_numbers)}")
    except RuntimeError as error:
        raise ObjectLoadError(f"an object file cannot be linked: {error}") from None
    return LoadedObject({symbol: tracker[symbol] for symbol in symbols}, Kept(tracker))


@cache
def _lljit() -> binding.LLJIT:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.create_lljit_compiler()
