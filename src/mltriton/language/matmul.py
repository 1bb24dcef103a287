"""`tl.dot`: products of blocks.

Takes blocks [M, K] and [K, N], or batches of them ([B, ..., M, K] and [B, ..., K, N]), of one dtype (two of fp8, or of
int8 and uint8, may be mixed), any powers of two; guarantees a result of the dtype that `OUTPUTS` has for the operands.
Source:
upstream's dot; the `tiling` hint is section 3.1 of the ML-Triton paper; uint8 is an extension of upstream's int8.
"""

from __future__ import annotations

import math
from typing import Any

from mltriton.dialects import tt
from mltriton.errors import ConstexprError, DotShapeError, DotTypeError, OptionError
from mltriton.ir.attributes import ENUMS
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast
from mltriton.language.semantic import literal
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, dtype
from mltriton.runtime.config import F32_DEFAULT

__all__ = ["dot"]

# Operand dtype -> dtypes of results. Of a single one, `out_dtype` decides nothing, as in upstream.
OUTPUTS: dict[dtype, tuple[dtype, ...]] = {
    types.int8: (types.int32,),
    types.uint8: (types.int32,),
    types.float8e4nv: (types.float32, types.float16),
    types.float8e5: (types.float32, types.float16),
    types.float16: (types.float32, types.float16),
    types.bfloat16: (types.float32,),
    types.float32: (types.float32,),
    types.float64: (types.float64,),
}
# Dtypes of which an operand may have one and the other another.
MIXED = ((types.int8, types.uint8), (types.float8e4nv, types.float8e5))


@builtin
def dot(
    input: object,
    other: object,
    acc: object = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype | None = None,
    tiling: str | None = None,
) -> tensor:
    """`acc + input @ other`: int32 of int8 and uint8, fp64 of fp64, fp32 of fp32 and bf16; of fp16 and fp8 `out_dtype`,
    fp32 or fp16 (default: `acc`'s dtype, else fp32).

    `input_precision` ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6") is how fp32 operands are multiplied on hardware
    with such units; other hardware is at least as precise. Dimensions before the last two are batches. `tiling`
    ("square", "horizontal", "vertical") says how the warps share the result; a `TilingError` says where that cannot be.
    Raises `DotShapeError`, `DotTypeError`, `OptionError`, `ConstexprError`.
    """
    a, b = _operand(input, "first"), _operand(other, "second")
    if len(a.type.shape) == len(b.type.shape) > 3:
        return _in_batches(a, b, acc, input_precision, allow_tf32, max_num_imprecise_acc, out_dtype, tiling)
    _check_types(a, b)
    shape = _result_shape(a.type.shape, b.type.shape, a, b)
    made = block_type(_output(a.dtype, acc, out_dtype), shape)
    attributes: dict[str, Any] = {
        "precision": _precision(input_precision, allow_tf32),
        "max_num_imprecise_acc": _imprecise(max_num_imprecise_acc, a),
        "tiling": _keyword("tiling", tiling),
        "a_unsigned": a.dtype.is_int_unsigned() or None,
        "b_unsigned": b.dtype.is_int_unsigned() or None,
    }
    accumulator = _accumulator(acc, made, OUTPUTS[a.dtype])
    return tensor(current().emit(tt.Dot, a.handle, b.handle, accumulator.handle, **attributes), made)


def _in_batches(a: tensor, b: tensor, acc: object, *options: Any) -> tensor:
    """The product of blocks of more than three dimensions, with all but the last two as one."""
    from mltriton.language.shapes import reshape  # Few products have so many.

    shape = _result_shape(a.type.shape, b.type.shape, a, b)

    def flat(value: tensor) -> tensor:
        return reshape(value, (math.prod(value.type.shape[:-2]), *value.type.shape[-2:]))

    if isinstance(acc, tensor) and acc.type.shape != shape:
        raise _other_shape(acc, block_type(acc.dtype, shape))
    return reshape(dot(flat(a), flat(b), flat(acc) if isinstance(acc, tensor) else acc, *options), shape)


def _operand(value: object, side: str) -> tensor:
    if not isinstance(value, tensor) or not value.type.is_block():
        found = value.type.name if isinstance(value, tensor) else repr(value)
        raise DotShapeError(
            f"the {side} operand of tl.dot must be a block", expected="a block of two or three dimensions", found=found
        )
    return cast(value, types.float16) if value.dtype.is_packed() else value


def _check_types(a: tensor, b: tensor) -> None:
    for value in (a, b):
        if value.dtype not in OUTPUTS:
            listed = ", ".join(map(str, OUTPUTS))
            raise DotTypeError(
                f"tl.dot does not multiply {value.dtype}",
                expected=f"one of {listed}",
                found=value.type.name,
                hint=_other_product(value.dtype),
                upstream=f"Unsupported {'lhs' if value is a else 'rhs'} dtype {value.dtype}",
            )
    if a.dtype != b.dtype and not any(a.dtype in kinds and b.dtype in kinds for kinds in MIXED):
        raise DotTypeError(
            "the operands of tl.dot have different dtypes",
            expected=f"two blocks of {a.dtype}, or of {b.dtype}",
            found=f"{a.dtype} and {b.dtype}",
            upstream=f"Both operands must be same dtype. Got {a.dtype} and {b.dtype}",
            hint=f"convert one of them, for instance with .to(tl.{_wider(a.dtype, b.dtype).codegen_name()})",
        )


def _other_product(kind: dtype) -> str | None:
    """What multiplies blocks of a dtype that `tl.dot` does not take."""
    if kind.is_ptr():
        return "load the block that it points to: tl.load(...)"
    if not kind.is_int():
        return "convert the operands, for instance with .to(tl.float16)"
    if kind.is_bool():
        return "convert the operands with .to(tl.uint8)"
    wide = f"to(tl.{types.int64 if kind.bits == 64 else types.int32})"
    return f"add up products: tl.sum(a.{wide}[:, :, None] * b.{wide}[None, :, :], axis=1)"


def _wider(a: dtype, b: dtype) -> dtype:
    """The one of two dtypes that keeps more of the other: floats before integers, then more bits."""
    return max(b, a, key=lambda kind: (kind.is_floating(), kind.bits))


def _result_shape(a_shape: tuple[int, ...], b_shape: tuple[int, ...], a: tensor, b: tensor) -> tuple[int, ...]:
    found = f"{a.type.name} and {b.type.name}"
    if len(a_shape) != len(b_shape) or len(a_shape) < 2:
        raise DotShapeError(
            "tl.dot needs two blocks of the same number of dimensions, two or more",
            expected="[M, K] and [K, N], or [B, M, K] and [B, K, N]",
            found=found,
            upstream=f"Both inputs must be either 2D or 3D; (lhs: {list(a_shape)} vs rhs: {list(b_shape)})",
        )
    if a_shape[:-2] != b_shape[:-2]:
        sides = [", ".join(map(str, shape[:-2])) for shape in (a_shape, b_shape)]
        message = f"the batch sizes of tl.dot differ: {sides[0]} and {sides[1]}"
        raise DotShapeError(message, expected="[B, M, K] and [B, K, N]", found=found)
    if a_shape[-1] != b_shape[-2]:
        raise DotShapeError(
            f"the inner sizes of tl.dot differ: {a_shape[-1]} and {b_shape[-2]}",
            expected="[M, K] and [K, N]",
            found=found,
            hint=_transpose_hint(a_shape, b_shape),
            upstream=f"First input shape ({list(a_shape)}) and second input shape {list(b_shape)} are not compatible "
            "for matmul (second index of first shape must be equal to first index of second shape)",
        )
    return (*a_shape[:-1], b_shape[-1])


def _transpose_hint(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> str | None:
    if a_shape[-1] == b_shape[-1]:
        return "did you mean the transposed second operand: tl.dot(a, b.T)?"
    return "did you mean the transposed first operand: tl.dot(a.T, b)?" if a_shape[-2] == b_shape[-2] else None


def _output(kind: dtype, acc: object, out_dtype: object) -> dtype:
    allowed = OUTPUTS[kind]
    chosen = out_dtype if out_dtype is not None else acc.dtype if isinstance(acc, tensor) else allowed[0]
    expected = " or ".join(map(str, allowed))
    if not isinstance(chosen, dtype):
        hint = f"pass out_dtype=tl.{allowed[0].codegen_name()}, without quotes"
        raise DotTypeError("out_dtype of tl.dot is no dtype", expected=expected, found=repr(chosen), hint=hint)
    if chosen == types.bfloat16 and kind.is_floating():
        raise DotTypeError(
            "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`",
            expected=expected,
            found=str(chosen),
        )
    if len(allowed) == 1:
        return allowed[0]
    if chosen not in allowed:
        hint = f"accumulate in {allowed[0]} and convert the result with .to(...)"
        message = f"tl.dot of {kind} cannot accumulate in {chosen}"
        raise DotTypeError(message, expected=expected, found=str(chosen), hint=hint)
    return chosen


def _accumulator(acc: object, made: block_type, allowed: tuple[dtype, ...]) -> tensor:
    if acc is None:
        return literal(0, made.scalar, made.shape)
    if not isinstance(acc, tensor):
        hint = f"add to the result, or pass tl.full({list(made.shape)}, ..., tl.{made.scalar.codegen_name()})"
        message = "the accumulator of tl.dot must be a block"
        raise DotShapeError(message, expected=made.name, found=repr(acc), hint=hint)
    if acc.type.shape != made.shape:
        raise _other_shape(acc, made)
    if acc.dtype != made.scalar:
        raise DotTypeError(
            "the accumulator of tl.dot has another dtype than the result",
            expected=made.name,
            found=acc.type.name,
            hint=f"pass out_dtype=tl.{acc.dtype.codegen_name()}"
            if acc.dtype in allowed
            else f"convert it: acc.to(tl.{made.scalar.codegen_name()})",
        )
    return acc


def _other_shape(acc: tensor, made: block_type) -> DotShapeError:
    message = "the accumulator of tl.dot has another shape than the product"
    return DotShapeError(message, expected=made.name, found=acc.type.name)


def _precision(input_precision: str | None, allow_tf32: bool | None) -> str | None:
    if input_precision is not None and allow_tf32 is not None:
        raise OptionError(
            "input_precision and allow_tf32 say the same", hint="leave out allow_tf32: it is the old name"
        )
    if allow_tf32 is not None:
        _require_constant("allow_tf32", allow_tf32, "True or False")
        if allow_tf32 not in (False, True):
            raise OptionError("unknown allow_tf32 of tl.dot", expected="True or False", found=repr(allow_tf32))
        return "tf32" if allow_tf32 else "ieee"
    asked = F32_DEFAULT.get() if input_precision is None else input_precision
    return _keyword("precision", asked.lower() if isinstance(asked, str) else asked, "input_precision")


def _keyword(kind: str, value: object, name: str = "") -> str | None:
    """A keyword of an enumeration of the IR."""
    cases = ENUMS[kind].cases
    if value is None or (isinstance(value, str) and value in cases):
        return value
    expected = "one of " + ", ".join(map(repr, cases))
    _require_constant(name or kind, value, expected)
    raise OptionError(f"unknown {name or kind} of tl.dot", expected=expected, found=repr(value))


def _require_constant(name: str, value: object, expected: str) -> None:
    """Raise `ConstexprError` for what only the running kernel knows."""
    if isinstance(value, tensor):
        message = f"the {name} of tl.dot must be known when compiling"
        raise ConstexprError(message, expected=expected, found=value.type.name)


def _imprecise(count: object, a: tensor) -> int | None:
    """How many products of fp8 may be added in the tensor core's own precision.

    Only hardware with such units reads it.
    """
    if count is None or not a.dtype.is_fp8():
        return None
    name, inner = "max_num_imprecise_acc", a.type.shape[-1]
    expected = f"0 to {inner}, the inner size"
    _require_constant(name, count, expected)
    if not isinstance(count, int) or not 0 <= count <= inner:
        sentence = f"max_num_imprecise_acc ({count}) must be <= K ({inner})"
        raise OptionError(f"unknown {name} of tl.dot", expected=expected, found=repr(count), upstream=sentence)
    return count
