"""Element-wise operations: rules that see one LLVM value of each block.

Level: intrinsic -> llvm. Integer arithmetic keeps what is known of addresses (`affine`); functions are OpenCL's, which
Intel's compiler makes instructions or short sequences of. Everything else is as on other targets.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import arith, math, tt
from mltriton.ir.types import element_type
from mltriton.targets.llvm.emit import arith as integer_rules
from mltriton.targets.llvm.emit import casts, floats
from mltriton.targets.llvm.math import FUNCTIONS, Vectors, erf
from mltriton.targets.llvm.types import Type, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.llvm import calls
from mltriton.targets.xe.llvm.emit import divisions
from mltriton.targets.xe.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.xe.llvm.features import Features
from mltriton.targets.xe.spirv.builtins import Builtin


def _kept(name: str) -> Rule:
    """A sum or product whose constant part stays apart."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs, rhs = e.get(op.lhs), e.get(op.rhs)
        if lhs.type.is_vector:
            return e.function.binary(name, lhs, rhs)
        return getattr(e.affine, name)(lhs, rhs)

    return rule


def _sign_extension(e: Emitter, op: arith.ExtSI) -> Value:
    value, to = e.get(op.source), e.result_type(op)
    return e.function.cast("sext", value, to) if to.is_vector else e.affine.widen(value, to)


def _add_pointer(e: Emitter, op: tt.AddPtr) -> Value:
    element = integer_rules.memory_type(element_type(op.ptr.type))
    return e.affine.address(e.get(op.ptr), e.get(op.offset), element)


_BELOW = frozenset(("slt", "ult", "sge", "uge"))  # comparisons of which the bound may be on the right


def _compare(e: Emitter, op: arith.CmpI) -> Value:
    """Neighbours that a bound cannot tell apart are compared once: their accesses have one mask."""
    lhs, rhs = e.get(op.lhs), e.get(op.rhs)
    if op.predicate in _BELOW:
        lhs = e.affine.floor(lhs, e.affine.divisor(rhs))
    elif op.predicate not in ("eq", "ne"):
        rhs = e.affine.floor(rhs, e.affine.divisor(lhs))
    return e.function.icmp(op.predicate, lhs, rhs)


def opencl(name: str) -> Rule:
    """A function of floats that OpenCL has."""

    def compute(f: Function, *operands: Value) -> Value:
        return function(f, name, *operands)

    return floats.wide(compute)


def function(f: Function, name: str, *operands: Value) -> Value:
    """OpenCL's function of values of one type."""
    c_type = c_name(operands[0].type)
    return Builtin(f"__spirv_ocl_{name}", c_type, (c_type,) * len(operands), pure=True).call(f, *operands)


def c_name(type_: Type) -> str:
    """OpenCL's name of a type: `float8`."""
    return f"{calls.C_TYPES[type_.element]}{type_.lanes if type_.is_vector else ''}"


def _extremum(name: str, propagate: bool) -> Rule:
    """OpenCL's fmax or fmin take the number where one operand is NaN; where NaN is to win it is put back."""

    def compute(f: Function, a: Value, b: Value) -> Value:
        number = function(f, name, a, b)
        return f.select(f.fcmp("uno", a, b), f.fadd(a, b), number) if propagate else number

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


def inline(name: str) -> Callable[[Function, Value], Value]:
    """A function as polynomials, without branches: of OpenCL's own Intel's compiler makes up to 800 instructions for 16
    elements, or keeps all of a block at once.
    """

    def compute(f: Function, x: Value) -> Value:
        return FUNCTIONS[name](f, Features(), x)

    return compute


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


def _bitcast(e: Emitter, op: arith.Cast) -> Value:
    """The same bits; between a pointer and a pointer nothing, between i1 and a byte a widening of the bit."""
    f, value, target = e.function, e.get(op.source), e.result_type(op)
    pointers = [type_.element.startswith("ptr") for type_ in (value.type, target)]
    if any(pointers):
        return f.cast("bitcast" if all(pointers) else "ptrtoint" if pointers[0] else "inttoptr", value, target)
    if 1 in (value.type.bits, target.bits) and value.type.bits != target.bits:
        return f.cast("trunc" if target.bits == 1 else "zext", value, target)
    return f.bitcast(value, target)


def _splat(e: Emitter, op: tt.Splat) -> Value:
    return e.get(op.source)


SHARED: Rules = {**integer_rules.RULES, **floats.RULES, **casts.RULES}
OWN: Rules = {
    **divisions.RULES,
    arith.AddI: _kept("add"),
    arith.SubI: _kept("sub"),
    arith.MulI: _kept("mul"),
    arith.ExtSI: _sign_extension,
    arith.CmpI: _compare,
    arith.Bitcast: _bitcast,
    arith.MaximumF: _extremum("fmax", propagate=True),
    arith.MinimumF: _extremum("fmin", propagate=True),
    arith.MaxNumF: _extremum("fmax", propagate=False),
    arith.MinNumF: _extremum("fmin", propagate=False),
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
    tt.AddPtr: _add_pointer,
    tt.Bitcast: _bitcast,
    tt.Splat: _splat,
}
RULES: Rules = {kind: rule for kind, rule in {**SHARED, **OWN}.items() if kind not in (tt.MakeRange, tt.Unsplat)}
