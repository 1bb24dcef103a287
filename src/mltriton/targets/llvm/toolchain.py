"""LLVM as a tool chain: text in; object code or assembly out.

Level: `llvm` -> `binary`. The only module through which targets reach LLVM, which is loaded on the first use.
Guarantees: text that LLVM rejects raises `BackendError` with LLVM's message and the text saved. LLVM can still hang or
abort the process on text it accepts; with `MLTRITON_COMPILE_TIMEOUT` set it runs in a process of its own, and both
become a `BackendError` too. All of it happens inside `call_llvm`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.runtime.compile_thread import time_limit
from mltriton.runtime.llvm_thread import call_llvm
from mltriton.targets.llvm import library

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


class Machine(NamedTuple):
    """What LLVM generates code for: a triple, a CPU name and a list of `+flag,-flag` attributes.

    `options` are LLVM's command line options. They hold for the rest of the process, so each concerns one target.
    Where an assembler of the maker's own follows, what is made is assembly (`as_text`) in place of an object file.
    `reduce_strength`: whether loops get induction variables of LLVM's own, which takes a quarter of its time.
    `optimization`: the N of LLVM's -ON.
    """

    triple: str
    cpu: str = ""
    attributes: str = ""
    options: Sequence[str] = ()
    as_text: bool = False
    reduce_strength: bool = True
    optimization: int = 2


def host_machine() -> tuple[str, str, dict[str, bool]]:
    """This machine as LLVM sees it: triple, CPU name, which feature flags it has."""
    return call_llvm(_host_machine)


def compile_object(text: str, machine: Machine, *, seconds: float | None = None) -> bytes:
    """What the machine takes (a relocatable object file) of the IR in `text`.

    It is made in a process of its own where a time limit is set, or `seconds` is one.
    """
    limit = time_limit() or seconds
    if limit is None:
        return compile_here(text, machine)
    from mltriton.targets.llvm.isolation import compile_isolated  # A launch from the cache needs none of it.

    return compile_isolated(text, machine, limit)


def compile_here(text: str, machine: Machine) -> bytes:
    """The same, made in this process."""
    return call_llvm(partial(_code, text, machine))


def save(text: str) -> Path | None:
    """Write IR text to a file for whoever looks into the failure; None where nothing can be written."""
    from mltriton.runtime.private_files import save_text  # A launch from the cache needs none of it.

    return save_text(text, "llvm", suffix=".ll")


def assembly(text: str, machine: Machine) -> str:
    """Assembly of the IR in `text`."""
    return compile_here(text, machine._replace(as_text=True)).decode()


def verify(text: str) -> None:
    """Check the IR in `text` with LLVM's verifier."""
    call_llvm(partial(_using, partial(library.verify, text), text))


def prepare(machine: Machine) -> None:
    """Let LLVM know a machine, and set its options."""
    call_llvm(partial(_prepare, machine))


def _host_machine() -> tuple[str, str, dict[str, bool]]:
    triple, cpu, attributes = _using(library.host)
    flags = [flag for flag in attributes.split(",") if flag]
    return triple, cpu, {flag[1:]: flag[0] == "+" for flag in flags}


def _code(text: str, machine: Machine) -> bytes:
    _prepare(machine)
    make = partial(
        library.code,
        *(text, machine.triple, machine.cpu, machine.attributes),
        as_text=machine.as_text,
        reduce_strength=machine.reduce_strength,
        optimization=machine.optimization,
    )
    return _using(make, text)


def _prepare(machine: Machine) -> None:
    if machine.triple != _using(library.host)[0]:
        library.know_all_machines()
    for option in machine.options:
        library.set_option(option)


def _using(work: Callable[[], T], text: str = "") -> T:
    """What a function of the library gives, in which there is no LLVM, or which does not take the text."""
    try:
        return work()
    except OSError as error:  # There is no memory for it, or what is installed is damaged.
        raise BackendError("LLVM cannot be loaded", found=str(error)) from None
    except library.RejectedError as error:
        message = "LLVM rejects the generated IR"
        raise BackendError(message, found=str(error).strip()).saved_to(save(text)) from error
