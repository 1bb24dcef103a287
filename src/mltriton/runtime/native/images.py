"""Linked images: machine code that was linked once, and that a process loads without reading an object file.

Level: `binary`. `linker` makes them of objects of this machine, and the on-disk cache keeps them. Most of an image does
not depend on where it lies; what does is named: words to which the image's address is added, and words that take the
addresses of symbols of the process. Guarantees: an image is loaded as it was made or refused; memory is writable or
executable but not both, private to this process, and given back when the `LinkedImage` goes.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..digests import blake2b
from ..packed import packed, unpacked

MAGIC = b"mltriton image 1"
_DIGEST_BYTES = 16
_PREFIX = struct.Struct(f"<{len(MAGIC)}s{_DIGEST_BYTES}sI")  # magic, digest of all that follows it, length of the facts
WORD = struct.Struct("<Q")
_PROTECTIONS = (mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)

# The offset of a word, the symbol that it takes, whether that may be absent, and what is added to its address.
Import = tuple[int, str, bool, int]


class ImageError(Exception):
    """The image is damaged, of another machine, or names what this process does not have; the text says what."""


# The classes here are plain: making a dataclass or a named tuple takes longer than loading.


class ImageFacts:
    """What is known of an image besides its content; places are offsets in it.

    `groups` are start and size of code, constants and variables, each from a new page; `based` are the words to which
    the image's address is added, `frames` the beginnings of records of call frames.
    """

    def __init__(
        self,
        groups: Sequence[tuple[int, int]],
        symbols: dict[str, int],
        based: Sequence[int],
        imports: Sequence[Import],
        frames: Sequence[int],
        page: int = mmap.PAGESIZE,
        machine: str = "",
    ) -> None:
        self.groups, self.symbols, self.based, self.imports, self.frames = groups, symbols, based, imports, frames
        self.page, self.machine = page, machine or platform.machine()


def image_of(facts: ImageFacts, content: bytes) -> bytes:
    """An image as bytes; behind `content` its memory is zero."""
    known = packed(vars(facts))
    body = struct.pack("<I", len(known)) + known + content
    return MAGIC + _digest(body) + body


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _read(image: bytes) -> tuple[ImageFacts, memoryview]:
    if len(image) < _PREFIX.size:
        raise ImageError("the image is cut off")
    magic, digest, length = _PREFIX.unpack_from(image)
    body = memoryview(image)[_PREFIX.size - 4 :]
    if magic != MAGIC or digest != _digest(body):
        raise ImageError("the image is damaged")
    facts = ImageFacts(**unpacked(body[4 : 4 + length]))
    if facts.machine != platform.machine() or facts.page % mmap.PAGESIZE:
        raise ImageError(f"the image is for {facts.machine} with pages of {facts.page} bytes")
    return facts, body[4 + length :]


class LinkedImage:
    """An image in this process's memory. Raises `ImageError` for what cannot be loaded."""

    def __init__(self, image: bytes) -> None:
        facts, content = _read(image)
        self._memory = memory = private_memory(sum(facts.groups[-1]))
        self._base = base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.addresses = {name: base + offset for name, offset in facts.symbols.items()}
        memory[: len(content)] = content
        for at in facts.based:
            [offset] = WORD.unpack_from(memory, at)
            put_word(memory, at, base + offset)
        for at, name, is_weak, addend in facts.imports:
            put_word(memory, at, _address_in_process(name, is_weak) + addend)
        self._protect(facts.groups)
        for place in facts.frames:
            self._register_frames(base + place)

    def _protect(self, groups: Sequence[tuple[int, int]]) -> None:
        start, size = groups[0]
        _forget_cached_code(self._base + start, size)
        for (start, size), protection in zip(groups, _PROTECTIONS, strict=True):
            if size and _libc().mprotect(ctypes.c_void_p(self._base + start), ctypes.c_size_t(size), protection):
                raise ImageError(f"memory cannot be made executable ({os.strerror(ctypes.get_errno())})")

    def _register_frames(self, place: int) -> None:
        """Tell the unwinder of the frames: a thread that ends inside a launch unwinds its stack through them."""
        if _tell_unwinder("__register_frame", place):
            # The memory must outlive the registration, so the finalizer holds it.
            weakref.finalize(self, _forget_frames, place, self._memory).atexit = False


def _forget_frames(place: int, memory: mmap.mmap) -> None:
    _tell_unwinder("__deregister_frame", place)
    del memory


def _tell_unwinder(what: str, place: int) -> bool:
    """Call a function of the library that unwinds stacks with the address of frames; False if there is no library."""
    unwinder = _unwinder()
    if unwinder is not None:
        unwinder[what](ctypes.c_void_p(place))
    return unwinder is not None


def put_word(memory: mmap.mmap, at: int, value: int) -> None:
    """Write a word, which wraps as addresses do."""
    WORD.pack_into(memory, at, value & (1 << 64) - 1)


def private_memory(size: int) -> mmap.mmap:
    """Memory of zeros, of which only what is written is really there. Raises `ImageError`."""
    try:
        return mmap.mmap(-1, max(size, mmap.PAGESIZE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise ImageError(f"there is no memory for {size} bytes ({error})") from None


def _address_in_process(name: str, is_weak: bool) -> int:
    """The address of a symbol of the libraries that are loaded globally; 0 for a weak one that is nowhere."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(_libc(), name))
    except ValueError:
        if is_weak:
            return 0
        raise ImageError(f"symbol {name} is not defined in this process") from None


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _forget_cached_code(start: int, size: int) -> None:
    """Let the processor read code anew: AArch64's caches of instructions do not follow what is written."""
    compiler_support: Any = _unwinder()
    if hasattr(compiler_support, "__clear_cache"):
        compiler_support["__clear_cache"](ctypes.c_void_p(start), ctypes.c_void_p(start + size))


@cache
def _unwinder() -> Any:
    """Return the library that unwinds stacks, or None if there is none."""
    try:
        return ctypes.CDLL("libgcc_s.so.1")
    except OSError:
        return None
