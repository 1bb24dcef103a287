"""Mathematical functions, element by element: `tl.math` and the functions of it that `tl` has too.

Takes fp32 or fp64 tensors (upstream's rule: narrower floats are converted by the user, who knows whether the
precision is needed). `UNARY` is the table: a new function with an operation of its own is a row.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import arith, math, tt
from mltriton.errors import OptionError, TypeMismatchError
from mltriton.ir.operation import Operation
from mltriton.language import types
from mltriton.language.arithmetic import clamp, fma, maximum, minimum, umulhi
from mltriton.language.building import builtin, current, made_builtin
from mltriton.language.semantic import computable, promoted, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

__all__ = [
    "abs", "ceil", "clamp", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2", "maximum",
    "minimum", "rsqrt", "sin", "sqrt", "sqrt_rn", "tanh", "umulhi",
]  # fmt: skip

WIDE = (types.float32, types.float64)
SINGLE = (types.float32,)

# Function -> its operation, the dtypes it takes, and what it computes.
UNARY: dict[str, tuple[type[Operation], tuple[dtype, ...], str]] = {
    "exp": (math.Exp, WIDE, "e to the power of x."),
    "exp2": (math.Exp2, WIDE, "2 to the power of x."),
    "log": (math.Log, WIDE, "The natural logarithm of x."),
    "log2": (math.Log2, WIDE, "The logarithm of x to base 2."),
    "sin": (math.Sin, WIDE, "The sine of x in radians."),
    "cos": (math.Cos, WIDE, "The cosine of x in radians."),
    "tanh": (math.Tanh, WIDE, "The hyperbolic tangent of x."),
    "erf": (math.Erf, WIDE, "The error function of x."),
    "sqrt": (math.Sqrt, WIDE, "The square root of x."),
    "sqrt_rn": (tt.PreciseSqrt, SINGLE, "The square root of x, correctly rounded."),
    "rsqrt": (math.Rsqrt, WIDE, "One over the square root of x."),
    "floor": (math.Floor, WIDE, "x rounded down."),
    "ceil": (math.Ceil, WIDE, "x rounded up."),
}


def _unary(name: str) -> Callable[[object], tensor]:
    """The builtin of a row of `UNARY`."""
    operation, allowed, meaning = UNARY[name]

    def function(x: object) -> tensor:
        value = required(to_tensor(x), allowed, name)
        return tensor(current().emit(operation, value.handle), value.type)

    return made_builtin(function, name, meaning)


def required(value: tensor, allowed: tuple[dtype, ...], name: str) -> tensor:
    """`value` if a function takes its dtype; `TypeMismatchError` otherwise."""
    if value.dtype in allowed:
        return value
    hint = "convert it: x.to(tl.float32)" if not value.dtype.is_ptr() else None
    raise TypeMismatchError(
        f"tl.{name} does not take {value.dtype}",
        expected=" or ".join(map(str, allowed)),
        found=value.type.name,
        hint=hint,
        upstream=f"Expected dtype {[str(kind) for kind in allowed]} but got {value.dtype}",
    )


exp, exp2, log, log2 = _unary("exp"), _unary("exp2"), _unary("log"), _unary("log2")
sin, cos, tanh, erf = _unary("sin"), _unary("cos"), _unary("tanh"), _unary("erf")
sqrt, sqrt_rn, rsqrt = _unary("sqrt"), _unary("sqrt_rn"), _unary("rsqrt")
floor, ceil = _unary("floor"), _unary("ceil")


@builtin
def abs(x: object) -> tensor:
    """The absolute value of x; of an unsigned integer x itself."""
    value = computable(x)
    if value.dtype.is_int_unsigned():
        return value
    if not (value.dtype.is_floating() or value.dtype.is_int_signed()):
        raise TypeMismatchError(
            f"tl.abs does not take {value.dtype}", expected="integers or floats", found=value.type.name
        )
    return tensor(current().emit(math.AbsF if value.dtype.is_floating() else math.AbsI, value.handle), value.type)


@builtin
def fdiv(x: object, y: object, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """x / y of floats, correctly rounded with `ieee_rounding`; `approx` allows a result that is not."""
    if ieee_rounding and approx:
        raise OptionError(
            "ieee_rounding and approx of tl.fdiv exclude each other",
            upstream="approx and ieee_rounding cannot both be True",
        )
    a, b = promoted(x, y, division=True)
    if not a.dtype.is_floating():
        raise TypeMismatchError(
            "tl.fdiv is for floats", expected="floats", found=a.type.name, hint="write x / y for integers"
        )
    return tensor(current().emit(tt.PreciseDivF if ieee_rounding else arith.DivF, a.handle, b.handle), a.type)


@builtin
def div_rn(x: object, y: object) -> tensor:
    """x / y of fp32, correctly rounded."""
    a, b = promoted(x, y)
    required(a, SINGLE, "div_rn")
    return tensor(current().emit(tt.PreciseDivF, a.handle, b.handle), a.type)
