"""How a kernel is compiled, besides its arguments.

Level: user. Guarantees: an option that no target could honour is an `OptionError` that names what it may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mltriton.errors import OptionError
from mltriton.language.constants import unwrap

# Upstream's names of how many registers a warp gets; None: what it is expected to need, more where that spills.
GRF_MODES: Mapping[str, int | None] = {
    "default": None,
    "auto": None,
    "128": 128,
    "small": 128,
    "256": 256,
    "large": 256,
}


@dataclass(frozen=True)
class Options:
    """How a kernel is compiled, besides its arguments.

    `sanitize`: every access is checked against the memory of the arrays passed (`passes/tt/check_accesses.py`).
    `debug`: assertions are checked, and with `sanitize_overflow` whether integers overflow. `warp_level` (the kernel's
    own mark when None): every tensor belongs to one warp. `address_payloads` (targets that have them,
    `TargetSpec.address_payloads`): loops keep the address of each 2D block access. `codegen` (targets that have
    several, `TargetSpec.codegens`; None for the first): what the machine code is one program of. `grf_mode`, a key of
    `GRF_MODES` (of meaning where `TargetSpec.register_modes` has them): how many registers a warp gets.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    debug: bool = False
    sanitize: bool = False
    sanitize_overflow: bool = True
    warp_level: bool | None = None
    address_payloads: bool = False
    codegen: str | None = None
    grf_mode: str = "default"

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_stages", "num_ctas"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (0 if name == "num_stages" else 1):
                raise OptionError(f"{name} must be a positive integer", found=repr(value))
        if self.num_warps & (self.num_warps - 1):
            less = 1 << self.num_warps.bit_length() - 1
            expected = f"{less} or {2 * less}"
            raise OptionError("num_warps must be a power of two", expected=expected, found=str(self.num_warps))
        if self.warp_level is not None and type(self.warp_level) is not bool:
            raise OptionError("warp_level must be a bool", found=repr(self.warp_level))
        if type(self.address_payloads) is not bool:
            raise OptionError("address_payloads must be a bool", found=repr(self.address_payloads))
        if str(self.grf_mode) not in GRF_MODES:
            known = ", ".join(GRF_MODES)
            raise OptionError("there is no such grf_mode", expected=f"one of {known}", found=repr(self.grf_mode))
        if self.num_ctas != 1:
            raise OptionError("num_ctas must be 1: no target has clusters of programs", found=str(self.num_ctas))


def options_of(**given: Any) -> Options:
    """The options of keyword arguments; `OptionError` for unknown ones."""
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            raise OptionError(f"there is no option {name!r}", expected=f"one of {', '.join(known)}")
    return Options(**{name: unwrap(value) for name, value in given.items()})
