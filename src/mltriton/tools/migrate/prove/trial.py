"""One run of a kernel on copies of some arguments: at level `tt` in the reference executor, or as machine code.

Level: runtime. Takes arguments by name; gives the arrays as they are afterwards. The arguments stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.compiler import Job, compile_job, options_of
from mltriton.errors import TritonError
from mltriton.executor import run as execute
from mltriton.runtime.slots import slots_of
from mltriton.targets.target import find_target
from mltriton.tools.launches import Launch, entries_of, parameters_of, sample_of_job

if TYPE_CHECKING:
    from mltriton.compiler import Job
    from mltriton.executor import Visits
    from mltriton.tools.samples import Sample

_SEED = 20260707
_REPEATS = 2  # of the old kernel's machine code, to know whether it does the same again


@dataclass(frozen=True)
class Input:
    """Arguments by name, a grid, and the signature that says what the arguments are (their own types when None)."""

    values: Mapping[str, Any]
    grid: tuple[int, ...]
    signature: str | None = None

    def __str__(self) -> str:
        shown = (f"{name}={value}" for name, value in self.values.items() if not hasattr(value, "shape"))
        return f"{', '.join(shown)}, grid {self.grid}"


@dataclass(frozen=True)
class Outcome:
    """What a run left in the arrays, and whether it wrote anything else than was there."""

    arrays: Mapping[str, Any]
    wrote: bool

    def first_difference(self, other: Outcome) -> str | None:
        """The first array in which two runs left different bytes."""
        for name, array in self.arrays.items():
            if array.tobytes() != other.arrays[name].tobytes():
                return name
        return None


def job_of(fn: Any, given: Input, target: str = "cpu") -> Job:
    """The compilation of a kernel for the types of an input."""
    entries = entries_of(fn, given.signature, given.values)
    return Job(fn, entries, find_target(target), options_of(num_warps=4, num_stages=3))


def _sample(job: Job, given: Input) -> Sample:
    return sample_of_job(job, Launch(dict(given.values), given.grid, {}), np.random.default_rng(_SEED))


def run(fn: Any, given: Input, visits: Visits | None = None) -> Outcome:
    """Run at level `tt` as the front end makes it; `visits` counts accesses through block pointers."""
    job = job_of(fn, given)
    sample = _sample(job, given)
    module = job.source_module()  # Before any pass: every access is still there, at its place.
    copies = sample.copies()
    names = [name for name, _ in parameters_of(module, None)]
    execute(module, sample.arguments(names, copies), given.grid, visits=visits)
    return _outcome(sample, copies)


def run_machine_code(fn: Any, given: Input) -> Outcome:
    """Run as machine code of this computer."""
    job = job_of(fn, given)
    sample = _sample(job, given)
    kernel = compile_job(job)
    copies = sample.copies()
    slots = slots_of(job.entries, sample.arguments(job.entries, copies), kernel.metadata.written)
    x, y, z = (*given.grid, 1, 1)[:3]
    kernel.loaded.run((x, y, z), slots)
    return _outcome(sample, copies)


def _outcome(sample: Sample, copies: Mapping[str, Any]) -> Outcome:
    arrays = {name: np.ascontiguousarray(copy.array) for name, copy in copies.items()}
    wrote = any(
        array.tobytes() != np.ascontiguousarray(sample.values[name]).tobytes() for name, array in arrays.items()
    )
    return Outcome(arrays, wrote)


def compare_machine_code(old: Any, new: Any, given: Input) -> tuple[str | None, str]:
    """The first array that differs, and why the comparison could not be made (empty where it was)."""
    try:
        before, after = (run_machine_code(fn, given) for fn in (old, new))
        name = before.first_difference(after)
        if name is None:
            return None, ""
        again = [run_machine_code(old, given) for _ in range(_REPEATS)]
    except TritonError as error:
        return None, short(error)
    if any(before.first_difference(other) is not None for other in again):
        return None, "the old kernel writes other bytes each time, as its programs write the same places"
    return name, ""


def short(error: TritonError) -> str:
    """An error in one line."""
    where = f" at {error.location}" if error.location else ""
    return f"{type(error).__name__}: {error.message}{where}"
