"""Inline assembly of NVIDIA's GPUs, which is PTX, and text in LLVM's language, of one element after the other.

Level: intrinsic -> llvm. Guarantees: text that ptxas, where it is installed, or LLVM rejects is an `AssemblyError` at
its line.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from mltriton.dialects import tt
from mltriton.errors import AssemblyError, BackendError
from mltriton.ir.types import TensorType
from mltriton.targets.llvm.inline_assembly import SECONDS, Fragment, alone, fragment_of
from mltriton.targets.llvm.isolation import compile_isolated
from mltriton.targets.llvm.types import Value
from mltriton.targets.nvidia import ptxas
from mltriton.targets.nvidia.devices import Device
from mltriton.targets.nvidia.machine import NvidiaMachine
from mltriton.targets.nvidia.ptx import machine_of
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted

if TYPE_CHECKING:
    from collections.abc import Sequence


def _inline_asm(e: Emitter, op: tt.InlineAsm) -> Value:
    values: Sequence[Value] = [e.get(source) for source in op.sources]
    return _checked(e, op).emit(e.module, e.function, values, is_x86=False)[op.number]


def _volatile_asm(e: Emitter, op: tt.VolatileAsm) -> Sequence[Emitted]:
    """Element by element; all lanes that have one run the fragment."""
    fragment = _checked(e, op)
    taken = [e.registers(source) if isinstance(source.type, TensorType) else [e.get(source)] for source in op.sources]
    groups = zip(*taken, strict=True) if taken else [()]
    made = [fragment.emit(e.module, e.function, values, is_x86=False) for values in groups]
    e.shared_accesses.forget(met=False)
    columns = zip(*made, strict=True)
    return [e.held(list(column), result.type) for column, result in zip(columns, op.results, strict=True)]


def _checked(e: Emitter, op: tt.InlineAsm | tt.VolatileAsm) -> Fragment:
    """The fragment of an operation, which assembles."""
    fragment, device = fragment_of(op), cast(NvidiaMachine, e.machine).device
    said = _complaint(fragment, device)
    if said is not None:
        raise AssemblyError(
            "LLVM does not take this text" if fragment.is_llvm else "this is no assembly of the machine",
            expected="a function's body in LLVM's language" if fragment.is_llvm else f"PTX of {device.arch}",
            found=said,
            hint="Assembly belongs to one machine: write it with the functions of tl and tl.math for all.",
        ).at(op.loc.in_source)
    return fragment


@cache
def _complaint(fragment: Fragment, device: Device) -> str | None:
    """What LLVM or ptxas says against a fragment; None where it is accepted."""
    try:
        ptx = compile_isolated(alone(fragment, is_x86=False), machine_of(device), SECONDS).decode()
        if ptxas.find_tool("ptxas") is not None:
            ptxas.assemble(ptx, device)
    except BackendError as error:
        return (error.found or str(error)).strip()
    return None


ELEMENTS: Rules = {tt.InlineAsm: _inline_asm}
RULES: Rules = {tt.VolatileAsm: _volatile_asm}
