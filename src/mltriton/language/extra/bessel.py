"""`libdevice`'s Bessel functions.

Takes fp32 or fp64 tensors; computed in fp64. Errors below 1e-14 times the larger of the function's size and the
envelope's, sqrt(2 / (pi x)) (of `jn` and `yn` 1e-12); of `cyl_bessel_i0` and `i1` below 1e-13 relatively.
Source: Chebyshev series fitted in 40 digits, recurrences; for orders above x J. C. P. Miller's.
"""

from __future__ import annotations

import math as host
from collections.abc import Callable, Sequence
from typing import Any
from typing import cast as as_tensor

from mltriton.frontend.function import LanguageFunction
from mltriton.language import types
from mltriton.language.building import builtin, inline, made_builtin
from mltriton.language.casting import cast
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import copysign, isinf, wide
from mltriton.language.extra.special import chebyshev, in_double
from mltriton.language.math import abs, cos, exp, log, sin, sqrt
from mltriton.language.reductions import max
from mltriton.language.semantic import broadcast, to_tensor
from mltriton.language.tensor import tensor

__all__ = ["cyl_bessel_i0", "cyl_bessel_i1", "j0", "j1", "jn", "y0", "y1", "yn"]

NEAR = 8.0  # up to here by powers of x, from here by the waves that the functions become

# J0, J1 / x, and Y0, Y1 / x without their logarithms and pole, by t = x x / 32 - 1.
J0 = (
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725,
    -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05,
    -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
    -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17,
)  # fmt: skip
J1 = (
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037,
    -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06,
    -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
    -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17,
)  # fmt: skip
Y0 = (
    0.03645469809116044, -0.2783237094075825, 0.2960499990207148, 0.09825508408187864, -0.10755155280627783,
    0.031799074084414514, -0.005161397105810715, 0.0005498525320039012, -4.1996983149420134e-05,
    2.4290361107923793e-06, -1.1049969793472957e-07, 4.06651736597911e-09, -1.2374148898289854e-10,
    3.1685725528945945e-12, -6.926956032431002e-14, 1.3086308625876684e-15, -2.1586201986914482e-17,
)  # fmt: skip
Y1 = (
    0.038300769852423776, -0.08182561412732826, -0.0248677076121964, 0.047967452752746984, -0.01852588451089802,
    0.003680607687823511, -0.0004627254060293369, 4.06940026958087e-05, -2.6617695125295625e-06,
    1.350602691325434e-07, -5.483524110336276e-09, 1.8245086841229007e-10, -5.070666636591129e-12,
    1.1956162517587948e-13, -2.423162442712473e-15, 4.268126513072962e-17,
)  # fmt: skip
# The cosine's and the sine's (times x / 8) part of the wave of order 0 and 1, by t = 2 (8 / x)**2 - 1.
P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17,
)  # fmt: skip
Q0 = (
    -0.015555854605337009, 6.838519942611649e-05, -7.414498411060647e-07, 1.7972457247968992e-08,
    -7.27191593686632e-10, 4.2201219046687385e-11, -3.206747420996635e-12, 3.006145125351706e-13,
    -3.336328185322427e-14, 4.255225040245461e-15, -6.09993013164005e-16, 9.662128970303257e-17,
    -1.6686065214378146e-17, 3.1082440486738143e-18, -6.191115787358145e-19,
)  # fmt: skip
P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
    -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
    -1.7312313216116335e-17,
)  # fmt: skip
Q1 = (
    0.04677778706953532, -9.62772354915708e-05, 9.138615257955454e-07, -2.0959781384083424e-08,
    8.229193327650554e-10, -4.686363688176945e-11, 3.5152187949686082e-12, -3.2643156743279e-13,
    3.5967765829165294e-14, -4.5612523950772974e-15, 6.508282957783384e-16, -1.0269147531823243e-16,
    1.767635548776479e-17, -3.2834519872981614e-18, 6.524081149589261e-19,
)  # fmt: skip
# exp(-x) I0 and exp(-x) I1 / x by t = x / 4 - 1; exp(-x) sqrt(x) I0 and I1 by t = 16 / x - 1.
I0S = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357,
    -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05,
    -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11,
    -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
    -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17,
    -4.4153416464793395e-18,
)  # fmt: skip
I1S = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06,
    -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
)  # fmt: skip
I0L = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18,
)  # fmt: skip
I1L = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18,
)  # fmt: skip

Parts = tuple[tensor, tensor, tensor, tensor]


def _wave(order: int, x: tensor) -> tuple[tensor, tensor]:
    """J and Y of order 0 or 1 at x >= 8."""
    ratio = NEAR / x
    t = ratio * ratio * 2.0 - 1.0
    p, q = (chebyshev(part, t) for part in ((P0, Q0), (P1, Q1))[order])
    q, size = q * ratio, sqrt(1.0 / (host.pi * x))
    s, c = sin(x), cos(x)
    cosine, sine = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    return size * (p * cosine - q * sine), size * (p * sine + q * cosine)


def _both(order: int, x: tensor) -> Parts:
    """|x|, its near part, and J of order 0 or 1 near and far."""
    size = abs(x)
    near = where(size < NEAR, size, NEAR)
    far = where(size < NEAR, NEAR, where(isinf(size), NEAR, size))
    small = chebyshev((J0, J1)[order], near * near / 32.0 - 1.0)
    return size, near, small if order == 0 else small * near, _wave(order, far)[0]


def _first_kind(order: int, x: tensor) -> tensor:
    size, _, small, large = _both(order, x)
    found = where(size < NEAR, small, where(isinf(size), 0.0, large))
    found = where(size == size, found, size)
    return found if order == 0 else where(x < 0.0, -found, found)


def _second_kind(order: int, x: tensor) -> tensor:
    size, near, first, _ = _both(order, x)
    far = where(size < NEAR, NEAR, where(isinf(size), NEAR, size))
    safe = where(near > 0.0, near, 1.0)
    rest = chebyshev((Y0, Y1)[order], near * near / 32.0 - 1.0)
    small = first * log(safe * 0.5) * (2.0 / host.pi)
    small = small + rest if order == 0 else small - 2.0 / host.pi / safe + rest * near
    found = where(size < NEAR, where(near > 0.0, small, float("-inf")), where(isinf(size), 0.0, _wave(order, far)[1]))
    return where(x >= 0.0, found, float("nan"))


@in_double
def j0(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 0."""
    return _first_kind(0, x)


@in_double
def j1(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 1."""
    return _first_kind(1, x)


@in_double
def y0(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 0; NaN below 0."""
    return _second_kind(0, x)


@in_double
def y1(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 1; NaN below 0."""
    return _second_kind(1, x)


def _modified(near: Sequence[float], far: Sequence[float], x: tensor) -> tensor:
    """exp(-x) I of x >= 0 (near: over x)."""
    small = where(x < NEAR, x, NEAR)
    large = where(x < NEAR, NEAR, x)
    wide_part = chebyshev(far, 16.0 / large - 1.0) / sqrt(large)
    return where(x < NEAR, chebyshev(near, small * 0.25 - 1.0), wide_part)


def _grown(part: tensor, size: tensor) -> tensor:
    """`part` times exp(size), which may overflow alone."""
    half = exp(where(size < 2000.0, size, 2000.0) * 0.5)
    return where(size == size, part * half * half, size)


@in_double
def cyl_bessel_i0(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 0."""
    size = abs(x)
    return where(isinf(size), size, _grown(_modified(I0S, I0L, size), size))


@in_double
def cyl_bessel_i1(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 1."""
    size = abs(x)
    part = _modified(I1S, I1L, size)
    return copysign(where(isinf(size), size, _grown(where(size < NEAR, part * size, part), size)), x)


@builtin
def _largest(n: tensor) -> tensor:
    return as_tensor(tensor, max(n)) if n.type.is_block() else n


@builtin
def _from_one(x: tensor, first: Any) -> tensor:
    """A number in the shape of x."""
    return x * 0.0 + first


def _upward(n: Any, x: Any, a: Any, b: Any) -> Any:
    """The order n from orders 0 and 1, by f(k + 1) = 2 k / x f(k) - f(k - 1). Written in the language."""
    first = a
    k = 1
    top = _largest(n)
    while k < top:
        c = where(b == float("-inf"), b, b * (2.0 * k) / x - a)
        a = where(k < n, b, a)
        b = where(k < n, c, b)
        k += 1
    return where(n == 0, first, b)


def _downward(n: Any, x: Any) -> Any:
    """The order n from orders far above, by the same rule, scaled so that J0 + 2 J2 + 2 J4 + ... = 1. Written in the
    language.
    """
    top = _largest(n)
    k = 2 * ((top + 2 * 16 + top // 2) // 2)
    later = _from_one(x, 0.0)
    value = _from_one(x, 1.0)
    found = _from_one(x, 0.0)
    total = _from_one(x, 0.0)
    is_even = 0
    while k > 0:
        before = value * (2.0 * k) / x - later
        later = value
        value = before
        scale = where(abs(value) > 1e100, 1e-100, 1.0)
        value = value * scale
        later = later * scale
        found = found * scale
        total = total * scale + value * is_even
        is_even = 1 - is_even
        found = where(n == k, later, found)
        k -= 1
    return found / (2.0 * total - value)


_UPWARD, _DOWNWARD = LanguageFunction(_upward), LanguageFunction(_downward)


def _ordered(
    name: str, function: Callable[[tensor, tensor], tensor], meaning: str
) -> Callable[[object, object], tensor]:
    """A builtin of an integer order and a number, computed in fp64."""

    def ordered(n: object, x: object) -> tensor:
        value = wide(x, name)
        order, number = broadcast(cast(to_tensor(n), types.int32), cast(value, types.float64))
        safe = where(order > 0, order, 0)
        return cast(where(order < 0, float("nan"), function(safe, number)), value.dtype)

    return made_builtin(ordered, name, meaning)


def _jn(n: tensor, x: tensor) -> tensor:
    size = abs(x)
    is_far = size > cast(n, types.float64)
    is_zero = size < 1e-30
    far = where(is_far, where(isinf(size), 1.0, size), cast(n, types.float64) + 1.0)
    upward = inline(_UPWARD, [n, far, j0(far), j1(far)])
    near = where(is_zero | is_far, 1.0, size)
    downward = inline(_DOWNWARD, [n, near])
    found = where(is_far, where(isinf(size), 0.0, upward), where(is_zero, 0.0, downward))
    found = where(n == 0, j0(size), found)
    is_odd = (n & 1) == 1
    return where(size == size, where(is_odd & (x < 0.0), -found, found), size)


def _yn(n: tensor, x: tensor) -> tensor:
    safe = where((x > 0.0) & (x < float("inf")), x, 1.0)
    found = inline(_UPWARD, [n, safe, y0(safe), y1(safe)])
    edges = where(x == 0.0, float("-inf"), where(isinf(x) & (x > 0.0), 0.0, float("nan")))
    return where((x > 0.0) & (x < float("inf")), found, edges)


jn = _ordered("jn", _jn, "The Bessel function of the first kind of the integer order n, NaN for n < 0.")
yn = _ordered("yn", _yn, "The Bessel function of the second kind of the integer order n, NaN for n < 0 or x < 0.")
