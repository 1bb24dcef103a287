"""Functions of elements as OpenCL has them, which Intel's compiler makes instructions or short sequences of.

Level: intrinsic -> llvm. Everything else is as on every GPU (`simt/elements.py`), but for divisions.
"""

from __future__ import annotations

from mltriton.dialects import math, tt
from mltriton.targets.llvm.emit import floats
from mltriton.targets.llvm.math import Vectors, erf
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt import elements
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.elements import inline
from mltriton.targets.simt.features import Features
from mltriton.targets.xe.llvm.emit import divisions
from mltriton.targets.xe.llvm.machine import opencl as function


def opencl(name: str) -> Rule:
    """A function of floats that OpenCL has."""

    def compute(f: Function, *operands: Value) -> Value:
        return function(f, name, *operands)

    return floats.wide(compute)


def _power_of_two(f: Function, x: Value) -> Value:
    """The instruction's, which f64 does not have: OpenCL says nothing of what its native function of doubles errs."""
    return function(f, "native_exp2" if x.type.element == "float" else "exp2", x)


# The odd polynomial that is tanh up to _SMALL, over x**3: highest power first; fitted by least squares of the relative
# error at Chebyshev's nodes.
_SMALL = 0.625
_TANH = (-5.704042525e-03, 2.063786149e-02, -5.373915650e-02, 1.333143175e-01, -3.333328128e-01)
_LOG2_E = 1.4426950408889634


def _tanh(f: Function, x: Value) -> Value:
    """Without branches: of OpenCL's own function Intel's compiler makes so much code for each element that it takes
    minutes for a block.
    """
    if x.type.element != "float":
        return function(f, "tanh", x)
    size, square = function(f, "fabs", x), f.fmul(x, x)
    series = constant(x.type, _TANH[0])
    for coefficient in _TANH[1:]:
        series = function(f, "fma", series, square, constant(x.type, coefficient))
    small = function(f, "fma", f.fmul(series, square), x, x)
    power = _power_of_two(f, f.fmul(size, constant(x.type, 2 * _LOG2_E)))
    share = f.fdiv(constant(x.type, 2.0), f.fadd(power, constant(x.type, 1.0)))
    large = f.fsub(constant(x.type, 1.0), share)
    return f.select(f.fcmp("olt", size, constant(x.type, _SMALL)), small, function(f, "copysign", large, x))


def _erf(f: Function, x: Value) -> Value:
    """By the instruction for powers of two, without branches: OpenCL's own takes more registers for a block than
    there are.
    """

    def exp(v: Vectors, y: Value) -> Value:
        return _power_of_two(v.function, v.function.fmul(y, v.number(_LOG2_E)))

    return erf(Vectors(f, Features(), x.type), x, exp) if x.type.element == "float" else inline("erf")(f, x)


def high_product(e: Emitter, op: tt.MulhiUI) -> Value:
    """The high half of a product."""
    return function(e.function, "u_mul_hi", e.get(op.lhs), e.get(op.rhs))


RULES: Rules = {
    **elements.RULES,
    **divisions.RULES,
    math.Exp: opencl("exp"),
    math.Exp2: floats.wide(_power_of_two),
    math.Log: opencl("log"),
    math.Log2: opencl("log2"),
    math.Sin: opencl("sin"),
    math.Cos: opencl("cos"),
    math.Tanh: floats.wide(_tanh),
    math.Erf: floats.wide(_erf),
    math.Sqrt: opencl("sqrt"),
    math.Rsqrt: opencl("rsqrt"),
    math.Floor: opencl("floor"),
    math.Ceil: opencl("ceil"),
    math.Fma: opencl("fma"),
    tt.PreciseSqrt: opencl("sqrt"),
    tt.MulhiUI: high_product,
}
