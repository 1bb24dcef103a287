"""What a 2D block access may be: blocks, surfaces and coordinates that the hardware takes.

Level: from ttg to llvm. `broken_limits` says what is wrong with a block, which is known when compiling; `check_surface`
says of the surface what is wrong, and what must be checked at run time. Guarantees: an access
without broken limits whose guards all hold is one that Intel's compiler takes and the hardware executes. An access
outside the limits is no error to the hardware: it gives other data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache

from mltriton.records import NamedTuple
from mltriton.targets.base import Guard, Relation
from mltriton.targets.xe.devices import Device


class Access(Enum):
    """Kinds of 2D block accesses."""

    LOAD = "load"
    LOAD_VNNI = "load with VNNI"
    LOAD_TRANSPOSE = "transposing load"
    STORE = "store"
    PREFETCH = "prefetch"


class Block(NamedTuple):
    """What one access takes: `blocks` blocks of `height` rows and `width` columns, side by side."""

    access: Access
    element_bytes: int
    width: int
    height: int
    blocks: int = 1

    @property
    def row_bytes(self) -> int:
        """Bytes of a row through all blocks."""
        return self.element_bytes * self.width * self.blocks

    @property
    def bytes(self) -> int:
        """Bytes of one block."""
        return self.element_bytes * self.width * self.height


class Powers(NamedTuple):
    """Powers of two from `least` to `most`."""

    least: int
    most: int

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.least <= number <= self.most and number & (number - 1) == 0

    def __str__(self) -> str:
        return f"a power of two from {self.least} to {self.most}" if self.least < self.most else str(self.least)


class BlockShape(NamedTuple):
    """Columns, rows and blocks of an access to elements of one size."""

    columns: Powers
    rows: Powers
    blocks: Powers


class Broken(NamedTuple):
    """A limit that an access breaks."""

    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, found {self.found}"


MOST_ROWS, MOST_ROW_BYTES = 32, 64  # of one load
SUB_GROUP = 16  # lanes

_ROWS, _STORED_ROWS, _ONE = Powers(1, MOST_ROWS), Powers(1, 8), Powers(1, 1)
_COLUMNS = {1: Powers(4, 64), 2: Powers(2, 32), 4: Powers(1, 16), 8: Powers(1, 8)}
_BLOCKS = {1: Powers(1, 4), 2: Powers(1, 4), 4: Powers(1, 2), 8: _ONE}
# A row of 32 bits holds so many rows of the block: at least these are loaded.
_VNNI_ROWS = {1: Powers(4, 32), 2: Powers(2, 32)}

_SHAPES: dict[Access, dict[int, BlockShape]] = {
    Access.LOAD: {size: BlockShape(_COLUMNS[size], _ROWS, _BLOCKS[size]) for size in _COLUMNS},
    Access.LOAD_VNNI: {size: BlockShape(_COLUMNS[size], rows, _BLOCKS[size]) for size, rows in _VNNI_ROWS.items()},
    Access.LOAD_TRANSPOSE: {
        4: BlockShape(Powers(1, 8), _ROWS, _ONE),
        8: BlockShape(Powers(2, 4), Powers(8, 8), _ONE),
    },
    Access.STORE: {size: BlockShape(_COLUMNS[size], _STORED_ROWS, _ONE) for size in _COLUMNS},
    Access.PREFETCH: {size: BlockShape(_COLUMNS[size], _ROWS, _BLOCKS[size]) for size in _COLUMNS},
}


@cache
def shapes(device: Device, access: Access) -> dict[int, BlockShape]:
    """By bytes of an element, the columns, rows and blocks of an access."""
    found = _SHAPES[access]
    if access is not Access.LOAD_VNNI or device.wide_vnni:
        return found
    return {
        size: shape._replace(columns=Powers(shape.columns.least, min(shape.columns.most, device.simd)))
        for size, shape in found.items()
    }


def broken_limits(device: Device, block: Block) -> list[Broken]:
    """What is wrong with a block; nothing for one that the device takes."""
    known = shapes(device, block.access)
    shape = known.get(block.element_bytes)
    if shape is None:
        sizes = " or ".join(map(str, known))
        return [Broken(f"bytes of an element in a {block.access.value}", sizes, str(block.element_bytes))]
    measured = (
        ("columns", block.width, shape.columns),
        ("rows", block.height, shape.rows),
        ("blocks", block.blocks, shape.blocks),
    )
    of = f"{8 * block.element_bytes} bits in a {block.access.value}"
    broken = [Broken(f"{what} of {of}", str(allowed), str(n)) for what, n, allowed in measured if n not in allowed]
    return broken or list(_whole_block(device, block))


def _whole_block(device: Device, block: Block) -> Iterator[Broken]:
    """Limits of a block whose numbers are fine one by one."""
    if block.row_bytes > MOST_ROW_BYTES:
        yield Broken("bytes of a row of all blocks", f"at most {MOST_ROW_BYTES}", str(block.row_bytes))
    if block.access in (Access.STORE, Access.PREFETCH):
        return
    if block.blocks > 1 and block.bytes < device.register_bytes:
        expected = f"at least {device.register_bytes}, a register"
        yield Broken("bytes of each of several blocks", expected, str(block.bytes))
    elements = block.width * block.height * block.blocks
    if block.element_bytes == 8 and elements < SUB_GROUP:
        yield Broken("elements of 64 bits in a load", f"at least one for each of {SUB_GROUP} lanes", str(elements))


# Surfaces.


class Number(NamedTuple):
    """What is known of a number when compiling: its value, or a divisor and bounds."""

    value: int | None = None
    divisor: int = 1
    least: int = 0
    most: int | None = None


class Surface(NamedTuple):
    """The matrix that is accessed: address of its first element, bytes of a row, rows, bytes from row to row; and the
    column (in elements) at which the access starts. `covered`: no row reaches into the next one.
    """

    base: Number = Number()
    width: Number = Number()
    height: Number = Number()
    pitch: Number = Number()
    x: Number = Number()
    covered: bool = False


class SurfaceReport(NamedTuple):
    """What is wrong with a surface, and what is not known of it."""

    broken: list[Broken]
    guards: list[Guard]


LEAST_WIDTH = 64  # bytes, of a row and from row to row
MOST = 2**24  # bytes or rows
X_BYTES = 4  # the first column starts at a multiple of it


def surface_limits(device: Device, block: Block) -> list[Guard]:
    """Everything that a block access requires of its surface."""
    at_least, at_most, multiple = Relation.AT_LEAST, Relation.AT_MOST, Relation.MULTIPLE
    return [
        Guard("base", multiple, device.base_alignment),
        Guard("width", at_least, LEAST_WIDTH),
        Guard("width", at_most, MOST),
        Guard("width", multiple, max(4, block.element_bytes)),
        Guard("height", at_least, 1),
        Guard("height", at_most, MOST),
        Guard("pitch", at_least, LEAST_WIDTH),
        Guard("pitch", at_most, MOST),
        Guard("pitch", multiple, device.pitch_multiple),
        Guard("pitch", at_least, "width"),
        Guard("x", multiple, max(1, X_BYTES // block.element_bytes)),
    ]


_MEANINGS = {
    "base": "address",
    "width": "bytes of a row",
    "height": "rows",
    "pitch": "bytes from row to row",
    "x": "column",
}


def in_words(limits: Sequence[Guard]) -> tuple[str, ...]:
    """Limits in words, those on the same number together."""
    found: dict[str, list[str]] = {}
    for limit in limits:
        bound = _MEANINGS[limit.bound] if isinstance(limit.bound, str) else limit.bound
        found.setdefault(_MEANINGS[limit.field], []).append(f"{limit.relation.value} {bound}")
    return tuple(f"{what} {' and '.join(bounds)}" for what, bounds in found.items())


def advice(limits: Sequence[Guard], element_bytes: int) -> tuple[str, ...]:
    """What to change for limits to hold."""
    return tuple(dict.fromkeys(_advice(limit, element_bytes) for limit in limits))


def _advice(limit: Guard, element_bytes: int) -> str:
    if isinstance(limit.bound, str):
        return "let no row reach into the next one"
    if limit.relation is Relation.AT_MOST:
        return "cut the matrix into smaller ones"
    if limit.field == "base":
        return f"let the array start at a multiple of {limit.bound} bytes"
    count = limit.bound if limit.field in ("height", "x") else -(-limit.bound // element_bytes)
    return _ADVICE[limit.field].format(f"{limit.relation.value} {count}")


_ADVICE = {
    "width": "give rows {} elements",
    "height": "give the matrix {} rows",
    "pitch": "let rows lie {} elements apart",
    "x": "let blocks start at a column that is {}",
}


def check_surface(device: Device, block: Block, surface: Surface) -> SurfaceReport:
    """Sort what a block access requires of its surface into what holds, what does not, and run-time checks."""
    report = SurfaceReport([], [])
    for guard in surface_limits(device, block):
        number: Number = getattr(surface, guard.field)
        holds = _covers(surface) if isinstance(guard.bound, str) else _holds(number, guard.relation, guard.bound)
        if holds is None:
            report.guards.append(guard)
        elif not holds:
            bound = f"{guard.bound} {surface.width.value}" if isinstance(guard.bound, str) else str(guard.bound)
            expected = f"{guard.relation.value} {bound}"
            what = f"{guard.field} of the surface ({_MEANINGS[guard.field]})"
            report.broken.append(Broken(what, expected, _found(number)))
    return report


def _holds(number: Number, relation: Relation, bound: int) -> bool | None:
    """Whether the relation holds; None where that is not known."""
    least = number.least if number.value is None else number.value
    most = number.most if number.value is None else number.value
    match relation:
        case Relation.AT_LEAST:
            return True if least >= bound else False if most is not None and most < bound else None
        case Relation.AT_MOST:
            return True if most is not None and most <= bound else False if least > bound else None
        case Relation.MULTIPLE:
            if number.value is not None:
                return number.value % bound == 0
            return True if number.divisor % bound == 0 else None


def _covers(surface: Surface) -> bool | None:
    """Whether the pitch is at least the width."""
    if surface.width.value is not None:
        known = _holds(surface.pitch, Relation.AT_LEAST, surface.width.value)
        return known if known is not None or not surface.covered else True
    most = surface.width.most
    return True if surface.covered or (most is not None and _holds(surface.pitch, Relation.AT_LEAST, most)) else None


def _found(number: Number) -> str:
    if number.value is not None:
        return str(number.value)
    return f"at most {number.most}" if number.most is not None else f"at least {number.least}"
