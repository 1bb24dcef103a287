"""Proofs in processes of their own, with a time limit: a kernel may crash or never end, and the others go on.

Level: runtime. A worker proves the kernels of one file after the other and tells after each input how far it is. One
that says nothing for too long is ended, one that dies is noticed; what its kernel had shown until then is kept.
Machine code runs on one thread there, so that programs which write the same element do so in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection

from mltriton.errors import TritonError
from mltriton.tools.migrate.prove.proof import Prover
from mltriton.tools.migrate.prove.verdicts import Limits, Proof, combined, launched
from mltriton.tools.migrate.report.descriptors import DescriptorNote
from mltriton.tools.migrate.result import Result


@dataclass(frozen=True)
class Task:
    """What to do with one file: prove its kernels, look at what Xe does with their descriptors, or both."""

    result: Result
    signature: str | None = None
    limits: Limits = field(default_factory=Limits)
    proves: bool = True
    analyses: bool = False


@dataclass(frozen=True)
class Findings:
    """What was found of one file."""

    proofs: tuple[Proof, ...]
    descriptors: tuple[DescriptorNote, ...] = ()


def find_all(tasks: Sequence[Task], workers: int) -> Iterator[Findings]:
    """What is found of each file, in their order."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(find_guarded, tasks)


def find_guarded(task: Task) -> Findings:
    """Prove every kernel of a file in a process that may crash."""
    names = launched(task.result)
    found: dict[str, Proof] = {}
    descriptors: dict[int, DescriptorNote] = {}
    while len(found) < len(names):
        waiting = [name for name in names if name not in found]
        found |= _until_failure(task, waiting, descriptors)
    proofs = combined(task.result, found) if task.proves else []
    return Findings(tuple(proofs), tuple(descriptors.values()))


def _until_failure(task: Task, names: list[str], descriptors: dict[int, DescriptorNote]) -> dict[str, Proof]:
    """Proofs up to the first kernel that crashes or does not end, that one included."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, task, names), daemon=True)
    process.start()
    theirs.close()
    found: dict[str, Proof] = {}
    try:
        for name in names:
            proof, failure = _one(ours, task.limits.seconds + task.limits.margin, descriptors)
            if failure is not None:
                process.kill()
                process.join()
                status = f"the process ended with {process.exitcode}" if failure == "ended" else failure
                found[name] = _broken_off(name, proof, status)
                break
            assert proof is not None
            found[name] = proof
    finally:
        ours.close()
        process.kill()
        process.join()
    return found


def _one(
    connection: Connection, seconds: float, descriptors: dict[int, DescriptorNote]
) -> tuple[Proof | None, str | None]:
    """What was proven of one kernel, and what went wrong. Adds to `descriptors` what was found of them."""
    latest: Proof | None = None
    while True:
        if not connection.poll(seconds):
            return latest, f"it did not end within {seconds:.0f} s"
        try:
            message: _Message = connection.recv()
        except EOFError:
            return latest, "ended"
        latest = message.proof
        descriptors |= {note.line: note for note in message.descriptors}
        if message.is_last:
            return latest, None


def _broken_off(name: str, latest: Proof | None, failure: str) -> Proof:
    """What is left of a proof that was broken off."""
    if latest is None or not latest.inputs:
        return Proof(name, "not runnable", reason=failure)
    return replace(latest, skipped=f"then {failure}")


@dataclass(frozen=True)
class _Message:
    """How far a kernel is."""

    proof: Proof
    is_last: bool = False
    descriptors: tuple[DescriptorNote, ...] = ()


def _serve(connection: Connection, task: Task, names: list[str]) -> None:
    """What a worker does."""
    os.environ["MLTRITON_NUM_THREADS"] = "1"
    prover = Prover(task.result, task.signature, task.limits)
    for name in names:
        proof = Proof(name, "not runnable", reason="it was not run")
        if task.proves:
            proof = prover.prove(name, lambda proof: connection.send(_Message(proof)))
            connection.send(_Message(proof))
        descriptors: tuple[DescriptorNote, ...] = ()
        if task.analyses:
            with suppress(TritonError):  # a signature that does not fit: the notes of the text stay
                descriptors = tuple(prover.descriptors(name))
        connection.send(_Message(proof, True, descriptors))
