"""Random numbers: counter-based Philox, so that a number depends on the seed and its offset only.

Takes a seed (integer) and offsets (integer block); guarantees upstream Triton's numbers, bit for bit before the
conversion to floats. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011):
Philox-4x32-10, and Philox-4x64-10 for 64-bit counters.
"""

from __future__ import annotations

from mltriton.errors import TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import add, bitwise_and, bitwise_xor, invert, maximum, mul, right_shift, umulhi
from mltriton.language.building import builtin
from mltriton.language.casting import cast
from mltriton.language.comparison import less_than, where
from mltriton.language.math import cos, log, sin, sqrt
from mltriton.language.semantic import constexpr_int, literal, to_tensor
from mltriton.language.tensor import tensor
from mltriton.records import NamedTuple

__all__ = [
    "pair_uniform_to_normal", "philox", "philox_impl", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x",
    "uint_to_uniform_float",
]  # fmt: skip

N_ROUNDS = 10
Four = tuple[tensor, tensor, tensor, tensor]


class _Constants(NamedTuple):
    """What each round multiplies by and adds to the keys."""

    key_a: int
    key_b: int
    round_a: int
    round_b: int


PHILOX = {
    types.uint32: _Constants(0x9E3779B9, 0xBB67AE85, 0xD2511F53, 0xCD9E8D57),
    types.uint64: _Constants(0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0xD2E7470EE14C6C93, 0xCA5A826395121157),
}
# The largest factors by which the largest int32 and int64 stay below 1 in fp32.
UNIFORM = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}


@builtin
def philox_impl(
    c0: tensor, c1: tensor, c2: tensor, c3: tensor, k0: tensor, k1: tensor, n_rounds: int = N_ROUNDS
) -> Four:
    """`n_rounds` rounds on the counter (c0, c1, c2, c3) with the key (k0, k1), all uint32 or all uint64."""
    c0, c1, c2, c3, k0, k1 = (to_tensor(value) for value in (c0, c1, c2, c3, k0, k1))
    constants = PHILOX.get(c0.dtype)
    if constants is None:
        raise TypeMismatchError(
            "tl.philox_impl needs unsigned counters", expected="uint32 or uint64", found=c0.type.name
        )
    for _ in range(constexpr_int(n_rounds, "the number of rounds")):
        high_a, high_b = umulhi(constants.round_a, c0), umulhi(constants.round_b, c2)
        low_a, low_b = mul(constants.round_a, c0), mul(constants.round_b, c2)
        c0, c2 = bitwise_xor(bitwise_xor(high_b, c1), k0), bitwise_xor(bitwise_xor(high_a, c3), k1)
        c1, c3 = low_b, low_a
        k0, k1 = add(k0, constants.key_a), add(k1, constants.key_b)
    return c0, c1, c2, c3


@builtin
def philox(seed: object, c0: object, c1: object, c2: object, c3: object, n_rounds: int = N_ROUNDS) -> Four:
    """Philox of counters of 32 or 64 bits with an integer seed, of which 64 bits are used."""
    key = to_tensor(seed)
    if not key.dtype.is_int():
        raise TypeMismatchError("a seed must be an integer", expected="an integer", found=key.type.name)
    key = cast(key, types.uint64)
    counters = [to_tensor(counter) for counter in (c0, c1, c2, c3)]
    width = counters[0].dtype.bits
    if width not in (32, 64) or not counters[0].dtype.is_int():
        raise TypeMismatchError(
            "tl.philox needs counters of 32 or 64 bits", expected="integers", found=counters[0].type.name
        )
    kind = types.get_int_dtype(width, signed=False)
    low = cast(bitwise_and(key, 0xFFFFFFFF), kind) if width == 32 else key
    high = cast(right_shift(key, 32), kind) if width == 32 else literal(0, kind)
    a, b, c, d = (cast(counter, kind, bitcast=True) for counter in counters)
    return philox_impl(a, b, c, d, low, high, n_rounds)


@builtin
def randint4x(seed: object, offset: object, n_rounds: int = N_ROUNDS) -> Four:
    """Four blocks of uniform uint32, in the shape of `offset`."""
    counter = to_tensor(offset)
    low = cast(counter, types.uint32)
    zero = mul(low, 0)
    high = cast(right_shift(counter, 32), types.uint32) if counter.dtype.bits > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@builtin
def randint(seed: object, offset: object, n_rounds: int = N_ROUNDS) -> tensor:
    """A block of uniform uint32, in the shape of `offset`; `randint4x` makes four for the same price."""
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x: object) -> tensor:
    """Uniform integers of 32 or 64 bits as uniform fp32 in [0, 1)."""
    value = to_tensor(x)
    if not value.dtype.is_int() or value.dtype.bits not in UNIFORM:
        raise TypeMismatchError(
            "tl.uint_to_uniform_float needs integers of 32 or 64 bits",
            expected="uint32 or uint64",
            found=value.type.name,
        )
    bits = value.dtype.bits
    signed = cast(value, types.get_int_dtype(bits, signed=True), bitcast=True)
    return mul(where(less_than(signed, 0), invert(signed), signed), UNIFORM[bits])


@builtin
def rand(seed: object, offset: object, n_rounds: int = N_ROUNDS) -> tensor:
    """A block of uniform fp32 in [0, 1), in the shape of `offset`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed: object, offsets: object, n_rounds: int = N_ROUNDS) -> Four:
    """Four blocks of uniform fp32 in [0, 1)."""
    a, b, c, d = (uint_to_uniform_float(part) for part in randint4x(seed, offsets, n_rounds))
    return a, b, c, d


@builtin
def pair_uniform_to_normal(u1: object, u2: object) -> tuple[tensor, tensor]:
    """Two normal variables of two uniform ones in [0, 1) (Box and Muller)."""
    radius = sqrt(mul(-2.0, log(maximum(1.0e-7, u1))))
    angle = mul(6.283185307179586, u2)
    return mul(radius, cos(angle)), mul(radius, sin(angle))


@builtin
def randn(seed: object, offset: object, n_rounds: int = N_ROUNDS) -> tensor:
    """A block of standard normal fp32, in the shape of `offset`."""
    a, b, _, _ = rand4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(a, b)[0]


@builtin
def randn4x(seed: object, offset: object, n_rounds: int = N_ROUNDS) -> Four:
    """Four blocks of standard normal fp32."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d))
