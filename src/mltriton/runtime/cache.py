"""The on-disk cache: named byte strings under a hex key, safe with many processes, threads and users.

Level: below the compiler, which decides what a key covers. One entry is one file: a checksum, a header (the key,
metadata and the names and lengths of the files) and the files. Guarantees: an entry is whole or absent; a file that is
damaged, of another key or not the user's own is removed and reported as absent; a directory that cannot be used, or
that others can write to, means one warning and a cache in memory, never a failed compilation.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from mltriton.records import NamedTuple, record
from mltriton.runtime.digests import blake2b, digest_of
from mltriton.runtime.packed import packed, unpacked

from ..errors import calling_level
from . import config, private_files

_MAGIC = b"mltriton cache 3"
_CHECKSUM_BYTES = 16
_PREFIX = struct.Struct(f"<{len(_MAGIC)}s{_CHECKSUM_BYTES}sI")  # magic, checksum of all that follows it, header length
_SUFFIX = ".entry"
_TOUCH_AFTER_SECONDS = 3600.0  # An entry's time of use is rewritten at most this often: a hit stays a read.
_ABANDONED_AFTER_SECONDS = 3600.0  # A partial file this old belongs to a process that died.
_LOG = "written"  # A file with a byte for each block that any process has written since entries were last removed.
_BLOCK_BYTES = 4096
_SLACK = 16  # Entries are removed after a 16th of the limit was written, until that much is free.


class CacheWarning(UserWarning):
    """The cache cannot use its directory."""


class Entry(NamedTuple):
    """What `CacheDir.entries` knows of an entry without reading it; `used` is seconds since the epoch."""

    key: str
    path: str
    size: int
    used: float


class _CorruptEntryError(Exception):
    """The file is not a whole entry."""


@record()
class _Content:
    metadata: dict[str, Any]
    files: dict[str, bytes]


class CacheDir:
    """A cache in `directory`, which is created when first written to; keys are hex digests (see `digest`).

    `max_size` is in bytes, of all processes together: the least recently used entries go while entries are put, and
    whenever `prune` is called. None means no limit. Without a directory, for which `reason` is told, and while it
    cannot be written, entries are kept in memory; they are written once it can be again.
    """

    def __init__(self, directory: private_files.AnyPath | None, max_size: int | None = None, reason: str = "") -> None:
        self.directory = None if directory is None else os.fspath(directory)
        self.max_size = max_size
        self._reason = reason
        self._memory: dict[str, _Content] = {}
        self._has_warned = False

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of the entry, or None if there is no whole entry under `key`."""
        content = self._load(key)
        return content.files if content else None

    def metadata(self, key: str) -> dict[str, Any] | None:
        """Return what `put` was given as metadata, or None if there is no whole entry under `key`."""
        content = self._load(key)
        return content.metadata if content else None

    def put(self, key: str, files: Mapping[str, bytes], metadata: Mapping[str, Any] | None = None) -> None:
        """Store an entry, replacing what was there. `metadata` must be representable in JSON."""
        _check_key(key)
        content = _Content(dict(metadata or {}), dict(files))
        try:
            self._write(key, content)
        except OSError as error:
            self._memory[key] = content
            self._warn(f"cannot be written ({error}): kernels are kept in memory")
            return
        self._memory.pop(key, None)
        with contextlib.suppress(OSError):
            for waiting, content in tuple(self._memory.items()):
                self._write(waiting, content)
                self._memory.pop(waiting, None)

    def discard(self, key: str) -> None:
        """Remove an entry if it is there."""
        self._memory.pop(key, None)
        if self.directory:
            _remove(_path(self.directory, key))

    def clear(self) -> int:
        """Remove every entry and return how many there were."""
        count = len(self._memory)
        self._memory.clear()
        for entry in self.entries():
            count += _remove(entry.path)
        return count

    def prune(self, max_size: int | None = None) -> int:
        """Remove the least recently used entries until at most `max_size` bytes are left; return how many went.

        Without an argument the cache's own limit holds. Files left behind by processes that died go as well.
        """
        limit = self.max_size if max_size is None else max_size
        self._remove_abandoned()
        if limit is None:
            return 0
        entries = sorted(self.entries(), key=lambda entry: entry.used)
        excess = sum(entry.size for entry in entries) - limit
        removed = 0
        for entry in entries:
            if excess <= 0:
                break
            removed += _remove(entry.path)
            excess -= entry.size
        return removed

    def entries(self) -> Iterator[Entry]:
        """List the entries on disk, in no order."""
        for path in self._files(_SUFFIX):
            with contextlib.suppress(OSError):  # Another process may remove it first.
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    folder, name = path.split(os.sep)[-2:]
                    yield Entry(folder + name.removesuffix(_SUFFIX), path, status.st_size, status.st_mtime)

    def size(self) -> int:
        """Return the bytes all entries on disk take."""
        return sum(entry.size for entry in self.entries())

    def _files(self, suffix: str) -> Iterator[str]:
        if self.directory is None:
            return
        from glob import escape, iglob  # A hit needs neither.

        yield from iglob(os.path.join(escape(self.directory), "??", f"*{suffix}"), include_hidden=True)

    def _load(self, key: str) -> _Content | None:
        if key in self._memory or self.directory is None:
            return self._memory.get(key)
        path = _path(self.directory, key)
        try:
            private_files.check_folder(self.directory)
        except private_files.UntrustedError as error:
            self._warn(f"is not used: {error}")
            return None
        except OSError:
            return None
        try:
            image, used = private_files.read(path)
            content = _decode(key, image)
        except (FileNotFoundError, PermissionError):
            return None
        except (OSError, _CorruptEntryError):
            _remove(path)
            return None
        if time.time() - used > _TOUCH_AFTER_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def _write(self, key: str, content: _Content) -> None:
        """Bring an entry to the disk. Raises OSError."""
        if self.directory is None:
            raise FileNotFoundError(self._reason)
        path, image = _path(self.directory, key), _encode(key, content)
        private_files.make_folder(self.directory)
        private_files.make_folder(os.path.dirname(path))
        private_files.write(path, image)
        self._keep_limit(len(image))

    def _keep_limit(self, size: int) -> None:
        """Count what was written; when all processes together have written enough, make room."""
        if self.max_size is None or self.directory is None:
            return
        log, slack = os.path.join(self.directory, _LOG), self.max_size // _SLACK
        try:
            written = private_files.append(log, b"." * -(-size // _BLOCK_BYTES)) * _BLOCK_BYTES
        except OSError:  # Then nobody knows.
            written = slack + 1
        if written > slack:
            _remove(log)
            self.prune(self.max_size - slack)

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            where = f"directory {self.directory}" if self.directory else "has no directory and"
            warnings.warn(f"the cache {where} {what}", CacheWarning, stacklevel=calling_level())

    def _remove_abandoned(self) -> None:
        oldest = time.time() - _ABANDONED_AFTER_SECONDS
        for path in self._files(private_files.TEMPORARY):
            with contextlib.suppress(OSError):
                if os.lstat(path).st_mtime < oldest:
                    os.unlink(path)


def default_cache() -> CacheDir:
    """Return this process's cache in the directory the environment names now (`MLTRITON_CACHE_DIR`)."""
    max_size = config.CACHE_MAX_SIZE.get()
    try:
        return _cache_in(config.cache_dir(), max_size)
    except config.NoHomeError as error:
        return _cache_in(None, max_size, error.message)


@cache
def _cache_in(directory: str | None, max_size: int, reason: str = "") -> CacheDir:
    return CacheDir(directory, max_size, reason)


def digest(*parts: object) -> str:
    """Return 64 hex digits that depend on the types and values of `parts` alone: the same in every process.

    Takes str, bytes, bool, int, float, None, and tuples, lists, sets and dictionaries of these; the order of a set or
    dictionary does not matter. Anything else raises `TypeError`: its identity would depend on the process.
    """
    encoded: list[bytes] = []
    _encode_part(parts, encoded)
    return digest_of(b"".join(encoded))


def _encode_part(part: Any, out: list[bytes]) -> None:
    """Append an encoding of `part` in which no two different values look the same: type, length, content."""
    match part:
        case str():
            _token(b"s", part.encode("utf-8", "surrogatepass"), out)
        case bytes():
            _token(b"b", part, out)
        case bool() | None:
            _token(b"c", repr(part).encode(), out)
        case int():
            _token(b"i", str(int(part)).encode(), out)
        case float():
            _token(b"f", struct.pack("<d", part), out)
        case tuple() | list():
            items = cast(Sequence[Any], part)
            _token(b"t", str(len(items)).encode(), out)
            for item in items:
                _encode_part(item, out)
        case dict():
            _unordered(b"d", part.items(), out)
        case set() | frozenset():
            _unordered(b"u", part, out)
        case _:
            raise TypeError(f"{type(part).__name__} has no digest that is the same in every process")


def _token(kind: bytes, content: bytes, out: list[bytes]) -> None:
    out.append(b"%b%d:%b" % (kind, len(content), content))


def _unordered(kind: bytes, items: Any, out: list[bytes]) -> None:
    encoded: list[bytes] = []
    for item in items:
        parts: list[bytes] = []
        _encode_part(item, parts)
        encoded.append(b"".join(parts))
    _token(kind, str(len(encoded)).encode(), out)
    out += sorted(encoded)


def _check_key(key: str) -> None:
    if len(key) < 3 or not key.isalnum():
        raise ValueError(f"a cache key must be a hex digest, not {key!r}")


def _path(directory: str, key: str) -> str:
    _check_key(key)
    return os.path.join(directory, key[:2], key[2:] + _SUFFIX)


def _remove(path: str) -> bool:
    """Remove a file, or an empty directory in a file's place; whether it is gone by this."""
    for remove in (os.unlink, os.rmdir):
        with contextlib.suppress(OSError):
            remove(path)
            return True
    return False


def _encode(key: str, content: _Content) -> bytes:
    sizes = {name: len(data) for name, data in content.files.items()}
    known = {"key": key, "metadata": content.metadata, "files": sizes}
    header = packed(known)
    body = b"".join([header, *content.files.values()])
    length = struct.pack("<I", len(header))
    return _PREFIX.pack(_MAGIC, _checksum(length, body), len(header)) + body


def _decode(key: str, image: bytes) -> _Content:
    """The content of an entry's file. Raises `_CorruptEntryError` for what is none, or another key's."""
    if len(image) < _PREFIX.size:
        raise _CorruptEntryError
    magic, checksum, header_length = _PREFIX.unpack_from(image)
    body = memoryview(image)[_PREFIX.size :]
    if magic != _MAGIC or checksum != _checksum(struct.pack("<I", header_length), body):
        raise _CorruptEntryError
    try:
        return _content(key, unpacked(body[:header_length]), body[header_length:])
    except (AttributeError, KeyError, TypeError, ValueError):  # It was written by something else.
        raise _CorruptEntryError from None


def _content(key: str, header: Any, data: memoryview) -> _Content:
    if header["key"] != key or sum(header["files"].values()) != len(data):
        raise ValueError(key)
    files: dict[str, bytes] = {}
    start = 0
    for name, size in header["files"].items():
        files[name] = bytes(data[start : start + size])
        start += size
    return _Content(dict(header["metadata"]), files)


def _checksum(*parts: bytes | memoryview) -> bytes:
    state = blake2b(digest_size=_CHECKSUM_BYTES)
    for part in parts:
        state.update(part)
    return state.digest()
