"""What a proof says: of a kernel that was run, and of each function that a migration changed.

Level: source text. Plain data, and how the proofs of kernels become those of the helpers that they call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mltriton.frontend.syntax import parsed
from mltriton.tools.migrate.prove.loading import is_jit
from mltriton.tools.migrate.result import Result

VERDICTS = ("proven", "partly proven", "not runnable", "differs")


@dataclass(frozen=True)
class Limits:
    """How far a proof of one kernel goes. No new input is begun after `seconds` of computing; a worker that says
    nothing for `seconds` and `margin` by the clock is ended.
    """

    least: int = 2  # inputs
    inputs: int = 20
    attempts: int = 48
    machine_code: int = 3  # inputs that also run as machine code; 0: none
    seconds: float = 60.0
    margin: float = 240.0


@dataclass(frozen=True)
class Proof:
    """What was found of one kernel. `verdict` is one of `VERDICTS`; `missed` are lines of calls that no input reached,
    by function; `untried` are values of flags that no input had.
    """

    kernel: str
    verdict: str
    inputs: int = 0
    machine_code: int = 0
    reason: str = ""  # why it is not proven
    skipped: str = ""  # why not all inputs ran as machine code
    through: str = ""  # the kernel that a helper was proven with
    missed: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    untried: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether old and new kernel wrote the same bytes, and every changed call was reached."""
        return self.verdict == "proven"

    @property
    def differs(self) -> bool:
        """Whether the migration is wrong."""
        return self.verdict == "differs"

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels at which it was proven."""
        return ("tt", "cpu") if self.machine_code else ("tt",)

    def __str__(self) -> str:
        through = f" through {self.through}" if self.through else ""
        if not self.inputs or self.differs:
            return f"{self.kernel}: {self.verdict}{through}: {self.reason}"
        text = f"{self.kernel}: {self.verdict}{through} on {self.inputs} inputs ({self._ran})"
        if self.reason:
            text += f": {self.reason}"
        return text + (f"; not tried: {', '.join(self.untried)}" if self.untried else "")

    @property
    def _ran(self) -> str:
        if self.machine_code == self.inputs:
            return "tt, cpu"
        count = f"cpu on {self.machine_code}" if self.machine_code else "not cpu"
        return f"tt, {count}{f': {self.skipped}' if self.skipped else ''}"


def functions_under_jit(text: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file that Triton compiles, by name."""
    nodes = (node for node in ast.walk(parsed(text)) if isinstance(node, ast.FunctionDef) and is_jit(node))
    return {node.name: node for node in nodes}


def launched(result: Result) -> list[str]:
    """The kernels to run: those that changed, and those that call helpers that changed."""
    functions = functions_under_jit(result.source)
    known = (name for name in dict.fromkeys(result.kernels) if name in functions)
    names = dict.fromkeys(caller for name in known for caller in _callers(name, functions, ()))
    return [name for name in names if not _callers_beside(name, result)]


def combined(result: Result, proofs: Mapping[str, Proof]) -> list[Proof]:
    """A proof of each function that changed, from those of the kernels."""
    functions = functions_under_jit(result.source)
    found: list[Proof] = []
    for name in dict.fromkeys(result.kernels):
        if name not in functions:
            found.append(Proof(name, "not runnable", reason="it is not under jit"))
            continue
        callers = _callers(name, functions, ())
        here = [proofs[caller] for caller in callers if caller in proofs]
        found.append(_of_function(name, here) if here else Proof(name, "not runnable", reason=_ELSEWHERE))
    return found


_ELSEWHERE = "it is called in other files"


def through_others(result: Result, proof: Proof, others: Mapping[str, Sequence[Proof]]) -> Proof:
    """The proof of a helper that is called in other files, from theirs (by path)."""
    if proof.reason != _ELSEWHERE:
        return proof
    callers = _callers_beside(proof.kernel, result)
    ran = [(path, other) for path, proofs in others.items() for other in proofs if (path, other.kernel) in callers]
    worst = max(ran, key=lambda item: (VERDICTS.index(item[1].verdict), not item[1].inputs), default=None)
    if worst is None:
        return proof
    path, other = worst
    found = replace(other, kernel=proof.kernel, through=f"{other.kernel} of {path}", missed={})
    if other.differs or not other.inputs:
        return found
    return replace(found, verdict="partly proven", reason="which of its calls ran is not followed into other files")


def _callers_beside(name: str, result: Result) -> set[tuple[str, str]]:
    """The functions that call a function of this file from another one: path and name."""
    found: set[tuple[str, str]] = set()
    for path, (source, _, _) in result.beside.items():
        names = {name}
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.ImportFrom):
                names |= {alias.asname for alias in node.names if alias.name == name and alias.asname}
        for function in functions_under_jit(source).values():
            called = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if any(text in names or text.endswith(f".{name}") for text in called):
                found.add((path, function.name))
    return found


def _callers(name: str, functions: Mapping[str, ast.FunctionDef], below: tuple[str, ...]) -> list[str]:
    """The functions through which a function is launched: itself, or its outermost callers."""
    callers = [other.name for other in functions.values() if other.name not in (name, *below) and calls(other, name)]
    return list(dict.fromkeys(each for other in callers for each in _callers(other, functions, (name, *below)))) or [
        name
    ]


def calls(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function calls another by its name."""
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(function))


def _of_function(name: str, proofs: list[Proof]) -> Proof:
    """The proof of a function from those of the kernels through which it is launched."""
    worst = max(proofs, key=lambda proof: VERDICTS.index(proof.verdict) if proof.verdict != "partly proven" else 0)
    if worst.differs or not worst.inputs:
        return replace(worst, kernel=name, through=worst.kernel if worst.kernel != name else "")
    missed = {line for line in proofs[0].missed.get(name, ()) if all(line in p.missed.get(name, ()) for p in proofs)}
    return replace(
        worst,
        kernel=name,
        through=worst.kernel if worst.kernel != name else "",
        verdict="partly proven" if missed else "proven",
        reason=never_ran(missed),
        missed={name: tuple(sorted(missed))},
    )


def never_ran(lines: Iterable[int]) -> str:
    """Says which calls no input reached."""
    known = sorted(set(lines))
    if not known:
        return ""
    return f"the call{'s' * (len(known) > 1)} at line{'s' * (len(known) > 1)} {', '.join(map(str, known))} never ran"
