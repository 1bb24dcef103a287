"""`tl.dot_scaled`: products of blocks in microscaling formats.

Takes blocks of e2m1 (two in a byte, the first in the low bits), e4m3, e5m2, bf16 or fp16 with a scale for each group of
16 or 32 elements along K; guarantees what upstream computes without units of its own for it: operands are made bf16
(fp16 where one of them is) and multiplied by their scales, `tl.dot` does the rest in fp32.
Source: OCP Microscaling Formats (MX) v1.0; upstream's `DotScaledOp`.
"""

from __future__ import annotations

from mltriton.errors import DotShapeError, DotTypeError, OptionError
from mltriton.language import types
from mltriton.language.arithmetic import bitwise_and, left_shift, mul, right_shift
from mltriton.language.building import builtin
from mltriton.language.casting import cast
from mltriton.language.comparison import equal, less_than, where
from mltriton.language.matmul import dot
from mltriton.language.shapes import broadcast_to, expand_dims, join, permute, reshape
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype
from mltriton.records import NamedTuple

__all__ = ["dot_scaled"]

# Format -> the dtype of its elements, and the integers in which they may come. e2m1 comes in bytes only.
FORMATS: dict[str, tuple[dtype, dtype]] = {
    "e2m1": (types.uint8, types.uint8),
    "e4m3": (types.float8e4nv, types.uint8),
    "e5m2": (types.float8e5, types.uint8),
    "bf16": (types.bfloat16, types.uint16),
    "fp16": (types.float16, types.uint16),
}
GROUPS = (32, 16)  # elements along K that share a scale
SCALES = (types.uint8, types.int8, types.float8e4nv)  # e8m0 as bytes, or e4m3
HALF = 126 << 7  # the bits of 0.5 in bf16


class _Operand(NamedTuple):
    """One side of a product: `rows` is its other dimension than K (M of lhs, N of rhs), `is_left` whether K is last."""

    name: str
    block: tensor
    format: str
    k_pack: bool
    is_left: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the elements: of two in a byte along one dimension that one is twice as long."""
        *batch, rows, columns = self.block.type.shape
        if self.format == "e2m1":
            rows, columns = (rows, 2 * columns) if self.packs_last else (2 * rows, columns)
        return (*batch, rows, columns)

    @property
    def packs_last(self) -> bool:
        """Whether the two elements of a byte follow each other along the last dimension."""
        return self.k_pack == self.is_left

    @property
    def inner(self) -> int:
        """K."""
        return self.shape[-1 if self.is_left else -2]


@builtin
def dot_scaled(
    lhs: object,
    lhs_scale: object,
    lhs_format: object,
    rhs: object,
    rhs_scale: object,
    rhs_format: object,
    acc: object = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: dtype = types.float32,
) -> tensor:
    """`acc + (lhs * lhs_scale) @ (rhs * rhs_scale)` in fp32; `lhs` has [M, K] elements, `rhs` [K, N], both perhaps with
    a batch before them.

    Formats are "e2m1", "e4m3", "e5m2", "bf16" and "fp16"; blocks of bytes (uint16 for the last two) are read as those.
    Scales are [M, K / group] and [N, K / group] (`rhs_scale` is not transposed) for groups of 32 or 16, of uint8 (the
    power of two s - 127; 0 counts as 0, 255 as NaN unless `fast_math`) or float8e4nv, or None. With `lhs_k_pack=False`
    two e2m1 of a byte follow each other along M, with `rhs_k_pack=False` along N. Raises `DotShapeError`,
    `DotTypeError`, `OptionError`.
    """
    if out_dtype != types.float32:
        raise DotTypeError(
            "Only float32 is supported for out_dtype of tl.dot_scaled", expected="fp32", found=repr(out_dtype)
        )
    left = _operand("lhs", lhs, lhs_format, lhs_k_pack, is_left=True)
    right = _operand("rhs", rhs, rhs_format, rhs_k_pack, is_left=False)
    if left.inner != right.inner or left.shape[:-2] != right.shape[:-2]:
        raise DotShapeError(
            "Reduction dimension should pack the same number of elements: tl.dot_scaled cannot multiply these",
            expected="[M, K] and [K, N]",
            found=f"{list(left.shape)} of {left.format} and {list(right.shape)} of {right.format}",
        )
    kind = types.float16 if "fp16" in (left.format, right.format) else types.bfloat16
    a = _scaled(left, lhs_scale, kind, fast_math)
    b = _scaled(right, rhs_scale, kind, fast_math)
    return dot(a, b, acc, out_dtype=out_dtype)


def _operand(name: str, value: object, format: object, k_pack: bool, is_left: bool) -> _Operand:
    if not isinstance(value, tensor) or len(value.type.shape) not in (2, 3):
        found = value.type.name if isinstance(value, tensor) else repr(value)
        raise DotShapeError(f"{name} of tl.dot_scaled must be a block of two or three dimensions", found=found)
    if not isinstance(format, str) or format not in FORMATS:
        known = ", ".join(FORMATS)
        raise OptionError(f"NYI: {name}_format {format}", expected=f"one of {known}", found=repr(format))
    if not k_pack and format != "e2m1":
        raise OptionError(
            "only mxfp4 inputs can be packed along a dimension different than K",
            expected=f"{name}_k_pack=True, or e2m1",
            found=format,
        )
    if value.dtype not in FORMATS[format]:
        expected = " or ".join(dict.fromkeys(map(str, FORMATS[format])))
        raise DotTypeError(
            f"Unexpected dtype for {format}. Got {value.dtype}", expected=expected, found=value.type.name
        )
    return _Operand(name, value, format, k_pack, is_left)


def _scaled(operand: _Operand, scale: object, kind: dtype, fast_math: bool) -> tensor:
    """The elements of an operand, times their scales, as bf16 or fp16: computed in fp32, rounded once."""
    values = _elements(operand, kind)
    if scale is None:
        return cast(values, kind)
    if not isinstance(scale, tensor) or scale.dtype not in SCALES:
        found = scale.type.name if isinstance(scale, tensor) else repr(scale)
        raise DotTypeError(f"{operand.name}_scale must be uint8 or float8e4nv", found=found)
    group = _group(operand, scale)
    factors = cast(_factors(scale, kind), types.float32)
    if not (fast_math or scale.dtype.is_floating()):
        is_nan = equal(cast(scale, types.uint8, bitcast=True), 255)
        factors = where(is_nan, float("nan"), factors)
    return cast(mul(cast(values, types.float32), _along_k(operand, factors, group)), kind)


def _group(operand: _Operand, scale: tensor) -> int:
    """How many elements along K share a scale."""
    shape, inner = operand.shape, operand.inner
    rows = shape[-2] if operand.is_left else shape[-1]
    allowed = [[*shape[:-2], rows, inner // group] for group in GROUPS if inner % group == 0]
    if list(scale.type.shape) not in allowed:
        raise DotShapeError(
            f"{operand.name}_scale must be a tensor of shape [..., {rows}, {inner // GROUPS[0]}]. "
            f"Got {list(scale.type.shape)}",
            expected=" or ".join(map(str, allowed)) or f"an inner size that is a multiple of {GROUPS[-1]}",
            found=scale.type.name,
        )
    return inner // scale.type.shape[-1]


def _factors(scale: tensor, kind: dtype) -> tensor:
    """Scales as numbers: of e8m0 the byte is the exponent of a bf16."""
    if scale.dtype.is_floating():
        return cast(scale, kind)
    bits = left_shift(cast(cast(scale, types.uint8, bitcast=True), types.uint16), 7)
    return cast(cast(bits, types.bfloat16, bitcast=True), kind)


def _along_k(operand: _Operand, scale: tensor, group: int) -> tensor:
    """A value for each group as one for each element."""
    *batch, rows, count = scale.type.shape
    if operand.is_left:
        return reshape(broadcast_to(expand_dims(scale, -1), (*batch, rows, count, group)), operand.shape)
    rank = len(scale.type.shape)
    turned = expand_dims(permute(scale, (*range(rank - 2), rank - 1, rank - 2)), rank - 1)
    return reshape(broadcast_to(turned, (*batch, count, group, rows)), operand.shape)


def _elements(operand: _Operand, kind: dtype) -> tensor:
    """The elements of an operand without their scales, in a dtype that holds them exactly; bf16 and fp16 as `kind`."""
    block = operand.block
    if operand.format != "e2m1":
        elements = cast(block, FORMATS[operand.format][0], bitcast=True)
        return cast(elements, kind) if elements.dtype.bits == 16 else elements
    pairs = join(_of_nibbles(bitwise_and(block, 15)), _of_nibbles(right_shift(block, 4)))
    if not operand.packs_last:
        rank = len(block.type.shape)
        pairs = permute(pairs, (*range(rank - 1), rank, rank - 1))
    return reshape(pairs, operand.shape)


def _of_nibbles(nibble: tensor) -> tensor:
    """The bf16 of e2m1 in the low bits of bytes: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the same below 0."""
    bits = cast(nibble, types.uint16)
    magnitude = bitwise_and(bits, 7)
    number = where(less_than(magnitude, 2), mul(magnitude, HALF), left_shift(magnitude, 6) + HALF)
    return cast(left_shift(bitwise_and(bits, 8), 12) | number, types.bfloat16, bitcast=True)
