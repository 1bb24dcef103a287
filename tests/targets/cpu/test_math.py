"""Vector math against float64 (f32 functions) and against the C library (f64 functions), in units of the last place."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mltriton.targets.llvm.math import FUNCTIONS
from mltriton.targets.llvm.types import I64, vector

from .conftest import compile_kernel, run_kernel

COUNT = 1 << 14
FLUSHED, SHORT = "flushed exp2", "short exp2"
_erf = np.vectorize(math.erf, otypes=[np.float64])
REFERENCE = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": _erf, FLUSHED: np.exp2, SHORT: np.exp2,
}  # fmt: skip
F32_ULP = {"exp": 1.0, "exp2": 1.25, "log": 1.0, "log2": 1.5, "sin": 2.5, "cos": 2.5, "tanh": 2.0, "erf": 2.5}
F64_ULP = {"exp": 1.5, "exp2": 1.5, "log": 1.5, "log2": 2.5, "sin": 2.0, "cos": 2.0, "tanh": 2.5, "erf": 4.0}
F32_ULP[FLUSHED], F64_ULP[FLUSHED] = F32_ULP["exp2"], F64_ULP["exp2"]
F32_ULP[SHORT], F64_ULP[SHORT] = 2.0**24 / 2**17, F64_ULP["exp2"]


def reference(name, x, dtype):
    """What a function gives in float64; 0 in place of denormals where it flushes them."""
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](x.astype(np.float64))
        return np.where(exact < np.finfo(dtype).tiny, 0.0, exact) if name in (FLUSHED, SHORT) else exact


def apply(isa, name, x, lanes):
    element = "float" if x.dtype == np.float32 else "double"
    type_ = vector(element, lanes)
    count = x.size - x.size % lanes

    def build(function, parameters):
        source, target = parameters
        with function.loop(0, count, lanes) as loop:
            value = function.load(type_, function.gep(source, loop.index, type_.scalar))
            result = FUNCTIONS[name](function, isa, value)
            function.store(result, function.gep(target, loop.index, type_.scalar))

    y = np.zeros_like(x)
    run_kernel(compile_kernel(isa, build, 2), x, y)
    return y[:count]


def arguments(name, dtype):
    """Values over the whole range of the function, more of them where it is interesting."""
    rng = np.random.default_rng(7)
    wide = rng.standard_normal(COUNT) * np.exp2(rng.uniform(-30, 10, COUNT))
    limits = {"exp": 110, "exp2": 155, FLUSHED: 155, SHORT: 155, "sin": 300, "cos": 300, "tanh": 12, "erf": 5}
    if dtype == np.float64:
        limits |= {"exp": 760, "exp2": 1100, FLUSHED: 1100, SHORT: 1100}
    if name in ("log", "log2"):
        smallest = -149 if dtype == np.float32 else -1074
        spread = np.exp2(rng.uniform(smallest, -smallest * 0.85, COUNT))
        return np.concatenate([spread, rng.uniform(0.5, 2, COUNT), 1 + wide[np.abs(wide) < 0.5]]).astype(dtype)
    uniform = rng.uniform(-limits[name], limits[name], COUNT)
    return np.concatenate([uniform, uniform / 64, wide]).astype(dtype)


def ulps(y, exact, dtype):
    """The distance in units of the last place of the exact result (which is float64)."""
    with np.errstate(over="ignore"):
        rounded = np.abs(exact).astype(dtype)
    finite = np.isfinite(rounded)
    assert (np.abs(y[~finite]) == np.inf).all()
    assert (np.sign(y) == np.sign(exact))[rounded > np.finfo(dtype).tiny].all()
    distance = np.abs(y[finite].astype(np.float64) - exact[finite])
    return distance / np.spacing(rounded[finite]).astype(np.float64)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_f32_is_close(isa, name):
    x = arguments(name, np.float32)
    y = apply(isa, name, x, isa.f32_lanes)
    assert ulps(y, reference(name, x[: y.size], np.float32), np.float32).max() <= F32_ULP[name]


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_f64_is_close(isa, name):
    x = arguments(name, np.float64)
    y = apply(isa, name, x, isa.lanes(64))
    assert ulps(y, reference(name, x[: y.size], np.float64), np.float64).max() <= F64_ULP[name]


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_every_lane_count_gives_the_same(isa, name, lanes):
    x = arguments(name, np.float32)[: 64 * 40]
    full = apply(isa, name, x, isa.f32_lanes)
    np.testing.assert_allclose(apply(isa, name, x, lanes), full, rtol=2**-17 if name == SHORT else 2.5e-7, atol=1e-44)


SMALL = [
    0.0,
    -0.0,
    np.nan,
    5e-324,
    -5e-324,
    1e-45,
    -1e-45,
    1.0,
    -1.0,
    1e-38,
    -1e-300,
    88.75,
    -103.9,
    709.75,
    -744.9,
    0.5,
]
LARGE = [np.inf, -np.inf, 1e30, -1e30, 3e5, -7e7, 1e-38, -3.4e38, 1e8, 2e6, 128.0, -151.0, 0.0, -0.0, np.nan, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_special_values(isa, name, values, dtype):
    x = np.array(values, dtype)
    with np.errstate(all="ignore"):
        expected = reference(name, x, dtype).astype(dtype)
        y = apply(isa, name, x, min(16, isa.lanes(x.itemsize * 8)))
    np.testing.assert_allclose(y, expected, rtol=2**-17 if name == SHORT else 4 * np.finfo(dtype).eps, atol=0)
    assert (np.signbit(y) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_arguments_near_multiples_of_pi(isa, name, dtype):
    n = np.random.default_rng(3).integers(-60000, 60000, COUNT)
    x = (n * (np.pi / 2)).astype(dtype)
    y = apply(isa, name, x, isa.lanes(x.itemsize * 8))
    exact = REFERENCE[name](x.astype(np.float64))
    np.testing.assert_allclose(y, exact, rtol=6 * np.finfo(dtype).eps, atol=0)


def test_nothing_is_left_to_scalar_library_calls(isa):
    from mltriton.targets.llvm import toolchain
    from mltriton.targets.llvm.writer import Module

    module = Module()
    function = module.function("kernel", vector("void", 1), [("p", vector("ptr", 1)), ("n", I64)], linkage="")
    type_ = vector("float", isa.f32_lanes)
    value = function.load(type_, function.parameters[0])
    for name in ("exp", "exp2", "log", "log2", "tanh", "erf"):
        value = FUNCTIONS[name](function, isa, value)
    function.store(value, function.parameters[0])
    function.ret()
    assert "call" not in toolchain.assembly(module.text, toolchain.Machine(isa.triple, isa.cpu, isa.attributes))


def test_coefficients_are_what_the_script_computes():
    script = Path(__file__).parents[3] / "scripts" / "fit_polynomials.py"
    subprocess.run([sys.executable, script, "--check"], check=True, timeout=60)
