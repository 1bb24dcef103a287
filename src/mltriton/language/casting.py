"""Conversions between dtypes: `tl.cast`, `x.to(...)`, bitcasts.

Takes tensors of any dtype; guarantees upstream's meaning: to bool is `!= 0`, float to integer rounds to zero, float
to a narrower float rounds to nearest even unless asked otherwise, a bool counts as unsigned, integers of the same
width are reinterpreted. `_RULES` is the table of upstream's cases.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import arith, tt
from mltriton.errors import OptionError, TypeMismatchError
from mltriton.ir.operation import Operation
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.semantic import literal, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype, pointer_type

__all__ = ["cast"]

ROUNDINGS = ("rtne", "rtz")


@builtin
def cast(input: object, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """`input` converted to `dtype`, or its bits read as `dtype` with `bitcast`.

    `fp_downcast_rounding` ("rtne", "rtz") only for a float that becomes narrower. Raises `TypeMismatchError`,
    `OptionError`.
    """
    value, target = to_tensor(input), _element(dtype)
    if bitcast:
        return reinterpret(value, target)
    source = value.dtype
    if source == target:
        return value
    _check_rounding(source, target, fp_downcast_rounding)
    if source.is_packed() or target.is_packed():
        return _packed(value, target)
    if fp_downcast_rounding == "rtz":
        return _emit(tt.FpToFp, value, target, rounding="rtz")
    for applies, rule in _RULES:
        if applies(source, target):
            return rule(value, target)
    raise TypeMismatchError("there is no such conversion", found=f"{source} to {target}", hint=_hint(source, target))


def _packed(value: tensor, target: dtype) -> tensor:
    """A conversion from or to a float that is bytes to the IR, through fp32."""
    from mltriton.language.packed_floats import decoded, encoded  # It stands on casts.

    if value.dtype.is_packed():
        return cast(decoded(value), target)
    return encoded(cast(value, types.float32), target)


def _element(target: object) -> dtype:
    if not isinstance(target, dtype):
        raise TypeMismatchError("a conversion needs a dtype", expected="a dtype such as tl.float32", found=repr(target))
    return target.scalar


def _check_rounding(source: dtype, target: dtype, rounding: str | None) -> None:
    if rounding is None:
        return
    if rounding not in ROUNDINGS:
        raise OptionError(
            "unknown fp_downcast_rounding",
            expected="'rtne' or 'rtz'",
            found=repr(rounding),
            upstream=f"Invalid rounding mode: {rounding}",
        )
    if not (source.is_floating() and target.is_floating() and target.bits < source.bits):
        raise TypeMismatchError(
            "fp_downcast_rounding is only for a float that becomes narrower",
            found=f"{source} to {target}",
            hint="leave it out",
            upstream="fp_downcast_rounding should be set only for truncating fp conversions. "
            f"Source scalar type is {source} and destination type is {target}",
        )


def _hint(source: dtype, target: dtype) -> str | None:
    if source.is_ptr() or target.is_ptr():
        return "a pointer converts to int64, to bool and to other pointers, and back from int64"
    return None


def reinterpret(value: tensor, target: dtype) -> tensor:
    """The same bits as another dtype of the same width; `TypeMismatchError` if the widths differ."""
    source = value.dtype
    if source == target:
        return value
    if source.is_ptr() or target.is_ptr():
        return cast(value, target)
    if source.bits != target.bits:
        raise TypeMismatchError(
            "a bitcast needs dtypes of the same width",
            expected=f"{source.bits} bits, as {source} has",
            found=f"{target} of {target.bits} bits",
            hint="leave out bitcast=True to convert the values",
            upstream=f"Cannot bitcast data-type of size {source.bits} to data-type of size {target.bits}",
        )
    if value.handle.type == value.type.with_element(target).to_ir():
        return _retyped(value, target)
    return _retyped(value, target) if source.is_int() and target.is_int() else _emit(tt.Bitcast, value, target)


def _emit(operation: type[Operation], value: tensor, target: dtype, **attributes: object) -> tensor:
    made = value.type.with_element(target)
    return tensor(current().emit(operation, value.handle, result_types=[made.to_ir()], **attributes), made)


def _retyped(value: tensor, target: dtype) -> tensor:
    """Signedness is no matter of the IR."""
    return tensor(value.handle, value.type.with_element(target))


def _by(operation: type[Operation], **attributes: object) -> Callable[[tensor, dtype], tensor]:
    return lambda value, target: _emit(operation, value, target, **attributes)


def _through(middle: dtype) -> Callable[[tensor, dtype], tensor]:
    return lambda value, target: cast(cast(value, middle), target)


def _is_nonzero(value: tensor, target: dtype) -> tensor:
    """Conversion to bool: NaN is true."""
    from mltriton.language.comparison import not_equal  # It stands on casts.

    return not_equal(value, literal(0, value.dtype, value.type.shape))


def _resize(value: tensor, target: dtype) -> tensor:
    if target.bits == value.dtype.bits:
        return _retyped(value, target)
    if target.bits < value.dtype.bits:
        return _emit(arith.TruncI, value, target)
    return _emit(arith.ExtSI if value.dtype.is_int_signed() else arith.ExtUI, value, target)


def _is_16_bit(kind: dtype) -> bool:
    return kind in (types.float16, types.bfloat16)


def _both_float(source: dtype, target: dtype) -> bool:
    return source.is_floating() and target.is_floating()


def _to_pointer(value: tensor, target: dtype) -> tensor:
    return _emit(tt.IntToPtr, cast(value, types.int64), target)


# The first case that applies to (source, target) converts.
_RULES: tuple[tuple[Callable[[dtype, dtype], bool], Callable[[tensor, dtype], tensor]], ...] = (
    (
        lambda s, t: _both_float(s, t) and (s.is_fp8() or t.is_fp8()) and t.bits < s.bits,
        _by(tt.FpToFp, rounding="rtne"),
    ),
    (lambda s, t: _both_float(s, t) and s.is_fp8() and t.bits > s.bits, _by(tt.FpToFp)),
    (lambda s, t: _both_float(s, t) and s.bits == t.bits == 16, _by(tt.FpToFp, rounding="rtne")),
    (lambda s, t: _is_16_bit(s) and not t.is_ptr() and t != types.float32, _through(types.float32)),
    (lambda s, t: s.is_fp8() and (t.is_fp8() or t.is_int()), _through(types.float32)),
    (lambda s, t: s.is_int() and t.is_fp8(), _through(types.float32)),
    (lambda s, t: _both_float(s, t) and t.bits < s.bits, _by(arith.TruncF)),
    (lambda s, t: _both_float(s, t), _by(arith.ExtF)),
    (lambda s, t: t.is_bool() and not s.is_ptr(), _is_nonzero),
    (lambda s, t: s.is_int() and t.is_int(), _resize),
    (lambda s, t: s.is_floating() and t.is_int_signed(), _by(arith.FPToSI)),
    (lambda s, t: s.is_floating() and t.is_int_unsigned(), _by(arith.FPToUI)),
    (lambda s, t: s.is_int_signed() and t.is_floating(), _by(arith.SIToFP)),
    (lambda s, t: s.is_int_unsigned() and t.is_floating(), _by(arith.UIToFP)),
    (lambda s, t: s.is_ptr() and t == types.int64, _by(tt.PtrToInt)),
    (lambda s, t: s.is_ptr() and t.is_int() and t.bits == 64, lambda v, t: _retyped(cast(v, types.int64), t)),
    (lambda s, t: s.is_ptr() and t.is_bool(), lambda v, t: _is_nonzero(cast(v, types.int64), t)),
    (lambda s, t: s.is_int() and t.is_ptr(), _to_pointer),
    (lambda s, t: isinstance(s, pointer_type) and isinstance(t, pointer_type), lambda v, t: _pointer_as(v, t)),
)


def _pointer_as(value: tensor, target: dtype) -> tensor:
    """A pointer to another element type; one that differs only in what the IR does not know keeps its value."""
    made = value.type.with_element(target)
    return tensor(value.handle, made) if made.to_ir() is value.handle.type else _emit(tt.Bitcast, value, target)
