"""Migrate files and directories: read, migrate each in a process pool, write back, report.

Level: source text. A file that cannot be read or does not parse is an error of its own and stays as it is; nothing is
written before its file has been migrated (and proven, where that was asked for) as a whole.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from mltriton.errors import OptionError, TritonError
from mltriton.tools.migrate.migration import MARKS, migrate_source
from mltriton.tools.migrate.proof import Proof, prove
from mltriton.tools.migrate.result import MigrationError, Options, Result

SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules", "build", "dist"})
_PARALLEL = 4  # files from which on a pool pays

OnFile = Callable[[int, int], None]


@dataclass
class FileResult:
    """One file: its migration, or the error that kept it as it is."""

    path: Path
    result: Result | None = None
    error: TritonError | None = None
    proofs: list[Proof] = field(default_factory=list[Proof])

    @property
    def failed(self) -> bool:
        """Whether the file must be left alone."""
        return self.error is not None or any(proof.differs for proof in self.proofs)

    def diff(self) -> str:
        """The change as a unified diff."""
        if self.result is None or not self.result.changed:
            return ""
        old, new = (text.splitlines(keepends=True) for text in (self.result.source, self.result.text))
        return "".join(difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}"))


def python_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that are named, and every Python file of the directories; OptionError for what is not there."""
    for path in paths:
        if path.is_dir():
            found = (each for each in path.rglob("*.py") if not SKIPPED & set(each.relative_to(path).parts))
            yield from sorted(found)
        elif path.is_file():
            yield path
        else:
            raise OptionError(f"there is no file or directory {path}")


def migrate_files(
    paths: Sequence[Path],
    options: Options | None = None,
    *,
    write: bool = False,
    verify: bool = False,
    signature: str | None = None,
    on_file: OnFile | None = None,
) -> list[FileResult]:
    """Migrate files; `write` them in place where nothing failed, `verify` old and new kernels against each other."""
    jobs = [(path, options or Options(), verify, signature) for path in dict.fromkeys(python_files(paths))]
    found: list[FileResult] = []
    for number, one in enumerate(_results(jobs), 1):
        if write and one.result is not None and one.result.changed and not one.failed:
            one.path.write_bytes(one.result.text.encode())
        found.append(one)
        if on_file is not None:
            on_file(number, len(jobs))
    return found


Job = tuple[Path, Options, bool, str | None]


def _results(jobs: Sequence[Job]) -> Iterator[FileResult]:
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, len(jobs))
    if len(jobs) < _PARALLEL or workers < 2:
        yield from map(_migrate, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_migrate, jobs, chunksize=1)


def _migrate(job: Job) -> FileResult:
    path, options, verify, signature = job
    one = FileResult(path)
    try:
        text = path.read_bytes().decode()
        one.result = migrate_source(text, str(path), options)
    except UnicodeDecodeError as error:
        one.error = MigrationError(f"{path} is not UTF-8 text", found=str(error))
    except TritonError as error:
        one.error = error
    if verify and one.result is not None and one.result.changed:
        one.proofs = prove(one.result, signature=signature)
    return one


def has_marks(text: str) -> bool:
    """Whether a text mentions block pointers at all."""
    return any(mark in text for mark in MARKS)
