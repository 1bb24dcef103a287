"""2D block accesses lane by lane: which element of the surface each lane holds, and where.

Level: `llvm`. A lane holds units: of a plain block one element, or as many neighbouring ones of a row as there are more
columns than lanes; with VNNI the 32 bits of a column. Unit number i * 16 + l of the blocks in order, each row by row
(a transposing load: column by column), is the i-th that lane l holds.
"""

from __future__ import annotations

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import GLOBAL_PTR, I1, I8, I32, I64, PTR, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.block_limits import SUB_GROUP, Access, Block, Guard, Relation, broken_limits, surface_limits
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin

ACCESSES = {
    xe.BLOCK_LOAD: Access.LOAD,
    xe.BLOCK_LOAD_VNNI: Access.LOAD_VNNI,
    xe.BLOCK_LOAD_TRANSPOSE: Access.LOAD_TRANSPOSE,
    xe.BLOCK_STORE: Access.STORE,
    xe.BLOCK_PREFETCH: Access.PREFETCH,
}


class Units(NamedTuple):
    """How a block is split: `rows` and `columns` of elements in one unit; units down and across one block."""

    rows: int
    columns: int
    down: int
    across: int


class Surface(NamedTuple):
    """The arguments that say what is accessed."""

    base: Value
    width: Value
    height: Value
    pitch: Value
    x: Value
    y: Value


def write(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """A function with the built-in one's parameters that accesses a block of this shape."""
    block = Block(ACCESSES[builtin], *constants)
    broken = broken_limits(device, block)
    if broken:
        message = f"a block is outside of the limits of {device.name}"
        raise BackendError(message, expected=broken[0].expected, found=f"{broken[0].found} {broken[0].what}")
    shape = "_".join(map(str, constants))
    name = f"emulated_{block.access.name.lower()}_{shape}"
    parameters = [(f"a{number}", type_) for number, type_ in enumerate(builtin.parameter_types)]
    function = module.function(name, VOID, parameters, extra="noinline ")
    if block.access is not Access.PREFETCH:
        _write_body(function, block, device)
    function.ret()
    return name


def units(block: Block) -> Units:
    """How an access splits a block."""
    rows, columns = 1, 1
    if block.access is Access.LOAD_VNNI:
        rows = 4 // block.element_bytes
    elif block.access is not Access.LOAD_TRANSPOSE:
        columns = max(1, block.width // SUB_GROUP)
    if rows > 1 and block.width > SUB_GROUP:
        raise BackendError("VNNI blocks wider than a sub-group cannot be emulated", found=f"{block.width} columns")
    return Units(rows, columns, block.height // rows, block.width // columns)


def _write_body(f: Function, block: Block, device: Device) -> None:
    *_, base, width, height, pitch, coordinates = [value for value in f.parameters if value.type != PTR]
    (held,) = [value for value in f.parameters if value.type == PTR]
    surface = Surface(base, width, height, pitch, f.extract(coordinates, 0), f.extract(coordinates, 1))
    legal = legal_surface(f, block, device, surface)
    lane = xe.GET_SUB_GROUP_LOCAL_ID.call(f)
    split = units(block)
    count = split.down * split.across * block.blocks
    size = split.rows * split.columns
    with f.loop(0, -(-count // SUB_GROUP)) as loop:
        index = f.cast("trunc", loop.index, I32)
        number = f.add(f.mul(index, SUB_GROUP), lane)
        inside = f.and_(legal, f.icmp("ult", number, count))
        row, column = _start(f, block, split, number)
        for part in range(size):
            to_row = f.add(f.add(surface.y, row), part // split.columns)
            to_column = f.add(f.add(surface.x, column), part % split.columns)
            at = f.add(f.mul(loop.index, size), part)
            element = f.gep(held, at, _element(block))
            move_element(f, block, surface, (to_row, to_column), (inside, legal), element)
        loop.yield_()


def _start(f: Function, block: Block, split: Units, number: Value) -> tuple[Value, Value]:
    """Row and column, counted from the first block's corner, of the first element of a unit."""

    def divided(a: Value, by: int) -> tuple[Value, Value]:
        return f.binary("udiv", a, by), f.binary("urem", a, by)

    of_block, inside = divided(number, split.down * split.across)
    if block.access is Access.LOAD_TRANSPOSE:
        column, row = divided(inside, split.down)
    else:
        row, column = divided(inside, split.across)
    first = f.mul(of_block, block.width)
    return f.mul(row, split.rows), f.add(first, f.mul(column, split.columns))


def move_element(
    f: Function,
    block: Block,
    surface: Surface,
    coordinates: tuple[Value, Value],
    allowed: tuple[Value, Value],
    held: Value,
) -> None:
    """Move one element between the surface and what the lane holds; `allowed`: for this unit, and for the surface."""
    row, column = coordinates
    inside, legal = allowed
    element = _element(block)
    start = f.mul(column, block.element_bytes)
    there = f.and_(f.icmp("ult", start, surface.width), f.icmp("ult", row, surface.height))
    there = f.and_(there, inside)
    offset = f.add(f.mul(f.cast("zext", row, I64), f.cast("zext", surface.pitch, I64)), f.cast("zext", start, I64))
    if block.access is Access.STORE:
        with f.when(there):
            f.store(f.load(element, held), f.gep(surface.base, offset, I8))
        return
    address = f.gep(surface.base, f.select(there, offset, constant(I64, 0)), I8)
    outside = f.select(legal, constant(element, 0), constant(element, -1))
    (loaded,) = f.choose(there, lambda: [f.load(element, address)], lambda: [outside])
    f.store(loaded, held)


def _element(block: Block) -> Type:
    return vector(f"i{8 * block.element_bytes}", 1)


def legal_surface(f: Function, block: Block, device: Device, surface: Surface) -> Value:
    """Whether the surface is within the limits."""
    legal = constant(I1, 1)
    for guard in surface_limits(device, block):
        holds = _holds(f, guard, surface)
        legal = holds if legal.literal is not None else f.and_(legal, holds)
    return legal


def _holds(f: Function, guard: Guard, surface: Surface) -> Value:
    value: Value = getattr(surface, guard.field)
    if value.type == GLOBAL_PTR:
        value = f.cast("ptrtoint", value, I64)
    bound: Value = getattr(surface, guard.bound) if isinstance(guard.bound, str) else constant(value.type, guard.bound)
    if guard.relation is Relation.MULTIPLE:
        return f.icmp("eq", f.binary("urem", value, bound), 0)
    return f.icmp("sge" if guard.relation is Relation.AT_LEAST else "sle", value, bound)
