"""Proof of a migration: old and new kernels run on the same random arguments, every byte compared.

Level: runtime. First at level `tt` in the reference executor, then as machine code. One difference is enough to call a
migration wrong; a kernel is proven only when every call that was changed was reached by some input. What no arguments
made run, and which calls were never reached, is told.
"""

from __future__ import annotations

import ast
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mltriton.errors import AssertionFailed, TritonError
from mltriton.executor import Visits
from mltriton.frontend.signature import Constant, parse_signature
from mltriton.tools.inference.arguments import ELEMENTS, Plan, Search, arguments_for
from mltriton.tools.inference.roles import Roles, functions_in, roles_of
from mltriton.tools.migrate.prove.coverage import Coverage, calls_of
from mltriton.tools.migrate.prove.loading import Loader
from mltriton.tools.migrate.prove.trial import Input, Outcome, compare_machine_code, job_of, run, short
from mltriton.tools.migrate.prove.verdicts import (
    Limits,
    Proof,
    calls,
    combined,
    functions_under_jit,
    launched,
    never_ran,
)
from mltriton.tools.migrate.report.descriptors import DescriptorNote, analyse
from mltriton.tools.migrate.result import Result
from mltriton.tools.samples import TYPES, allocate, random_values

_SEED = 20260707

Progress = Callable[[Proof], None]


def prove(result: Result, *, signature: str | None = None, limits: Limits | None = None) -> list[Proof]:
    """Prove every kernel of a file that changed; helpers are proven with the kernels that call them."""
    prover = Prover(result, signature, limits or Limits())
    return combined(result, {name: prover.prove(name) for name in launched(result)})


@dataclass(frozen=True)
class _Versions:
    """A kernel before and after; `checked` is the old one if its unchecked accesses were checked."""

    old: Any
    new: Any
    checked: Any


class Prover:
    """Loads the texts of one file, and proves its kernels one by one."""

    def __init__(self, result: Result, signature: str | None, limits: Limits) -> None:
        path = Path(result.path)
        # Files that are migrated together are loaded together: of each the version that belongs to this one.
        old, new, checked = (
            Loader({Path(other).resolve(): texts[version] for other, texts in result.beside.items()})
            for version in range(3)
        )
        self.result, self.signature, self.limits = result, signature, limits
        self.file = f"{result.path} (before)"
        self._old = old.load(result.source, path, self.file)
        self._new = new.load(result.text, path, f"{result.path} (after)")
        unchecked = result.contract is None and not result.beside
        text = result.contract or result.source
        self._checked = self._old if unchecked else checked.load(text, path, f"{result.path} (checked)")
        self._functions = functions_under_jit(result.source)
        self.ran: dict[str, list[Input]] = {}
        self.missing = old.missing

    def prove(self, name: str, progress: Progress | None = None) -> Proof:
        """Prove one kernel; `progress` gets what is proven so far after each input."""
        if not all(hasattr(names.get(name), "signature") for names in (self._old, self._new, self._checked)):
            return Proof(name, "not runnable", reason=f"it could not be loaded by itself{self.absent(name)}")
        versions = _Versions(self._old[name], self._new[name], self._checked[name])
        trials = _Trials(self, name, versions)
        proof = trials.run(progress or (lambda proof: None))
        self.ran[name] = trials.ran
        return proof

    def descriptors(self, name: str) -> list[DescriptorNote]:
        """What Xe does with the descriptors of a kernel that was proven, or whose signature is known."""
        if self.signature is not None and name not in self.ran and hasattr(self._new.get(name), "signature"):
            new = self._new[name]
            trials = _Trials(self, name, _Versions(new, new, new))
            self.ran[name] = [trials.input_of(trials.search.next(lambda constants: 0))]
        inputs = self.ran.get(name, [])
        if not inputs:
            return []
        return analyse(self._new[name], inputs, self.roles(name), self.result.text, f"{self.result.path} (after)")

    def called(self, name: str) -> dict[str, ast.FunctionDef]:
        """A kernel and the functions of the file that it calls."""
        found = {name: self._functions[name]}
        waiting = [name]
        while waiting:
            current = self._functions[waiting.pop()]
            for other, function in self._functions.items():
                if other not in found and calls(current, other):
                    found[other] = function
                    waiting.append(other)
        return found

    def absent(self, name: str) -> str:
        """Why names that a kernel uses are not known, as the end of a sentence."""
        used = {node.id for each in self.called(name).values() for node in ast.walk(each) if isinstance(node, ast.Name)}
        known = sorted(used & set(self.missing))
        return "".join(f"; {each} is not known: {self.missing[each]}" for each in known)

    def roles(self, name: str) -> Roles:
        """What the parameters of a kernel are."""
        return roles_of(self._functions[name], {**functions_in(self._old), **self._functions})


class _Trials:
    """Input after input for one kernel."""

    def __init__(self, prover: Prover, name: str, versions: _Versions) -> None:
        self.prover, self.name, self.versions = prover, name, versions
        self.rng = np.random.default_rng(_SEED)
        self.roles = prover.roles(name)
        parameters = versions.old.signature.parameters.items()
        defaults = {key: each.default for key, each in parameters if each.default is not each.empty}
        self.search = Search(self.roles, defaults, self.rng)
        self.coverage = Coverage(calls_of(prover.called(name), prover.result.sites), prover.file)
        self.inputs = self.machine_code = 0
        self.ran: list[Input] = []
        self.skipped = ""
        self.reasons: Counter[str] = Counter()

    def run(self, progress: Progress) -> Proof:
        """Try arguments until nothing new can be reached."""
        limits, started = self.prover.limits, time.process_time()
        while self.search.attempts < limits.attempts and not self._enough():
            if time.process_time() - started > limits.seconds:
                break
            wrong = self._attempt()
            if wrong is not None:
                return Proof(self.name, "differs", self.inputs, self.machine_code, wrong)
            progress(self._proof())
        return self._proof()

    def _enough(self) -> bool:
        if self.inputs >= self.prover.limits.inputs:
            return True
        everything = all(call.site in self.coverage.reached for call in self.coverage.calls)
        return self.inputs >= self.prover.limits.least and everything and not self._untried()

    def _untried(self) -> list[str]:
        return self.search.missing(self.coverage.conditions)

    def _why_not(self) -> str:
        """Why no input could be found: what was found most often."""
        return self.reasons.most_common(1)[0][0] if self.reasons else "no arguments could be found"

    def _proof(self) -> Proof:
        if not self.inputs:
            return Proof(self.name, "not runnable", reason=self._why_not() + self.prover.absent(self.name))
        missed = {function: self.coverage.missed(function) for function in self.prover.called(self.name)}
        lines = {function: tuple(site.line for site in sites) for function, sites in missed.items() if sites}
        return Proof(
            self.name,
            "partly proven" if lines else "proven",
            self.inputs,
            self.machine_code,
            never_ran(line for each in lines.values() for line in each),
            self.skipped,
            missed=lines,
            untried=tuple(self._untried()),
        )

    def _attempt(self) -> str | None:
        """Try one input; what is wrong with the new kernel, if something is."""
        plan = self.search.next(self.coverage.open_calls)
        visits = Visits()
        try:
            given = self.input_of(plan)
            plan = replace(plan, constants={name: given.values[name] for name in self.roles.constants})
            before = run(self.versions.old, given, visits)
            refused = self._unusable(given, before) or self._unasserted(given)
        except TritonError as error:
            refused = f"the old kernel: {short(error)}"
        except RecursionError:
            refused = "the old kernel: too deep"
        else:
            if not refused:
                return self._compare(plan, given, before, visits)
        self.reasons[refused] += 1
        self.search.refused(plan)
        return None

    def _compare(self, plan: Plan, given: Input, before: Outcome, visits: Visits) -> str | None:
        """What is wrong with the new kernel on an input on which the old one runs."""
        wrong = self._wrong(given, before)
        self.search.passed(plan)
        self.coverage.add(visits, plan.constants)
        self.inputs += 1
        self.ran.append(given)
        return wrong

    def _unusable(self, given: Input, before: Outcome) -> str:
        """Why an input shows nothing."""
        if not before.wrote:
            return "the old kernel writes nothing with the arguments tried"
        if self.versions.checked is not self.versions.old and self._leaves(given, before):
            return "the old kernel leaves a shape that it does not check with the arguments tried"
        return ""

    def _unasserted(self, given: Input) -> str:
        """The condition on constants that the new kernel states with tl.static_assert, where it does not hold."""
        if self.versions.new is self.versions.old or "static_assert" not in self.prover.result.text:
            return ""
        try:
            job_of(self.versions.new, given).source_module()
        except AssertionFailed as error:
            return f"the new kernel's condition does not hold: {short(error)}"
        except TritonError:
            return ""  # whatever else is wrong, running it shows
        return ""

    def _leaves(self, given: Input, before: Outcome) -> bool:
        """Whether checking what the old kernel does not check makes a difference: it left a shape, and must not."""
        try:
            return before.first_difference(run(self.versions.checked, given)) is not None
        except TritonError:
            return True

    def _wrong(self, given: Input, before: Outcome) -> str | None:
        try:
            after = run(self.versions.new, given)
        except TritonError as error:
            return f"the new kernel fails where the old one runs: {short(error)}"
        name = before.first_difference(after)
        if name is not None:
            return f"other bytes in {name} on {given}"
        if self.machine_code >= self.prover.limits.machine_code:
            return None
        name, self.skipped = compare_machine_code(self.versions.old, self.versions.new, given)
        self.machine_code += name is None and not self.skipped
        return f"machine code: other bytes in {name} on {given}" if name is not None else None

    def input_of(self, plan: Plan) -> Input:
        """Arguments for a plan; what a signature says of them holds."""
        signature, values = self.prover.signature, arguments_for(self.roles, plan, self.rng)
        if signature is None:
            return Input(values, plan.grid)
        names = list(self.versions.old.signature.parameters)
        return Input(values | _from_signature(signature, names, self.roles, values, self.rng), plan.grid, signature)


def _from_signature(
    signature: str, names: list[str], roles: Roles, values: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """What a signature says: constants as they are, arrays in their type, numbers as they were chosen."""
    found: dict[str, Any] = {}
    for name, entry in parse_signature(signature, names).items():
        if isinstance(entry, Constant):
            found[name] = entry.value
        elif entry.is_pointer and roles.pointers.get(name, "numbers") == "numbers":
            found[name] = allocate(random_values(rng, TYPES[entry.scalar], (ELEMENTS,)))
        elif entry.is_pointer:
            found[name] = allocate(values[name].astype(np.dtype(entry.scalar.replace("i", "int"))))
        elif entry.scalar.startswith(("fp", "bf")):
            found[name] = float(rng.uniform(0.25, 1.0))
        elif not isinstance(values.get(name), int) or entry.divisibility > 1:
            found[name] = 37 if entry.divisibility == 1 else 48
    return found
