"""Files that nobody but their user may have written: entries of the cache, saved programs.

Level: all. Code is loaded from such files, so whoever can write one runs code as this user. Guarantees: folders and
files made here are the user's alone whatever the umask; a folder or file of another user, or one that others can write
to, is an `UntrustedError`; links are not followed, and what is no regular file is not opened for long; a file is
written whole or not at all.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from mltriton.runtime.digests import digest_of

if TYPE_CHECKING:
    from pathlib import Path

AnyPath = str | os.PathLike[str]

TEMPORARY = ".partial"  # How names of files end that are still being written.
_FOLDER, _FILE = 0o700, 0o600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Flags that not every system has. A FIFO that is opened without blocking gives an error or nothing.
_NO_FOLLOW, _NO_BLOCK, _NO_TERMINAL = (getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "NOCTTY"))
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class UntrustedError(OSError):
    """A folder or file that somebody else has, or can have, written."""


def make_folder(path: AnyPath) -> None:
    """Make a folder of the user's own, with its parents; one that is there must be trusted."""
    try:
        check_folder(path)
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent and not os.path.exists(parent):
            make_folder(parent)
        with suppress(FileExistsError):
            os.mkdir(path, _FOLDER)
            os.chmod(path, _FOLDER)  # The umask may have taken more away.
        check_folder(path)


def check_folder(path: AnyPath) -> None:
    """Raise `UntrustedError` for a folder that somebody else can write to; OSError for what is no folder."""
    status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is no directory")
    _check(path, status)


def _check(path: AnyPath, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):  # Without such users there is nothing to compare.
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise UntrustedError(f"{path} belongs to another user (uid {status.st_uid})")
    if status.st_mode & _OTHERS_WRITE:
        raise UntrustedError(f"{path} can be written by others (mode {stat.S_IMODE(status.st_mode):o})")


def read(path: AnyPath) -> tuple[bytes, float]:
    """The content of a file and its time of change.

    Raises OSError, of which `UntrustedError` for what others can have written.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_BLOCK | _NO_TERMINAL | _BINARY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f"{path} is no regular file")
        _check(path, status)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.read(), status.st_mtime
    finally:
        os.close(descriptor)


def write(path: AnyPath, data: bytes) -> None:
    """Put a file at `path` in one step; its folder must be trusted. Raises OSError, and leaves nothing behind."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{os.path.splitext(name)[0]}.{os.urandom(8).hex()}{TEMPORARY}")
    try:
        with open(_create(temporary, os.O_EXCL), "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
        os.replace(temporary, path)
    except BaseException:  # An interrupt, too, leaves nothing behind.
        with suppress(OSError):
            os.unlink(temporary)
        raise


def append(path: AnyPath, data: bytes) -> int:
    """Append to a file, which is made if need be; its size then. Raises OSError."""
    descriptor = _create(path, os.O_APPEND)
    try:
        os.write(descriptor, data)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _create(path: AnyPath, flags: int) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _NO_FOLLOW | _NO_BLOCK | _BINARY | flags, _FILE)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, _FILE)
    return descriptor


def folder_for_temporaries(name: str) -> Path:
    """A folder of the user's own among the temporary files: always the same one, unless somebody else took its name.

    Raises OSError where none can be made.
    """
    import tempfile  # Load much, for what is seldom needed.
    from pathlib import Path

    owner = os.geteuid() if hasattr(os, "geteuid") else 0
    folder = Path(tempfile.gettempdir()) / f"{name}-{owner}"
    try:
        if folder.is_symlink():
            raise UntrustedError(f"{folder} is a link")
        make_folder(folder)
    except OSError:
        return Path(tempfile.mkdtemp(prefix=f"{name}-"))
    return folder


def save_text(text: str, stem: str, directory: Path | None = None, suffix: str = ".mlir") -> Path | None:
    """Write text to a file named after `stem` and what it holds; None where nothing can be written.

    Without a directory that is one of the user's own among the temporary files.
    """
    data = text.encode()
    name = f"{stem}-{digest_of(data)[:12]}{suffix}"
    try:
        if directory is None:
            folder = folder_for_temporaries("mltriton-reproducers")
        else:
            folder = directory
            folder.mkdir(parents=True, exist_ok=True)
        write(folder / name, data)
    except OSError:
        return None
    return folder / name
