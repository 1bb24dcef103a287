"""Reductions and scans: within a lane over its registers, then between lanes by shuffles.

Level: intrinsic -> llvm. The layout says which bits of a register's and of a lane's number count along the axis. A
reduction combines registers that differ in such a bit, then lanes; a scan goes through the bits of the axis from the
lowest on (Sklansky): where the bit is set, an element is combined with the last one of the half before it.
Guarantees: registers that repeat an element count once; the combination's operands keep their order along the axis in a
scan.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.operation import Region
from mltriton.ir.types import TensorType
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import Value
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted, layout_of
from mltriton.targets.simt.moves import move

Row = list[Value]  # the values of all sources at one index


def combine(e: Emitter, region: Region, accumulated: Row, new: Row) -> Row:
    """The combination that the user wrote."""
    with e.lanewise(new[0].type.lanes):
        return e.block(region.block, [*accumulated, *new])


def _reduce(e: Emitter, op: tt.Reduce) -> list[Emitted]:
    source = cast(TensorType, op.sources[0].type)
    layout = layout_of(source)
    rows = [list(row) for row in zip(*(e.registers(value) for value in op.sources), strict=True)]
    in_registers, in_lanes = (along(layout, name, op.axis) for name in ("register", "lane"))
    rows = over_registers(e, op.combine, rows, in_registers)
    rows = _over_lanes(e, op, rows, in_lanes, len(layout.vectors("lane")))
    left = without(layout, op.axis, in_registers)
    return [_finished(e, [row[number] for row in rows], left, result.type) for number, result in enumerate(op.results)]


def along(layout: LinearLayout, name: str, axis: int) -> list[int]:
    """The bits of registers or lanes that count along the axis and along nothing else."""
    bits: list[int] = []
    for bit, vector in enumerate(layout.vectors(name)):
        if vector[axis] and any(coordinate for dim, coordinate in enumerate(vector) if dim != axis):
            raise BackendError("a combination along a dimension whose elements are scattered over others")
        if vector[axis]:
            bits.append(bit)
    return bits


def over_registers(e: Emitter, region: Region, rows: list[Row], bits: list[int]) -> list[Row]:
    """Combine the registers that differ in these bits, highest first."""
    for bit in reversed(bits):
        step = 1 << bit
        kept = [number for number in range(len(rows)) if not number & step]
        rows = [combine(e, region, rows[number], rows[number | step]) for number in kept]
    return rows


def _over_lanes(e: Emitter, op: tt.Reduce, rows: list[Row], bits: list[int], lane_bits: int) -> list[Row]:
    """Combine the lanes that differ in these bits; all of them have the result. Of all lanes at once, by a function of
    the warp where there is one. Two lanes combine what they have in opposite order: what is not symmetric (in its last
    bit, or which of equal elements it takes) may differ between them, so that the first lane's result is everyone's.
    """
    f, combination = e.function, op.combine.block.ops
    if len(combination) == 2 and len(rows[0]) == 1 and len(bits) == lane_bits:
        made = [[e.machine.reduced(f, type(combination[0]), value) for value in row] for row in rows]
        if all(value is not None for row in made for value in row):
            return cast("list[Row]", made)
    for bit in bits:
        rows = [combine(e, op.combine, row, [e.calls.shuffle_xor(f, value, 1 << bit) for value in row]) for row in rows]
    if bits and not (len(combination) == 2 and combination[0].commutative):
        kept = ~sum(1 << bit for bit in bits)
        rows = [[e.from_lane(value, kept, 0) for value in row] for row in rows]
    return rows


def without(layout: LinearLayout, axis: int, reduced: list[int]) -> LinearLayout:
    """Where the results are: the registers that are left; every lane along the axis has them."""
    rest = layout.without(f"dim{axis}")
    bases = {name: list(rest.vectors(name)) for name in ("register", "lane")}
    bases["register"] = [vector for bit, vector in enumerate(bases["register"]) if bit not in reduced]
    return LinearLayout.of(bases, {f"dim{dim}": size for dim, size in enumerate(rest.sizes)})


def _finished(e: Emitter, registers: Row, layout: LinearLayout, result: object) -> Emitted:
    if not isinstance(result, TensorType):
        return registers[0]
    return e.held(move(e.calls, e.function, registers, layout, layout_of(result)), result)


def _scan(e: Emitter, op: tt.Scan) -> list[Emitted]:
    source = cast(TensorType, op.sources[0].type)
    layout = layout_of(source)
    rows = [list(row) for row in zip(*(e.registers(value) for value in op.sources), strict=True)]
    registers, lanes = _Steps(layout, "register", op.axis), _Steps(layout, "lane", op.axis)
    step = 1
    while step < source.shape[op.axis]:
        rows = _scan_step(e, op, rows, registers, lanes, step)
        step *= 2
    return [e.held([row[number] for row in rows], result.type) for number, result in enumerate(op.results)]


class _Steps:
    """Which bit of a register's or lane's number counts 1, 2, 4, ... along the axis."""

    def __init__(self, layout: LinearLayout, name: str, axis: int) -> None:
        along(layout, name, axis)
        self.bits = {vector[axis]: 1 << bit for bit, vector in enumerate(layout.vectors(name)) if vector[axis]}

    def below(self, step: int) -> int:
        """The bits that count less than `step`."""
        return sum(bit for counted, bit in self.bits.items() if counted < step)


def _scan_step(e: Emitter, op: tt.Scan, rows: list[Row], registers: _Steps, lanes: _Steps, step: int) -> list[Row]:
    """Combine the elements whose bit `step` is set (in a reverse scan: is not) with the neighbouring half."""
    in_register, in_lane = registers.bits.get(step, 0), lanes.bits.get(step, 0)
    if not in_register and not in_lane:
        raise BackendError("a scan along a dimension whose elements are scattered over others")
    inner, low_lanes = registers.below(step), lanes.below(step)
    made: list[Row] = []
    for number, row in enumerate(rows):
        takes = not in_register or bool(number & in_register) != op.reverse
        if not takes:
            made.append(row)
            continue
        other = (number ^ in_register) & ~inner if op.reverse else (number & ~in_register) | inner
        before = _from_lanes(e, rows[other], in_lane, low_lanes, op.reverse)
        combined = combine(e, op.combine, before, row)
        if in_lane:
            chosen = e.lane_bit(in_lane.bit_length() - 1)
            if op.reverse:
                chosen = e.function.xor(chosen, 1)
            combined = [e.function.select(chosen, new, old) for new, old in zip(combined, row, strict=True)]
        made.append(combined)
    return made


def _from_lanes(e: Emitter, row: Row, bit: int, low: int, reverse: bool) -> Row:
    """The values of the lane next to the half of lanes that take them."""
    if not bit and not low:
        return row
    kept, set_ = (~low, bit) if reverse else (~bit, low)
    return [e.from_lane(value, kept, set_) for value in row]


RULES: Rules = {
    tt.Reduce: _reduce,
    tt.Scan: _scan,
}
