"""LLVM as a tool chain: text in; object code or assembly out.

Level: `llvm` -> `binary`. The only module through which targets reach llvmlite, which is loaded on the first use.
Guarantees: text that LLVM rejects raises `BackendError` with LLVM's message. LLVM can still hang or abort the process
on text it accepts (see `isolated`, which turns both into a `BackendError`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mltriton.errors import BackendError

if TYPE_CHECKING:
    from types import ModuleType

    from llvmlite.binding import ModuleRef, TargetMachine


@dataclass(frozen=True, slots=True)
class Machine:
    """What LLVM generates code for: a triple, a CPU name and a list of `+flag,-flag` attributes."""

    triple: str
    cpu: str = ""
    attributes: str = ""


def host_machine() -> tuple[str, str, dict[str, bool]]:
    """This machine as LLVM sees it: triple, CPU name, which feature flags it has."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())


def compile_object(text: str, machine: Machine) -> bytes:
    """A relocatable object file of the IR in `text`."""
    module, target_machine = _prepare(text, machine)
    return target_machine.emit_object(module)


def assembly(text: str, machine: Machine) -> str:
    """Assembly of the IR in `text`."""
    module, target_machine = _prepare(text, machine)
    return target_machine.emit_assembly(module)


def verify(text: str) -> None:
    """Check the IR in `text` with LLVM's verifier."""
    _parse(text)


@cache
def _llvm() -> ModuleType:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def _parse(text: str) -> ModuleRef:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise BackendError("LLVM rejects the generated IR", found=str(error).strip()) from error
    return module


def _prepare(text: str, machine: Machine) -> tuple[ModuleRef, TargetMachine]:
    module = _parse(text)
    target = _llvm().Target.from_triple(machine.triple)
    target_machine = target.create_target_machine(
        cpu=machine.cpu, features=machine.attributes, opt=2, reloc="pic", codemodel="small"
    )
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    return module, target_machine
