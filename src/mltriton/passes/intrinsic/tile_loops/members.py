"""What a loop nest does at each chunk: fill a tile, store, reduce, update atomically, print, assert.

Level: warp to intrinsic. A `Member` walks over an iteration shape whose last dimension runs in chunks. At every chunk
all members of a loop first `evaluate` what they need and then `commit`, so that a member may overwrite what another
one read at the same coordinate. A reduction along the last dimension keeps accumulators, one for each unrolled chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, cast

from mltriton.dialects import tile, tt
from mltriton.ir.attributes import Attribute, DenseArrayAttr, StringAttr
from mltriton.ir.location import Location
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, TensorType, element_type, shape_of
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Vector, constant_index, is_uniform
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

Accumulators = list[Value]


class Member:
    """Base: an effect on every chunk of `shape`.

    `produces` are the values that it computes; `saves` their tiles where they are needed after the nest.
    """

    in_rows: ClassVar[bool] = False  # what it produces is there when the loop over the row is done
    is_effect: ClassVar[bool] = False  # order matters among these
    alone: ClassVar[bool] = False  # its loops are not those of its block's dimensions in order: it shares none

    def __init__(self, shape: tuple[int, ...], loc: Location) -> None:
        self.shape = shape
        self.loc = loc
        self.whole: Operation | None = None  # the operation that it does all of
        self.produces: list[Value] = []
        self.saves: dict[Value, Tile] = {}

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions whose loops members share."""
        return self.shape[:-1]

    @property
    def inner(self) -> int:
        """The dimension that runs in chunks."""
        return self.shape[-1]

    @property
    def coordinates(self) -> Coordinates:
        """The iteration's own dimensions."""
        return tuple(range(len(self.shape)))

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        """What is evaluated, and where."""
        raise NotImplementedError

    @property
    def store(self) -> Operation | None:
        """The operation by which it writes global memory."""
        return None

    @property
    def target(self) -> Tile | None:
        """The tile that it fills."""
        return None

    @property
    def scalars_only(self) -> bool:
        """Whether it cannot take chunks."""
        return False

    def first(self, e: Evaluator, lanes: int) -> Accumulators | None:
        """Accumulators before the first chunk; None where the first chunk itself must be them."""
        return []

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        """What the chunk needs; writes nothing."""
        raise NotImplementedError

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        """Do it; gives the new accumulators."""
        raise NotImplementedError

    def finish(self, e: Evaluator, index: Index, parts: Sequence[Accumulators]) -> None:
        """After the loop over the row at `index`."""


class Fill(Member):
    """A block value written to a tile, as elements of the tile's type; `is_new`: nothing else refers to the tile's
    memory yet. Who reads the tile and not the value: everybody, where it `defines` the value, else `served` (operations
    and their operands).
    """

    def __init__(
        self,
        value: Value,
        tile: Tile,
        loc: Location,
        *,
        defines: bool = True,
        is_new: bool = False,
        served: Collection[tuple[Operation, Value]] = (),
    ) -> None:
        super().__init__(shape_of(value.type) or (1,), loc)
        self.is_new = is_new
        self.served = served
        self.value = value
        self.tile = tile
        if defines:
            self.produces = [value]
            self.saves = {value: tile}

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(self.value, self.coordinates)]

    @property
    def target(self) -> Tile:
        return self.tile

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.convert(e.at(self.value, index, lanes), self.tile.element, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        accesses.write(e, e.address(self.tile, index), None, forms[0], lanes)
        return []


def fill_of(op: tile.Fill, owner: Value | None = None) -> Fill:
    """The member that stores a block, in a tile whose place is still to be found; `owner` is what that may hold now."""
    value = op.source
    element = op.element or cast(TensorType, value.type).element
    owner = value if op.defines else owner
    return Fill(value, Tile(value, element, (), owner), op.loc, defines=op.defines, is_new=True)


class CopyTile(Member):
    """One tile's elements to another."""

    def __init__(self, source: Tile, target: Tile, shape: tuple[int, ...], loc: Location) -> None:
        super().__init__(shape, loc)
        self.source, self.tile = source, target

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return []

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [accesses.read(e, e.address(self.source, index), None, None, self.source.element, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        save_chunk(e, self.tile, index, forms[0], lanes)
        return []


class StoreBlock(Member):
    """A store through pointers, a block pointer or a descriptor."""

    is_effect = True

    def __init__(self, op: tt.Store | tt.DescriptorStore) -> None:
        super().__init__(cast(TensorType, op.value.type).shape, op.loc)
        self.op = self.whole = op
        self.prefetched = False  # by the loop of the row before

    @property
    def store(self) -> Operation:
        return self.op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        op = self.op
        needed = [(op.value, self.coordinates)]
        if isinstance(op, tt.Store) and isinstance(op.ptr.type, TensorType):
            needed.append((op.ptr, self.coordinates))
            if op.mask is not None:
                needed.append((op.mask, self.coordinates))
        else:
            needed.extend((operand, ()) for operand in op.operands if operand is not op.value)
        return needed

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        access = accesses.access_at(e, self.op, index, lanes)
        return [e.at(self.op.value, index, lanes), access.address, *([access.mask] if access.mask is not None else [])]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        value, address, *mask = forms
        accesses.write(e, address, mask[0] if mask else None, value, lanes)
        return []


class Atomic(Member):
    """Atomic updates, or assembly with effects; results go to tiles where they are used."""

    is_effect = True

    def __init__(self, op: tt.AtomicRMW | tt.AtomicCAS | tt.VolatileAsm) -> None:
        super().__init__(cast(TensorType, op.results[0].type).shape, op.loc)
        self.op = self.whole = op
        self.produces = list(op.results)

    @property
    def store(self) -> Operation:
        return self.op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(operand, self.coordinates) for operand in self.op.operands]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.at(operand, index, lanes) for operand in self.op.operands]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        op, types = self.op, [element_type(result.type) for result in self.op.results]
        if all(is_uniform(coordinate) for coordinate in index):
            operands = [e.arithmetic.scalar(form) for form in forms]
        else:
            operands = [e.arithmetic.chunk(form, lanes) for form in forms]
            types = [e.emitter.chunk_type(element, lanes) for element in types]
        made = e.emitter.insert(op.__class__(operands, types, op.attributes, (), op.loc, op.segments))
        for result, value in zip(op.results, made.results, strict=True):
            form = Vector(value) if isinstance(value.type, TensorType) else e.arithmetic.wrap(value)
            e.define(result, index, lanes, form)
            save_chunk(e, self.saves.get(result), index, form, lanes)
        return []


def save_chunk(e: Evaluator, tile: Tile | None, index: Index, form: Form, lanes: int) -> None:
    """Write a chunk to its tile where it has one."""
    if tile is not None:
        accesses.write(e, e.address(tile, index), None, form, lanes)


class AssertBlock(Member):
    """An assertion about a block, made of every chunk."""

    is_effect = True

    def __init__(self, op: tt.Assert) -> None:
        super().__init__(shape_of(op.condition.type), op.loc)
        self.op = self.whole = op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(self.op.condition, self.coordinates)]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.at(self.op.condition, index, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        a = e.arithmetic
        uniform = all(is_uniform(coordinate) for coordinate in index)
        condition = a.scalar(forms[0]) if uniform else a.chunk(forms[0], lanes)
        first = constant_index(0)
        for size, coordinate in zip(self.shape, index, strict=True):
            first = a.add(a.times(first, constant_index(size)), cast(Affine, coordinate))
        e.emitter.insert(tt.Assert([condition, a.scalar(first)], (), self.op.attributes, (), self.op.loc, (1, 1)))
        return []


class PrintBlock(Member):
    """A block printed element by element."""

    is_effect = True

    def __init__(self, op: tt.Print, value: Value, prefix: str) -> None:
        super().__init__(shape_of(value.type), op.loc)
        self.op, self.value, self.prefix = op, value, prefix

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(self.value, self.coordinates)]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.at(self.value, index, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        a = e.arithmetic
        value = a.chunk(forms[0], lanes) if lanes > 1 else a.scalar(forms[0])
        widths = DenseArrayAttr(tuple(tt.index_width(size) for size in self.shape), I32)
        attributes: dict[str, Attribute] = {"prefix": StringAttr(self.prefix), "widths": widths}
        if self.op.hex:
            attributes["hex"] = self.op.attributes["hex"]
        e.emitter.insert(tile.Print([value, *(a.scalar(coordinate) for coordinate in index)], (), attributes))
        return []
