"""`libdevice`'s arithmetic and conversions that round otherwise than to nearest, and the halves of an fp64.

`..._rz` rounds to zero, `..._rd` down, `..._ru` up; the names without a letter of their own (`rcp_rn`, `rsqrt_rn`) to
nearest. Each result is the one to nearest, and its neighbour where the exact one lies on the other side: what is left
of the exact result is found in fp64 for fp32, and without rounding by products and sums in two parts for fp64 (there
exact but for results near the subnormal numbers).
Source: T. J. Dekker (1971), D. E. Knuth's two-sum; S. Boldo and J.-M. Muller's error of an fma (2011).
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.errors import TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import fma
from mltriton.language.building import builtin, made_builtin
from mltriton.language.casting import cast, reinterpret
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import isinf, wide
from mltriton.language.extra.integers import byte_pool
from mltriton.language.extra.magnitudes import nextafter
from mltriton.language.math import abs, fdiv, sqrt
from mltriton.language.semantic import broadcast_all, promoted, promoted_three, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

# A rest has the sign of what the exact result has more than the rounded one.
Rest = Callable[..., tensor]


def _two_sum(a: tensor, b: tensor) -> tuple[tensor, tensor]:
    """a + b rounded, and the rest."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: tensor, b: tensor) -> tuple[tensor, tensor]:
    product = a * b
    return product, fma(a, b, -product)


def _rest_of_sum(result: tensor, a: tensor, b: tensor) -> tensor:
    total, rest = _two_sum(a, b)
    first = total - result  # not 0 only where the result is narrower
    return where(first == 0.0, rest, first)


def _rest_of_product(result: tensor, a: tensor, b: tensor) -> tensor:
    rest = fma(a, b, -result)
    vanished = (result == 0.0) & (a != 0.0) & (b != 0.0)
    return where(vanished, where((a > 0.0) == (b > 0.0), 1.0, -1.0), rest)


def _rest_of_quotient(result: tensor, a: tensor, b: tensor) -> tensor:
    rest = fma(-result, b, a)
    return where(b > 0.0, rest, -rest)


def _rest_of_root(result: tensor, x: tensor) -> tensor:
    return fma(-result, result, x)


def _rest_of_fma(result: tensor, a: tensor, b: tensor, c: tensor) -> tensor:
    product, low = _two_product(a, b)
    inner, z = _two_sum(c, low)
    outer, rest = _two_sum(product, inner)
    gamma = (outer - result) + rest
    total = gamma + z
    return where(total == 0.0, z, total)


def _turned(result: tensor, rest: tensor, rounding: str) -> tensor:
    """The result to nearest, or its neighbour on the side where the exact one lies."""
    is_below, is_above = rest < 0.0, rest > 0.0
    down, up = nextafter(result, float("-inf")), nextafter(result, float("inf"))
    if rounding == "rd":
        return where(is_below, down, result)
    if rounding == "ru":
        return where(is_above, up, result)
    is_negative = (result < 0.0) | ((result == 0.0) & is_below)
    return where(
        is_negative, where(is_above & (result < 0.0), up, result), where(is_below & (result > 0.0), down, result)
    )


def _directed(result: tensor, rest: Rest, arguments: tuple[tensor, ...], rounding: str) -> tensor:
    exact = [cast(value, types.float64) for value in (result, *arguments)]
    left = rest(*exact)
    overflowed = isinf(result)
    for argument in arguments:
        overflowed = overflowed & (abs(argument) < float("inf"))
    if rest is _rest_of_quotient:
        overflowed = overflowed & (arguments[-1] != 0.0)
    # Of what is too large for the dtype the exact result lies below infinity.
    left = where(overflowed, where(result > 0.0, -1.0, 1.0), left)
    return _turned(result, left, rounding)


def _sum(rounding: str, sign: int) -> Callable[[object, object], tensor]:
    def add(x: object, y: object) -> tensor:
        a, b = promoted(x, y)
        a, b = wide(a, "add"), wide(b if sign > 0 else -b, "add")
        return _directed(a + b, _rest_of_sum, (a, b), rounding)

    return add


def _product(rounding: str) -> Callable[[object, object], tensor]:
    def mul(x: object, y: object) -> tensor:
        a, b = promoted(x, y)
        return _directed(wide(a, "mul") * b, _rest_of_product, (a, b), rounding)

    return mul


def _quotient(rounding: str) -> Callable[[object, object], tensor]:
    def div(x: object, y: object) -> tensor:
        a, b = promoted(x, y)
        result = fdiv(wide(a, "div"), b, True)
        return result if rounding == "rn" else _directed(result, _rest_of_quotient, (a, b), rounding)

    return div


def _root(rounding: str) -> Callable[[object], tensor]:
    def root(x: object) -> tensor:
        value = wide(x, "sqrt")
        result = cast(sqrt(cast(value, types.float64)), value.dtype)
        return _directed(result, _rest_of_root, (value,), rounding)

    return root


def _fma(rounding: str) -> Callable[[object, object, object], tensor]:
    def combine(x: object, y: object, z: object) -> tensor:
        a, b, c = promoted_three(x, y, z)
        return _directed(fma(wide(a, "fma"), b, c), _rest_of_fma, (a, b, c), rounding)

    return combine


def _reciprocal(rounding: str) -> Callable[[object], tensor]:
    divide = _quotient(rounding)

    def reciprocal(x: object) -> tensor:
        value = wide(x, "rcp")
        return divide(where(value == value, 1.0, value), value)

    return reciprocal


def _integer(name: str, source: dtype, target: dtype, rounding: str) -> Callable[[object], tensor]:
    """An integer as a float: its upper and lower halves are exact in fp64."""

    def convert(x: object) -> tensor:
        value = _required(x, source, name)
        result = cast(value, target)
        half = source.bits // 2
        high = cast(value >> half, types.float64) * 2.0**half
        low = cast(value & ((1 << half) - 1), types.float64)
        return _turned(result, _rest_of_sum(cast(result, types.float64), high, low), rounding)

    return convert


def _narrowed(rounding: str) -> Callable[[object], tensor]:
    def narrow(x: object) -> tensor:
        value = _required(x, types.float64, f"double2float_{rounding}")
        result = cast(value, types.float32)
        rest = where(
            isinf(result) & (abs(value) < float("inf")),
            -cast(result, types.float64),
            value - cast(result, types.float64),
        )
        return _turned(result, rest, rounding)

    return narrow


def _required(x: object, kind: dtype, name: str) -> tensor:
    value = to_tensor(x)
    if value.dtype != kind:
        raise TypeMismatchError(f"{name} does not take {value.dtype}", expected=str(kind), found=value.type.name)
    return value


def _all() -> dict[str, Callable[..., tensor]]:
    """Every function by name."""
    found: dict[str, Callable[..., tensor]] = {}
    for rounding, words in (("rz", "to zero"), ("rd", "down"), ("ru", "up")):
        functions: list[tuple[str, Callable[..., tensor], str]] = [
            ("add", _sum(rounding, 1), "x + y"),
            ("sub", _sum(rounding, -1), "x - y"),
            ("mul", _product(rounding), "x * y"),
            ("div", _quotient(rounding), "x / y"),
            ("fma", _fma(rounding), "x * y + z"),
            ("sqrt", _root(rounding), "The root of x"),
            ("rcp", _reciprocal(rounding), "1 / x"),
            ("double2float", _narrowed(rounding), "An fp64 as fp32"),
        ]
        for name, function, text in functions:
            found[f"{name}_{rounding}"] = made_builtin(function, f"{name}_{rounding}", f"{text}, rounded {words}.")
        for real, target in (("float", types.float32), ("double", types.float64)):
            for whole, source in (
                ("int", types.int32), ("uint", types.uint32), ("ll", types.int64), ("ull", types.uint64),
            ):  # fmt: skip
                name = f"{whole}2{real}_{rounding}"
                meaning = f"{source} as {target}, rounded {words}."
                found[name] = made_builtin(_integer(name, source, target, rounding), name, meaning)
    found["rcp_rn"] = made_builtin(_reciprocal("rn"), "rcp_rn", "1 / x, rounded to nearest.")
    return found


DIRECTED = _all()


# A sum or product that is written as one of three is never put together with another (`fuse-multiply-add`).


@builtin
def add_rn(x: object, y: object) -> tensor:
    """x + y, rounded by itself, whatever x and y are."""
    return fma(x, 1.0, y)


@builtin
def sub_rn(x: object, y: object) -> tensor:
    """x - y, rounded by itself."""
    return fma(y, -1.0, x)


@builtin
def mul_rn(x: object, y: object) -> tensor:
    """x * y, rounded by itself, and not with a sum that takes it."""
    return fma(x, y, -0.0)


@builtin
def rsqrt_rn(x: object) -> tensor:
    """One over the root of an fp32, rounded to nearest (from fp64)."""
    value = _required(x, types.float32, "rsqrt_rn")
    return cast(1.0 / sqrt(cast(value, types.float64)), types.float32)


@builtin
def rcp64h(x: object) -> tensor:
    """1 / x of an fp64 with the lower 32 bits 0: right to 20 bits."""
    bits = reinterpret(1.0 / _required(x, types.float64, "rcp64h"), types.int64)
    return reinterpret((bits >> 32) << 32, types.float64)


@builtin
def double2hiint(x: object) -> tensor:
    """The upper 32 bits of an fp64."""
    return cast(reinterpret(_required(x, types.float64, "double2hiint"), types.int64) >> 32, types.int32)


@builtin
def double2loint(x: object) -> tensor:
    """The lower 32 bits of an fp64."""
    return cast(reinterpret(_required(x, types.float64, "double2loint"), types.int64), types.int32)


@builtin
def hiloint2double(hi: object, lo: object) -> tensor:
    """The fp64 of two halves of 32 bits."""
    high, low = broadcast_all(to_tensor(hi), to_tensor(lo))
    return reinterpret(byte_pool(low, high), types.float64)


__all__ = ["DIRECTED", "double2hiint", "double2loint", "hiloint2double", "rcp64h", "rsqrt_rn"]
