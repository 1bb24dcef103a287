"""Inline assembly of the CPU's own. Level: intrinsic -> llvm. Source: `targets/llvm/inline_assembly.py`."""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.errors import AssemblyError
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.toolchain import Machine
from mltriton.targets.llvm.types import Value, poison


def _inline_asm(e: Emitter, op: tt.InlineAsm | tt.VolatileAsm) -> list[Value]:
    """The results of every lane."""
    from mltriton.targets.llvm.inline_assembly import check, fragment_of  # Few kernels need it.

    fragment, machine = fragment_of(op), Machine(e.features.triple, e.features.cpu, e.features.attributes)
    try:
        check(fragment, machine)
    except AssemblyError as error:
        raise error.at(op.loc.in_source) from None
    values = [e.get(source) for source in op.sources]
    lanes = max((value.type.lanes for value in values), default=1)
    numbers = range(len(op.results)) if isinstance(op, tt.VolatileAsm) else (op.number,)
    found = [poison(e.type_of(result.type).with_lanes(lanes)) for result in op.results]
    for lane in range(lanes):
        given = [e.function.extract(value, lane) for value in values]
        made = fragment.emit(e.module, e.function, given, is_x86=e.features.is_x86)
        found = [e.function.insert(whole, made[n], lane) for whole, n in zip(found, numbers, strict=True)]
    return found


RULES: Rules = {tt.InlineAsm: _inline_asm, tt.VolatileAsm: _inline_asm}
