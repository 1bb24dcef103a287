"""`triton.runtime.cache`'s managers: a program's own files below the cache directory, a folder for each key.

Level: user. mltriton's kernels are not kept this way (`runtime/cache.py`); these are for programs that keep files of
theirs beside them. Guarantees: a file is there whole or not at all.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path

from mltriton import knobs
from mltriton.runtime import config
from mltriton.runtime.cache import digest
from mltriton.runtime.private_files import make_folder, write

__all__ = [
    "CacheManager",
    "FileCacheManager",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "make_so_cache_key",
]


class CacheManager(ABC):
    """Files of one key, by name; a group is several files that belong together."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file; None where it is not there."""

    @abstractmethod
    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Keep a file; gives its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of a group's files by name; None where the group is not there."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Keep which files belong together; gives the path of the list."""


class FileCacheManager(CacheManager):
    """Files in a folder of the cache directory, or of the directory for dumps.

    `override`: files that a program puts there to take the place of others; nothing is written.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        dumps = Path(config.DUMP_DIR.get() or Path(config.cache_dir(), "dump"))
        base = dumps if dump else Path(config.cache_dir(), "override" if override else "files")
        self.cache_dir = str(base / key)
        self._folder = base / key
        self.lock_path = None if override else str(base / key / "lock")
        if not override:
            make_folder(self._folder)

    def _make_path(self, filename: str) -> str:
        return str(self._folder / filename)

    def has_file(self, filename: str) -> bool:
        """Whether a file is there."""
        return (self._folder / filename).exists()

    def get_file(self, filename: str) -> str | None:
        """The path of a file; None where it is not there."""
        return str(self._folder / filename) if self.has_file(filename) else None

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Keep a file; gives its path. Raises `OSError`."""
        write(self._folder / filename, data if isinstance(data, bytes) else str(data).encode())
        return str(self._folder / filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of a group's files by name, those that are there; None where the group is not."""
        listed = self.get_file(_list_of(filename))
        if listed is None:
            return None
        children = json.loads(Path(listed).read_text(encoding="utf-8")).get("child_paths", {})
        return {name: path for name, path in children.items() if Path(path).exists()}

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Keep which files belong together; gives the path of the list. Raises `OSError`."""
        return self.put(json.dumps({"child_paths": group}), _list_of(filename))


def _list_of(filename: str) -> str:
    return f"__grp__{filename}"


def get_cache_manager(key: str) -> CacheManager:
    """The files that programs keep for a key, by the class that `knobs.cache.manager_class` names."""
    kind = knobs.cache.manager_class or FileCacheManager
    return kind(key)


def get_override_manager(key: str) -> CacheManager:
    """Files that take the place of others."""
    return FileCacheManager(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """Files that are only looked at."""
    return FileCacheManager(key, dump=True)


def make_so_cache_key(version_hash: str, signature: dict[str, str], constants: object, ids: object, **more: str) -> str:
    """A key for a library that a program builds for a kernel."""
    types = {name: "ptr" if type.startswith("*") else type for name, type in signature.items()}
    return digest(version_hash, sorted(types.items()), repr(constants), repr(ids), sorted(more.items()))
