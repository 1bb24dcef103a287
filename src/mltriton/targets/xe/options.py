"""The compile options of Xe GPUs.

Level: user. Guarantees: importing this module imports no compiler module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mltriton.targets.options import TargetOptions, option

CODEGENS = ("simt", "simd")
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
class RegisterOptions(TargetOptions):
    """Of a GPU whose warps may have more registers."""

    grf_mode: str = option("default", "registers of a warp (default: chosen)", choices=tuple(GRF_MODES), ignorable=True)

    def attributes(self) -> Mapping[str, bool | int | str]:
        """How many registers."""
        registers = GRF_MODES[str(self.grf_mode)]
        return {} if registers is None else {"ttig.grf_mode": registers}


@dataclass(frozen=True)
class XeOptions(RegisterOptions):
    """Of Intel's Xe GPUs."""

    codegen: str | None = option(
        None, "simt (a program of each lane, the default) or simd (one program of a warp)", choices=CODEGENS
    )
    address_payloads: bool = option(
        False, "loops keep addresses of 2D block accesses (intrinsics that Intel's compiler may change)"
    )

    def attributes(self) -> Mapping[str, bool | int | str]:
        """Registers, the form of code, and whether there are payloads."""
        form = {} if self.codegen is None else {"ttig.codegen": self.codegen}
        return {**super().attributes(), **form, **({"ttig.address_payloads": True} if self.address_payloads else {})}
