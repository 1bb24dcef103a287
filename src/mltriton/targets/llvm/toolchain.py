"""LLVM as a tool chain: text in; object code or assembly out.

Level: `llvm` -> `binary`. The only module through which targets reach llvmlite, which is loaded on the first use.
Guarantees: text that LLVM rejects raises `BackendError` with LLVM's message and the text saved. LLVM can still hang or
abort the process on text it accepts; with `MLTRITON_COMPILE_TIMEOUT` set it runs in a process of its own, and both
become a `BackendError` too.
"""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mltriton.errors import BackendError
from mltriton.runtime import config

if TYPE_CHECKING:
    from types import ModuleType

    from llvmlite.binding import ModuleRef, TargetMachine


class Machine(NamedTuple):
    """What LLVM generates code for: a triple, a CPU name and a list of `+flag,-flag` attributes."""

    triple: str
    cpu: str = ""
    attributes: str = ""


def host_machine() -> tuple[str, str, dict[str, bool]]:
    """This machine as LLVM sees it: triple, CPU name, which feature flags it has."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())


def compile_object(text: str, machine: Machine) -> bytes:
    """A relocatable object file of the IR in `text`, made in a process of its own where a time limit is set."""
    limit = config.COMPILE_TIMEOUT.get()
    return compile_here(text, machine) if limit is None else compile_isolated(text, machine, limit)


def compile_here(text: str, machine: Machine) -> bytes:
    """A relocatable object file, made in this process."""
    module, target_machine = _prepare(text, machine)
    return target_machine.emit_object(module)


def compile_isolated(text: str, machine: Machine, seconds: float) -> bytes:
    """A relocatable object file, made in a process of its own.

    Raises `BackendError` when LLVM takes longer than `seconds`, crashes or rejects the text.
    """
    import subprocess

    command = [sys.executable, "-m", "mltriton.targets.llvm.worker"]
    request = f"{dumps(machine._asdict())}\n{text}".encode()
    try:
        done = subprocess.run(command, input=request, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        message = f"LLVM took longer than {seconds:g} seconds"
        hint = f"{config.COMPILE_TIMEOUT.name} is the limit."
        raise BackendError(message, hint=hint).saved_to(save(text)) from None
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.decode(errors="replace").strip()
    what = "LLVM rejects the generated IR" if done.returncode == REJECTED else "LLVM crashed"
    raise BackendError(what, found=message or f"exit status {done.returncode}").saved_to(save(text))


REJECTED = 3  # exit status of a worker whose text LLVM does not accept


def save(text: str) -> Path:
    """Write IR text to a file for whoever looks into the failure."""
    from tempfile import gettempdir

    folder = Path(gettempdir()) / "mltriton-reproducers"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(text.encode()).hexdigest()[:12]}.ll"
    path.write_text(text, encoding="utf-8")
    return path


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

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _all_targets() -> None:
    """Let LLVM know every machine; this one's own alone takes a third of the time."""
    _llvm().initialize_all_targets()
    _llvm().initialize_all_asmprinters()


def _parse(text: str) -> ModuleRef:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        message = "LLVM rejects the generated IR"
        raise BackendError(message, found=str(error).strip()).saved_to(save(text)) from error
    return module


def _prepare(text: str, machine: Machine) -> tuple[ModuleRef, TargetMachine]:
    module = _parse(text)
    if machine.triple != _llvm().get_process_triple():
        _all_targets()
    target = _llvm().Target.from_triple(machine.triple)
    target_machine = target.create_target_machine(
        cpu=machine.cpu, features=machine.attributes, opt=2, reloc="pic", codemodel="small"
    )
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    return module, target_machine
