"""OpenCL's functions of vectors, as this machine computes them. Level: `llvm`."""

from __future__ import annotations

import re
from collections.abc import Callable

from mltriton.errors import BackendError
from mltriton.targets.cpu.features import host
from mltriton.targets.llvm.math import FUNCTIONS
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.emulation.simd.call import Call, Write

# LLVM's intrinsics for functions that this machine has instructions or short sequences for.
_INTRINSICS = {
    **{name: f"llvm.{name}" for name in ("floor", "ceil", "sqrt", "fma", "copysign", "fabs", "rint", "trunc")},
    "fmax": "llvm.maxnum",
    "fmin": "llvm.minnum",
    "native_sqrt": "llvm.sqrt",
}


def _inverse_root(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), f.intrinsic("llvm.sqrt", x.type, x))


def _inverse(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), x)


def _sum_of_product(f: Function, a: Value, b: Value, c: Value) -> Value:
    return f.fadd(f.fmul(a, b), c)


def _high_product(f: Function, a: Value, b: Value) -> Value:
    wide = a.type.with_element(f"i{2 * a.type.bits}")
    product = f.mul(f.cast("zext", a, wide), f.cast("zext", b, wide))
    return f.cast("trunc", f.lshr(product, a.type.bits), a.type)


_OWN: dict[str, Callable[..., Value]] = {
    "rsqrt": _inverse_root,
    "native_rsqrt": _inverse_root,
    "native_recip": _inverse,
    "u_mul_hi": _high_product,
    "mad": _sum_of_product,
}


def _function(f: Function, call: Call) -> Value:
    length = re.match(r"_Z(\d+)", call.name)
    assert length is not None
    start = length.end()
    name = call.name[start : start + int(length[1])].removeprefix("__spirv_ocl_")
    operands = f.parameters[:-1]
    if name in _OWN:
        return _OWN[name](f, *operands)
    if name in _INTRINSICS:
        return f.intrinsic(_INTRINSICS[name], call.result, *operands)
    found = FUNCTIONS.get(name.removeprefix("native_"))
    if found is None:
        raise BackendError(f"OpenCL's {name} cannot be emulated")
    return found(f, host(), *operands)


def _umulh(f: Function, call: Call) -> Value:
    return _high_product(f, *f.parameters[:2])


WRITERS: dict[str, Write] = {"_Z": _function, "llvm.genx.umulh.": _umulh}
