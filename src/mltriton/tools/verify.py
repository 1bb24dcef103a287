"""`mltriton verify`: run a kernel at every level on the same random inputs and say which level first disagrees.

Level: all. The reference is the first program: level `tt` in the executor, or the module as it is before the first
pass. Every further level (with `each_pass` every pass) runs in the executor with bounds, alignment, races between warps
and assumptions checked, a warp-level kernel with its warps in several orders and with reads of unwritten shared memory
checked, too; a target that has machine code runs last, natively. `launches.py` says
where arguments come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.compiler import Job, options_of
from mltriton.errors import OptionError
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.passes.pipeline import parse_pipeline
from mltriton.runtime.compile_thread import deep
from mltriton.targets.target import find_target
from mltriton.tools.aot import load_kernel
from mltriton.tools.launches import Launch, entries_of, launch_of, named, sample_of_job, sample_of_module
from mltriton.tools.level_runs import LevelResult, Runs

if TYPE_CHECKING:
    from mltriton.frontend.function import LanguageFunction


@dataclass(frozen=True)
class VerifyResult:
    """The runs of one kernel on one or more random inputs. `str()` is the report."""

    title: str
    levels: tuple[LevelResult, ...]
    inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every level ran and agrees with the reference on every input."""
        return all(level.ok for level in self.levels)

    @property
    def first_wrong(self) -> LevelResult | None:
        """The first run that fails or differs."""
        return next((level for level in self.levels if not level.ok), None)

    def __str__(self) -> str:
        wrong = self.first_wrong
        verdict = "all levels agree" if wrong is None else f"first disagreement: {wrong.name}"
        lines = [f"{self.title}: {verdict}"]
        lines += [f"  on {text}" for text in self.inputs]
        lines += [str(level) for level in self.levels]
        return "\n".join([*lines, *[f"  note: {note}" for note in self.notes]])


def check_asked(names: Sequence[str], signature: str | None, passes: str) -> None:
    """Raise `OptionError` where what is asked is of kernels, or of IR text, and none is among `names`."""
    texts = [name for name in names if name.endswith(".mlir")]
    if passes and not texts:
        raise OptionError(
            "--passes are for IR text", hint="A kernel has its target's; --each-pass compares after each."
        )
    if signature is not None and len(texts) == len(names):
        raise OptionError("--signature is of a kernel", hint="IR text has types; --arg says what to run it on.")


def verify_kernel(
    kernel: str | LanguageFunction,
    signature: str | Mapping[str, str] | None = None,
    *,
    args: Mapping[str, Any] | Sequence[str] | None = None,
    grid: Sequence[int] | None = None,
    target: str = "cpu",
    num_warps: int = 4,
    num_stages: int = 3,
    warp_level: bool | None = None,
    seed: int = 0,
    inputs: int = 1,
    each_pass: bool = False,
    uninitialised: bool = False,
    **options: Any,
) -> VerifyResult:
    """Verify a kernel, given itself or as `FILE.py:KERNEL`, for a target.

    What its arguments are comes from `args` (a dict, or texts as on the command line: `x=128x64:fp32`, `n=1000`),
    from the example in the kernel's file, or from the `signature` alone: then arrays are made as large as the kernel
    reaches, and integers are chosen by what it does with them. `options` are further ones of `mltriton.compile`.
    Raises the named error of whatever cannot be read or compiled to `tt`; what goes wrong later is part of the result.
    """
    fn = _function(kernel)
    rng = np.random.default_rng(seed)
    launch = launch_of(fn, args, grid, has_signature=signature is not None, seed=seed)
    options |= {"num_warps": num_warps, "num_stages": num_stages, "warp_level": warp_level, **launch.options}
    job = Job(fn, entries_of(fn, signature, launch.values), find_target(target), options_of(**options))
    levels: list[LevelResult] = []
    texts: list[str] = []
    notes: list[str] = []

    def verify() -> None:
        sample = sample_of_job(job, launch, rng)
        texts.append(f"grid {sample.grid}, {sample}")
        notes.extend(note for note in sample.notes if note not in notes)
        levels.extend(Runs(sample, uninitialised=uninitialised, seed=seed).of_job(job, each_pass=each_pass))

    for _ in range(inputs):
        deep(verify)
    title = f"{fn.__name__} for {target}, {options['num_warps']} warps"
    return VerifyResult(title, tuple(levels), tuple(texts), tuple(notes))


def verify_module(
    source: Module | str | Path,
    passes: str = "",
    *,
    args: Mapping[str, Any] | Sequence[str] = (),
    grid: Sequence[int] = (1,),
    function: str | None = None,
    seed: int = 0,
    uninitialised: bool = False,
) -> VerifyResult:
    """Verify a pipeline of passes on a module (or an .mlir file): run before the first pass and after each.

    `args` are as in `verify_kernel`, by the names of the function's parameters. The module may be changed.
    """
    text = "" if isinstance(source, Module) else Path(source).read_text(encoding="utf-8")
    title = "module" if isinstance(source, Module) else str(source)

    def verify() -> VerifyResult:
        module = source if isinstance(source, Module) else parse_module(text, title)
        rng = np.random.default_rng(seed)
        sample = sample_of_module(module, function, Launch(named(args), tuple(grid), {}), rng)
        runs = Runs(sample, uninitialised=uninitialised, seed=seed, function=function)
        levels = list(runs.of_passes(module, parse_pipeline(passes)))
        return VerifyResult(title, tuple(levels), (f"grid {sample.grid}, {sample}",), tuple(sample.notes))

    return deep(verify)


def _function(kernel: str | LanguageFunction) -> LanguageFunction:
    if isinstance(kernel, str):
        return load_kernel(kernel)
    return kernel
