"""Proof of a migration: old and new kernels run on the same random arguments, every byte compared.

Level: runtime. First at level `tt` in the reference executor, then as machine code. A kernel that no random arguments
make run is not proven, and the reason is told; one difference is enough to call a migration wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.errors import TritonError
from mltriton.tools.migrate.arguments import ELEMENTS, Roles, arguments_for, roles_of
from mltriton.tools.migrate.loading import Loader, is_jit
from mltriton.tools.migrate.result import Result

if TYPE_CHECKING:
    from mltriton.tools.samples import Sample

INPUTS = 2
_ATTEMPTS = 12
_SEED = 20260707
VERDICTS = ("proven", "differs", "not runnable")


@dataclass(frozen=True)
class Proof:
    """What was found of one kernel. `verdict` is one of `VERDICTS`."""

    kernel: str
    verdict: str
    inputs: int = 0
    levels: tuple[str, ...] = ()
    reason: str = ""

    @property
    def proven(self) -> bool:
        """Whether old and new kernel wrote the same bytes."""
        return self.verdict == "proven"

    @property
    def differs(self) -> bool:
        """Whether the migration is wrong."""
        return self.verdict == "differs"

    def __str__(self) -> str:
        if self.proven:
            through = f" {self.reason}" if self.reason else ""
            return f"{self.kernel}: proven{through} on {self.inputs} inputs ({', '.join(self.levels)})"
        return f"{self.kernel}: {self.verdict}: {self.reason}"


def prove(result: Result, *, signature: str | None = None, native: bool = True) -> list[Proof]:
    """Prove every kernel of a file that changed; helpers are proven with the kernels that call them."""
    path = Path(result.path)
    loader = Loader()
    old = loader.load(result.source, path, f"{result.path} (before)")
    new = loader.load(result.text, path, f"{result.path} (after)")
    checked = loader.load(result.contract, path, f"{result.path} (checked)") if result.contract else old
    tree = ast.parse(result.source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and is_jit(node)}
    proven: dict[str, Proof] = {}

    def proof_of(name: str) -> Proof:
        if name not in proven:
            known = name in old and name in new and hasattr(old[name], "signature")
            proven[name] = (
                _prove(functions[name], functions, _Versions(old[name], new[name], checked[name]), signature, native)
                if known
                else Proof(name, "not runnable", reason="it could not be loaded by itself")
            )
        return proven[name]

    found: list[Proof] = []
    for name in dict.fromkeys(result.kernels):
        if name not in functions:
            found.append(Proof(name, "not runnable", reason="it is not under jit"))
            continue
        callers = _launched(name, functions)
        found.append(_combined(name, [proof_of(caller) for caller in callers]))
    return found


@dataclass(frozen=True)
class _Versions:
    """A kernel before and after; `checked` is the old one if its unchecked accesses were checked."""

    old: Any
    new: Any
    checked: Any


def _leaves(checked: Any, values: Mapping[str, Any], grid: tuple[int, ...], before: _Outcome) -> bool:
    """Whether checking what the old kernel does not check makes a difference: it left a shape, which it must not."""
    try:
        return before.first_difference(_run(checked, values, grid)) is not None
    except TritonError:
        return True


def _launched(name: str, functions: Mapping[str, ast.FunctionDef]) -> list[str]:
    """The functions through which a function is launched: itself, or its outermost callers."""
    callers = [
        other.name
        for other in functions.values()
        if other.name != name
        and any(isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(other))
    ]
    return list(dict.fromkeys(each for caller in callers for each in _launched(caller, functions))) or [name]


def _combined(name: str, proofs: list[Proof]) -> Proof:
    """The proof of a function from those of its callers."""
    if [proof.kernel for proof in proofs] == [name]:
        return proofs[0]
    worst = max(proofs, key=lambda proof: (proof.differs, not proof.proven))
    text = f"through {worst.kernel}" + (f": {worst.reason}" if worst.reason else "")
    return Proof(name, worst.verdict, worst.inputs, worst.levels, text)


def _prove(
    node: ast.FunctionDef,
    functions: Mapping[str, ast.FunctionDef],
    versions: _Versions,
    signature: str | None,
    native: bool,
) -> Proof:
    old, new = versions.old, versions.new
    roles = roles_of(node, functions)
    defaults = {name: each.default for name, each in old.signature.parameters.items() if each.default is not each.empty}
    rng = np.random.default_rng(_SEED)
    reason, done, levels = "no arguments could be found", 0, ["tt"]
    for attempt in range(_ATTEMPTS):
        try:
            values, grid = _values(roles, defaults, attempt, rng, old, signature)
            before = _run(old, values, grid)
        except TritonError as error:
            reason = f"the old kernel: {_short(error)}"
            continue
        except RecursionError:
            reason = "the old kernel: too deep"
            continue
        if not before.wrote:
            reason = "the old kernel writes nothing with the arguments tried"
            continue
        if versions.checked is not old and _leaves(versions.checked, values, grid, before):
            reason = "the old kernel leaves a shape that it does not check with the arguments tried"
            continue
        try:
            after = _run(new, values, grid)
        except TritonError as error:
            return Proof(node.name, "differs", reason=f"the new kernel fails where the old one runs: {_short(error)}")
        name = before.first_difference(after)
        if name is not None:
            return Proof(node.name, "differs", reason=f"other bytes in {name} on {_shown(values)}, grid {grid}")
        if native and not done:
            name, ran = _compare_native(old, new, values, grid)
            if name is not None:
                return Proof(node.name, "differs", reason=f"machine code: other bytes in {name} on {_shown(values)}")
            levels += ["cpu"] if ran else []
        done += 1
        if done == INPUTS:
            break
    return Proof(node.name, "proven", done, tuple(levels)) if done else Proof(node.name, "not runnable", reason=reason)


def _values(
    roles: Roles, defaults: Mapping[str, Any], attempt: int, rng: np.random.Generator, fn: Any, signature: str | None
) -> tuple[dict[str, Any], tuple[int, ...]]:
    values, grid = arguments_for(roles, defaults, attempt, rng)
    if signature is not None:
        values |= _from_signature(signature, list(fn.signature.parameters), values, rng)
    return values, grid


def _from_signature(
    signature: str, names: list[str], values: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """What a signature says: constants as they are, arrays in their type, numbers as they were chosen."""
    from mltriton.tools.samples import TYPES, allocate, random_values
    from mltriton.tools.signature import Constant, parse_signature

    found: dict[str, Any] = {}
    for name, entry in parse_signature(signature, names).items():
        if isinstance(entry, Constant):
            found[name] = entry.value
        elif entry.is_pointer:
            found[name] = allocate(random_values(rng, TYPES[entry.scalar], (ELEMENTS,)))
        elif entry.scalar.startswith(("fp", "bf")):
            found[name] = float(rng.uniform(0.25, 1.0))
        elif not isinstance(values.get(name), int):
            found[name] = 37
    return found


@dataclass(frozen=True)
class _Outcome:
    arrays: Mapping[str, Any]
    wrote: bool

    def first_difference(self, other: _Outcome) -> str | None:
        """The first array in which two runs left different bytes."""
        for name, array in self.arrays.items():
            if array.tobytes() != other.arrays[name].tobytes():
                return name
        return None


def _job(fn: Any, values: Mapping[str, Any]) -> tuple[Any, Sample]:
    from mltriton.compiler import Job, options_of
    from mltriton.targets.target import find_target
    from mltriton.tools.launches import Launch, entries_of, sample_of_job

    job = Job(fn, entries_of(fn, None, values), find_target("cpu"), options_of(num_warps=4, num_stages=3))
    launch = Launch(dict(values), (2, 2, 2), {})
    return job, sample_of_job(job, launch, np.random.default_rng(_SEED))


def _run(fn: Any, values: Mapping[str, Any], grid: tuple[int, ...]) -> _Outcome:
    from mltriton.executor import run
    from mltriton.tools.launches import parameters_of

    job, sample = _job(fn, values)
    module = job.module("tt")
    copies = sample.copies()
    names = [name for name, _ in parameters_of(module, None)]
    run(module, sample.arguments(names, copies), grid)
    return _outcome(sample, copies)


def _outcome(sample: Sample, copies: Mapping[str, Any]) -> _Outcome:
    arrays = {name: np.ascontiguousarray(copy.array) for name, copy in copies.items()}
    wrote = any(
        array.tobytes() != np.ascontiguousarray(sample.values[name]).tobytes() for name, array in arrays.items()
    )
    return _Outcome(arrays, wrote)


def _compare_native(old: Any, new: Any, values: Mapping[str, Any], grid: tuple[int, ...]) -> tuple[str | None, bool]:
    """The first array that differs, and whether both ran as machine code."""
    try:
        before, after = (_native(fn, values, grid) for fn in (old, new))
    except TritonError:
        return None, False
    return before.first_difference(after), True


def _native(fn: Any, values: Mapping[str, Any], grid: tuple[int, ...]) -> _Outcome:
    from mltriton.compiler import compile_job
    from mltriton.runtime.slots import slots_of

    job, sample = _job(fn, values)
    kernel = compile_job(job)
    copies = sample.copies()
    slots = slots_of(job.entries, sample.arguments(job.entries, copies), kernel.metadata.written)
    x, y, z = (*grid, 1, 1)[:3]
    kernel.loaded.run((x, y, z), slots)
    return _outcome(sample, copies)


def _short(error: TritonError) -> str:
    place = f" at {error.place}" if error.place else ""
    return f"{type(error).__name__}: {error.message}{place}"


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if not hasattr(value, "shape"))
