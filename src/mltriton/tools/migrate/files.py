"""Migrate files and directories: read, migrate each in a process pool, prove, write back, report.

Level: source text. A file that cannot be read or does not parse is an error of its own and stays as it is; nothing is
written before its file has been migrated (and proven, where that was asked for) as a whole.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from mltriton.errors import OptionError, SourceLocation, TritonError
from mltriton.tools.migrate.migration import migrate_sources
from mltriton.tools.migrate.prove.verdicts import Proof, through_others
from mltriton.tools.migrate.prove.workers import Task, find_all
from mltriton.tools.migrate.read.linking import launchers, linked
from mltriton.tools.migrate.report.descriptors import with_descriptors
from mltriton.tools.migrate.result import MigrationError, Options, Result

SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules", "build", "dist"})
_PARALLEL = 4  # files from which on a pool pays

OnFile = Callable[[int, int], None]


@dataclass(eq=False)
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
            found = (each for each in found if not each.is_dir())
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
    analyse: bool = False,
    on_file: OnFile | None = None,
) -> list[FileResult]:
    """Migrate files; `write` them in place where nothing failed, `verify` old and new kernels against each other,
    `analyse` what Xe does with the descriptors of kernels that are verified or have a signature.
    """
    texts: dict[Path, str] = {}
    errors: dict[Path, FileResult] = {}
    every = list({path.resolve(): path for path in python_files(paths)}.values())
    for path in every:
        try:
            texts[path] = read(path)
        except MigrationError as error:
            errors[path] = FileResult(path, error=error)
    jobs = [
        ({path: texts[path] for path in group}, options or Options(), launchers(group, texts))
        for group in linked(texts)
    ]
    task = partial(Task, signature=signature, proves=verify, analyses=analyse)
    compiles = verify or (analyse and signature is not None)
    found = dict(errors)
    for group in _examined(_results(jobs), task) if compiles else _results(jobs):
        found |= {one.path: one for one in group}
        if on_file is not None:
            on_file(len(found), len(every))
    if write:
        _write([found[path] for path in every])
    return [found[path] for path in every]


def read(path: Path) -> str:
    """The text of a file, with its line ends as they are; MigrationError where it is none."""
    try:
        data = path.read_bytes()
        return data.decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        location = SourceLocation(str(path), before.count(b"\n") + 1, len(before.rpartition(b"\n")[2]))
        line = error.object.splitlines()[location.line - 1].decode(errors="replace")
        raise MigrationError(f"{path} is not UTF-8 text", found=str(error)).at(location, line) from None
    except OSError as error:
        raise MigrationError(f"{path} cannot be read", found=error.strerror) from None


def _write(files: Sequence[FileResult]) -> None:
    """Write what changed, unless it failed or belongs to a file that did."""
    failed = {str(one.path) for one in files if one.failed}
    for one in files:
        if one.result is None or not one.result.changed or one.failed or failed & set(one.result.beside):
            continue
        try:
            one.path.write_bytes(one.result.text.encode())
        except OSError as error:
            one.error = MigrationError(f"{one.path} cannot be written", found=error.strerror)


Job = tuple[dict[Path, str], Options, dict[str, str]]


def _results(jobs: Sequence[Job]) -> Iterator[list[FileResult]]:
    workers = min(_processors(), len(jobs))
    if len(jobs) < _PARALLEL or workers < 2:
        yield from map(_migrate, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_migrate, jobs, chunksize=1)


def _examined(groups: Iterable[list[FileResult]], task: Callable[[Result], Task]) -> Iterator[list[FileResult]]:
    """The files with what their kernels show; nothing is run before all are migrated."""
    migrated = list(groups)
    changed = [one for group in migrated for one in group if one.result is not None and one.result.changed]
    found = find_all([task(one.result) for one in changed if one.result is not None], _processors())
    for group in migrated:
        for one in group:
            if one in changed and one.result is not None:
                findings = next(found)
                one.proofs = list(findings.proofs)
                one.result.notes = with_descriptors(one.result, findings.descriptors)
        proofs = {str(one.path): one.proofs for one in group}
        for one in group:
            if one.result is not None:
                one.proofs = [through_others(one.result, proof, proofs) for proof in one.proofs]
        yield group


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _migrate(job: Job) -> list[FileResult]:
    texts, options, others = job
    try:
        results = migrate_sources({str(path): text for path, text in texts.items()}, options, others)
    except TritonError as error:
        if len(texts) == 1:
            return [FileResult(path, error=error) for path in texts]
        # One of several does not parse: the others are migrated without it.
        return [one for item in texts.items() for one in _migrate((dict([item]), options, others))]
    return [FileResult(path, results[str(path)]) for path in texts]
