"""CPU instruction sets as data: what code generation may use and which register tiles pay.

Level: below `intrinsic`. Every choice the CPU emitters make (lane counts, fused multiply-add, dot instructions,
register tiles) is read from a `CpuFeatures` value; no emitter asks which machine it runs on.
Guarantees: values are immutable and hashable, so they can key a compilation cache; importing this module loads no LLVM.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from mltriton.records import NamedTuple, record


class RegisterTile(NamedTuple):
    """The block of C one micro-kernel call keeps in registers: `rows` x (`vectors` * lanes) elements."""

    rows: int
    vectors: int


@record(frozen=True)
class CpuFeatures:
    """One instruction set, as the code generator sees it.

    `vector_bits` and `vector_registers` describe the SIMD register file. `tiles` gives the register tile by element
    type of the multiplication ("f32", "f64", "i32", "i8", and "bf16" where that dot instruction may exist);
    `matrix_tiles` names the types that are multiplied by matrix tiles (AMX). `fast_bf16_dot` says whether the dot
    instruction multiplies more pairs of bf16 at a time than two units do of f32.
    `triple`, `cpu` and `attributes` are what LLVM's target machine is created with.
    """

    name: str
    triple: str
    cpu: str
    attributes: str
    vector_bits: int
    vector_registers: int
    tiles: tuple[tuple[str, RegisterTile], ...]
    has_fma: bool = False
    f16_conversion: bool = False
    bf16_dot: bool = False
    fast_bf16_dot: bool = False
    matrix_tiles: tuple[str, ...] = ()
    vnni: bool = False
    avx512: bool = False

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` bits one vector register holds."""
        return self.vector_bits // bits

    @property
    def f32_lanes(self) -> int:
        """How many f32 elements one vector register holds."""
        return self.lanes(32)

    @property
    def masks_by_sign(self) -> bool:
        """Whether masks are vectors of numbers whose signs count, as AVX2's."""
        return self.is_x86 and self.vector_bits == 256 and not self.avx512

    @property
    def is_x86(self) -> bool:
        """Whether this is an x86-64 instruction set."""
        return self.triple.startswith("x86_64")

    def tile(self, dtype: str) -> RegisterTile:
        """The register tile for multiplications of `dtype` elements; KeyError when there is none."""
        return dict(self.tiles)[dtype]


_X86 = "x86_64-unknown-linux-gnu"
_AVX2 = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+movbe"
_AVX512 = f"{_AVX2},+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512cd"


def _tiles(**tiles: tuple[int, int]) -> tuple[tuple[str, RegisterTile], ...]:
    return tuple((dtype, RegisterTile(*shape)) for dtype, shape in tiles.items())


# Of the tiles that leave registers for b and a broadcast, 6x4 and 8x3 vectors measured best on AVX-512
# (scripts/measure_dots.py); 6x4 divides blocks whose width is a power of two.
_TILES_AVX512 = _tiles(f32=(6, 4), f64=(6, 4), i32=(6, 4), bf16=(6, 4), i8=(6, 4))
_TILES_AVX2 = _tiles(f32=(6, 2), f64=(6, 2), i32=(4, 2), i8=(4, 2))
_TILES_SSE = _tiles(f32=(4, 2), f64=(4, 2), i32=(4, 2), i8=(4, 2))
_TILES_NEON = _tiles(f32=(8, 2), f64=(8, 2), i32=(8, 2), i8=(8, 2))

# Four tiles of a matrix unit's accumulators.
_TILES_AMX = _tiles(f32=(6, 4), f64=(6, 4), i32=(6, 4), bf16=(32, 2), i8=(32, 2), f16=(32, 2))

_AVX512_BASE = CpuFeatures(
    name="avx512",
    triple=_X86,
    cpu="skylake-avx512",
    attributes=_AVX512,
    vector_bits=512,
    vector_registers=32,
    tiles=_TILES_AVX512,
    has_fma=True,
    f16_conversion=True,
    avx512=True,
)
_AVX512_VNNI = replace(
    _AVX512_BASE, name="avx512-vnni", cpu="cascadelake", attributes=f"{_AVX512},+avx512vnni", vnni=True
)

_AVX512_BF16 = replace(
    _AVX512_VNNI,
    name="avx512-bf16",
    cpu="cooperlake",
    attributes=f"{_AVX512},+avx512vnni,+avx512bf16",
    bf16_dot=True,
    fast_bf16_dot=True,
)
_AMX = replace(
    _AVX512_BF16,
    name="amx",
    cpu="sapphirerapids",
    attributes=f"{_AVX512_BF16.attributes},+amx-tile,+amx-bf16,+amx-int8",
    tiles=_TILES_AMX,
    matrix_tiles=("bf16", "i8"),
    fast_bf16_dot=False,  # VDPBF16PS every second cycle on the cores that have tiles, two FMAs in each
)

FEATURES: dict[str, CpuFeatures] = {
    features.name: features
    for features in (
        _AVX512_BASE,
        _AVX512_VNNI,
        _AVX512_BF16,
        _AMX,
        replace(
            _AMX,
            name="amx-fp16",
            cpu="graniterapids",
            attributes=f"{_AMX.attributes},+amx-fp16",
            matrix_tiles=("bf16", "i8", "f16"),
        ),
        CpuFeatures(
            name="avx2",
            triple=_X86,
            cpu="haswell",
            attributes=_AVX2,
            vector_bits=256,
            vector_registers=16,
            tiles=_TILES_AVX2,
            has_fma=True,
            f16_conversion=True,
        ),
        CpuFeatures(
            name="sse",
            triple=_X86,
            cpu="x86-64",
            attributes="",
            vector_bits=128,
            vector_registers=16,
            tiles=_TILES_SSE,
        ),
        CpuFeatures(
            name="neon",
            triple="aarch64-unknown-linux-gnu",
            cpu="generic",
            attributes="+neon,+fp-armv8",
            vector_bits=128,
            vector_registers=32,
            tiles=_TILES_NEON,
            has_fma=True,
            f16_conversion=True,
        ),
    )
}
"""Every instruction set the CPU target knows, by name."""


def for_host(triple: str, cpu: str, flags: dict[str, bool]) -> CpuFeatures:
    """The table's best entry for a machine with LLVM feature `flags`, carrying the machine's own CPU name and flags."""
    attributes = ",".join(("+" if flags[flag] else "-") + flag for flag in sorted(flags))
    return replace(FEATURES[_best(triple, flags)], triple=triple, cpu=cpu, attributes=attributes)


def _best(triple: str, flags: dict[str, bool]) -> str:
    if triple.startswith(("aarch64", "arm64")):
        return "neon"

    def has(*names: str) -> bool:
        return all(flags.get(name, False) for name in names)

    if has("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd", "fma", "f16c"):
        if not has("avx512vnni"):
            return "avx512"
        if not has("avx512bf16"):
            return "avx512-vnni"
        if not has("amx-tile", "amx-bf16", "amx-int8"):
            return "avx512-bf16"
        return "amx-fp16" if has("amx-fp16") else "amx"
    return "avx2" if has("avx2", "fma", "f16c") else "sse"


@cache
def host() -> CpuFeatures:
    """This machine's instruction set, without matrix tiles where this process may not use them. Loads llvmlite on the
    first call.
    """
    from mltriton.targets.cpu.permission import tiles_permitted
    from mltriton.targets.llvm import toolchain

    triple, cpu, flags = toolchain.host_machine()
    has_tiles = flags.get("amx-tile", False)
    if has_tiles and not tiles_permitted():
        flags = {flag: has and not flag.startswith("amx") for flag, has in flags.items()}
    found = for_host(triple, cpu, flags)
    return replace(found, fast_bf16_dot=FEATURES["amx"].fast_bf16_dot) if has_tiles else found
