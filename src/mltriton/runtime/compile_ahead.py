"""Compiling many jobs in any `concurrent.futures.Executor`: threads, processes, other machines.

Level: runtime. A job goes to the executor, the entry of the cache comes back; another process finds the kernel by its
name. Guarantees: what the executor cannot do (a kernel without a name in its module, a process that dies, a machine
of another kind) is compiled here, with a warning; a job that cannot be compiled gives its error as a value.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pickle import PicklingError
from typing import Any

from mltriton.compiler import CompiledKernel, Job, Options, compile_job
from mltriton.compiler.cached import from_files, to_files
from mltriton.compiler.compilation import keyed
from mltriton.errors import PerformanceWarning, TritonError, calling_level
from mltriton.frontend.signature import Entry
from mltriton.runtime import config
from mltriton.runtime.asynchronous import active_mode
from mltriton.runtime.cache import default_cache
from mltriton.runtime.heuristics import kernel_of, named
from mltriton.targets.target import find_target

Answer = tuple[str, dict[str, bytes] | None]  # the key of the cache, and the entry where another process can use it
chosen: list[Executor] = []  # `mltriton.knobs.autotuning.executor`: at most one


class Request:
    """A job that may travel to another process."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        """By names: of the kernel, of the target."""
        job = self.job
        where = (job.fn.__module__, job.fn.__qualname__)
        if kernel_of(named(*where)) is not job.fn:
            raise PicklingError(f"{'.'.join(where)} is another kernel than what is compiled")
        return _requested, (*where, dict(job.entries), job.target.name, job.options)


def _requested(module: str, name: str, entries: dict[str, Entry], target: str, options: Options) -> Request:
    return Request(Job(kernel_of(named(module, name)), entries, find_target(target), options))


def fulfil(request: Request) -> Answer | TritonError:
    """Compile: what the executor does. A mistake of the kernel's is an answer: executors report what is raised."""
    try:
        kernel = compile_job(request.job)
    except TritonError as error:
        return error.with_traceback(None)
    return kernel.hash, None if kernel.metadata.host_calls is None else to_files(kernel)


def compile_all(
    jobs: Sequence[Job], executor: Executor, tell: Callable[[int], None]
) -> list[CompiledKernel | Exception]:
    """The kernels of jobs, or their errors; `tell` is called with how many are done."""
    futures = [executor.submit(fulfil, Request(job)) for job in jobs]
    made: list[CompiledKernel | Exception] = []
    try:
        for job, future in zip(jobs, futures, strict=True):
            made.append(_made(job, future.result))
            tell(len(made))
    finally:
        for future in futures:
            future.cancel()
    return made


def _made(job: Job, answer: Callable[[], Answer | TritonError]) -> CompiledKernel | Exception:
    try:
        found = answer()
        return found if isinstance(found, TritonError) else _received(job, *found)
    except TritonError as error:
        return error
    except Exception as error:
        text = f"{job.fn.__name__} is compiled here, and not by the executor: {type(error).__name__}: {error}"
        warnings.warn(PerformanceWarning(text), stacklevel=calling_level())
    try:
        return compile_job(job)
    except Exception as error:
        return error


def _received(job: Job, key: str, files: dict[str, bytes] | None) -> CompiledKernel:
    """The kernel of an answer, which goes into this process's cache too."""
    here, keyed_job = keyed(job)
    if files is None:  # What Python functions answered there is not known here.
        return compile_job(job)
    kernel = from_files(keyed_job, files, compile_job) if here == key else None
    if kernel is None:
        raise RuntimeError("it sees another kernel, compiler or processor")
    if default_cache().get(key) is None:
        default_cache().put(key, files)
    return kernel


@contextmanager
def executor_for(given: Executor | None) -> Generator[Executor | None]:
    """Who compiles: `given`, that of `AsyncCompileMode`, the knob's, or threads; None where one thread does all."""
    mode = active_mode.get()
    found = given or (mode.executor if mode is not None else None) or next(iter(chosen), None)
    workers = config.AUTOTUNING_WORKERS.get() or _processors()
    if found is not None or workers == 1:
        yield found
        return
    threads = ThreadPoolExecutor(workers, "mltriton-tuning")
    try:
        yield threads
    finally:  # An interrupt waits for nobody.
        threads.shutdown(wait=False, cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
