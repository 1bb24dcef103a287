"""The multiply-accumulate step of a dot, by element type and instruction set.

Level: `llvm`. A `DotInstruction` says how one group of `a` (a scalar) and one vector of groups of `b` go into one
vector of accumulators: a fused multiply-add, `vdpbf16ps`, `vpdpbusd`, `pmaddwd`, or plain multiplies. `INSTRUCTIONS`
picks it. Guarantees: integer steps are exact (accumulators wrap modulo 2**32, as i32 sums do); bf16 steps round as the
hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.llvm.types import BF16, F32, F64, I8, I32, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function

Step = Callable[[Function, Value, Value, Value], Value]


class DotInstruction(NamedTuple):
    """One way to multiply and accumulate.

    `group` elements of `a_type` make the scalar read as `a_load`; lanes of `b_load` hold a group of `b_type` each.
    `step(function, accumulator, a, b)` gives the new accumulator, `b` a vector of `b_load`. Where `bias_step(function,
    sum, b)` is set, the step adds too much, by the same amount in every row: `bias_step` sums that up over k.
    """

    accumulator: Type
    a_type: Type
    b_type: Type
    a_load: Type
    b_load: Type
    group: int
    step: Step
    bias_step: Callable[[Function, Value, Value], Value] | None = None


def _multiply_add(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    return function.fmuladd(function.splat(a, b.type.lanes), b, accumulator)


def _multiply_add_integers(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    return function.add(accumulator, function.mul(function.splat(a, b.type.lanes), b))


def _plain(type_: Type, step: Step) -> DotInstruction:
    return DotInstruction(type_, type_, type_, type_, type_, 1, step)


def _dpbf16ps(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    """Two bf16 products per lane; the pair of `a` travels as an i32 so that it is broadcast in one instruction."""
    lanes = accumulator.type.lanes
    pairs = vector("bfloat", 2 * lanes)
    left = function.bitcast(function.splat(a, lanes), pairs)
    return function.pure_call(
        f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}", accumulator.type, accumulator, left, function.bitcast(b, pairs)
    )


def _vpdpbusd(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    """Four u8 x s8 products per lane. `a` is made unsigned by adding 128 to each byte, before the broadcast.

    (Flipping the sign bits after the broadcast sends LLVM 22.1's x86 instruction selection into an endless loop.)
    """
    left = function.splat(function.xor(a, -0x7F7F7F80), accumulator.type.lanes)
    return _busd(function, accumulator, left, b)


def _vpdpbusd_bias(function: Function, total: Value, b: Value) -> Value:
    return _busd(function, total, constant(b.type, -0x7F7F7F80), b)


def _busd(function: Function, accumulator: Value, left: Value, right: Value) -> Value:
    lanes = accumulator.type.lanes
    quads = vector("i8", 4 * lanes)
    return function.pure_call(
        f"llvm.x86.avx512.vpdpbusd.{32 * lanes}",
        accumulator.type,
        accumulator,
        function.bitcast(left, quads),
        function.bitcast(right, quads),
    )


_MADD = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}


def _pmaddwd(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    """Bytes 0, 2 and bytes 1, 3 of each group as pairs of i16, each pair multiplied and added by one instruction."""
    lanes = accumulator.type.lanes
    words = vector("i16", 2 * lanes)
    left, right = function.bitcast(function.splat(a, lanes), words), function.bitcast(b, words)
    for halves in (_even_bytes, _odd_bytes):
        products = function.pure_call(_MADD[lanes], accumulator.type, halves(function, left), halves(function, right))
        accumulator = function.add(accumulator, products)
    return accumulator


def _even_bytes(function: Function, words: Value) -> Value:
    return function.ashr(function.shl(words, 8), 8)


def _odd_bytes(function: Function, words: Value) -> Value:
    return function.ashr(words, 8)


def _byte_products(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
    """Four sign-extended products a lane with plain multiplies: for any instruction set and lane count."""
    left = function.splat(a, accumulator.type.lanes)
    for byte in range(4):
        shift = 24 - 8 * byte
        x, y = (function.ashr(function.shl(operand, shift), 24) for operand in (left, b))
        accumulator = function.add(accumulator, function.mul(x, y))
    return accumulator


def _bytes(features: CpuFeatures) -> DotInstruction:
    def exact(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
        legal = features.is_x86 and accumulator.type.lanes in _MADD and accumulator.type.lanes <= features.f32_lanes
        return (_pmaddwd if legal else _byte_products)(function, accumulator, a, b)

    if features.vnni:
        return DotInstruction(I32, I8, I8, I32, I32, 4, _vpdpbusd, _vpdpbusd_bias)
    return DotInstruction(I32, I8, I8, I32, I32, 4, exact)


def _bf16(features: CpuFeatures) -> DotInstruction:
    if not features.bf16_dot:
        raise KeyError(f"{features.name} has no bf16 dot: convert to f32 while packing")
    return DotInstruction(F32, BF16, BF16, I32, I32, 2, _dpbf16ps)


INSTRUCTIONS: dict[str, Callable[[CpuFeatures], DotInstruction]] = {
    "f32": lambda _: _plain(F32, _multiply_add),
    "f64": lambda _: _plain(F64, _multiply_add),
    "i32": lambda _: _plain(I32, _multiply_add_integers),
    "bf16": _bf16,
    "i8": _bytes,
}
"""How to multiply elements of a type on an instruction set; KeyError where it has no such dot."""
