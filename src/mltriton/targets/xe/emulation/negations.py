"""Negated floats in kernels with barriers, as calls of functions that stay functions.

Level: `llvm` text. Intel's runtime for CPUs runs one warp of a program after the other from barrier to barrier, and
keeps for each warp what later parts need. It takes a result of `fneg`, and what is computed from that alone, for the
same in all warps: `exp(-x)` before a barrier and used after it would be that of the last warp. LLVM also makes `fneg`
of products and quotients with -1. Guarantees: no such value is left; other kernels stay as they are.
"""

from __future__ import annotations

import re

from mltriton.targets.llvm.types import F16, F32, F64, vector
from mltriton.targets.llvm.writer import Module
from mltriton.targets.xe.spirv import builtins as xe

_TYPES = {str(type_): type_ for type_ in (F16, F32, F64)}
_TYPE = r"(?P<type><(?P<lanes>\d+) x (?P<element>half|float|double)>|half|float|double)"
_MINUS_ONE = r"(?:splat \(\w+ )?(?:-1\.0|0xHBC00|0xBFF0000000000000)\)?"
_NEGATIONS = [
    re.compile(rf"= {form}$", re.MULTILINE)
    for form in (
        rf"fneg {_TYPE} (?P<value>%\w+)",
        rf"f(?:mul|div) {_TYPE} (?P<value>%\w+), {_MINUS_ONE}",
        rf"fmul {_TYPE} {_MINUS_ONE}, (?P<value>%\w+)",
    )
]
_BARRIERS = (xe.BARRIER, xe.BARRIER_WAIT)


def rewrite(text: str, library: Module) -> str:
    """The kernel in `text` with negations that the runtime keeps for each warp."""
    if not any(f"@{barrier.symbol}(" in text for barrier in _BARRIERS):
        return text
    for negation in _NEGATIONS:
        text = negation.sub(lambda found: f"= {_call(found, library)}", text)
    return text


def _call(found: re.Match[str], library: Module) -> str:
    type_ = _TYPES[found["element"] or found["type"]]
    type_ = vector(type_.element, int(found["lanes"] or 1))
    name = f"emulated_negation_{type_.suffix}"
    if not library.defines(name):
        function = library.function(name, type_, [("value", type_)], extra="noinline ")
        function.ret(function.fneg(function.parameters[0]))
    return f"call {type_} @{name}({type_} {found['value']})"
