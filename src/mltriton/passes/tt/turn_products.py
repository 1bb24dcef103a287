"""turn-products: a product whose right operand lies in an order that its instruction does not take is computed turned.

Level: tt. Takes any program and changes it in place. Some instructions read a right operand from shared memory only
where K lies along lines of memory, and a left one from registers whatever its order (`DotSize.k_major`). Where just the
right operand of a dot, which was loaded, lies otherwise, the transposes are multiplied in exchanged order, and the
result is transposed: behind the loop, where the dot adds to what a loop carries. Guarantees: the same sums; dots with
hints for their tiling, of too few rows for the instruction, and whose results each iteration takes stay as they are.
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.workload import adding_loop, number_of
from mltriton.dialects import arith, tt
from mltriton.dialects.scf_carried import carry_also, keep_for, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType
from mltriton.passes.ttg.dot_loads import along_k
from mltriton.targets.base import DotSize, TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of

EXCHANGED = (1, 0)
_RIGHT = (1,)  # the operands of `DotSize.k_major`, where the left one may lie in either order


class TurnProducts(Pass):
    """Multiply transposes."""

    name = "turn-products"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if is_warp_level(module):
            return module
        for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
            dots = [op for op in function.walk() if isinstance(op, tt.Dot)]
            dots = [dot for dot in dots if _fits(dot, _size(dot, spec), num_warps_of(module))]
            axes = AxisInfoAnalysis(function) if dots else None
            for dot in dots:
                if axes is not None and along_k(dot, axes, (0,)) and not along_k(dot, axes, (1,)):
                    _turn(dot)
        return module


def _size(dot: tt.Dot, spec: TargetSpec) -> DotSize | None:
    size = spec.dot.get(cast(TensorType, dot.a.type).element)
    return size.precise(dot.precision) if size is not None else None


def _fits(dot: tt.Dot, size: DotSize | None, warps: int) -> bool:
    """Whether the instruction could multiply the transposes of what was loaded, and the sum can be turned."""
    result = cast(TensorType, dot.result.type)
    if size is None or size.k_major != _RIGHT or "tiling" in dot.attributes or result.rank != 2:
        return False
    if adding_loop(dot) is None and not isinstance(dot.parent_op, tt.Func):  # Each iteration would turn a result.
        return False
    if not all(isinstance(x.defining_op, tt.Load | tt.DescriptorLoad) for x in (dot.a, dot.b)):
        return False
    rows, columns = result.shape[::-1]
    has_rows = any(rows == each * warps for each in (*size.fewer_rows, size.rows)) and warps % size.warps == 0
    return has_rows and columns >= size.columns and splat_of(_start(dot)) is not None


def _start(dot: tt.Dot) -> Value:
    """What a dot adds to at first."""
    loop = adding_loop(dot)
    return dot.c if loop is None else loop.inits[number_of(loop, dot.c)]


def _turn(dot: tt.Dot) -> None:
    loop, start = adding_loop(dot), _start(dot)
    turned = _transposed(cast(TensorType, dot.result.type))
    first = arith.filled(Builder().before(dot if loop is None else loop), cast(float, splat_of(start)), turned)
    if loop is None:
        dot.replace_by([_transpose(Builder().before(dot), _product(dot, first))])
        return
    number = number_of(loop, dot.c)
    argument, result = carry_also(loop, first)
    yield_also(loop.body.block, [_product(dot, argument)])
    block = loop.block
    assert block is not None
    behind = Builder().before(block.ops[block.position(loop) + 1])
    loop.results[number].replace_by(_transpose(behind, result))
    loop.body.block.terminator.set_operand(number, dot.c)
    dot.erase()
    keep_for(loop, [index for index in range(len(loop.inits)) if index != number])


def _product(dot: tt.Dot, start: Value) -> Value:
    """The product of the transposes, added to what is turned already."""
    builder = Builder().before(dot)
    b, a = (_transpose(builder, operand) for operand in (dot.b, dot.a))
    made = builder.insert(tt.Dot([b, a, start], [start.type], dot.attributes, (), dot.loc, dot.segments)).result
    made.hint = dot.result.hint
    return made


def _transpose(builder: Builder, value: Value) -> Value:
    return builder.emit(tt.Trans, value, order=EXCHANGED)


def _transposed(block: TensorType) -> TensorType:
    return block.with_shape(block.shape[::-1])
