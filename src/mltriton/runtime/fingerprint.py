"""What the compiler itself is: the part of every cache key that changes when the compiler does.

Level: runtime. Guarantees: another version, an edited source file of this package or another Python minor version give
another fingerprint. Files are identified by size and time of change, which costs a millisecond; their text would cost
twenty.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mltriton
from mltriton.runtime.cache import digest

_PACKAGE = Path(mltriton.__file__).parent


@cache
def compiler_fingerprint() -> str:
    """The fingerprint of this compiler, computed once in a process."""
    return digest(mltriton.__version__, list(sys.version_info[:2]), sorted(_files(str(_PACKAGE))))


def _files(directory: str) -> Iterator[tuple[str, int, int]]:
    """Path in the package, size and time of change of every source file below a directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith((".py", ".ll")):
                status = entry.stat()
                yield os.path.relpath(entry.path, _PACKAGE), status.st_size, status.st_mtime_ns
