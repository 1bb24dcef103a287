"""Xe GPUs as passes see them: blocks in registers, DPAS, 2D block accesses.

Level: data, made from `devices.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mltriton.runtime.alignment import ALIGNMENT
from mltriton.targets.base import BlockIO, DotSize, RegisterMode, RunTimeChecks, Storage, TargetSpec, WideWarps
from mltriton.targets.xe.block_limits import MOST_ROW_BYTES, Access, Block, broken_limits, shapes
from mltriton.targets.xe.cache_hints import controls
from mltriton.targets.xe.devices import DPAS_PARTS, DPAS_SHAPES, DPAS_THROUGH, Device, DpasShape, device
from mltriton.targets.xe.layouts.block_loads import cheapest_block, lane_cost
from mltriton.targets.xe.layouts.encodings import dpas
from mltriton.targets.xe.layouts.prefetches import prefetch_encoding
from mltriton.targets.xe.layouts.region_moves import change_cost
from mltriton.targets.xe.options import CODEGENS

if TYPE_CHECKING:
    from mltriton.analysis.block_io import BlockOperation
    from mltriton.dialects.tt import Func
    from mltriton.ir.types import Type

PIPELINE = (
    "inline,rewrite-descriptor-reduces,canonicalize,cse,fold-batches,raise-block-pointers,combine,reorder-broadcast,"
    "hoist-transposes,dce,fold-transposes,convert-dot-operands,canonicalize,cse,licm,dce,check-warp-level,"
    "normalize-block-pointers,canonicalize",
    "assign-layouts,cse,assign-lanes,prefetch,cse,verify-encodings",
    "distribute-to-warps,lower-cross-warp,assign-lanes,canonicalize,cse,licm,dce,split-barriers,verify-encodings",
    "match-target-size,canonicalize,cse,dce,schedule-loads,"
    "hoist-block-offsets,choose-registers,verify-encodings,allocate-shared-memory,allocate-addresses,guard-block-io",
)
WIDE_CODEGENS = ("simt",)
# Rows of a smaller matrix product, by steps of k: a row of few steps fills only a part of the lanes.
FEWER_ROWS = {8: (2, 4)}
FEWER = (1, 2, 4)


def block_io(of: Device) -> BlockIO:
    """The limits of a device's block loads and stores that hold for elements of every size."""
    loads, stores = shapes(of, Access.LOAD).values(), shapes(of, Access.STORE).values()
    return BlockIO(
        max_rows=max(shape.rows.most for shape in loads),
        max_row_bytes=MOST_ROW_BYTES,
        max_blocks=max(shape.blocks.most for shape in loads),
        pitch_multiple=of.pitch_multiple,
        base_alignment=of.base_alignment,
        host_alignment=ALIGNMENT,
        store_rows=max(shape.rows.most for shape in stores),
        caching=controls,
        is_legal=lambda size: not broken_limits(of, Block(Access(size.access), *size[1:])),
        run_time_checks=partial(_run_time_checks, of),
        choose=cheapest_block,
        lane_cost=lane_cost,
        distances=of.distances,
        prefetched=prefetch_encoding,
    )


def dot_size(element: Type, size: DpasShape) -> DotSize:
    """An instruction of the matrix engine."""
    rows = FEWER_ROWS.get(size.k, FEWER)
    return DotSize(*size, fewer_rows=rows, parts=DPAS_PARTS.get(element, 1), encoding=dpas)


def _run_time_checks(of: Device, function: Func, warps: int) -> Callable[[BlockOperation, bool | None], RunTimeChecks]:
    """What a device requires of the matrices that a function accesses."""
    from mltriton.targets.simt.kernel import divisors  # A launch from the cache needs none of it.
    from mltriton.targets.xe.llvm.surfaces import Surfaces

    return Surfaces(function, of, warps, divisors(function)).run_time_checks


def spec(variant: str) -> TargetSpec:
    """The description of a device."""
    of = device(variant)
    widest = max(of.sub_group_sizes)
    return TargetSpec(
        name=f"xe:{of.name}",
        storage=Storage.REGISTERS,
        warp_size=of.simd,
        wide_warps=WideWarps(widest, of.workgroup_lanes // widest, WIDE_CODEGENS),
        max_warps=of.max_warps,
        dot={element: dot_size(element, size) for element, size in DPAS_SHAPES.items()},
        dot_through=DPAS_THROUGH,
        block_load=block_io(of),
        register_bytes=of.register_bytes,
        register_modes=tuple(RegisterMode(*mode) for mode in of.grf_modes),
        shared_bytes=of.shared_bytes,
        pipeline=PIPELINE,
        has_lanes=True,
        change_cost=change_cost,
        codegens=CODEGENS,
    )
