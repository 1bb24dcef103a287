"""What is known of a kernel for Xe besides its LLVM IR. Level: `llvm` to binary; no compiler module is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mltriton.targets.target import Facts, Lowered

if TYPE_CHECKING:
    from mltriton.targets.assertions import Description
    from mltriton.targets.llvm.writer import Function
    from mltriton.targets.xe.launch_guards import Surface, Use


@dataclass(frozen=True)
class XeFacts(Facts):
    """`codegen` names the kind of code (`codegens.py`). A program has so many warps, which are `work_items`, one of a
    lane or else of a warp, and share `shared` bytes; a warp is to have so many registers, with `fixed_registers` no
    others. `prints` says whether the kernel prints, `assertions` what its assertions say. The code takes for granted
    that the hardware takes the surfaces `checked` at each launch, of which `uses` says what they are.
    """

    codegen: str
    num_warps: int
    work_items: int
    shared: int
    registers: int
    fixed_registers: bool = False
    prints: bool = False
    assertions: Sequence[Description] = ()
    checked: Sequence[Surface] = ()
    uses: Sequence[Use] = ()


@dataclass(frozen=True)
class XeLowered(Lowered):
    """The function that the text was written from; or, of a kernel that was kept, the SPIR-V module made of it."""

    source: Function | bytes = b""
