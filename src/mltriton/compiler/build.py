"""Compiling a job: through all levels to the target's binary, within the time limit, whatever the program's depth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mltriton.analysis.written_arguments import written_arguments
from mltriton.compiler.job import Job, timed
from mltriton.compiler.kernel import CompiledKernel, Metadata, options_in_metadata
from mltriton.errors import BackendError, SharedMemoryError
from mltriton.frontend.signature import Argument
from mltriton.runtime import config
from mltriton.runtime.compile_thread import TimeIsUp, limited, unlimited

if TYPE_CHECKING:
    from mltriton.ir.module import Module


def built(job: Job, key: str) -> CompiledKernel:
    """The kernel compiled, whatever its depth, within the time limit."""
    limit = config.COMPILE_TIMEOUT.get()
    build = partial(unlimited, partial(_fitting, job, key))
    try:
        return build() if limit is None else limited(build, limit)
    except TimeIsUp:
        message, hint = f"compiling {job.fn.__name__} took longer than {limit:g} seconds", config.COMPILE_TIMEOUT.name
        raise BackendError(message, hint=f"{hint} is the limit.") from None


def _fitting(job: Job, key: str) -> CompiledKernel:
    """The kernel with as many stages of loops as shared memory holds beside all else, of which the amount shows at the
    end only. Raises `SharedMemoryError` where loops have no more to give.
    """
    first, missing = None, 0
    while True:
        try:
            return _build(job, key)
        except SharedMemoryError as error:
            first = first or error
            if error.missing in (0, missing) or not job.target.spec.copy_bytes:
                raise first from None
            missing, job = error.missing, replace(job, fewer_stages=job.fewer_stages + 1)


def _build(job: Job, key: str) -> CompiledKernel:
    build = Build(job, key)
    for _ in build.levels():
        pass
    return build.kernel()


class Build:
    """One compilation, level after level: who compares levels sees each of them, and then what is made of the last."""

    def __init__(self, job: Job, key: str) -> None:
        self.job = job
        self._timings: dict[str, float] = {}
        self._written: tuple[str, ...] = ()
        self._key = key
        self._module: Module | None = None

    def levels(self) -> Iterator[tuple[str, Module]]:
        """The program at one IR level after the other; each is valid until the next one is asked for."""
        for level, module in self.job.modules(self._timings):
            self._module = module
            if level == "tt":
                self._written = _names_of(self.job, written_arguments(module))
            _dump(self.job, level, lambda module=module: str(module))
            yield level, module

    def kernel(self) -> CompiledKernel:
        """The kernel, once the levels are done. Raises `SharedMemoryError` where it needs more than there is."""
        job, module = self.job, self._module
        assert module is not None
        metadata = _metadata(job, self._key, self._written, self._timings)
        if not job.target.can_run:
            return CompiledKernel(job, metadata)
        with timed(self._timings, "llvm"):
            lowered = job.lowered(module)
        _dump(job, "llvm", lambda: lowered.text)
        for name, text_of in job.target.texts.items():
            _dump(job, name, partial(text_of, lowered))
        with timed(self._timings, "binary"):
            binary = job.target.assemble(lowered, module)
        metadata.shared = binary.metadata.get("shared", 0)
        metadata.scratch_bytes = binary.metadata.get("scratch_bytes", 0)
        return CompiledKernel(job, metadata, binary, job.target.restored(lowered.text, binary))


def _metadata(job: Job, key: str, written: tuple[str, ...], timings: dict[str, float]) -> Metadata:
    return Metadata(
        name=job.fn.__name__,
        target=job.target.name,
        **options_in_metadata(job),
        warp_level=job.warp_level,
        written=written,
        hash=key,
        timings=timings,
        host_calls=job.snapshot.calls,
        fewer_stages=job.fewer_stages,
    )


def _names_of(job: Job, positions: frozenset[int]) -> tuple[str, ...]:
    names = [name for name, entry in job.entries.items() if isinstance(entry, Argument)]
    return tuple(name for position, name in enumerate(names) if position in positions)


def _dump(job: Job, level: str, text: Callable[[], str]) -> None:
    """Print a level, or write it to a file, where `MLTRITON_DUMP` asks for it."""
    wanted = config.DUMP.get()
    names = {word[1:] for word in wanted if word[0] == "@"}
    if (level not in wanted and "all" not in wanted) or (names and job.fn.__name__ not in names):
        return
    directory = config.DUMP_DIR.get()
    if directory is None:
        print(f"// {job.fn.__name__}: {level}\n{text()}", file=sys.stderr)
        return
    from pathlib import Path  # Few compilations need it.

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{job.fn.__name__}.{level}").write_text(text() + "\n", encoding="utf-8")
