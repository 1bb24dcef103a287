"""sin and cos of f32 in a SIMD kernel, for arguments of any size.

Level: `llvm`. Multiples of pi/2 are taken off by the steps of `targets/llvm/math.py`, or where an element is too large
for them by `large_angles.py`. Guarantees: errors as there; NaN for infinities.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.targets.llvm import large_angles
from mltriton.targets.llvm.math import Vectors, circular, reduced
from mltriton.targets.llvm.types import Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.features import Features
from mltriton.targets.xe.llvm.emit.elements import function
from mltriton.targets.xe.llvm.simd.intrinsics import every, high_product

_LARGE = 1e5  # from here on the first reduction is no longer exact


def sine_of(quarter: int) -> Callable[[Function, Value], Value]:
    """sin(x + quarter pi/2)."""

    def compute(f: Function, x: Value) -> Value:
        if x.type.element != "float":
            return function(f, "cos" if quarter else "sin", x)
        v = Vectors(f, Features(), x.type)
        small = f.fcmp("ole", v.absolute(x), v.number(_LARGE))
        near = reduced(v, x, "HALF_PI")
        all_small = every(f, small) if x.type.is_vector else small
        r, n = f.choose(all_small, lambda: near, lambda: _either(v, x, small, near), "circular")
        made = circular(v, r, n, quarter)
        return made if quarter else f.select(f.fcmp("oeq", x, v.number(0.0)), x, made)  # of -0, too

    return compute


def _either(v: Vectors, x: Value, small: Value, near: tuple[Value, Value]) -> list[Value]:
    return [
        v.function.select(small, *pair) for pair in zip(near, large_angles.reduced(v, x, high_product), strict=True)
    ]
