"""`tl.dot`: products of blocks.

Takes blocks [M, K] and [K, N] (or [B, M, K] and [B, K, N]) of one dtype (two of fp8, or of int8 and uint8, may be
mixed), any powers of two; guarantees an accumulator of the dtype that `OUTPUTS` allows for the operands. Source:
upstream's dot; the `tiling` hint is section 3.1 of the ML-Triton paper; uint8 is an extension of upstream's int8.
"""

from __future__ import annotations

from typing import Any

from mltriton.dialects import tt
from mltriton.errors import ConstexprError, DotShapeError, DotTypeError, OptionError
from mltriton.ir.attributes import ENUMS
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.semantic import literal
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, dtype

__all__ = ["dot"]

# Operand dtype -> dtypes that can be accumulated in, the default first.
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
    """`acc + input @ other`, accumulated in `out_dtype` (default: `acc`'s dtype, else fp32, int32 for int8 and
    uint8, fp64 for fp64).

    `input_precision` ("ieee", "tf32", "tf32x3") is how fp32 operands are multiplied on hardware with such units.
    `tiling` ("square", "horizontal", "vertical") says how the warps share the result; a `TilingError` says where that
    cannot be. Raises `DotShapeError`, `DotTypeError`, `OptionError`, `ConstexprError`.
    """
    a, b = _operand(input, "first"), _operand(other, "second")
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
    accumulator = _accumulator(acc, made)
    return tensor(current().emit(tt.Dot, a.handle, b.handle, accumulator.handle, **attributes), made)


def _operand(value: object, place: str) -> tensor:
    if not isinstance(value, tensor) or not value.type.is_block():
        found = value.type.name if isinstance(value, tensor) else repr(value)
        raise DotShapeError(
            f"the {place} operand of tl.dot must be a block", expected="a block of two or three dimensions", found=found
        )
    return value


def _check_types(a: tensor, b: tensor) -> None:
    for value in (a, b):
        if value.dtype not in OUTPUTS:
            listed = ", ".join(map(str, OUTPUTS))
            raise DotTypeError(
                f"tl.dot does not multiply {value.dtype}", expected=f"one of {listed}", found=value.type.name
            )
    if a.dtype != b.dtype and not any(a.dtype in kinds and b.dtype in kinds for kinds in MIXED):
        raise DotTypeError(
            "the operands of tl.dot have different dtypes",
            expected=f"two blocks of {a.dtype}, or of {b.dtype}",
            found=f"{a.dtype} and {b.dtype}",
            hint=f"convert one of them, for instance with .to(tl.{b.dtype.codegen_name()})",
        )


def _result_shape(a_shape: tuple[int, ...], b_shape: tuple[int, ...], a: tensor, b: tensor) -> tuple[int, ...]:
    found = f"{a.type.name} and {b.type.name}"
    if len(a_shape) != len(b_shape) or len(a_shape) not in (2, 3):
        raise DotShapeError(
            "tl.dot needs two blocks of two or of three dimensions",
            expected="[M, K] and [K, N], or [B, M, K] and [B, K, N]",
            found=found,
        )
    if a_shape[:-2] != b_shape[:-2]:
        raise DotShapeError(f"the batch sizes of tl.dot differ: {a_shape[0]} and {b_shape[0]}", found=found)
    if a_shape[-1] != b_shape[-2]:
        raise DotShapeError(
            f"the inner sizes of tl.dot differ: {a_shape[-1]} and {b_shape[-2]}",
            expected="[M, K] and [K, N]",
            found=found,
            hint=_transpose_hint(a_shape, b_shape),
        )
    return (*a_shape[:-1], b_shape[-1])


def _transpose_hint(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> str | None:
    if a_shape[-1] == b_shape[-1]:
        return "did you mean the transposed second operand: tl.dot(a, b.T)?"
    return "did you mean the transposed first operand: tl.dot(a.T, b)?" if a_shape[-2] == b_shape[-2] else None


def _output(kind: dtype, acc: object, out_dtype: object) -> dtype:
    allowed = OUTPUTS[kind]
    chosen = out_dtype if out_dtype is not None else acc.dtype if isinstance(acc, tensor) else allowed[0]
    if chosen not in allowed:
        hint = "accumulate in fp32 and convert the result with .to(...)" if types.float32 in allowed else None
        raise DotTypeError(
            f"tl.dot of {kind} cannot accumulate in {chosen}",
            expected=" or ".join(map(str, allowed)),
            found=str(chosen),
            hint=hint,
        )
    assert isinstance(chosen, dtype)
    return chosen


def _accumulator(acc: object, made: block_type) -> tensor:
    if acc is None:
        return literal(0, made.scalar, made.shape)
    if not isinstance(acc, tensor) or acc.type.shape != made.shape:
        found = acc.type.name if isinstance(acc, tensor) else repr(acc)
        raise DotShapeError(
            "the accumulator of tl.dot has another shape than the product", expected=made.name, found=found
        )
    if acc.dtype != made.scalar:
        raise DotTypeError(
            "the accumulator of tl.dot has another dtype than out_dtype",
            expected=made.name,
            found=acc.type.name,
            hint=f"pass out_dtype=tl.{acc.dtype.codegen_name()}",
        )
    return acc


def _precision(input_precision: str | None, allow_tf32: bool | None) -> str | None:
    if input_precision is not None and allow_tf32 is not None:
        raise OptionError(
            "input_precision and allow_tf32 say the same", hint="leave out allow_tf32: it is the old name"
        )
    if allow_tf32 is not None:
        return "tf32" if allow_tf32 else "ieee"
    return _keyword(
        "precision", input_precision.lower() if isinstance(input_precision, str) else input_precision, "input_precision"
    )


def _keyword(kind: str, value: object, name: str = "") -> str | None:
    """A keyword of an enumeration of the IR."""
    cases = ENUMS[kind].cases
    if value is None or (isinstance(value, str) and value in cases):
        return value
    expected = "one of " + ", ".join(map(repr, cases))
    if isinstance(value, tensor):
        raise ConstexprError(
            f"the {name or kind} of tl.dot must be known when compiling", expected=expected, found=value.type.name
        )
    raise OptionError(f"unknown {name or kind} of tl.dot", expected=expected, found=repr(value))


def _imprecise(count: int | None, a: tensor) -> int | None:
    """How many products of fp8 may be added in the tensor core's own precision.

    Only hardware with such units reads it.
    """
    if count is None or not a.dtype.is_fp8():
        return None
    inner = a.type.shape[-1]
    if not 0 <= count <= inner:
        raise OptionError("max_num_imprecise_acc of tl.dot", expected=f"0 to {inner}, the inner size", found=str(count))
    return count
