"""`libdevice`'s functions of integers, the bits of numbers, and conversions that say how they round.

Takes int32 or int64 tensors where a function is about integers (a bool or a narrower integer becomes int32); wraps as
all integers do. A float that does not fit becomes the nearest integer that there is, as on NVIDIA's GPUs.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.errors import TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import umulhi
from mltriton.language.building import builtin, made_builtin
from mltriton.language.casting import cast, reinterpret
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import rint, round, trunc, wide
from mltriton.language.math import ceil, floor
from mltriton.language.semantic import broadcast_all, literal, promoted, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

_SIGNED = {32: types.int32, 64: types.int64}
_UNSIGNED = {32: types.uint32, 64: types.uint64}
_FLOATS = {"float": types.float32, "double": types.float64}
_INTEGERS = {"int": types.int32, "uint": types.uint32, "ll": types.int64, "ull": types.uint64}
_ROUNDINGS: dict[str, Callable[[object], tensor]] = {"rn": rint, "rz": trunc, "rd": floor, "ru": ceil}
# Same bits: name, from, to.
_VIEWS = (
    ("float_as_int", types.float32, types.int32),
    ("float_as_uint", types.float32, types.uint32),
    ("int_as_float", types.int32, types.float32),
    ("uint_as_float", types.uint32, types.float32),
    ("double_as_longlong", types.float64, types.int64),
    ("longlong_as_double", types.int64, types.float64),
)


def _integers(name: str, *values: object) -> tuple[tensor, ...]:
    """The values as tensors of one dtype, int32 or int64, signed or not; `TypeMismatchError` for floats."""
    found = [to_tensor(value) for value in values]
    first = found[0]
    for other in found[1:]:
        first, _ = promoted(first, other)
    if first.dtype.is_floating() or first.dtype.is_ptr():
        raise TypeMismatchError(f"{name} is for integers", expected="int32 or int64", found=first.type.name)
    kind = first.dtype if first.dtype.bits >= 32 else types.int32
    return tuple(cast(value, kind) for value in found)


def _unsigned(value: tensor) -> tensor:
    return cast(value, _UNSIGNED[value.dtype.bits], bitcast=True)


def _repeated(byte: int, bits: int) -> int:
    """An integer whose bytes are all the same."""
    return int.from_bytes(bytes([byte]) * (bits // 8), "little")


def _ones(value: tensor) -> tensor:
    """How many bits of an unsigned integer are set."""
    bits = value.dtype.bits
    pairs = value - ((value >> 1) & _repeated(0x55, bits))
    fours = (pairs & _repeated(0x33, bits)) + ((pairs >> 2) & _repeated(0x33, bits))
    eights = (fours + (fours >> 4)) & _repeated(0x0F, bits)
    return cast((eights * _repeated(0x01, bits)) >> (bits - 8), types.int32)


@builtin
def popc(x: object) -> tensor:
    """How many bits of x are set."""
    return _ones(_unsigned(*_integers("popc", x)))


@builtin
def clz(x: object) -> tensor:
    """How many bits of x are 0 above the highest that is set; all of them for 0."""
    value = _unsigned(*_integers("clz", x))
    bits, shift = value.dtype.bits, 1
    while shift < bits:
        value, shift = value | (value >> shift), shift * 2
    return bits - _ones(value)


@builtin
def ffs(x: object) -> tensor:
    """The position of the lowest bit of x that is set, counted from 1; 0 for 0."""
    value = _unsigned(*_integers("ffs", x))
    return where(value == 0, 0, _ones(value ^ (value - 1)))


@builtin
def brev(x: object) -> tensor:
    """The bits of x in the opposite order."""
    (value,) = _integers("brev", x)
    bits, left = value.dtype.bits, _unsigned(value)
    shift = bits // 2
    while shift:
        mask = sum(((1 << shift) - 1) << position for position in range(0, bits, 2 * shift))
        left, shift = ((left >> shift) & mask) | ((left & mask) << shift), shift // 2
    return cast(left, value.dtype, bitcast=True)


@builtin
def mulhi(x: object, y: object) -> tensor:
    """The upper half of the product of x and y in twice as many bits."""
    a, b = _integers("mulhi", x, y)
    high = umulhi(_unsigned(a), _unsigned(b))
    if a.dtype.is_int_unsigned():
        return high
    signed = cast(high, a.dtype, bitcast=True)
    return signed - where(a < 0, b, 0) - where(b < 0, a, 0)


@builtin
def mul24(x: object, y: object) -> tensor:
    """The product of the lower 24 bits of x and y, with their sign where the dtype has one."""
    a, b = _integers("mul24", x, y)
    return ((a << 8) >> 8) * ((b << 8) >> 8)


@builtin
def hadd(x: object, y: object) -> tensor:
    """(x + y) / 2 rounded down, without overflow."""
    a, b = _integers("hadd", x, y)
    return (a & b) + ((a ^ b) >> 1)


@builtin
def rhadd(x: object, y: object) -> tensor:
    """(x + y) / 2 rounded up, without overflow."""
    a, b = _integers("rhadd", x, y)
    return (a | b) - ((a ^ b) >> 1)


@builtin
def sad(x: object, y: object, z: object) -> tensor:
    """|x - y| + z."""
    a, b, c = _integers("sad", x, y, z)
    return where(a > b, a - b, b - a) + c


def byte_pool(low: tensor, high: tensor) -> tensor:
    """Two integers of 32 bits as one of 64."""
    parts = [cast(cast(part, types.uint32, bitcast=True), types.uint64) for part in (low, high)]
    return cast(parts[0] | (parts[1] << 32), types.int64)


@builtin
def byte_perm(x: object, y: object, s: object) -> tensor:
    """Four bytes of the eight of x (0 to 3) and y (4 to 7), chosen by the lower three bits of each nibble of s."""
    a, b, choice = broadcast_all(*_integers("byte_perm", x, y, s))
    pool = cast(byte_pool(a, b), types.uint64)
    total = pool & 0
    for position in range(4):
        shift = cast((choice >> (4 * position)) & 7, types.uint64) * 8
        total = total | (((pool >> shift) & 0xFF) << (8 * position))
    return cast(cast(total, types.uint32), a.dtype, bitcast=True)


@builtin
def llrint(x: object) -> tensor:
    """x rounded to nearest, halves to even, as int64."""
    return _fitting(rint(x), types.int64)


@builtin
def llround(x: object) -> tensor:
    """x rounded to nearest, halves away from zero, as int64."""
    return _fitting(round(x), types.int64)


def _fitting(value: tensor, target: dtype) -> tensor:
    """A whole float as an integer, the nearest one where it does not fit; NaN as PTX's `cvt` has it."""
    is_signed, shape = target.is_int_signed(), value.type.shape
    span = 1 << target.bits - is_signed  # One more than the greatest.
    least = -span if is_signed else 0
    half = -span if is_signed else span // 2  # The highest bit alone.
    of_nan = 0 if target.bits == 32 and value.dtype is types.float32 else half
    fits = (value >= float(least)) & (value < float(span))
    inside = cast(where(fits, value, 0.0), target)
    low, high, none = (literal(number, target, shape) for number in (least, span - 1, of_nan))
    return where(fits, inside, where(value >= float(span), high, where(value < float(least), low, none)))


def _required(x: object, kind: dtype, name: str) -> tensor:
    value = to_tensor(x)
    if value.dtype is not kind:
        raise TypeMismatchError(f"{name} does not take {value.dtype}", expected=str(kind), found=value.type.name)
    return value


def _view(name: str, source: dtype, target: dtype) -> Callable[[object], tensor]:
    return made_builtin(lambda x: reinterpret(_required(x, source, name), target), name, f"The bits of x as {target}.")


def _to_integer(name: str, source: dtype, target: dtype, rounding: str) -> Callable[[object], tensor]:
    def convert(x: object) -> tensor:
        return _fitting(_ROUNDINGS[rounding](wide(_required(x, source, name), name)), target)

    return made_builtin(convert, name, f"x as {target}, rounded as {rounding} says (nearest even, to zero, down, up).")


def _to_float(name: str, source: dtype, target: dtype) -> Callable[[object], tensor]:
    return made_builtin(lambda x: cast(_required(x, source, name), target), name, f"x as {target}, rounded to nearest.")


def _conversions() -> dict[str, Callable[[object], tensor]]:
    """Every conversion by name: float2int_rz, ull2double_rn, ..."""
    found = {name: _view(name, source, target) for name, source, target in _VIEWS}
    for real, wide_type in _FLOATS.items():
        for whole, integer in _INTEGERS.items():
            for rounding in _ROUNDINGS:
                name = f"{real}2{whole}_{rounding}"
                found[name] = _to_integer(name, wide_type, integer, rounding)
            name = f"{whole}2{real}_rn"
            found[name] = _to_float(name, integer, wide_type)
    found["double2float_rn"] = _to_float("double2float_rn", types.float64, types.float32)
    return found


CONVERSIONS = _conversions()
__all__ = [
    "CONVERSIONS", "brev", "byte_perm", "byte_pool", "clz", "ffs", "hadd", "llrint", "llround", "mul24", "mulhi",
    "popc", "rhadd", "sad",
]  # fmt: skip
