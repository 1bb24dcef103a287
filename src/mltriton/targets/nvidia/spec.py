"""NVIDIA's GPUs as passes see them: blocks in registers of 32 lanes, products by `mma.sync` and `wgmma`.

Level: data, made from `devices.py`.
"""

from __future__ import annotations

from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, I64, Type
from mltriton.layouts.nvidia import mma_sync, wgmma
from mltriton.layouts.shared import copied
from mltriton.targets.base import (
    DotSize,
    Home,
    RegisterMode,
    Storage,
    TargetSpec,
    TensorCopies,
    WarpGroups,
)
from mltriton.targets.multiprocessor import Multiprocessor
from mltriton.targets.nvidia.devices import RESERVED_BYTES, Device, device, variant_here
from mltriton.targets.nvidia.facts import WARP

PIPELINE = (
    "inline,canonicalize,cse,fold-batches,hoist-descriptors,rewrite-tensor-pointers,canonicalize,combine,"
    "reorder-broadcast,"
    "split-uniform-increments,turn-products,hoist-transposes,dce,fold-transposes,convert-dot-operands,take-turns,"
    "canonicalize,cse,licm,dce,flush-powers,scale-powers,fuse-exponents,dce,check-warp-level",
    "assign-layouts,cse,assign-lanes,dce,turn-in-shared-memory,dce,specialize-warps,pipeline-loads,copy-blocks,"
    "keep-loads,load-ahead,dce,cse,delay-dots,delay-slots,keep-slots,start-dots,release-slots,merge-reductions,verify-encodings",
    "distribute-to-warps,store-by-warps,lower-cross-warp,fence-shared-memory,assign-lanes,delay-lane-sums,canonicalize,"
    "cse,licm,dce,verify-encodings",
    "fuse-multiply-add,pair-products,dce,match-target-size,canonicalize,cse,dce,demote-sums,schedule-loads,"
    "check-registers,alternate-buffers,verify-encodings,allocate-shared-memory",
)
LANE_REGISTER = 4  # bytes
OVERFULL = 1275  # of a lane: ptxas takes 3 s for products of 1105 registers (f16), minutes for 1293 (f32)
COPY_BYTES = (4, 8, 16)  # of a lane's copy from global to shared memory
# Products added up by one `mma.sync`, of which 16 rows and 8 columns come out, by the operands.
DEPTHS: dict[Type, int] = {F16: 16, BF16: 16, F32: 8, I8: 32, F64: 8}
DEPTHS_OF_FP8: dict[Type, int] = {F8E4M3: 32, F8E5M2: 32}
# What groups of four warps multiply, and the operands of which K lies along lines of memory.
K_MAJOR = {F16: (), BF16: (), F32: (1,), I8: (0, 1), F8E4M3: (0, 1), F8E5M2: (0, 1)}
PARTS: dict[Type, int] = {F32: 2}  # summands of an operand that may not be rounded to TF32
# What the engine combines blocks in memory with.
UPDATES: dict[str, tuple[Type, ...]] = {
    "add": (I32, I64, F32, F16, BF16),
    **dict.fromkeys(("min", "max", "umin", "umax", "and", "or", "xor"), (I32, I64)),
}


def spec(variant: str) -> TargetSpec:
    """The description of a device; the one at hand where the variant is ""."""
    of = device(variant or variant_here())
    return TargetSpec(
        name=f"cuda:{of.name}",
        storage=Storage.REGISTERS,
        warp_size=WARP,
        max_warps=of.max_warps,
        dot={
            element: _dot(of, element, depth) for element, depth in (DEPTHS | (DEPTHS_OF_FP8 if of.fp8 else {})).items()
        },
        dot_through={} if of.fp8 else {F8E4M3: F16, F8E5M2: F16},
        register_bytes=WARP * LANE_REGISTER,
        register_modes=_register_modes(of),
        overfull=OVERFULL,
        shared_bytes=of.shared_bytes,
        multiprocessor=Multiprocessor(of.all_shared_bytes, RESERVED_BYTES, of.all_registers, number=of.multiprocessors),
        copy_bytes=COPY_BYTES,
        tensor_copies=TensorCopies(copied, updates=UPDATES) if of.tensor_copies else None,
        warp_groups=WarpGroups(4, of.all_registers, of.registers) if of.warp_groups else None,
        swizzles=True,
        repeats_loads=True,
        pipeline=PIPELINE,
        has_lanes=True,
    )


def _dot(of: Device, element: Type, depth: int) -> DotSize:
    """What multiplies such elements: a warp, or where there are rows enough a group of four."""
    by_warp = DotSize(16, 8, depth, parts=PARTS.get(element, 1), encoding=mma_sync)
    if not of.warp_groups or element not in K_MAJOR:
        return by_warp
    return DotSize(
        256,
        256,
        depth,
        warps=4,
        a=Home.EITHER,
        b=Home.SHARED,
        asynchronous=True,
        fewer_rows=(16, 32),
        fewer_columns=(16, 32, 64, 128),
        encoding=wgmma,
        otherwise=by_warp,
        k_major=K_MAJOR[element],
        rounds=element is F32,
    )


def _register_modes(of: Device) -> tuple[RegisterMode, ...]:
    """How many registers a lane may have of those that all lanes of a program share, for more and more warps."""
    warps = (of.max_warps // 4, of.max_warps // 2, of.max_warps)
    return tuple(RegisterMode(min(of.registers, of.all_registers // (WARP * count)), count) for count in warps)
