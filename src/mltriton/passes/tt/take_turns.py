"""take-turns: as many programs as run at a time compute the blocks of all programs in turn.

Level: tt, after `hoist-descriptors`. Takes a program whose one loop of products only adds up blocks that an engine
copies, and that has a multiprocessor to itself, and changes it in place: what depends on the program's number along x
becomes the body of a loop over the numbers from its own on, as far apart as programs run (`ttng.grid_size` is how many
there are). So a producer (`specialize-warps`) starts the copies for one block while the block before it is stored, and
nobody waits for a program to end and the next to begin. Guarantees: the same effects for a grid of any size, whether
all its programs run or fewer along x; programs do not wait for each other, nor say anything but by stores.
The module's attribute `ttg.takes-turns` tells launches that fewer will do.
Source: Thakkar et al., CUTLASS 3, "Efficient GEMM", persistent kernels.
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.residency import comes_late, programs_at_once
from mltriton.analysis.workload import only_adds_up, products_of
from mltriton.dialects import scf, tt, ttng
from mltriton.ir.attributes import IntegerAttr, integer_in, string_in
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, TensorType, byte_width
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import TAKES_TURNS, num_warps_of, spec_of

_DONE = (tt.Load, tt.DescriptorLoad, tt.Store, tt.DescriptorStore, scf.For, scf.If, scf.Yield, tt.Return)
_GROUPS = 2  # of warps at least: one alone multiplies no block that fills a multiprocessor
# Of an iteration's products at least: programs of 128 x 64 x 64, 256 cycles, drift apart, and read less of what others
# have read (5 stages, 8192 in f16: 2952 us in turn, 2846 a program for each block; of 128 x 128 x 64 1660 and 1917).
_CYCLES = 512


class TakeTurns(Pass):
    """Compute blocks in turn."""

    name = "take-turns"

    def run(self, module: Module) -> Module:
        spec, asked = spec_of(module), string_in(module.attributes, "ttg.specialize-warps", "none")
        if spec.warp_groups is None or is_warp_level(module) or asked != "auto":
            return module
        warps, stages = num_warps_of(module), integer_in(module.attributes, "ttg.num-stages", 2)
        functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
        if len(functions) == 1 and _qualifies(functions[0], spec, warps, stages):
            _loop_over_programs(functions[0])
            module.attributes[TAKES_TURNS] = IntegerAttr(1, I32)
        return module


def _qualifies(function: tt.Func, spec: TargetSpec, warps: int, stages: int) -> bool:
    """Whether a function is such a program."""
    assert spec.warp_groups is not None
    if warps < _GROUPS * spec.warp_groups.warps or not all(_is_plain(op) for op in function.body.block.ops):
        return False
    loops = [op for op in function.walk() if isinstance(op, scf.For)]
    adding = [loop for loop in loops if loop.parent_op is function and only_adds_up(loop)]
    dots = [op for op in function.walk() if isinstance(op, tt.Dot)]
    if len(loops) != 1 or adding != loops or loops[0].warp_specialize or loops[0].num_stages:
        return False
    loads = [op for op in loops[0].walk() if isinstance(op, tt.Load | tt.DescriptorLoad)]
    if spec.tensor_copies is None or products_of(loops[0]) < _CYCLES * spec.tensor_copies.products:
        return False
    copied = all(isinstance(load, tt.DescriptorLoad) and _is_described(load) for load in loads)
    return copied and all(_multiplies_in_groups(dot, spec) for dot in dots) and _is_alone(loops[0], spec, warps, stages)


def _is_plain(op: Operation) -> bool:
    """Whether an operation of a program leaves others alone: it is computed, loaded or stored, in no order but its
    own.
    """
    inner = [each for each in op.walk() if not each.pure]
    return all(isinstance(each, _DONE) and not (isinstance(each, tt.Load) and each.volatile) for each in inner)


def _is_described(load: tt.DescriptorLoad) -> bool:
    return isinstance(load.desc.defining_op, ttng.TensorMap)


def _multiplies_in_groups(dot: tt.Dot, spec: TargetSpec) -> bool:
    """Whether groups of warps multiply such elements, however they lie."""
    size = spec.dot.get(cast(TensorType, dot.a.type).element)
    return size is not None and size.asynchronous and not size.k_major


def _is_alone(loop: scf.For, spec: TargetSpec, warps: int, stages: int) -> bool:
    """Whether two programs that copy for themselves have no room beside each other, or copy too late."""
    loads = [cast(TensorType, op.result.type) for op in loop.walk() if isinstance(op, tt.DescriptorLoad)]
    copied = sum(block.size * byte_width(block.element) for block in loads)
    beside = programs_at_once(loop.carried, stages * copied, warps, spec)
    return beside is not None and (beside < 2 or comes_late(loop, copied, spec, warps, stages))


def _loop_over_programs(function: tt.Func) -> None:
    """Put what depends on the program's number along x into a loop over the numbers of programs."""
    body = function.body.block
    for op in [op for op in function.walk() if isinstance(op, tt.GetNumPrograms) and op.axis == "x"]:
        op.replace_by([Builder().before(op).emit(ttng.GridSize)])
    inside = _inside(body)
    builder = Builder().before(body.terminator)
    for op in inside:
        body.ops.remove(op)
    first, step = builder.emit(tt.GetProgramId, axis="x"), builder.emit(tt.GetNumPrograms, axis="x")
    count = builder.emit(ttng.GridSize)
    turn = Block([I32])
    for op in inside:
        turn.append(op)
    with builder.inside(turn):
        builder.create(scf.Yield, [], result_types=[])
    builder.create(scf.For, first, count, step, [], result_types=[], regions=[Region([turn])])
    for op in [op for op in function.walk() if isinstance(op, tt.GetProgramId) and op.axis == "x"]:
        if op.result is not first:
            op.replace_by([turn.arguments[0]])


def _inside(body: Block) -> list[Operation]:
    """What is done for each number: all but what is computed of the arguments alone."""
    outside, inside = set[Value](body.arguments), list[Operation]()
    for op in body.ops[:-1]:
        numbered = isinstance(op, tt.GetProgramId) and op.axis == "x"
        if op.pure and not op.regions and not numbered and all(operand in outside for operand in op.operands):
            outside.update(op.results)
        else:
            inside.append(op)
    return inside
