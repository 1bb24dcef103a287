"""Dots, reductions and scans. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute, IntegerAttr
from mltriton.ir.checks import axis, require, require_bytes, require_type, require_types, tensor, types_of
from mltriton.ir.definition import boolean, enum, integer, operand, region, variadic
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import FloatType, MemDescType, TensorType, Type, bit_width

__all__ = ["Dot", "Reduce", "ReduceReturn", "Scan", "ScanReturn", "reduced_type"]


class Dot(Operation, name="tt.dot", pure=True):
    """`tt.dot %a, %b, %c`: c + a b, [.., M, K] x [.., K, N] (rank 2 or 3); accumulates in c's type. `tiling` is the
    user's hint. Integers are signed; bytes of a or b may be read as unsigned (`a_unsigned`, `b_unsigned`). From level
    ttg on an operand may be a block in shared memory (`!ttg.memdesc`).
    """

    syntax = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` $precision^)? (`tiling` `=` $tiling^)? attr-dict `:` "
        "type($a) `*` type($b) `->` type($c, result)"
    )
    a = operand()
    b = operand()
    c = operand()
    precision = enum("precision", "ieee", text="inputPrecision")
    max_num_imprecise_acc = integer(0, text="maxNumImpreciseAcc")
    tiling = enum("tiling")
    a_unsigned = boolean()
    b_unsigned = boolean()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[2].type]

    def verify(self) -> None:
        a, b = (operand_block(value.type) or tensor(self, "an operand", value) for value in (self.a, self.b))
        c = tensor(self, "an operand", self.c)
        require_type(self, "the result", self.result.type, c)
        problem = dot_problem(a, b, c)
        if problem is not None:
            reject(self, problem, expected="[M, K] x [K, N] -> [M, N]", found=f"{a} x {b} -> {c}")
        require_bytes(self, a_unsigned=(self.a_unsigned, a.element), b_unsigned=(self.b_unsigned, b.element))


class Reduce(Operation, name="tt.reduce", pure=True):
    """`"tt.reduce"(%x, ...) ({combine}) {axis}`: combines along `axis`, one accumulator and one new element for each
    source; 1D gives a scalar.

    The region takes (acc..., new...) and ends with `tt.reduce.return`; it is associative and commutative.
    """

    region_ends = ("tt.reduce.return",)
    sources = variadic()
    axis = integer()
    combine = region()

    @property
    def combiner(self) -> type[Operation] | None:
        """What makes one of two elements, where one operation does; None elsewhere."""
        body = self.combine.block
        first = body.ops[0]
        is_whole = len(body.ops) == 2 and list(body.terminator.operands) == [*first.results]
        return type(first) if is_whole and set(first.operands) == set(body.arguments) else None

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        axis = cast(IntegerAttr, attributes["axis"]).value
        return [reduced_type(cast(TensorType, value.type), axis) for value in operands]

    def verify(self) -> None:
        verify_sources(self, self.sources, self.axis, self.combine.block)
        for value, result in zip(self.sources, self.results, strict=True):
            expected = reduced_type(cast(TensorType, value.type), self.axis)
            found = result.type.with_encoding(None) if isinstance(result.type, TensorType) else result.type
            expected = expected.with_encoding(None) if isinstance(expected, TensorType) else expected
            require(self, found is expected, "the result has another type", expected, result.type)


def reduced_type(source: TensorType, axis: int) -> Type:
    """The type of a reduction along `axis`: without encoding; an encoded source needs the slice given by the layout
    pass.
    """
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return TensorType(shape, source.element) if shape else source.element


class ReduceReturn(Operation, name="tt.reduce.return", terminator=True):
    """Ends the region of a reduce."""

    syntax = "$values attr-dict `:` type($values)"
    values = variadic()


class Scan(Operation, name="tt.scan", pure=True):
    """`"tt.scan"(%x, ...) ({combine}) {axis, reverse}`: running combination along `axis`; the region is associative,
    in order.
    """

    region_ends = ("tt.scan.return",)
    sources = variadic()
    axis = integer()
    reverse = boolean()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [value.type for value in operands]

    def verify(self) -> None:
        verify_sources(self, self.sources, self.axis, self.combine.block)
        require_types(self, "the results", types_of(self.results), types_of(self.sources))


class ScanReturn(Operation, name="tt.scan.return", terminator=True):
    """Ends the region of a scan."""

    syntax = "$values attr-dict `:` type($values)"
    values = variadic()


def verify_sources(op: Reduce | Scan, sources: list[Value], along: int, combine: Block) -> TensorType:
    """The sources have one shape; the region takes an accumulator and an element of each, and gives accumulators."""
    require(op, len(sources) > 0, "there is nothing to combine")
    first = tensor(op, "a source", sources[0])
    for value in sources:
        type = tensor(op, "a source", value)
        require(op, type.shape == first.shape, "the sources differ in shape", first, type)
    axis(op, along, first.rank)
    require(op, len(op.results) == len(sources), "one result a source", len(sources), len(op.results))
    elements = [cast(TensorType, value.type).element for value in sources]
    require_types(op, "the region's arguments", types_of(combine.arguments), [*elements, *elements])
    require_types(op, "the region's results", types_of(combine.terminator.operands), elements)
    return first


def operand_block(type: Type) -> TensorType | None:
    """The block that an operand of a dot is, in registers or in shared memory."""
    return TensorType(type.shape, type.element) if isinstance(type, MemDescType) else None


def dot_problem(a: TensorType, b: TensorType, c: TensorType) -> str | None:
    """Why blocks of these types do not multiply; None if they do."""
    if not (a.rank == b.rank == c.rank and a.rank in (2, 3)):
        return "operands have rank 2 or 3"
    batch = a.shape[:-2] == b.shape[:-2] == c.shape[:-2]
    if not (batch and a.shape[-1] == b.shape[-2] and c.shape[-2:] == (a.shape[-2], b.shape[-1])):
        return "the shapes do not multiply"
    if len({isinstance(type.element, FloatType) for type in (a, b, c)}) > 1:
        return "elements are all floats or all integers"
    mixed = bit_width(a.element) == bit_width(b.element) == 8
    return None if mixed or a.element is b.element else "the elements of the operands have one type, or 8 bits"
