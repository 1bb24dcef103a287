"""A kernel, what is known of its arguments and a target; down through the levels, or out of the cache.

Level: tt to binary. `compile` is the ahead-of-time interface, `runtime/jit.py` calls `compile_job` for a launch.
Guarantees: a program that was compiled before is loaded from the on-disk cache without importing a compiler module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mltriton.compiler.cached import from_files, to_files
from mltriton.compiler.job import Job
from mltriton.compiler.kernel import CompiledKernel
from mltriton.compiler.keys import functions_in
from mltriton.compiler.options import options_of
from mltriton.frontend.dependencies import Dependencies, dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.runtime import config
from mltriton.runtime.cache import default_cache
from mltriton.targets.target import find_target


def compile(
    fn: LanguageFunction,
    signature: str | Mapping[str, str],
    constexprs: Mapping[str, Any] | None = None,
    target: str = "cpu",
    num_warps: int = 4,
    num_stages: int = 3,
    **options: Any,
) -> CompiledKernel:
    """Compile a kernel ahead of time.

    `signature` is a string with an entry for each parameter (`"*fp32:16, i32, 1024"`) or a dict from names to entries;
    `constexprs` gives further parameters their values. Raises `SignatureError`, `OptionError`, `TargetError`, or the
    error of the kernel's own mistake.
    """
    from mltriton.compiler.entries import entries_of, kernel_of  # A launch needs neither.

    kernel = kernel_of(fn)
    entries = entries_of(kernel, signature, constexprs or {})
    return compile_job(
        Job(kernel, entries, find_target(target), options_of(num_warps=num_warps, num_stages=num_stages, **options))
    )


def compile_job(job: Job, depends: Dependencies | None = None) -> CompiledKernel:
    """The compiled kernel: from the on-disk cache if it is there, compiled and stored otherwise."""
    key, job = keyed(job, depends)
    known = known_by(job, key)
    if known is not None:
        return known
    from mltriton.compiler.collector import collector_paused  # A launch from the cache needs neither.

    with collector_paused():
        from mltriton.compiler.build import built  # It loads the compiler.

        kernel = built(job, key)
    if job.target.can_run and kernel.metadata.host_calls is not None:
        default_cache().put(key, to_files(kernel))
    return kernel


def keyed(job: Job, depends: Dependencies | None = None) -> tuple[str, Job]:
    """The job's key in the cache, and the job with what names meant when that was made."""
    depends = (depends or dependencies(job.fn)).with_functions(functions_in(job.constants.values()))
    return job.key(depends), replace(job, snapshot=replace(depends.snapshot))


def known_by(job: Job, key: str) -> CompiledKernel | None:
    """The kernel as the cache has it, where what the kernel asked of Python while it was compiled is still so."""
    if not job.target.can_run or config.ALWAYS_COMPILE.get() or config.DUMP.get():
        return None
    files = default_cache().get(key)
    known = None if files is None else from_files(job, files, compile_job)
    return known if known is not None and job.snapshot.still_holds(known.metadata.host_calls or ()) else None
