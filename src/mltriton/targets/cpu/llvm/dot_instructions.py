"""The multiply-accumulate step of a dot, by element type and instruction set.

Level: `llvm`. A `DotInstruction` says how one group of `a` (a scalar) and one vector of groups of `b` go into one
vector of accumulators: a fused multiply-add, `vdpbf16ps`, `vpdpbusd`, `pmaddwd`, or plain multiplies. `INSTRUCTIONS`
picks it. Guarantees: integer steps are exact (accumulators wrap modulo 2**32, as i32 sums do); bf16 steps round as the
hardware.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.records import NamedTuple
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


_HALF = -0x7F7F7F80  # four bytes, each 128 or, read as signed, -128


def _vpdpbusd(unsigned: str) -> DotInstruction:
    """Four products per lane, each of an unsigned byte and a signed one: `b` is the one that it is. Where `a` is of the
    same kind, 128 is added to it or taken from it before the broadcast, so that the sum is off by `b` times that.

    (Flipping the sign bits after the broadcast sends LLVM 22.1's x86 instruction selection into an endless loop.)
    """
    is_moved = unsigned in ("", "ab")

    def ordered(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
        return _busd(function, accumulator, b, a) if "b" in unsigned else _busd(function, accumulator, a, b)

    def step(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
        left = function.splat(function.xor(a, _HALF) if is_moved else a, accumulator.type.lanes)
        return ordered(function, accumulator, left, b)

    def bias_step(function: Function, total: Value, b: Value) -> Value:
        return ordered(function, total, constant(b.type, _HALF), b)

    return _bytes(step, bias_step if is_moved else None)


def _busd(function: Function, accumulator: Value, left: Value, right: Value) -> Value:
    """Adds products of unsigned bytes of `left` and signed ones of `right`; no sum saturates."""
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


def _extended_products(features: CpuFeatures, unsigned: str) -> DotInstruction:
    """Bytes are extended and multiplied: in pairs where there is an instruction for that, or one by one."""

    def step(function: Function, accumulator: Value, a: Value, b: Value) -> Value:
        lanes = accumulator.type.lanes
        operands = (function.splat(a, lanes), "a" in unsigned), (b, "b" in unsigned)
        has_pairs = features.is_x86 and lanes in _MADD and lanes <= features.f32_lanes
        return (_pmaddwd if has_pairs else _byte_products)(function, accumulator, operands)

    return _bytes(step)


_Operands = tuple[tuple[Value, bool], tuple[Value, bool]]  # groups, and whether their bytes are unsigned


def _pmaddwd(function: Function, accumulator: Value, operands: _Operands) -> Value:
    """Bytes 0, 2 and bytes 1, 3 of each group as pairs of i16, each pair multiplied and added by one instruction."""
    lanes = accumulator.type.lanes
    words = [(function.bitcast(value, vector("i16", 2 * lanes)), unsigned) for value, unsigned in operands]
    for shift in (8, 0):
        factors = [_byte(function, value, shift, unsigned) for value, unsigned in words]
        accumulator = function.add(accumulator, function.pure_call(_MADD[lanes], accumulator.type, *factors))
    return accumulator


def _byte_products(function: Function, accumulator: Value, operands: _Operands) -> Value:
    """Four products a lane with plain multiplies: for any instruction set and lane count."""
    for byte in range(4):
        factors = [_byte(function, value, 24 - 8 * byte, unsigned) for value, unsigned in operands]
        accumulator = function.add(accumulator, function.mul(*factors))
    return accumulator


def _byte(function: Function, value: Value, above: int, unsigned: bool) -> Value:
    """The byte of each element that has so many bits above it, extended."""
    shift = function.lshr if unsigned else function.ashr
    return shift(function.shl(value, above), value.type.bits - 8)


def _bytes(step: Step, bias_step: Callable[[Function, Value, Value], Value] | None = None) -> DotInstruction:
    return DotInstruction(I32, I8, I8, I32, I32, 4, step, bias_step)


def _pairs(features: CpuFeatures, dtype: str) -> DotInstruction:
    if dtype != "bf16" or not features.bf16_dot:
        raise KeyError(f"{features.name} has no {dtype} dot: convert to f32 while packing")
    return DotInstruction(F32, BF16, BF16, I32, I32, 2, _dpbf16ps)


INSTRUCTIONS: dict[str, Callable[[CpuFeatures, str], DotInstruction]] = {
    "f32": lambda _, __: _plain(F32, _multiply_add),
    "f64": lambda _, __: _plain(F64, _multiply_add),
    "i32": lambda _, __: _plain(I32, _multiply_add_integers),
    "bf16": lambda features, _: _pairs(features, "bf16"),
    "f16": lambda features, _: _pairs(features, "f16"),
    "i8": lambda features, unsigned: _vpdpbusd(unsigned) if features.vnni else _extended_products(features, unsigned),
}
"""How to multiply elements of a type on an instruction set, where operands of "i8" ("a", "b", "ab") may be unsigned;
KeyError where it has no such dot.
"""
