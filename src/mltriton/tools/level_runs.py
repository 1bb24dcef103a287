"""One launch, run program after program: each level in the executor, the machine code in this process, all compared.

Level: all. Guarantees: every run starts from the same arrays; a failure of a run is a result, not an exception; so is a
device that is not here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.compiler import IR_LEVELS, compile_job
from mltriton.compiler.build import Build
from mltriton.compiler.compilation import keyed
from mltriton.errors import CompilationError, DeviceError, ExecutionError, SharedMemoryError, TritonError
from mltriton.executor import Options, run
from mltriton.executor.faults import NoTensorMap
from mltriton.executor.values import choose, decode
from mltriton.frontend.signature import Argument
from mltriton.ir.module import is_warp_level
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, FloatType, Type
from mltriton.passes.levels import verify_module
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.runtime.slots import slots_of
from mltriton.tools.launches import parameters_of
from mltriton.tools.samples import Copy, Sample

if TYPE_CHECKING:
    from mltriton.compiler import CompiledKernel, Job
    from mltriton.ir.module import Module
    from mltriton.runtime.slots import Slot


@dataclass(frozen=True)
class LevelResult:
    """One program's run: every output buffer against the reference, or the fault that ended it. Machine code for a
    device that is not here has none of both, and says why it was `not_run`.
    """

    name: str
    seconds: float
    differences: tuple[Difference, ...] = ()
    fault: TritonError | None = None
    is_reference: bool = False
    not_run: DeviceError | None = None

    @property
    def ok(self) -> bool:
        """Whether it ran and agrees."""
        return self.fault is None and all(difference.ok for difference in self.differences)

    def __str__(self) -> str:
        lines = [f"  {self.name:<28}{self.seconds * 1e3:9.1f} ms  {self._verdict()}"]
        lines += [f"      {difference}" for difference in self.differences if not difference.ok]
        if self.fault is not None:
            lines += [f"      {line}" for line in self.fault.render().splitlines()]
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.fault is not None:
            return "FAILS"
        if self.not_run is not None:
            return f"compiled, not run: {self.not_run.message}"
        if self.is_reference:
            return "reference"
        if not self.ok:
            return "DIFFERS"
        worst = max((difference.max_rel for difference in self.differences), default=0.0)
        return f"agrees (max rel {worst:.2g})"


class Runs:
    """Runs programs on copies of one sample and compares them with the first."""

    def __init__(self, sample: Sample, *, uninitialised: bool, seed: int, function: str | None = None) -> None:
        self.sample = sample
        self.function = function
        self.uninitialised = uninitialised
        self.seed = seed
        self.reference: dict[str, Copy] | None = None

    def of_job(self, job: Job, *, each_pass: bool) -> Iterator[LevelResult]:
        """Every level of a compilation, then the machine code: of what a launch would run."""
        name = "the front end"
        try:
            build = None if each_pass else _build(job)
            for name, module in _passes(job) if build is None else build.levels():
                found = self.of_module(name, module)
                if isinstance(found.fault, NoTensorMap):
                    yield from self.of_job(job.unconditional(), each_pass=each_pass)
                    return
                yield found
                if self.reference is None:
                    return
            if job.target.can_run:
                yield self.of_binary(job, build)
        except CompilationError as error:
            yield LevelResult(f"compilation after {name}", 0.0, fault=error)

    def of_passes(self, module: Module, passes: Sequence[Any]) -> Iterator[LevelResult]:
        """The module as it is, then after each pass."""
        yield self.of_module("before", module)
        for step in passes if self.reference is not None else ():
            try:
                module = PassManager([step]).run(module)
            except CompilationError as error:
                yield LevelResult(step.name, 0.0, fault=error)
                return
            yield self.of_module(step.name, module)

    def of_module(self, name: str, module: Module) -> LevelResult:
        """One program in the executor, once it has passed the verifier."""

        def execute(copies: Mapping[str, Copy]) -> None:
            verify_module(module)
            first, *others = self._options(module)
            self._execute(module, copies, first)
            for options in others:
                again = self.sample.copies()
                self._execute(module, again, options)
                self._require_equal(copies, again)

        return self._run(name, execute)

    def _execute(self, module: Module, copies: Mapping[str, Copy], options: Options) -> None:
        names = [name for name, _ in parameters_of(module, self.function)]
        args = self.sample.arguments(names, copies)
        run(module, args, self.sample.grid, function=self.function, options=options)

    def _options(self, module: Module) -> list[Options]:
        """How to run a module: where warps cooperate as the user wrote it, in several orders and with all checks."""
        shuffled = Options(uninitialised=self.uninitialised, order="shuffled", seed=self.seed)
        if not is_warp_level(module):
            return [shuffled]
        strict = replace(shuffled, uninitialised=True)
        return [strict, replace(strict, order="forward"), replace(strict, order="backward")]

    def _require_equal(self, one: Mapping[str, Copy], other: Mapping[str, Copy]) -> None:
        for name, type in self.sample.types.items():
            difference = compare(name, type, one[name].array, other[name].array)
            if not difference.ok:
                raise ExecutionError("the result depends on the order in which warps run", found=str(difference))

    def of_binary(self, job: Job, build: Build | None = None) -> LevelResult:
        """The machine code, in this process: what a build makes of its last level, or compiled anew."""
        kernel, started = _kernel(job, build), time.perf_counter()
        try:
            loaded = kernel.loaded
        except DeviceError as absent:
            return LevelResult(job.target.name, time.perf_counter() - started, not_run=absent)
        written = kernel.metadata.written

        def execute(copies: Mapping[str, Copy]) -> None:
            x, y, z = (*self.sample.grid, 1, 1)[:3]
            loaded.run((x, y, z), self._slots(job, copies))
            for name, copy in copies.items():
                if not copy.is_guarded:
                    raise ExecutionError(f"machine code wrote outside {name}")
                if name not in written and not np.array_equal(_bytes(copy.array), _bytes(self.sample.values[name])):
                    raise ExecutionError(f"machine code wrote to {name}, which the compiler says it only reads")

        return self._run(job.target.name, execute)

    def _slots(self, job: Job, copies: Mapping[str, Copy]) -> list[Slot]:
        """The arguments of a launch; of arrays their guards, too, so that a device writes to those as well."""
        slots = slots_of(job.entries, self.sample.arguments(job.entries, copies), ())
        names = [name for name, entry in job.entries.items() if isinstance(entry, Argument)]
        return [
            slot._replace(array=copies[name].whole, writes=True) if name in copies else slot
            for name, slot in zip(names, slots, strict=True)
        ]

    def _run(self, name: str, execute: Callable[[Mapping[str, Copy]], None]) -> LevelResult:
        copies = self.sample.copies()
        started = time.perf_counter()
        try:
            execute(copies)
        except TritonError as fault:
            return LevelResult(name, time.perf_counter() - started, fault=fault)
        seconds = time.perf_counter() - started
        if self.reference is None:
            self.reference = copies
            return LevelResult(name, seconds, is_reference=True)
        return LevelResult(name, seconds, tuple(self._differences(copies)))

    def _differences(self, copies: Mapping[str, Copy]) -> Iterator[Difference]:
        """The buffers that the reference run or this one changed."""
        assert self.reference is not None
        for name, type in self.sample.types.items():
            before, wanted, found = self.sample.values[name], self.reference[name].array, copies[name].array
            if not (np.array_equal(_bytes(before), _bytes(wanted)) and np.array_equal(_bytes(before), _bytes(found))):
                yield compare(name, type, wanted, found)


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).view(np.uint8)


def _passes(job: Job) -> Iterator[tuple[str, Module]]:
    """The programs of a compilation, one for each pass. Each is valid until the next is asked for."""
    module = job.source_module()
    yield "front end", module
    for level, pipeline in zip(IR_LEVELS, job.target.spec.pipeline, strict=True):
        for step in parse_pipeline(pipeline):
            module = PassManager([step]).run(module)
            yield f"{level}: {step.name}", module


def _build(job: Job) -> Build:
    key, job = keyed(job)
    return Build(job, key)


def _kernel(job: Job, build: Build | None) -> CompiledKernel:
    """What a build makes of its last level; where shared memory does not hold it, what a launch tries then."""
    if build is None:
        return compile_job(job)
    try:
        return build.kernel()
    except SharedMemoryError:
        return compile_job(job)


# Reductions may combine in any order and dots accumulate in f32: a thousand times the unit in the last place for f32.
TOLERANCES: Mapping[Type, float] = {F64: 1e-11, F32: 1e-4, F16: 5e-3, BF16: 3e-2, F8E4M3: 0.13, F8E5M2: 0.26}


@dataclass(frozen=True)
class Difference:
    """How far one buffer is from the reference.

    `wrong` elements are outside the tolerance, `first` is the first of them.
    """

    buffer: str
    max_abs: float
    max_rel: float
    size: int
    wrong: int = 0
    first: tuple[int, ...] | None = None
    expected: float | int | None = None
    found: float | int | None = None

    @property
    def ok(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.wrong == 0

    def __str__(self) -> str:
        errors = f"{self.buffer}: max abs {self.max_abs:.3g}, max rel {self.max_rel:.3g}"
        if self.ok:
            return errors
        place = f"first at {self.first}: expected {self.expected}, found {self.found}"
        return f"{errors}, {self.wrong} of {self.size} elements differ, {place}"


def compare(buffer: str, type: Type, expected: Any, found: Any) -> Difference:
    """Compare two arrays of bit patterns of `type`."""
    wanted, got = (np.asarray(decode(array, type)) for array in (expected, found))
    if not isinstance(type, FloatType):
        wanted, got = wanted.astype(np.int64), got.astype(np.int64)
        return _difference(buffer, wanted, got, np.abs(wanted.astype(np.float64) - got), wanted != got)
    wide_wanted, wide_got = wanted.astype(np.float64), got.astype(np.float64)
    ordinary = np.isfinite(wide_wanted) & np.isfinite(wide_got)
    with np.errstate(invalid="ignore"):
        error = np.where(ordinary, np.abs(wide_wanted - wide_got), 0.0)
    size = np.abs(wide_wanted, where=ordinary, out=np.zeros_like(wide_wanted))
    average = size.sum() / max(1, int(ordinary.sum()))
    same = (wide_wanted == wide_got) | (np.isnan(wide_wanted) & np.isnan(wide_got))
    wrong = choose(ordinary, error > TOLERANCES[type] * (size + average), ~same)
    return _difference(buffer, wanted, got, error, wrong)


def _difference(buffer: str, wanted: Any, got: Any, error: Any, wrong: Any) -> Difference:
    size = np.abs(wanted.astype(np.float64))
    relative = np.divide(error, size, out=np.zeros_like(error), where=(size > 0) & np.isfinite(size))
    largest = (float(part.max()) if part.size else 0.0 for part in (error, relative))
    max_abs, max_rel = largest
    if not wrong.any():
        return Difference(buffer, max_abs, max_rel, wanted.size)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = (wanted[first].item(), got[first].item())
    return Difference(buffer, max_abs, max_rel, wanted.size, int(wrong.sum()), first, *values)
