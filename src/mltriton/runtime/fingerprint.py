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
from hashlib import sha256
from pathlib import Path

import mltriton


@cache
def compiler_fingerprint() -> str:
    """The fingerprint of this compiler, computed once in a process."""
    root = str(Path(mltriton.__file__).parent)
    files = sorted((path[len(root) :], size, time) for path, size, time in _files(root))
    return sha256(repr((mltriton.__version__, sys.version_info[:2], files)).encode()).hexdigest()


def _files(directory: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of every source file below a directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".ll")):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif "." not in entry.name and entry.name != "__pycache__":
                yield from _files(entry.path)
