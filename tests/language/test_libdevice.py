"""`tl.extra.libdevice` on the CPU and in the executor: every function against numpy, in units of the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import TypeMismatchError
from mltriton.executor import run
from mltriton.language.extra import libdevice
from mltriton.language.extra.integers import CONVERSIONS

SIZE = 256
RNG = np.random.default_rng(0)


@triton.jit
def apply1(out, x, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i)))


@triton.jit
def apply2(out, x, y, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i)))


@triton.jit
def apply3(out, x, y, z, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


@triton.jit
def apply4(out, x, y, z, w, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i), tl.load(z + i), tl.load(w + i)))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def results(name, *inputs, dtype=None):
    """What the machine code and the executor compute: blocks of `SIZE`."""
    size = max(len(values) for values in inputs)
    padded = [np.resize(values, SIZE) for values in inputs]
    out = np.zeros(SIZE, dtype or inputs[0].dtype)
    kernel = {1: apply1, 2: apply2, 3: apply3, 4: apply4}[len(inputs)]
    compiled = kernel[(1,)](out, *padded, getattr(libdevice, name), SIZE)
    again = np.zeros_like(out)
    run(compiled.job.module("tt"), [again, *padded], (1,))
    return out[:size], again[:size]


def spread(low, high, count=SIZE):
    """Numbers of either sign, evenly spread in their exponent."""
    sizes = np.exp2(RNG.uniform(math.log2(low), math.log2(high), count))
    return sizes * RNG.choice([-1, 1], count)


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, np.inf, -np.inf, np.nan, 3.0, -3.0, 0.25, -0.25, 1e-30])
POSITIVE = np.abs(EDGES)
UNIT = np.concatenate([RNG.uniform(-1, 1, 120), spread(1e-8, 1, 60), 1 - np.abs(spread(1e-6, 1e-1, 60)), EDGES])
WIDE = np.concatenate([spread(1e-6, 1e6, 180), RNG.uniform(-4, 4, 60), EDGES])
HUGE = np.concatenate([spread(1e-35, 1e35, 240), EDGES])

# Name -> numpy's function, numbers, units in the last place, how near 0 any number will do (in the dtype's epsilon).
UNARY = {
    "acos": (np.arccos, UNIT, 4, 0),
    "acosh": (np.arccosh, np.concatenate([1 + np.abs(spread(1e-6, 1e30, 240)), EDGES]), 6, 0),
    "asin": (np.arcsin, UNIT, 4, 0),
    "asinh": (np.arcsinh, HUGE, 6, 0),
    "atan": (np.arctan, HUGE, 3, 0),
    "atanh": (np.arctanh, UNIT, 6, 0),
    "cbrt": (np.cbrt, HUGE, 3, 0),
    "ceil": (np.ceil, WIDE, 0, 0),
    "cosh": (np.cosh, np.concatenate([RNG.uniform(-89.4, 89.4, 239), [89.4], EDGES]), 24, 0),
    "cospi": (lambda x: np.cos(np.pi * np.fmod(x, 2)), np.concatenate([RNG.uniform(-9, 9, 240), EDGES]), 4, 16),
    "exp10": (lambda x: np.power(10, x), np.concatenate([RNG.uniform(-30, 30, 240), EDGES]), 1, 0),
    "expm1": (np.expm1, np.concatenate([RNG.uniform(-40, 88.7, 178), [88.7, -700], spread(1e-8, 1, 60), EDGES]), 12, 0),
    "log10": (np.log10, np.concatenate([np.abs(HUGE)[2:], -np.ones(2)]), 1, 0),
    "log1p": (np.log1p, np.concatenate([np.abs(HUGE), -np.abs(UNIT)[:120]])[:SIZE], 6, 0),
    "rcbrt": (lambda x: 1 / np.cbrt(x), HUGE, 4, 0),
    "saturatef": (lambda x: np.nan_to_num(np.clip(x, 0, 1)), WIDE, 0, 0),
    "sinh": (
        np.sinh,
        np.concatenate([RNG.uniform(-89.4, 89.4, 178), [89.4, -89.4], spread(1e-8, 1, 60), EDGES]),
        24,
        0,
    ),
    "sinpi": (lambda x: np.sin(np.pi * np.fmod(x, 2)), np.concatenate([RNG.uniform(-9, 9, 240), EDGES]), 4, 16),
    "tan": (np.tan, np.concatenate([RNG.uniform(-1.5, 1.5, 240), EDGES]), 8, 0),
    "trunc": (np.trunc, WIDE, 0, 0),
    "nearbyint": (np.rint, np.concatenate([WIDE, [1.5, 2.5, -0.5, 3.5]])[-SIZE:], 0, 0),
    "logb": (lambda x: np.where(np.isfinite(x), np.floor(np.log2(np.abs(x))), np.abs(x)), HUGE, 0, 0),
}
BINARY = {
    "atan2": (np.arctan2, 4),
    "hypot": (np.hypot, 4),
    "rhypot": (lambda x, y: 1 / np.hypot(x, y), 6),
    "fdim": (lambda x, y: np.where(x > y, x - y, np.where(x <= y, 0, np.nan)), 0),
    "nextafter": (np.nextafter, 0),
    "copysign": (np.copysign, 0),
}


def assert_close(found, wanted, ulp, near_zero=0):
    wanted = np.asarray(wanted)
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    eps = np.finfo(found.dtype).eps
    kept = ~is_nan
    with np.errstate(over="ignore"):
        rounded = wanted.astype(found.dtype)
    infinite = np.isinf(rounded) | np.isinf(found)
    np.testing.assert_array_equal(found[kept & infinite], rounded[kept & infinite])
    kept &= ~infinite
    error = np.abs(found[kept].astype(np.longdouble) - wanted[kept])
    allowed = ulp * eps * np.maximum(np.abs(wanted[kept]), np.finfo(found.dtype).tiny) + near_zero * eps
    worst = int(np.argmax(error - allowed)) if len(error) else 0
    assert (error <= allowed).all(), (found[kept][worst], wanted[kept][worst], float(error[worst] / eps))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    expected, numbers, ulp, near_zero = UNARY[name]
    x = numbers.astype(dtype)
    with np.errstate(all="ignore"):
        wanted = expected(x.astype(np.longdouble if dtype is np.float64 and name != "logb" else np.float64))
    for found in results(name, x):
        assert found.dtype == dtype
        assert_close(found, wanted, ulp, near_zero)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    expected, ulp = BINARY[name]
    x = np.concatenate([spread(1e-18, 1e18, 120), EDGES.repeat(8), EDGES[:8]]).astype(dtype)
    y = np.concatenate([spread(1e-18, 1e18, 120), np.tile(EDGES, 8), EDGES[:8]]).astype(dtype)
    kind = dtype if name in ("nextafter", "fdim") else np.longdouble
    with np.errstate(all="ignore"):
        wanted = expected(x.astype(kind), y.astype(kind))
    for found in results(name, x, y):
        assert_close(found, wanted, ulp)
        zero = (wanted == 0) & (found == 0)
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers(dtype):
    """To one unit in the last place, whatever the exponent; what is exact is exact."""
    base = np.exp(RNG.uniform(-20, 20, 200)).astype(dtype)
    most = math.log(np.finfo(dtype).max)
    exponent = (RNG.uniform(-0.98, 0.98, 200) * most / np.log(base)).astype(dtype)
    for found in results("pow", base, exponent):
        assert_close(found, np.power(base.astype(np.longdouble), exponent.astype(np.longdouble)), 1)
    base, exponent = RNG.integers(-12, 13, SIZE).astype(dtype), RNG.integers(0, 7, SIZE).astype(dtype)
    for found in results("pow", base, exponent):
        np.testing.assert_array_equal(found, np.power(base, exponent))
    base, exponent = (np.array(values, dtype) for values in zip(*((a, b) for a in EDGES for b in EDGES), strict=True))
    with np.errstate(all="ignore"):
        wanted = np.power(base, exponent)
    for found in results("pow", base, exponent):
        np.testing.assert_allclose(found, wanted, rtol=np.finfo(dtype).eps)
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
    tens = np.arange(0, 23 if dtype is np.float64 else 11).astype(dtype)
    for whole, found in zip(results("exp10", tens), results("log10", np.power(dtype(10), tens)), strict=True):
        np.testing.assert_array_equal(whole, np.power(dtype(10), tens))
        np.testing.assert_array_equal(found, tens)


def test_largest_results():
    """Finite where a part of the formula would be infinite."""
    for name, x in (("sinh", 710.4), ("cosh", -710.4), ("expm1", 709.7), ("log1p", 1.7e308)):
        for found in results(name, np.array([x])):
            np.testing.assert_allclose(found, getattr(math, name)(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders(dtype):
    x = np.concatenate([spread(1e-3, 1e7, 200), EDGES[:10], [5, 7, -5, 2.5]]).astype(dtype)
    y = np.concatenate([spread(1e-2, 1e2, 200), [3.0] * 10, [2, 2, 2, 1]]).astype(dtype)
    wanted = np.array([math.remainder(a, b) if math.isfinite(a) else math.nan for a, b in zip(x, y, strict=True)])
    for found in results("remainder", x, y):
        np.testing.assert_array_equal(found, wanted.astype(dtype))
    x, y = np.array([1, -1, 0, 1, 2, np.nan], dtype), np.array([np.inf, np.inf, 0, 0, np.nan, 1], dtype)
    for found in results("remainder", x, y):
        np.testing.assert_array_equal(found, np.array([1, -1, np.nan, np.nan, np.nan, np.nan], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths(dtype):
    inputs = [spread(1e-18, 1e18).astype(dtype) for _ in range(4)]
    largest = np.finfo(dtype).max / 4
    for values, edge in zip(inputs, (largest, largest, 0.0, -np.inf), strict=True):
        values[:3] = [edge if np.isfinite(edge) else 0.0, 0.0, edge if np.isinf(edge) else 1.0]
    for count, name in ((3, "norm3d"), (4, "norm4d")):
        wide = [values.astype(np.longdouble) for values in inputs[:count]]
        wanted = np.sqrt(sum(values * values for values in wide))
        for found in results(name, *inputs[:count]):
            assert_close(found, wanted, 4)
        inverse = [values[2:] for values in inputs[:count]]
        for found in results(f"r{name}", *inverse):
            assert_close(found, 1 / wanted[2:], 6)


# What NVIDIA's own functions give, its bitcode run on a CPU.
EDGES_OF = {
    "sinpi": {-0.0: -0.0, 1: 0.0, -2: -0.0, 3: 0.0, 2.0**31: 0.0, -3e38: -0.0, 8388607.5: -1, np.inf: np.nan},
    "cospi": {0.5: 0.0, -2.5: 0.0, 2.0**24: 1, 2.0**31: 1, 8388609.0: -1, -3e38: 1, 4194303.5: 0.0, np.nan: np.nan},
    "log1p": {-np.inf: np.nan, np.inf: np.inf, -1: -np.inf, -0.0: -0.0},
    "rint": {-0.5: -0.0, -1e-45: -0.0, -0.0: -0.0, 0.5: 0.0, -1.5: -2, -np.inf: -np.inf, np.nan: np.nan},
    "nearbyint": {-0.25: -0.0},
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EDGES_OF)
def test_edges_and_the_sign_of_zero(name, dtype):
    x = np.array(list(EDGES_OF[name]), dtype)
    wanted = np.array(list(EDGES_OF[name].values()), dtype)
    for found in results(name, x):
        np.testing.assert_array_equal(found, wanted)
        is_number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


@pytest.mark.parametrize("target", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floats_that_no_integer_holds_become_the_nearest(source, target):
    info, names = np.iinfo(target), {np.int32: "int", np.uint32: "uint", np.int64: "ll", np.uint64: "ull"}
    name = f"{'float' if source is np.float32 else 'double'}2{names[target]}"
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**info.bits, -0.75, 7.75], source)
    highest_bit = -(2**31) if info.min else 2**31
    of_nan = 0 if source is np.float32 and info.bits == 32 else highest_bit << info.bits - 32
    for rounding, last in (
        ("rz", [0, 7]),
        ("rd", [max(info.min, -1), 7]),
        ("ru", [0, 8]),
        ("rn", [max(info.min, -1), 8]),
    ):
        for found in results(f"{name}_{rounding}", x, dtype=target):
            assert found.tolist() == [info.max, info.min, of_nan, info.max, info.min, info.max, *last]
    if target is np.int64:
        for name in ("llrint", "llround"):
            for found in results(name, x, dtype=target):
                assert found.tolist() == [info.max, info.min, info.min, info.max, info.min, info.max, -1, 8]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponents(dtype):
    info = np.finfo(dtype)
    x = np.concatenate([spread(1e-30, 1e30, 240), [0, -0.0, np.inf, -np.inf, np.nan, 1, info.max, info.tiny]]).astype(
        dtype
    )
    powers = np.concatenate([RNG.integers(-60, 60, 240), [5, 5, 5, 5, 5, -3000, -3000, 3000]]).astype(np.int32)
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, powers)
    for found in results("ldexp", x, powers):
        np.testing.assert_array_equal(found, wanted)
    x = x[np.isfinite(x) & (x != 0)]
    x[0] = info.smallest_subnormal * 3
    for found in results("ilogb", x, dtype=np.int32):
        assert found.tolist() == [math.frexp(value)[1] - 1 for value in x.tolist()]
    for found in results("ilogb", np.array([0, np.inf, -np.inf, np.nan], dtype), dtype=np.int32):
        assert found.tolist() == [-(2**31), 2**31 - 1, 2**31 - 1, -(2**31)]


def integers(dtype):
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, info.max, info.min, info.max - 1, 1 << 20]
    return np.concatenate([RNG.integers(info.min, info.max, 120, dtype=dtype), np.array(edges, dtype)])


WHOLE = {
    "popc": lambda bits, x: x.bit_count(),
    "clz": lambda bits, x: bits - x.bit_length(),
    "ffs": lambda bits, x: (x & -x).bit_length(),
    "brev": lambda bits, x: int(f"{x:0{bits}b}"[::-1], 2),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("name", WHOLE)
def test_bits(name, dtype):
    x, bits = integers(dtype), np.dtype(dtype).itemsize * 8
    wanted = [WHOLE[name](bits, int(value) & (1 << bits) - 1) for value in x]
    for found in results(name, x, dtype=dtype if name == "brev" else np.int32):
        assert [int(value) & (1 << bits) - 1 for value in found] == wanted


PAIRS = {
    "mulhi": lambda bits, a, b: (a * b) >> bits,
    "hadd": lambda bits, a, b: (a + b) >> 1,
    "rhadd": lambda bits, a, b: (a + b + 1) >> 1,
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_integers(name, dtype):
    x, bits = integers(dtype), np.dtype(dtype).itemsize * 8
    y = RNG.permutation(x)
    for found in results(name, x, y):
        assert found.tolist() == [PAIRS[name](bits, int(a), int(b)) for a, b in zip(x, y, strict=True)]


def test_small_products_and_differences():
    x, y = integers(np.int32), RNG.permutation(integers(np.int32))
    low = [np.array([(int(v) & 0xFFFFFF ^ 0x800000) - 0x800000 for v in values]) for values in (x, y)]
    for found in results("mul24", x, y):
        np.testing.assert_array_equal(found, (low[0] * low[1]).astype(np.int32))
    z = RNG.permutation(x)
    wanted = (np.abs(x.astype(np.int64) - y) + z).astype(np.int32)
    for found in results("sad", x, y, z):
        np.testing.assert_array_equal(found, wanted)


ROUND = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "uint": np.uint32,
    "ll": np.int64,
    "ull": np.uint64,
}


@pytest.mark.parametrize("name", [name for name in CONVERSIONS if "2" in name])
def test_conversions(name):
    source, target, rounding = *name.split("_")[0].split("2"), name[-2:]
    if source not in ("float", "double"):
        x = integers(DTYPES[source])
        wanted = x.astype(DTYPES[target])
    elif target in ("float", "double"):
        x = spread(1e-30, 1e30)
        wanted = x.astype(np.float32)
    else:
        x = np.concatenate([RNG.uniform(-1e6, 1e6, 100), [0.5, 1.5, 2.5, 3.0]]).astype(DTYPES[source])
        x = np.abs(x) if target.startswith("u") else x
        wanted = ROUND[rounding](x).astype(DTYPES[target])
    for found in results(name, x, dtype=DTYPES[target]):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", [name for name in CONVERSIONS if "_as_" in name])
def test_views(name):
    dtypes = {**DTYPES, "longlong": np.int64}
    source, target = (dtypes[word] for word in name.split("_as_"))
    x = integers(np.int64).view(source)
    for found in results(name, x, dtype=target):
        np.testing.assert_array_equal(found.view(np.uint8), x.view(target).view(np.uint8))


def test_roundings_to_int64():
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 1e12, 3.49], np.float64)
    for found in results("llrint", x, dtype=np.int64):
        assert found.tolist() == np.rint(x).tolist()
    for found in results("llround", x, dtype=np.int64):
        assert found.tolist() == [1, -1, 2, 3, -3, 10**12, 3]


def test_every_name_is_there():
    for name in libdevice.__all__:
        assert callable(getattr(libdevice, name)), name


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("atan", np.zeros(4, np.float16), "does not take fp16"),
        ("popc", np.zeros(4, np.float32), "popc is for integers"),
        ("float_as_int", np.zeros(4, np.float64), "float_as_int does not take fp64"),
        ("float2int_rz", np.zeros(4, np.int32), "float2int_rz does not take int32"),
    ],
)
def test_dtypes_that_a_function_does_not_take(name, value, message):
    with pytest.raises(TypeMismatchError, match=message) as raised:
        results(name, value)
    assert raised.value.file == __file__
