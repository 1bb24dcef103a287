"""2D block accesses of a whole warp: rows of each block after each other, as registers hold them.

Level: `llvm`. For right operands 32 bits of a column lie side by side; a transposing load gives columns. What a matrix
must be, and elements outside of it, are as in `emulation/blocks.py`.
"""

from __future__ import annotations

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import GLOBAL_PTR, I32, I64, Value, constant, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.block_limits import Access, Block, broken_limits
from mltriton.targets.xe.emulation.blocks import Surface, legal_surface, move_element
from mltriton.targets.xe.emulation.simd.call import Call, Write

_BLOCKS, _COLUMNS, _ROWS, _DESCRIBED, _X, _Y = 2, 3, 4, 5, 6, 7  # numbers of parameters
_WORD = 4


def _writer(access: Access) -> Write:
    def write(f: Function, call: Call) -> Value | None:
        data = call.types[_Y + 1] if access is Access.STORE else call.result
        size = data.scalar.bytes
        block = Block(access, size, *(call.constant(number) for number in (_COLUMNS, _ROWS, _BLOCKS)))
        broken = broken_limits(call.device, block)
        if broken:
            message = f"a block is outside of the limits of {call.device.name}"
            raise BackendError(message, expected=broken[0].expected, found=f"{broken[0].found} {broken[0].what}")
        memory = f.alloca(data)
        if access is Access.STORE:
            f.store(f.parameters[_Y + 1], memory, 64)
        _move(f, call, block, memory)
        return None if access is Access.STORE else f.load(data, memory, 64)

    return write


def _surface(f: Function, call: Call) -> Surface:
    words = [f.extract(f.parameters[_DESCRIBED], number) for number in range(7)]
    low, high = (f.cast("zext", word, I64) for word in words[:2])
    base = f.cast("inttoptr", f.or_(f.shl(high, 32), low), GLOBAL_PTR)
    width, height, pitch = (f.add(word, 1) for word in words[2:5])
    x, y = (f.add(word, call.constant(number)) for word, number in zip(words[5:], (_X, _Y), strict=True))
    return Surface(base, width, height, pitch, x, y)


def _move(f: Function, call: Call, block: Block, memory: Value) -> None:
    surface, element = _surface(f, call), vector(f"i{8 * block.element_bytes}", 1)
    legal = legal_surface(f, block, call.device, surface)
    with f.loop(0, block.blocks) as each:
        with f.loop(0, block.height) as rows:
            with f.loop(0, block.width) as columns:
                row, column = f.cast("trunc", rows.index, I32), f.cast("trunc", columns.index, I32)
                across = f.add(f.mul(f.cast("trunc", each.index, I32), block.width), column)
                held = f.gep(memory, _number(f, block, (each.index, rows.index, columns.index)), element)
                index = f.add(surface.y, row), f.add(surface.x, across)
                move_element(f, block, surface, index, (legal, legal), held)
                columns.yield_()
            rows.yield_()
        each.yield_()


def _number(f: Function, block: Block, index: tuple[Value, Value, Value]) -> Value:
    """Which element of the vector has an index: block, row, column."""
    of, row, column = index
    start = f.mul(of, block.width * block.height)
    if block.access is Access.LOAD_TRANSPOSE:
        return f.add(start, f.add(f.mul(column, block.height), row))
    together = _WORD // block.element_bytes if block.access is Access.LOAD_VNNI else 1
    by = constant(I64, together)
    line = f.add(f.mul(f.binary("udiv", row, by), block.width), column)
    return f.add(start, f.add(f.mul(line, together), f.binary("urem", row, by)))


def _nothing(f: Function, call: Call) -> None:
    """A hint."""


WRITERS: dict[str, Write] = {
    "llvm.genx.lsc.load.2d.ugm.desc.vnni.": _writer(Access.LOAD_VNNI),
    "llvm.genx.lsc.load.2d.ugm.desc.transpose.": _writer(Access.LOAD_TRANSPOSE),
    "llvm.genx.lsc.load.2d.ugm.desc.": _writer(Access.LOAD),
    "llvm.genx.lsc.store.2d.ugm.desc.": _writer(Access.STORE),
    "llvm.genx.lsc.prefetch.2d.ugm.desc.": _nothing,
}
