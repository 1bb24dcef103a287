"""Chunk evaluation: what a block value is at one index, written where it is needed.

Level: warp to intrinsic. `Evaluator.at(value, index, lanes)` follows definitions by a table of rules: how an
operation's result at an index comes from its operands at theirs. Nothing is stored: a materialised block is read from
its tile, a load is done again. What was found is remembered in the outermost scope in which the index and the value
exist.
Guarantees: scalars of the program are written once, on demand, as far out as their operands allow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import arith, gpu, tt, ttg
from mltriton.errors import CompilationError, TargetError
from mltriton.ir.attributes import DenseAttr, IntegerAttr
from mltriton.ir.location import Location
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.order import operands_first
from mltriton.ir.types import F32, I32, MemDescType, PointerType, TensorType, Type
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter
from mltriton.passes.intrinsic.tile_loops.forms import (
    Affine,
    Form,
    FormArithmetic,
    Index,
    Uniform,
    Vector,
    constant_index,
    is_integer,
    is_uniform,
)
from mltriton.passes.intrinsic.tile_loops.tiles import ScratchMemory, Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.accesses import BlockPointer

# So many values are evaluated inside each other before what is left of a chain is evaluated from its far end.
MOST_NESTED = 32

Rule = Callable[["Evaluator", Any, Index, int], Form]


def refuse(op: Operation, message: str) -> CompilationError:
    """The error for what this lowering cannot do, at the operation's line."""
    found = ", ".join(str(operand.type) for operand in op.operands) or None
    return TargetError(message, place=op.loc.place, found=found)


def unknown_buffer(memory: Value) -> CompilationError:
    """The error for a block in shared memory that control flow chooses."""
    op = memory.defining_op
    message = "which block in shared memory this is must be known when compiling"
    return TargetError(message, place=op.loc.place if op is not None else None, found=str(memory.type))


class Evaluator:
    """State of one function: new scalars, tiles and block pointers by the old value they stand for."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.arithmetic = FormArithmetic(emitter)
        self.scratch = ScratchMemory(emitter)
        self.scalars: dict[Value, Value] = {}
        self.tiles: dict[Value, Tile] = {}
        self.buffers: dict[Value, Tile] = {}  # blocks in shared memory
        self.pointers: dict[Value, BlockPointer] = {}
        self.shifted: dict[Value, tuple[Value, Value]] = {}  # carried block -> (initial block, scalar added to it)
        self.aliases: dict[Value, Value] = {}  # carried block that never changes -> the initial one
        self.block_depth: dict[Block, int] = {}
        self.unmasked: frozenset[Operation] = frozenset()  # accesses and selections whose masks are known to hold here
        self.floor = 0  # the outermost scope in which that is known
        self.nesting = 0  # how many values are being evaluated, each for the one before it

    @contextmanager
    def located(self, loc: Location) -> Generator[None]:
        """Operations written inside come from `loc`."""
        saved, self.emitter.loc = self.emitter.loc, loc
        yield
        self.emitter.loc = saved

    @contextmanager
    def inside_masks(self, accesses: frozenset[Operation]) -> Generator[None]:
        """In the innermost scope these accesses lie inside their masks, whatever the index."""
        saved = self.unmasked, self.floor
        self.unmasked, self.floor = self.unmasked | accesses, self.emitter.level
        yield
        self.unmasked, self.floor = saved

    @contextmanager
    def unmasking(self, operations: frozenset[Operation]) -> Generator[None]:
        """The masks of these operations hold wherever they are evaluated inside: at the lanes of one loop, whose
        counter keeps what is found apart from what holds elsewhere.
        """
        saved, self.unmasked = self.unmasked, self.unmasked | operations
        yield
        self.unmasked = saved

    # Scalars

    def scalar(self, value: Value) -> Value:
        """The new value of a scalar; written now where it was not needed before."""
        found = self.scalars.get(value)
        if found is None:
            op = value.defining_op
            assert op is not None and op.pure, f"{value.type} is not known yet"
            self.nesting += 1
            if self.nesting % MOST_NESTED == 0:
                for operand in operands_first(value, self._missing_scalars)[:-1]:
                    self.scalar(operand)
            found = self._scalar_of(op, value)
            self.nesting -= 1
            self.scalars[value] = found
        return found

    def _missing_scalars(self, value: Value) -> list[Value]:
        """The operands from which a scalar is computed and that are not known yet."""
        op = value.defining_op
        if op is None or not op.pure or isinstance(op, tt.Unsplat) or op.regions:
            return []
        return [operand for operand in op.operands if operand not in self.scalars]

    def _scalar_of(self, op: Operation, value: Value) -> Value:
        if isinstance(op, tt.Unsplat):
            rank = cast(TensorType, op.source.type).rank
            return self.arithmetic.scalar(self.at(op.source, (constant_index(0),) * rank, 1))
        if isinstance(op, gpu.SubgroupId):
            return self.emitter.integer(0, value.type)
        if isinstance(op, arith.Constant) and isinstance(op.value, IntegerAttr):
            return self.emitter.integer(op.value.value, value.type)
        if op.regions or any(isinstance(operand.type, TensorType) for operand in op.operands):
            raise refuse(op, f"{op.name} cannot be evaluated on demand")
        return self.emitter.pure(type(op), [self.scalar(v) for v in op.operands], value.type, op.attributes)

    # Blocks

    def at(self, value: Value, index: Index, lanes: int) -> Form:
        """`value` at `index`."""
        if not isinstance(value.type, TensorType):
            return self.arithmetic.wrap(self.scalar(value))
        if _are_uniform(index):
            lanes = 1
        value = self.aliases.get(value, value)
        emitter = self.emitter
        depth = self.depth_of(value, index)
        memo = emitter.scopes[depth].memo
        key = (value, index, lanes)
        found = memo.get(key)
        if found is None:
            self.nesting += 1
            if self.nesting % MOST_NESTED == 0:
                for operand in operands_first(value, lambda value: self._missing_operands(value, index, lanes))[:-1]:
                    self.at(operand, index, lanes)
            if depth == emitter.level:
                found = self._compute(value, index, lanes)
            else:
                with emitter.at(depth):
                    found = self._compute(value, index, lanes)
            self.nesting -= 1
            memo[key] = found
        return found

    def _missing_operands(self, value: Value, index: Index, lanes: int) -> list[Value]:
        """The blocks from which a block is computed element by element and that are not known yet at `index`."""
        value = self.aliases.get(value, value)
        op = value.defining_op
        if op is None or not op.elementwise or value in self.tiles or value in self.shifted:
            return []
        operands = [op.true_value] if op in self.unmasked and isinstance(op, arith.Select) else op.operands
        return [operand for operand in operands if not self._is_known(operand, index, lanes)]

    def _is_known(self, value: Value, index: Index, lanes: int) -> bool:
        """Whether a block was computed at `index`; scalars count as known."""
        if not isinstance(value.type, TensorType):
            return True
        value = self.aliases.get(value, value)
        return (value, index, lanes) in self.emitter.scopes[self.depth_of(value, index)].memo

    def depth_of(self, value: Value, index: Index) -> int:
        """The outermost scope in which the value and the index exist."""
        depth = max(self.floor, self.definition_depth(value))
        for place in index:
            found = self.arithmetic.depth(place)
            if found > depth:
                depth = found
        return depth

    def definition_depth(self, value: Value) -> int:
        """The scope that stands for the block in which the value is defined."""
        return self.block_depth[value.defining_block]

    def define(self, value: Value, index: Index, lanes: int, form: Form) -> None:
        """`value` at `index` was just computed."""
        if _are_uniform(index):
            lanes = 1
        self.emitter.scopes[self.depth_of(value, index)].memo[value, index, lanes] = form

    def _compute(self, value: Value, index: Index, lanes: int) -> Form:
        found = self.tiles.get(value)
        if found is not None and found.depth <= self.emitter.level:
            return self.from_tile(found, value, index, lanes)
        if value in self.shifted:
            return self._shifted(value, index, lanes)
        op = value.defining_op
        assert op is not None, f"a block argument of type {value.type} has no tile"
        rule = RULES.get(type(op), elementwise if op.elementwise else None)
        if rule is None:
            raise refuse(op, f"{op.name} is not an operation that a memory target evaluates on demand")
        saved, self.emitter.loc = self.emitter.loc, op.loc
        try:
            if isinstance(op, tt.Split):
                index = (*index, constant_index(op.results.index(cast(OpResult, value))))
            return rule(self, op, index, lanes)
        finally:
            self.emitter.loc = saved

    def _shifted(self, value: Value, index: Index, lanes: int) -> Form:
        """A carried block that grows by a scalar in every iteration."""
        initial, shift = self.shifted[value]
        form = self.at(initial, index, lanes)
        offset = self.arithmetic.wrap(shift)
        element = cast(TensorType, value.type).element
        cls = tt.AddPtr if isinstance(element, PointerType) else arith.AddI
        return combine(self, cls, [form, offset], element, lanes, {})

    # Chunks

    def chunk(self, value: Value, index: Index, lanes: int) -> Value:
        """All lanes of `value` at `index`."""
        return self.arithmetic.chunk(self.at(value, index, lanes), lanes)

    def from_tile(self, tile: Tile, value: Value, index: Index, lanes: int) -> Form:
        """Read a materialised block; elements are converted back where the tile holds another type."""
        from mltriton.passes.intrinsic.tile_loops.accesses import read

        self.scratch.touch(tile)
        form = read(self, self.place(tile, index), None, None, tile.element, lanes)
        element = cast(TensorType, value.type).element
        return form if element is tile.element else self.convert(form, element, lanes)

    def window(self, memory: Value) -> Tile:
        """A block in shared memory as a tile of its buffer."""
        found = self.buffers.get(memory)
        if found is not None:
            return found
        op = memory.defining_op
        if isinstance(op, ttg.MemDescTrans):
            source = self.window(op.memory)
            return replace(source, strides=source.strides[::-1])
        if not isinstance(op, ttg.MemDescSubview):
            raise unknown_buffer(memory)
        source, arithmetic = self.window(op.memory), self.arithmetic
        offset = constant_index(0)
        for value, stride in zip(op.offsets, source.strides, strict=True):
            place = arithmetic.wrap(self.scalar(value))
            offset = arithmetic.add(offset, arithmetic.times(cast(Affine, place), constant_index(stride)))
        pointer = arithmetic.scalar(arithmetic.move(Affine(source.pointer.type, source.pointer, 0, 0), offset))
        dropped = len(op.offsets) - len(cast(MemDescType, memory.type).shape)
        return replace(source, pointer=pointer, strides=source.strides[dropped:])

    def place(self, tile: Tile, index: Index) -> Form:
        """The address of an element of a tile."""
        pointer = Affine(tile.pointer.type, tile.pointer, 0, 0)
        if not _are_affine(index):
            return self._scattered(tile, pointer, index)
        arithmetic = self.arithmetic
        offset = constant_index(0)
        for place, stride in zip(cast("tuple[Affine, ...]", index), tile.strides, strict=True):
            if stride:
                offset = arithmetic.add(offset, arithmetic.times(place, constant_index(stride)))
        return arithmetic.move(pointer, offset)

    def _scattered(self, tile: Tile, pointer: Form, index: Index) -> Form:
        """The addresses of elements whose places are chunks."""
        offset: Form = constant_index(0)
        for place, stride in zip(index, tile.strides, strict=True):
            if stride:
                step = combine(self, arith.MulI, [place, constant_index(stride)], I32, 0, {})
                offset = combine(self, arith.AddI, [offset, step], I32, 0, {})
        return combine(self, tt.AddPtr, [pointer, offset], tile.pointer.type, 0, {})

    def convert(self, form: Form, element: Type, lanes: int) -> Form:
        """Elements in another type, as `conversions.py` says."""
        from mltriton.passes.intrinsic.tile_loops.conversions import converted

        return converted(self, form, element, lanes)


def _are_affine(forms: Sequence[Form]) -> bool:
    for form in forms:  # noqa: SIM110 - called for every operation: three times as fast as all()
        if form.__class__ is not Affine:
            return False
    return True


def _are_uniform(forms: Sequence[Form]) -> bool:
    for form in forms:  # noqa: SIM110
        if not is_uniform(form):
            return False
    return True


def lanes_of(forms: list[Form], lanes: int) -> int:
    """The number of lanes: of the chunks among the forms where there are any."""
    for form in forms:
        if isinstance(form, Vector):
            return cast(TensorType, form.value.type).size
    return lanes


def combine(
    e: Evaluator, cls: type[Operation], forms: list[Form], element: Type, lanes: int, attributes: Mapping[str, Any]
) -> Form:
    """An elementwise operation on forms: affine where it can be, on scalars where all are uniform, else on chunks.

    A chunk of f32 is divided by a scalar through its reciprocal (docs/architecture.md, "Semantics").
    """
    if cls is arith.DivF and element is F32 and is_uniform(forms[1]) and not is_uniform(forms[0]):
        one = Uniform(e.emitter.number(1.0, element))
        cls, forms = arith.MulF, [forms[0], combine(e, arith.DivF, [one, forms[1]], element, lanes, {})]
    affine = AFFINE.get(cls)
    if affine is not None and _are_affine(forms):
        found = affine(e.arithmetic, *forms, element)
        if found is not None:
            return found
    arithmetic = e.arithmetic
    if _are_uniform(forms):
        scalars = [arithmetic.scalar(form) for form in forms]
        return arithmetic.wrap(e.emitter.pure(cls, scalars, element, attributes))
    lanes = lanes_of(forms, lanes)
    whole = cls is arith.Select and is_uniform(forms[0])
    chunks = [
        arithmetic.scalar(form) if whole and i == 0 else arithmetic.chunk(form, lanes) for i, form in enumerate(forms)
    ]
    return Vector(e.emitter.pure(cls, chunks, TensorType((lanes,), element), attributes))


# Rules that keep forms affine


def _add(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.add(x, y)


def _subtract(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.subtract(x, y)


def _multiply(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.multiply(x, y)


def _shift_left(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    if y.base is None and y.stride == 0 and 0 <= y.const < 31:
        return a.times(x, Affine(x.type, None, 1 << y.const, 0))
    return None


def _move(a: FormArithmetic, pointer: Affine, offset: Affine, element: Type) -> Form | None:
    return a.move(pointer, offset)


def _resize(a: FormArithmetic, x: Affine, element: Type) -> Form | None:
    return a.resize(x, element) if is_integer(element) and is_integer(x.type) else None  # type: ignore[arg-type]


AFFINE: dict[type[Operation], Callable[..., Form | None]] = {
    arith.AddI: _add,
    arith.SubI: _subtract,
    arith.MulI: _multiply,
    arith.ShLI: _shift_left,
    arith.ExtSI: _resize,
    arith.TruncI: _resize,
    tt.AddPtr: _move,
}


# Rules of operations


def elementwise(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """Element by element."""
    forms = [e.at(operand, index, lanes) for operand in op.operands]
    return combine(e, type(op), forms, cast(TensorType, op.results[0].type).element, lanes, op.attributes)


def constant(e: Evaluator, op: arith.Constant, index: Index, lanes: int) -> Form:
    """A splat constant."""
    value = op.value
    if not isinstance(value, DenseAttr) or not value.is_splat:
        raise refuse(op, "a constant whose elements differ is not supported on this target")
    element = cast(TensorType, op.result.type).element
    return e.arithmetic.wrap(e.emitter.number(value.splat, element))


def select(e: Evaluator, op: arith.Select, index: Index, lanes: int) -> Form:
    """Element by element; the first value where the condition is known to hold."""
    return e.at(op.true_value, index, lanes) if op in e.unmasked else elementwise(e, op, index, lanes)


def make_range(e: Evaluator, op: tt.MakeRange, index: Index, lanes: int) -> Form:
    """start + place."""
    return combine(e, arith.AddI, [index[0], constant_index(op.start)], I32, lanes, {})


def splat(e: Evaluator, op: tt.Splat, index: Index, lanes: int) -> Form:
    """A scalar."""
    return e.arithmetic.wrap(e.scalar(op.source))


def same_element(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """The element stands elsewhere in the operand."""
    from mltriton.passes.intrinsic.tile_loops.indexing import operand_index

    return e.at(op.operands[0], operand_index(op, index, constant_index(0)), lanes)


def reshape(e: Evaluator, op: tt.Reshape, index: Index, lanes: int) -> Form:
    """The element with the same row-major number."""
    from mltriton.passes.intrinsic.tile_loops.indexing import reshaped_index

    return e.at(op.source, reshaped_index(e, op, index, lanes), lanes)


def join(e: Evaluator, op: tt.Join, index: Index, lanes: int) -> Form:
    """One operand or the other, as the last place says."""
    return _choose(e, index[-1], 1, op.lhs, index[:-1], op.rhs, index[:-1], lanes)


def cat(e: Evaluator, op: tt.Cat, index: Index, lanes: int) -> Form:
    """The first operand where the first place lies in it, else the second."""
    first = index[0]
    extent = cast(TensorType, op.lhs.type).shape[0]
    if isinstance(first, Affine) and first.base is None and isinstance(first.stride, int):
        ends = (first.const, first.const + first.stride * (lanes - 1))
        if max(ends) < extent:
            return e.at(op.lhs, index, lanes)
        if min(ends) >= extent:
            return e.at(op.rhs, (_minus(e, first, extent), *index[1:]), lanes)
    left = combine(e, arith.MinSI, [first, constant_index(extent - 1)], I32, lanes, {})
    right = combine(e, arith.MaxSI, [_minus(e, first, extent), constant_index(0)], I32, lanes, {})
    return _choose(e, first, extent, op.lhs, (left, *index[1:]), op.rhs, (right, *index[1:]), lanes)


def _minus(e: Evaluator, place: Form, extent: int) -> Form:
    return combine(e, arith.AddI, [place, constant_index(-extent)], I32, 0, {})


def _choose(
    e: Evaluator, place: Form, limit: int, lhs: Value, left: Index, rhs: Value, right: Index, lanes: int
) -> Form:
    """lhs[left] where place < limit, else rhs[right]."""
    from mltriton.passes.intrinsic.tile_loops.accesses import compare

    if isinstance(place, Affine) and place.base is None and place.stride == 0:
        return e.at(lhs, left, lanes) if place.const < limit else e.at(rhs, right, lanes)
    is_left = compare(e, "slt", place, constant_index(limit), lanes)
    forms = [is_left, e.at(lhs, left, lanes), e.at(rhs, right, lanes)]
    return combine(e, arith.Select, forms, cast(TensorType, lhs.type).element, lanes, {})


def gather(e: Evaluator, op: tt.Gather, index: Index, lanes: int) -> Form:
    """The element that the indices name along the axis."""
    where = e.at(op.indices, index, lanes)
    element = cast(TensorType, op.indices.type).element
    if element is not I32:
        where = e.convert(where, I32, lanes)
    return e.at(op.source, (*index[: op.axis], where, *index[op.axis + 1 :]), lanes)


def load(e: Evaluator, op: tt.Load | tt.DescriptorLoad, index: Index, lanes: int) -> Form:
    """Memory."""
    from mltriton.passes.intrinsic.tile_loops.accesses import load_at

    return load_at(e, op, index, lanes)


def shared_load(e: Evaluator, op: ttg.LocalLoad, index: Index, lanes: int) -> Form:
    """Shared memory."""
    return e.from_tile(e.window(op.memory), op.result, index, lanes)


RULES: dict[type[Operation], Rule] = {
    arith.Constant: constant,
    arith.Select: select,
    tt.MakeRange: make_range,
    tt.Splat: splat,
    tt.ExpandDims: same_element,
    tt.Broadcast: same_element,
    tt.Trans: same_element,
    ttg.ConvertLayout: same_element,
    tt.Reshape: reshape,
    tt.Split: same_element,
    tt.Join: join,
    tt.Cat: cat,
    tt.Gather: gather,
    tt.Load: load,
    tt.DescriptorLoad: load,
    ttg.LocalLoad: shared_load,
}
