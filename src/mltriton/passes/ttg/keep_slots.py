"""keep-slots: a slot whose blocks are only added up goes back to its producer an iteration later.

Level: ttg, after `specialize-warps`, before `start-dots`. Takes loops of the program's own warps that only add up
products of blocks in slots, and changes them in place: the arrival at the end of an iteration is for the slot of the
iteration before, and the last one stands behind the loop. So a product may go on into the next iteration (`KEPT`), as
where all warps copy: the next one is started before it is done. Guarantees: every slot is given back once, when the
products that read it are waited for. Loops whose slots something else reads stay as they are, and programs of several
groups of warps, of which one multiplies while another waits (GEMM of 8192 in f16: the library's 1507 us, and 1783 with
slots kept; blocks of 128 x 128 x 64 of four warps 2186 and 1759).
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.workload import adding_loop
from mltriton.dialects import arith, scf, tt, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import BlockArgument, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.passes.ttg.copy_blocks import window_at
from mltriton.passes.ttg.release_slots import reads_of
from mltriton.passes.ttg.start_dots import KEPT, is_asynchronous
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of


class KeepSlots(Pass):
    """Give back slots an iteration later."""

    name = "keep-slots"

    def run(self, module: Module) -> Module:
        spec, warps = spec_of(module), num_warps_of(module)
        if spec.warp_groups is None or warps > spec.warp_groups.warps:
            return module
        for op in list(module.walk()):
            if isinstance(op, scf.For) and (found := _arrivals(op, spec)):
                for arrival, window in found:
                    _delay(op, arrival, window)
                op.attributes[KEPT] = IntegerAttr(1, I32)
        return module


def _arrivals(loop: scf.For, spec: TargetSpec) -> list[tuple[ttng.ArriveBarrier, ttg.MemDescSubview]]:
    """Where a loop gives back its slots, and the windows that say which; nothing where it has others than such of which
    it only adds up products.
    """
    found = list[tuple[ttng.ArriveBarrier, ttg.MemDescSubview]]()
    for op in loop.body.block.ops:
        if isinstance(op, ttng.ArriveBarrier):
            window = op.barrier.defining_op
            slot = window.offsets[0] if isinstance(window, ttg.MemDescSubview) else None
            if op.pred is not None or not isinstance(slot, BlockArgument) or slot.owner is not loop.body.block:
                return []
            if not all(_is_added(read, loop, spec) for read in reads_of(slot)):
                return []
            found.append((op, cast(ttg.MemDescSubview, window)))
    return found


def _is_added(read: object, loop: scf.For, spec: TargetSpec) -> bool:
    return isinstance(read, tt.Dot) and is_asynchronous(read, spec) and adding_loop(read) is loop


def _delay(loop: scf.For, arrival: ttng.ArriveBarrier, window: ttg.MemDescSubview) -> None:
    block, body = loop.block, loop.body.block
    assert block is not None
    slot = window.offsets[0]
    before, last = carry_also(loop, loop.inits[cast(BlockArgument, slot).index - 1])
    yield_also(body, [slot])
    builder = Builder().before(arrival)
    builder.loc = arrival.loc
    began = builder.emit(arith.CmpI, loop.lower, loop.counter, predicate="slt")
    _arrive(builder, arrival, window, before, began)
    arrival.erase()
    behind = Builder().before(block.ops[block.position(loop) + 1])
    behind.loc = arrival.loc
    _arrive(behind, arrival, window, last, behind.emit(arith.CmpI, loop.lower, loop.upper, predicate="slt"))


def _arrive(
    builder: Builder, arrival: ttng.ArriveBarrier, window: ttg.MemDescSubview, slot: Value, happens: Value
) -> None:
    builder.create(ttng.ArriveBarrier, window_at(builder, window.memory, slot), happens, count=arrival.count)
