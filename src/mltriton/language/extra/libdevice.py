"""`tl.extra.libdevice`: mathematical functions beyond those of `tl.math`, by the names of CUDA's library.

`elementary`, `angles`, `magnitudes`, `integers`, `special`, `bessel` and `directed` have them, and say how exact they
are. There is every name of upstream's module.
"""

from __future__ import annotations

from mltriton.language.arithmetic import fma
from mltriton.language.extra.angles import acos, acosh, asin, asinh, atan, atan2, atanh, cospi, sinpi
from mltriton.language.extra.bessel import cyl_bessel_i0, cyl_bessel_i1, j0, j1, jn, y0, y1, yn
from mltriton.language.extra.directed import (
    DIRECTED,
    add_rn,
    double2hiint,
    double2loint,
    hiloint2double,
    mul_rn,
    rcp64h,
    rsqrt_rn,
    sub_rn,
)
from mltriton.language.extra.elementary import (
    copysign,
    cosh,
    expm1,
    finitef,
    fmod,
    isinf,
    isnan,
    log1p,
    rint,
    round,
    signbit,
    sinh,
    tan,
    trunc,
)
from mltriton.language.extra.integers import (
    CONVERSIONS,
    brev,
    byte_perm,
    clz,
    ffs,
    hadd,
    llrint,
    llround,
    mul24,
    mulhi,
    popc,
    rhadd,
    sad,
)
from mltriton.language.extra.magnitudes import (
    cbrt,
    fdim,
    hypot,
    ilogb,
    ldexp,
    logb,
    nextafter,
    norm3d,
    norm4d,
    rcbrt,
    remainder,
    rhypot,
    rnorm3d,
    rnorm4d,
    saturatef,
    scalbn,
)
from mltriton.language.extra.powers import exp10, log10, pow
from mltriton.language.extra.special import erfc, erfcinv, erfcx, erfinv, lgamma, normcdf, normcdfinv, tgamma
from mltriton.language.math import (
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
)

# Other names of the same functions: of one dtype, less exact, or with the rounding that arithmetic has anyway.
isfinited, nearbyint = finitef, rint
fast_sinf, fast_cosf, fast_tanf, fast_tanhf = sin, cos, tan, tanh
fast_expf, fast_exp10f, fast_logf, fast_log2f, fast_log10f, fast_powf = exp, exp10, log, log2, log10, pow
fast_dividef = fdiv
fma_rn = fma

globals().update(CONVERSIONS | DIRECTED)

__all__ = [
    "abs", "acos", "acosh", "add_rn", "asin", "asinh", "atan", "atan2", "atanh", "brev", "cbrt", "ceil", "clz",
    "copysign", "cos", "cosh", "cospi", "div_rn", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fast_cosf",
    "fast_dividef", "fast_exp10f", "fast_expf", "fast_log10f", "fast_log2f", "fast_logf", "fast_powf", "fast_sinf",
    "fast_tanf", "fast_tanhf", "fdim", "fdiv", "ffs", "finitef", "floor", "fma", "fma_rn", "fmod", "hadd", "hypot",
    "ilogb", "isfinited", "isinf", "isnan", "ldexp", "llrint", "llround", "log", "log10", "log1p", "log2", "logb",
    "mul24", "mul_rn", "mulhi", "nearbyint", "nextafter", "norm3d", "norm4d", "popc", "pow", "rcbrt", "remainder",
    "rhadd", "rhypot", "rint", "rnorm3d", "rnorm4d", "round", "rsqrt", "sad", "saturatef", "scalbn", "signbit",
    "sin", "sinh", "sinpi", "sqrt", "sqrt_rn", "sub_rn", "tan", "tanh", "trunc", "byte_perm", "cyl_bessel_i0",
    "cyl_bessel_i1", "double2hiint", "double2loint", "erfcinv", "erfcx", "erfinv", "hiloint2double", "j0", "j1", "jn",
    "lgamma", "normcdf", "normcdfinv", "rcp64h", "rsqrt_rn", "tgamma", "y0", "y1", "yn", *CONVERSIONS, *DIRECTED,
]  # fmt: skip  # pyright: ignore[reportUnsupportedDunderAll]
