"""`ttg.warp_specialize`: one branch on the warp's number, registers handed over, barriers of the warps of one side.

Level: intrinsic -> llvm. Warps from the program's own number on belong to the partition. The number comes from lane 0,
so that ptxas sees a branch that all lanes take alike; `setmaxnreg` stands at the beginning of either side, where all
warps of each group come by. One lane runs the partition. Source: PTX ISA 8.7, "setmaxnreg", "barrier{.cta}".
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import gpu, ttg, ttng
from mltriton.ir.operation import Block
from mltriton.targets.llvm.types import I32, VOID, Value, constant
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.facts import WARP
from mltriton.targets.nvidia.tensor_copies import ELECTED
from mltriton.targets.simt.context import Emitter, Rules

_OWN = 1  # the number of the barrier at which the program's own warps meet


def _specialize(e: Emitter, op: ttg.WarpSpecialize) -> None:
    f = e.function
    number = e.calls.shuffle(f, e.calls.warp(f), constant(I32, 0))

    def default() -> Sequence[Value]:
        _registers(e, "inc", op.default_registers)
        _side(e, op.default.block)
        return []

    def partition() -> Sequence[Value]:
        _registers(e, "dec", op.partition_registers)
        with f.when(f.icmp("eq", number, e.warps)):
            (word,) = ptx(f, ELECTED + " selp.b32 $0, 1, 0, elected; }", [I32])
            with f.when(f.icmp("ne", word, 0)):
                _side(e, op.partition.block)
        return []

    f.choose(f.icmp("ult", number, e.warps), default, partition)


def _registers(e: Emitter, kind: str, count: int) -> None:
    if count:
        ptx(e.function, f"setmaxnreg.{kind}.sync.aligned.u32 {count};", [])


def _side(e: Emitter, block: Block) -> None:
    e.shared_accesses.forget(met=False)
    e.operations(block.ops[:-1])


def _barrier(e: Emitter, op: gpu.Barrier) -> None:
    if op.ancestor(ttg.WarpSpecialize) is None:
        e.calls.barrier(e.function)
    else:
        count = constant(I32, e.warps * WARP)
        e.function.declared_call("llvm.nvvm.barrier.cta.sync.aligned.count", VOID, constant(I32, _OWN), count)
    e.shared_accesses.forget(met=True)


def _grid_size(e: Emitter, op: ttng.GridSize) -> Value:
    """The last parameter: programs that take turns assert nothing."""
    assert not e.assertions, "a record of assertions would be the last parameter"
    return e.function.parameters[-1]


RULES: Rules = {ttg.WarpSpecialize: _specialize, gpu.Barrier: _barrier, ttng.GridSize: _grid_size}
