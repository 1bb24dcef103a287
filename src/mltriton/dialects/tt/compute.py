"""Dots, reductions and scans. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute, IntegerAttr
from mltriton.ir.definition import boolean, enum, integer, operand, region, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType, Type


class Dot(Operation):
    """`tt.dot %a, %b, %c`: c + a b, [.., M, K] x [.., K, N] (rank 2 or 3); accumulates in c's type. `tiling` is the
    user's hint.
    """

    name = "tt.dot"
    syntax = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` $precision^)? (`tiling` `=` $tiling^)? attr-dict `:` "
        "type($a) `*` type($b) `->` type($c, result)"
    )
    pure = True
    a = operand()
    b = operand()
    c = operand()
    precision = enum("precision", "ieee", text="inputPrecision")
    max_num_imprecise_acc = integer(0, text="maxNumImpreciseAcc")
    tiling = enum("tiling")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[2].type]


class Reduce(Operation):
    """`"tt.reduce"(%x, ...) ({combine}) {axis}`: combines along `axis`, one accumulator and one new element for each
    source; 1D gives a scalar.

    The region takes (acc..., new...) and ends with `tt.reduce.return`; it is associative and commutative.
    """

    name = "tt.reduce"
    region_ends = ("tt.reduce.return",)
    pure = True
    sources = variadic()
    axis = integer()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        axis = cast(IntegerAttr, attributes["axis"]).value
        return [reduced_type(cast(TensorType, value.type), axis) for value in operands]


def reduced_type(source: TensorType, axis: int) -> Type:
    """The type of a reduction along `axis`: without encoding; an encoded source needs the slice given by the layout
    pass.
    """
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return TensorType(shape, source.element) if shape else source.element


class ReduceReturn(Operation):
    """Ends the region of a reduce."""

    name = "tt.reduce.return"
    syntax = "$values attr-dict `:` type($values)"
    terminator = True
    values = variadic()


class Scan(Operation):
    """`"tt.scan"(%x, ...) ({combine}) {axis, reverse}`: running combination along `axis`; the region is associative,
    in order.
    """

    name = "tt.scan"
    region_ends = ("tt.scan.return",)
    pure = True
    sources = variadic()
    axis = integer()
    reverse = boolean()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [value.type for value in operands]


class ScanReturn(Operation):
    """Ends the region of a scan."""

    name = "tt.scan.return"
    syntax = "$values attr-dict `:` type($values)"
    terminator = True
    values = variadic()
