"""Intel's Xe GPUs as data: execution size, registers, matrix engine, shared memory, block accesses.

Level: data. Sources: Intel's Xe and oneAPI optimisation guides; what IGC 2.40 accepts for each device
(`tests/targets/xe/test_block_limits.py` asks it again where ocloc is installed).
"""

from __future__ import annotations

from dataclasses import dataclass

from mltriton.errors import TargetError, did_you_mean
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, I8, Type
from mltriton.records import NamedTuple


class GrfMode(NamedTuple):
    """How many registers a warp has, and how many warps a program may then have at most: the larger half of the
    registers is taken from other warps.
    """

    registers: int
    max_warps: int


class DpasShape(NamedTuple):
    """Rows, columns and products added up of one matrix instruction; a and b come in 32-bit steps of k."""

    rows: int
    columns: int
    k: int


@dataclass(frozen=True)
class Device:
    """One generation of devices. `ocloc` is its name for Intel's offline compiler; `simd` the lanes of an instruction
    and of a matrix product's columns, `workgroup_lanes` those of a program at most; `wide_vnni`: whether loads with
    VNNI take blocks of more than `simd` columns; `predicated`: whether one instruction accesses memory under a
    condition of each lane; `distances`: whether a 2D block access adds a constant distance to the index that its
    address says.
    """

    name: str
    architecture: str
    products: tuple[str, ...]
    ocloc: str
    simd: int = 16
    sub_group_sizes: tuple[int, ...] = (16, 32)
    workgroup_lanes: int = 1024
    register_bytes: int = 64
    grf_modes: tuple[GrfMode, ...] = (GrfMode(128, 64), GrfMode(256, 32))
    shared_bytes: int = 128 * 1024
    base_alignment: int = 64
    pitch_multiple: int = 16
    wide_vnni: bool = True
    predicated: bool = True
    distances: bool = True

    @property
    def max_warps(self) -> int:
        """Most warps a program may have in any mode."""
        return max(mode.max_warps for mode in self.grf_modes)

    def grf_mode(self, registers: int) -> GrfMode:
        """The mode with so many registers. Raises `TargetError` where there is none."""
        for mode in self.grf_modes:
            if mode.registers == registers:
                return mode
        expected = " or ".join(str(mode.registers) for mode in self.grf_modes)
        raise TargetError(f"{self.name} has no such GRF mode", expected=expected, found=str(registers))

    def check_warps(self, num_warps: int, registers: int) -> None:
        """Raise `TargetError` for more warps than run together with so many registers each."""
        most = self.grf_mode(registers).max_warps
        if num_warps > most:
            message = f"too many warps for {registers} registers each on {self.name}"
            modes = " and ".join(f"{mode.max_warps} with {mode.registers} registers" for mode in self.grf_modes)
            hint = f"A program may have {modes}: choose a smaller num_warps."
            raise TargetError(message, expected=f"at most {most} warps", found=str(num_warps), hint=hint)


# Operands of a dot -> the matrix instruction. f32 is read as tf32, i8 signed or not.
DPAS_SHAPES: dict[Type, DpasShape] = {
    F16: DpasShape(8, 16, 16),
    BF16: DpasShape(8, 16, 16),
    F32: DpasShape(8, 16, 8),
    I8: DpasShape(8, 16, 32),
}
# Operands that are converted before, as the matrix engine does not take them.
DPAS_THROUGH: dict[Type, Type] = {F8E4M3: F16, F8E5M2: F16}
# Operands that are the sums of so many numbers of the matrix engine's: f32 of two of TF32.
DPAS_PARTS: dict[Type, int] = {F32: 2}

DEVICES: dict[str, Device] = {
    device.name: device
    for device in (
        Device(
            "pvc",
            "Xe-HPC",
            ("Data Center GPU Max 1100", "Data Center GPU Max 1550"),
            "pvc",
            wide_vnni=False,
            distances=False,
        ),
        Device("bmg", "Xe2-HPG", ("Arc B570", "Arc B580"), "bmg-g21"),
        Device("lnl", "Xe2-LPG", ("Core Ultra 200V",), "lnl-m"),
        Device("ptl", "Xe3-LPG", ("Core Ultra 300",), "ptl-h"),
    )
}


def device(name: str) -> Device:
    """The device called `name`. Raises `TargetError`, which lists those that are known."""
    if name not in DEVICES:
        known = ", ".join(f"{each.name} ({', '.join(each.products)})" for each in DEVICES.values())
        hint = did_you_mean(name, DEVICES)
        raise TargetError(f"unknown Xe device {name!r}", expected=known, found=name, hint=hint)
    return DEVICES[name]
