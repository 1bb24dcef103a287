"""Printing and assertions from a SIMD kernel, by the means of a lane's program (`..emit.debug`).

Level: intrinsic -> llvm. A warp prints the elements that it holds one after the other, each once. Of the elements for
which an assertion fails, the warp writes the first into the kernel's last argument, and ends, except in kernels with
barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import cast

from mltriton.dialects import tt
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorType, element_type
from mltriton.targets.llvm.emit.debug import Printed, prefixes, printable
from mltriton.targets.llvm.types import I1, I32, I64, Value, constant
from mltriton.targets.simt.context import Rules, coordinates
from mltriton.targets.simt.debug import first_element, first_registers, print_line, program_number
from mltriton.targets.simt.lanes import layout_of
from mltriton.targets.xe.llvm.simd import intrinsics
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.global_memory import FIRST
from mltriton.targets.xe.llvm.simd.intrinsics import ATOMICS, LANES, read
from mltriton.targets.xe.llvm.simd.moves import pick

_RECORDED = 8  # bytes of each number of a record


def _print(e: WarpEmitter, op: tt.Print) -> None:
    program = [intrinsics.group(e.function, axis) for axis in range(3)]
    if not op.arguments:
        print_line(e, str(op.prefix), program, [], (), None)
    for prefix, argument in zip(prefixes(op), op.arguments, strict=True):
        if isinstance(argument.type, TensorType):
            _print_block(e, op, prefix, argument, program)
        else:
            print_line(e, prefix, program, [], (), _printable(e, op, argument, e.get(argument)))


def _printable(e: WarpEmitter, op: tt.Print, argument: IRValue, value: Value) -> Printed:
    return printable(e, value, element_type(argument.type), bool(op.hex))


def _print_block(e: WarpEmitter, op: tt.Print, prefix: str, argument: IRValue, program: Sequence[Value]) -> None:
    """Element after element of each register, without those that repeat others."""
    f, type_ = e.function, cast(TensorType, argument.type)
    layout, registers = layout_of(type_), e.registers(argument)
    copies = sum(1 << bit for bit, vector in enumerate(layout.vectors("lane")) if not any(vector))
    lanes = [lane for lane in range(LANES) if not lane & copies]
    along = [coordinates(e, layout, dim) for dim in range(type_.rank)]
    for number in first_registers(layout):
        conversion, value = _printable(e, op, argument, registers[number])
        held = [pick(f, each, lanes) for each in (*(indices[number] for indices in along), value)]
        with f.loop(constant(I32, 0), constant(I32, len(lanes)), constant(I32, 1), name="print") as loop:
            *indices, shown = (f.extract(each, loop.index) for each in held)
            print_line(e, prefix, program, indices, type_.shape, Printed(conversion, shown))
            loop.yield_()


def _assert(e: WarpEmitter, op: tt.Assert) -> None:
    f = e.function
    if isinstance(op.condition.type, TensorType):
        conditions = e.vector_of(op.condition)
        holds = reduce(f.and_, dict.fromkeys(conditions), constant(I1.with_lanes(LANES), 1))
        failing = partial(_first_failing, e, op, holds, conditions)
    else:  # of the program, or of as many elements as a function combines at once
        holds, failing = e.get(op.condition), partial(constant, I32, 0)
    if holds.literal:
        return
    with f.when(f.xor(intrinsics.every(f, holds) if holds.type.is_vector else holds, constant(I1, 1)), "assert"):
        _record(e, op, failing())
        if not e.waits:
            f.ret()
            f.open_block(f.label("unreachable"))


def _first_failing(e: WarpEmitter, op: tt.Assert, holds: Value, conditions: Sequence[Value]) -> Value:
    return _least(e, e.function.select(holds, e.everywhere((1 << 31) - 1), first_element(e, op, conditions)))


def _least(e: WarpEmitter, numbers: Value) -> Value:
    """The least number of all lanes."""
    f, half = e.function, numbers.type.lanes // 2
    if not half:
        return numbers
    parts = [read(f, numbers, start, half) if half > 1 else f.extract(numbers, start) for start in (0, half)]
    return _least(e, f.select(f.icmp("slt", *parts), *parts))


def _record(e: WarpEmitter, op: tt.Assert, element: Value) -> None:
    """Write an assertion that failed into `e.failure`, unless another one did before; the first lane does."""
    f, address = e.function, e.affine.spread(e.failure, LANES)
    swapped = [e.everywhere(0), e.everywhere(e.assertions[op])]
    before = intrinsics.atomic(f, address, FIRST, ATOMICS["cmpxchg"], swapped, I32.bytes)
    with f.when(f.icmp("eq", f.extract(before, 0), 0), "first"):
        program_id, grid = ([of(f, axis) for axis in range(3)] for of in (intrinsics.group, intrinsics.groups))
        numbers = program_number(e, program_id, grid), f.cast("sext", element, I64)
        for number, value in enumerate(numbers, 1):
            data = f.splat(value, LANES)
            intrinsics.scatter(f, address, FIRST, data, I64.bytes, 1, number * _RECORDED)


RULES: Rules = {tt.Print: _print, tt.Assert: _assert}  # type: ignore[dict-item]
