"""What of the functions is plain arithmetic, against exact references, on this machine's processor."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from fractions import Fraction

import llvmlite.binding as llvm
import numpy as np
import pytest

from mltriton.targets.llvm.large_angles import reduced
from mltriton.targets.llvm.math import Vectors, circular
from mltriton.targets.llvm.toolchain import host_machine
from mltriton.targets.llvm.types import F32, F64, PTR, VOID, Type, Value, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.nvidia.math import Features, remainder

TYPES = {np.dtype(np.float32): F32, np.dtype(np.float64): F64}


def run(compute: Callable[..., Value], *arrays: np.ndarray) -> np.ndarray:
    """A function of numbers, of each element."""
    type_, module = TYPES[arrays[0].dtype], Module()
    f = module.function("each", VOID, [(f"p{i}", PTR) for i in range(len(arrays) + 1)], linkage="")
    with f.loop(0, len(arrays[0]), 1) as loop:
        *sources, target = f.parameters
        values = [f.load(type_, f.gep(source, loop.index, type_)) for source in sources]
        f.store(compute(f, *values), f.gep(target, loop.index, type_))
    f.ret()
    host_machine()
    parsed = llvm.parse_assembly(module.text)
    engine = llvm.create_mcjit_compiler(parsed, llvm.Target.from_default_triple().create_target_machine())
    made = np.zeros_like(arrays[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, made)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(engine.get_function_address("each"))(*pointers)
    return made


def high_product(f: Function, a: Value, b: Value) -> Value:
    wide: Type = vector(f"i{2 * a.type.bits}", 1)
    return f.cast("trunc", f.lshr(f.mul(f.cast("zext", a, wide), f.cast("zext", b, wide)), a.type.bits), a.type)


def arc_cotangent(n: int, bits: int) -> int:
    """The arc cotangent of n in units of 2**-bits."""
    total, term, sign, divisor = 0, (1 << bits) // n, 1, 1
    while term:
        total, term, sign, divisor = total + sign * (term // divisor), term // (n * n), -sign, divisor + 2
    return total


PI = Fraction(4 * (4 * arc_cotangent(5, 400) - arc_cotangent(239, 400)), 2**400)  # enough for the largest f32


@pytest.mark.parametrize("quarter", [0, 1])
def test_sines_of_large_f32(quarter: int) -> None:
    rng = np.random.default_rng(3)
    x = (rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(20, 127.9, 4000))).astype(np.float32)

    def compute(f: Function, value: Value) -> Value:
        v = Vectors(f, Features(), value.type)
        return circular(v, *reduced(v, value, high_product), quarter)

    found = run(compute, x)
    angles = [float(Fraction(float(each)) % (2 * PI)) for each in x]
    wanted = np.array([(math.cos if quarter else math.sin)(angle) for angle in angles])
    assert np.abs(found - wanted).max() < 2e-7
    assert np.isnan(run(compute, np.array([np.inf, -np.inf, np.nan], np.float32))).all()


@pytest.mark.parametrize("quarter", [0, 1])
def test_sines_of_large_f64(quarter: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(20, 1023.9, 4000))

    def compute(f: Function, value: Value) -> Value:
        v = Vectors(f, Features(), value.type)
        return circular(v, *reduced(v, value, high_product), quarter)

    wanted = [(math.cos if quarter else math.sin)(each) for each in x]  # the C library's, for angles of any size
    assert np.abs(run(compute, x) - wanted).max() < 5e-16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype: type) -> None:
    rng = np.random.default_rng(5)
    reach = 140 if dtype is np.float32 else 1060
    x, y = ((rng.standard_normal(4000) * np.exp2(rng.uniform(-reach, reach, 4000) * 0.9)).astype(dtype) for _ in "xy")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, np.finfo(dtype).tiny / 8], dtype)
    x = np.concatenate([x, x[:1000], np.repeat(special, len(special))])
    y = np.concatenate([y, (x[:1000] / 7).astype(dtype), np.tile(special, len(special))])
    with np.errstate(invalid="ignore"):
        wanted = np.fmod(x, y)
    found = run(remainder, x, y)
    np.testing.assert_array_equal(found, wanted)
    ordered = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[ordered]), np.signbit(wanted[ordered]))
