"""LLVM as a tool chain: text in; object code or assembly out.

Level: `llvm` -> `binary`. The only module through which targets reach llvmlite, which is loaded on the first use.
Guarantees: text that LLVM rejects raises `BackendError` with LLVM's message and the text saved. LLVM can still hang or
abort the process on text it accepts; with `MLTRITON_COMPILE_TIMEOUT` set it runs in a process of its own, and both
become a `BackendError` too. llvmlite's objects stay inside `call_llvm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.runtime.compile_thread import time_limit
from mltriton.runtime.llvm_thread import call_llvm

if TYPE_CHECKING:
    from types import ModuleType

    from llvmlite.binding import ModuleRef, TargetMachine


class Machine(NamedTuple):
    """What LLVM generates code for: a triple, a CPU name and a list of `+flag,-flag` attributes.

    `options` are LLVM's command line options. They hold for the rest of the process, so each concerns one target.
    Where an assembler of the maker's own follows, what is made is assembly (`as_text`) in place of an object file.
    """

    triple: str
    cpu: str = ""
    attributes: str = ""
    options: Sequence[str] = ()
    as_text: bool = False


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
    call_llvm(partial(_verify, text))


def prepare(machine: Machine) -> None:
    """Let LLVM know a machine, and set its options."""
    call_llvm(partial(_prepare, machine))


@cache
def _llvm() -> ModuleType:
    try:
        import llvmlite.binding as llvm
    except OSError as error:  # There is no memory for it, or what is installed is damaged.
        raise BackendError("LLVM cannot be loaded", found=str(error)) from None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of inline assembly
    return llvm


@cache
def _set_option(option: str) -> None:
    _llvm().set_option("mltriton", option)


@cache
def _all_targets() -> None:
    """Let LLVM know every machine; this one's own alone takes a third of the time."""
    _llvm().initialize_all_targets()
    _llvm().initialize_all_asmprinters()


def _host_machine() -> tuple[str, str, dict[str, bool]]:
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())


def _code(text: str, machine: Machine) -> bytes:
    module, target_machine = _machine_of(text, machine)
    return target_machine.emit_assembly(module).encode() if machine.as_text else target_machine.emit_object(module)


def _verify(text: str) -> None:
    _parse(text)


def _parse(text: str) -> ModuleRef:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        message = "LLVM rejects the generated IR"
        raise BackendError(message, found=str(error).strip()).saved_to(save(text)) from error
    return module


def _prepare(machine: Machine) -> None:
    if machine.triple != _llvm().get_process_triple():
        _all_targets()
    for option in machine.options:
        _set_option(option)


def _machine_of(text: str, machine: Machine) -> tuple[ModuleRef, TargetMachine]:
    module = _parse(text)
    _prepare(machine)
    target = _llvm().Target.from_triple(machine.triple)
    target_machine = target.create_target_machine(
        cpu=machine.cpu, features=machine.attributes, opt=2, reloc="pic", codemodel="small"
    )
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    return module, target_machine
