"""`tt`: what a Triton kernel says, on whole blocks.

Level: tt to intrinsic (shapes shrink from level to level: a block, a warp's share, one instruction's tile). Names and
operand order are upstream Triton's (TritonOps.td), so that upstream `.ttir` text loads; the block-pointer operations
that upstream removed are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects.arith import Binary, Cast, Elementwise, Unary
from mltriton.ir.attributes import Attribute, DenseArrayAttr, IntegerAttr
from mltriton.ir.definition import (
    attribute,
    boolean,
    enum,
    integer,
    integers,
    operand,
    optional,
    region,
    string,
    type_attribute,
    variadic,
)
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import (
    I32,
    FunctionType,
    PointerType,
    TensorDescType,
    TensorType,
    Type,
    element_type,
    like,
)

Attributes = dict[str, Attribute]


class Func(Operation):
    """`tt.func public @name(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {...}`. `arg_attrs` is an array of
    dictionaries.
    """

    name = "tt.func"
    syntax = "custom<func>"
    isolated = True
    sym_name = string()
    function_type: FunctionType = cast(FunctionType, type_attribute())
    sym_visibility = string("public")
    arg_attrs = attribute()
    body = region()


class Return(Operation):
    """`tt.return`: ends a function."""

    name = "tt.return"
    syntax = "attr-dict ($values^ `:` type($values))?"
    terminator = True
    values = variadic()


class Call(Operation):
    """`tt.call @callee(%x) : (i32) -> i32`."""

    name = "tt.call"
    syntax = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, results)"
    reads = True
    writes = True
    callee = attribute()
    arguments = variadic()


class _Coordinate(Operation):
    """Base: reads one coordinate of the launch grid."""

    syntax = "$axis attr-dict `:` type(result)"
    old_syntax = ("attr-dict `:` type(result)",)
    pure = True
    axis = enum("axis")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [I32]


class GetProgramId(_Coordinate):
    """`tt.get_program_id x : i32`."""

    name = "tt.get_program_id"


class GetNumPrograms(_Coordinate):
    """`tt.get_num_programs x : i32`."""

    name = "tt.get_num_programs"


class MakeRange(Operation):
    """`tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>`: start, start + 1, ..., end - 1."""

    name = "tt.make_range"
    syntax = "attr-dict `:` type(result)"
    pure = True
    start = integer()
    end = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        start, end = (cast(IntegerAttr, attributes[name]).value for name in ("start", "end"))
        return [TensorType((end - start,), I32)]


class Splat(Operation):
    """`tt.splat %x : i32 -> tensor<128xi32>`: a scalar as every element."""

    name = "tt.splat"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()


class Unsplat(Operation):
    """`tt.unsplat %x : tensor<1xi32>`: the only element."""

    name = "tt.unsplat"
    syntax = "$source attr-dict `:` type($source)"
    pure = True
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [element_type(operands[0].type)]


class ExpandDims(Operation):
    """`tt.expand_dims %x {axis = 1 : i32}`: a new dimension of size 1."""

    name = "tt.expand_dims"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        axis = cast(IntegerAttr, attributes["axis"]).value
        return [TensorType((*source.shape[:axis], 1, *source.shape[axis:]), source.element)]


class Broadcast(Operation):
    """`tt.broadcast %x : tensor<128x1xi32> -> tensor<128x64xi32>`: dimensions of size 1 are repeated."""

    name = "tt.broadcast"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()


class Reshape(Operation):
    """`tt.reshape %x`: the same elements in row-major order in another shape (`allow_reorder`: in any order)."""

    name = "tt.reshape"
    syntax = "$source (`allow_reorder` $allow_reorder^)? attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()
    allow_reorder = boolean()


class Trans(Operation):
    """`tt.trans %x {order = array<i32: 1, 0>}`: dimension i of the result is dimension order[i] of the source."""

    name = "tt.trans"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()
    order = integers()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        order = cast(DenseArrayAttr, attributes["order"]).values
        return [TensorType(tuple(source.shape[i] for i in order), source.element)]


class Join(Operation):
    """`tt.join %a, %b`: a new last dimension of size 2."""

    name = "tt.join"
    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    pure = True
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType((*source.shape, 2), source.element)]


class Split(Operation):
    """`tt.split %x`: the two halves of the last dimension, which has size 2."""

    name = "tt.split"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType(source.shape[:-1], source.element)] * 2


class Cat(Operation):
    """`tt.cat %a, %b`: one after the other along dimension 0 (elements of 1D blocks may come in any order in
    upstream; here in order).
    """

    name = "tt.cat"
    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    pure = True
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        lhs, rhs = (cast(TensorType, value.type) for value in operands)
        return [TensorType((lhs.shape[0] + rhs.shape[0], *lhs.shape[1:]), lhs.element)]


class Gather(Operation):
    """`tt.gather %src[%indices] {axis}`: element [.., i, ..] is src[.., indices[.., i, ..], ..] along the axis."""

    name = "tt.gather"
    syntax = "$source `[` $indices `]` attr-dict `:` functional-type(operands, results)"
    pure = True
    source = operand()
    indices = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [like(operands[1].type, element_type(operands[0].type))]


class AddPtr(Operation):
    """`tt.addptr %p, %offset`: pointers moved by `offset` elements (i32 or i64, scalar with scalar, tensor with
    tensor).
    """

    name = "tt.addptr"
    syntax = "$ptr `,` $offset attr-dict `:` type($ptr, result) `,` type($offset)"
    pure = True
    elementwise = True
    ptr = operand()
    offset = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [operands[0].type]


class _Memory(Operation):
    """Base of loads and stores: hints that never change the result."""

    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")
    volatile = boolean(text="isVolatile")


class Load(_Memory):
    """Load from a pointer, a tensor of pointers (mask: i1, false elements become `other` or unspecified), or a block
    pointer (`boundary_check` lists the dimensions that are checked; elements outside become 0, or NaN with
    `padding`).
    """

    name = "tt.load"
    syntax = (
        "$ptr (`,` $mask^)? (`,` $other^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type(result)",)
    reads = True
    ptr = operand()
    mask = optional()
    other = optional()
    boundary_check = integers(text="boundaryCheck")
    padding = enum("padding")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [loaded_type(operands[0].type)]


class Store(_Memory):
    """Store to a pointer, a tensor of pointers (where the mask is true), or a block pointer (inside the tensor, along
    `boundary_check`).
    """

    name = "tt.store"
    syntax = (
        "$ptr `,` $value (`,` $mask^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr `,` $value (`,` $mask^)? attr-dict `:` type($value)",)
    writes = True
    ptr = operand()
    value = operand()
    mask = optional()
    boundary_check = integers(text="boundaryCheck")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return []


def loaded_type(pointer: Type) -> Type:
    """What a load from a value of type `pointer` gives."""
    if isinstance(pointer, TensorType):
        return pointer.with_element(cast(PointerType, pointer.element).pointee)
    return cast(PointerType, pointer).pointee


class MakeTensorPtr(Operation):
    """`tt.make_tensor_ptr %base, [%shape], [%strides], [%offsets] {order}`: a block pointer. Shape and strides are
    i64, offsets i32, all in elements.
    """

    name = "tt.make_tensor_ptr"
    syntax = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` "
        "short<tt.ptr>(result)"
    )
    pure = True
    base = operand()
    shape = variadic()
    strides = variadic()
    offsets = variadic()
    order = integers()


class Advance(Operation):
    """`tt.advance %p, [%offsets]`: a block pointer moved by i32 offsets in elements."""

    name = "tt.advance"
    syntax = "$ptr `,` `[` $offsets `]` attr-dict `:` short<tt.ptr>($ptr, result)"
    pure = True
    ptr = operand()
    offsets = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [operands[0].type]


class MakeTensorDesc(Operation):
    """`tt.make_tensor_descriptor %base, [%shape], [%strides]`: shape i32, strides i64 in elements (the last one is
    1); `padding` for elements outside.
    """

    name = "tt.make_tensor_descriptor"
    syntax = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` "
        "short<tt.ptr>($base) `,` short<tt.tensordesc>(result)"
    )
    pure = True
    base = operand()
    shape = variadic()
    strides = variadic()
    padding = enum("padding", "pad_zero")


class DescriptorLoad(Operation):
    """`tt.descriptor_load %desc[%indices]`: the block at i32 `indices`; elements outside the tensor are the padding."""

    name = "tt.descriptor_load"
    old_names = ("tt.experimental_descriptor_load",)
    syntax = (
        "$desc `[` $indices `]` any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($desc) `->` type(result)"
    )
    reads = True
    desc = operand()
    indices = variadic()
    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [cast(TensorDescType, operands[0].type).block]


class DescriptorStore(Operation):
    """`tt.descriptor_store %desc[%indices], %value`: elements outside the tensor are dropped."""

    name = "tt.descriptor_store"
    old_names = ("tt.experimental_descriptor_store",)
    syntax = "$desc `[` $indices `]` `,` $value attr-dict `:` type($desc) `,` type($value)"
    writes = True
    desc = operand()
    value = operand()
    indices = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return []


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
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [operands[2].type]


class Reduce(Operation):
    """`"tt.reduce"(%x, ...) ({combine}) {axis}`: combines along `axis`, one accumulator and one new element for each
    source; 1D gives a scalar.

    The region takes (acc..., new...) and ends with `tt.reduce.return`; it is associative and commutative.
    """

    name = "tt.reduce"
    pure = True
    sources = variadic()
    axis = integer()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
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
    pure = True
    sources = variadic()
    axis = integer()
    reverse = boolean()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [value.type for value in operands]


class ScanReturn(Operation):
    """Ends the region of a scan."""

    name = "tt.scan.return"
    syntax = "$values attr-dict `:` type($values)"
    terminator = True
    values = variadic()


class AtomicRMW(Operation):
    """`tt.atomic_rmw fadd, acq_rel, gpu, %ptr, %value, %mask`: gives the old value (unspecified where masked off)."""

    name = "tt.atomic_rmw"
    syntax = (
        "$kind `,` $sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` "
        "functional-type(operands, results)"
    )
    reads = True
    writes = True
    kind = enum("rmw", text="atomic_rmw_op")
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    value = operand()
    mask = optional()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [operands[1].type]


class AtomicCAS(Operation):
    """`tt.atomic_cas acq_rel, gpu, %ptr, %cmp, %value`: gives the old value."""

    name = "tt.atomic_cas"
    syntax = "$sem `,` $scope `,` $ptr `,` $cmp `,` $value attr-dict `:` functional-type(operands, results)"
    reads = True
    writes = True
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    cmp = operand()
    value = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [operands[2].type]


class Bitcast(Cast):
    """The same bits as another type of the same width, pointers included."""

    name = "tt.bitcast"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class IntToPtr(Cast):
    """i64 to a pointer."""

    name = "tt.int_to_ptr"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class PtrToInt(Cast):
    """A pointer to i64."""

    name = "tt.ptr_to_int"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class FpToFp(Cast):
    """Float to float where fp8 takes part or the rounding is chosen."""

    name = "tt.fp_to_fp"
    syntax = "$source attr-dict (`,` `rounding` `=` $rounding^)? `:` type($source) `->` type(result)"
    rounding = enum("rounding")


class MulhiUI(Binary):
    """The upper half of the unsigned product."""

    name = "tt.mulhiui"
    commutative = True


class PreciseSqrt(Unary):
    """Square root, correctly rounded."""

    name = "tt.precise_sqrt"


class PreciseDivF(Binary):
    """Float division, correctly rounded."""

    name = "tt.precise_divf"


class ClampF(Elementwise):
    """min(max(x, low), high); NaN stays NaN with `propagate_nan`, becomes `low` without."""

    name = "tt.clampf"
    syntax = (
        "$x `,` $low `,` $high `,` `propagateNan` `=` choice<none|all>($propagate_nan) attr-dict `:` "
        "type($x, $low, $high, result)"
    )
    x = operand()
    low = operand()
    high = operand()
    propagate_nan = boolean(text="propagateNan")


class Print(Operation):
    """`tt.print "prefix" {hex} : %x`: prints from the program, one line for each element, with the program's
    coordinates.
    """

    name = "tt.print"
    syntax = "$prefix attr-dict (`:` $arguments^ `:` type($arguments))?"
    reads = True
    writes = True
    prefix = string("")
    hex = boolean()
    arguments = variadic()


class Assert(Operation):
    """`tt.assert %c, "message"`: stops the launch with the message where an element of the i1 condition is false."""

    name = "tt.assert"
    syntax = "$condition `,` $message attr-dict `:` type($condition)"
    reads = True
    writes = True
    condition = operand()
    message = string("")


class Assume(Operation):
    """`llvm.intr.assume %c : i1`: the condition holds; a hint."""

    name = "llvm.intr.assume"
    syntax = "$condition attr-dict `:` type($condition)"
    reads = True
    writes = True
    condition = operand()
