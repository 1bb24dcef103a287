"""Matrix products of a sub-group: rows of a are read lane by lane, columns of b lie in the lanes.

Level: `llvm`. Lane n holds column n of b, c and the result. Of a, the i-th element that lane l holds is row i,
column l (32-bit elements: row 2 i + l / 8, column l % 8); smaller elements lie side by side in it. Products of floats
are added up in f32 in the order of k, and rounded once at the end.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import BF16, F16, F32, I8, I16, I32, Type, Value
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.emulation.lanes import from_bf16, to_bf16
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin, DpasOperands

_LANES = 16
_TF32_MASK = -(1 << 13)  # bits of an f32 that tf32 has


def write(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """A function with the built-in one's parameters; `constants` are k and the kind of operands."""
    k, operands = constants[0], DpasOperands(constants[1])
    _, a_type, _, c_type, _ = builtin.parameters
    name = f"emulated_product_{a_type}_{c_type}_{k}_{int(operands)}"
    parameters = [(f"a{number}", type_) for number, type_ in enumerate(builtin.parameter_types)]
    function = module.function(name, builtin.result_type, parameters, extra="convergent noinline ")
    _, a, b, c, _ = function.parameters
    _write_body(function, (a, b, c), k, operands)
    return name


def _write_body(f: Function, matrices: tuple[Value, Value, Value], k: int, operands: DpasOperands) -> None:
    a, b, c = matrices
    rows = c.type.lanes
    column = [_element(f, f.extract(b, step * 8 // k), step % (k // 8), k, operands, "B") for step in range(k)]
    held, sums = f.alloca(a.type.scalar, a.type.lanes), f.alloca(c.type.scalar, rows)
    f.store(a, held, align=4)
    f.store(c, sums, align=4)
    lanes_per_row = k if k < _LANES else _LANES
    with f.loop(0, rows) as loop:
        address = f.gep(sums, loop.index, c.type.scalar)
        total = _widened(f, f.load(c.type.scalar, address), operands)
        rows_held = _LANES // lanes_per_row
        element = f.binary("udiv", loop.index, rows_held)
        own = _word(f, f.load(a.type.scalar, f.gep(held, element, a.type.scalar)))
        first = f.mul(f.cast("trunc", f.binary("urem", loop.index, rows_held), I32), lanes_per_row)
        per_lane = k // lanes_per_row
        for lane in range(lanes_per_row):
            word = xe.BROADCAST.of("uint").call(f, own, f.add(first, lane))
            for part in range(per_lane):
                factor = _element(f, word, part, k, operands, "A")
                total = _accumulate(f, total, factor, column[lane * per_lane + part])
        f.store(_narrowed(f, total, c.type.scalar, operands), address)
        loop.yield_()
    f.ret(f.load(c.type, sums, align=4))


def _word(f: Function, value: Value) -> Value:
    """The bits of an operand as i32."""
    if value.type == F32:
        return f.bitcast(value, I32)
    return f.cast("zext", value, I32)


def _element(f: Function, word: Value, part: int, k: int, operands: DpasOperands, side: str) -> Value:
    """Number `part` of the elements in a word, as f32 or i32."""
    if k == 8:
        bits = f.and_(_word(f, word), _TF32_MASK)
        return f.bitcast(bits, F32)
    bits = f.cast("trunc", f.lshr(_word(f, word), part * 256 // k), I16 if k == 16 else I8)
    if k == 32:
        signed = operands & DpasOperands[f"{side}_SIGNED"]
        return f.cast("sext" if signed else "zext", bits, I32)
    if operands & DpasOperands[f"{side}_F16"]:
        return f.cast("fpext", f.bitcast(bits, F16), F32)
    return from_bf16(f, bits)


def _accumulate(f: Function, total: Value, a: Value, b: Value) -> Value:
    if total.type == I32:
        return f.add(total, f.mul(a, b))
    return f.fadd(total, f.fmul(a, b))


def _widened(f: Function, value: Value, operands: DpasOperands) -> Value:
    """An accumulator in the type in which products are added up."""
    if operands & DpasOperands.C_BF16:
        return from_bf16(f, value)
    return f.cast("fpext", value, F32) if value.type == F16 else value


def _narrowed(f: Function, value: Value, to: Type, operands: DpasOperands) -> Value:
    if operands & DpasOperands.RESULT_BF16:
        return to_bf16(f, value)
    return f.cast("fptrunc", value, to) if to in (F16, BF16) else value
