"""The on-disk cache: named byte strings under a hex key, safe with many processes and threads.

Level: below the compiler, which decides what a key covers. One entry is one file: a checksum, a JSON header (metadata
and the names and lengths of the files) and the files. Guarantees: an entry is whole or absent (written beside its place
and moved there in one step); a truncated, altered or foreign file is detected, removed and reported as absent; a
directory that cannot be used means one warning and a cache in memory, never a failed compilation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from . import config

_MAGIC = b"mltriton cache 1"
_CHECKSUM_BYTES = 16
_PREFIX = struct.Struct(f"<{len(_MAGIC)}s{_CHECKSUM_BYTES}sI")  # magic, checksum of all that follows it, header length
_SUFFIX = ".entry"
_TEMPORARY = ".partial"
_TOUCH_AFTER_SECONDS = 3600.0  # An entry's time of use is rewritten at most this often: a hit stays a read.
_ABANDONED_AFTER_SECONDS = 3600.0  # A partial file this old belongs to a process that died.
_PUTS_BETWEEN_PRUNES = 64


class CacheWarning(UserWarning):
    """The cache cannot use its directory."""


class Entry(NamedTuple):
    """What `CacheDir.entries` knows of an entry without reading it; `used` is seconds since the epoch."""

    key: str
    path: Path
    size: int
    used: float


class _CorruptEntryError(Exception):
    """The file is not a whole entry."""


@dataclass(slots=True)
class _Content:
    metadata: dict[str, Any]
    files: dict[str, bytes]


class CacheDir:
    """A cache in `directory`, which is created when first written to; keys are hex digests (see `digest`).

    `max_size` is in bytes and is kept loosely: the least recently used entries go after every 64th `put`, and whenever
    `prune` is called. None means no limit.
    """

    def __init__(self, directory: Path, max_size: int | None = None) -> None:
        self.directory = Path(directory)
        self.max_size = max_size
        self._memory: dict[str, _Content] = {}
        self._disk_works = True
        self._puts = 0
        self._lock = threading.Lock()

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
        content = _Content(dict(metadata or {}), dict(files))
        image = _encode(content)
        if not self._write(self._path(key), image):
            self._memory[key] = content
            return
        with self._lock:
            self._puts += 1
            due = self.max_size is not None and self._puts % _PUTS_BETWEEN_PRUNES == 0
        if due:
            self.prune()

    def discard(self, key: str) -> None:
        """Remove an entry if it is there."""
        self._memory.pop(key, None)
        _remove(self._path(key))

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
                status = path.stat()
                yield Entry(path.parent.name + path.stem, path, status.st_size, status.st_mtime)

    def size(self) -> int:
        """Return the bytes all entries on disk take."""
        return sum(entry.size for entry in self.entries())

    def _path(self, key: str) -> Path:
        if len(key) < 3 or not key.isalnum():
            raise ValueError(f"a cache key must be a hex digest, not {key!r}")
        return self.directory / key[:2] / (key[2:] + _SUFFIX)

    def _files(self, suffix: str) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from self.directory.glob("??/*" + suffix)

    def _load(self, key: str) -> _Content | None:
        if key in self._memory:
            return self._memory[key]
        path = self._path(key)
        try:
            image, used = _read(path)
        except OSError:
            return None
        try:
            content = _decode(image)
        except _CorruptEntryError:
            _remove(path)
            return None
        if time.time() - used > _TOUCH_AFTER_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def _write(self, path: Path, image: bytes) -> bool:
        """Put `image` at `path` in one step; return False, with one warning in all, if the directory is unusable."""
        if not self._disk_works:
            return False
        temporary = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}{_TEMPORARY}")
            temporary.write_bytes(image)
            temporary.replace(path)
            return True
        except OSError as error:
            if temporary is not None:
                _remove(temporary)
            self._give_up_on_disk(error)
            return False

    def _give_up_on_disk(self, error: OSError) -> None:
        with self._lock:
            first, self._disk_works = self._disk_works, False
        if first:
            warnings.warn(
                f"the cache directory {self.directory} cannot be written ({error}): kernels are kept in memory only",
                CacheWarning,
                stacklevel=4,
            )

    def _remove_abandoned(self) -> None:
        oldest = time.time() - _ABANDONED_AFTER_SECONDS
        for path in self._files(_TEMPORARY):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def default_cache() -> CacheDir:
    """Return this process's cache in the directory the environment names now (`MLTRITON_CACHE_DIR`)."""
    return _cache_in(config.cache_dir(), config.CACHE_MAX_SIZE.get())


@cache
def _cache_in(directory: Path, max_size: int) -> CacheDir:
    return CacheDir(directory, max_size)


def digest(*parts: object) -> str:
    """Return 64 hex digits that depend on the types and values of `parts` alone: the same in every process.

    Takes str, bytes, bool, int, float, None, and tuples, lists, sets and dictionaries of these; the order of a set or
    dictionary does not matter. Anything else raises `TypeError`: its identity would depend on the process.
    """
    encoded: list[bytes] = []
    _encode_part(parts, encoded)
    return hashlib.sha256(b"".join(encoded)).hexdigest()


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


def _read(path: Path) -> tuple[bytes, float]:
    """Return the content of a file and its time of use."""
    with path.open("rb", buffering=0) as stream:
        status = os.fstat(stream.fileno())
        return stream.read(), status.st_mtime


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _encode(content: _Content) -> bytes:
    sizes = {name: len(data) for name, data in content.files.items()}
    header = json.dumps({"metadata": content.metadata, "files": sizes}, separators=(",", ":")).encode()
    body = b"".join([header, *content.files.values()])
    length = struct.pack("<I", len(header))
    return _PREFIX.pack(_MAGIC, _checksum(length, body), len(header)) + body


def _decode(image: bytes) -> _Content:
    if len(image) < _PREFIX.size:
        raise _CorruptEntryError
    magic, checksum, header_length = _PREFIX.unpack_from(image)
    body = memoryview(image)[_PREFIX.size :]
    if magic != _MAGIC or checksum != _checksum(struct.pack("<I", header_length), body):
        raise _CorruptEntryError
    header = json.loads(bytes(body[:header_length]))
    files: dict[str, bytes] = {}
    start = header_length
    for name, size in header["files"].items():
        files[name] = bytes(body[start : start + size])
        start += size
    return _Content(header["metadata"], files)


def _checksum(*parts: bytes | memoryview) -> bytes:
    state = hashlib.blake2b(digest_size=_CHECKSUM_BYTES)
    for part in parts:
        state.update(part)
    return state.digest()
