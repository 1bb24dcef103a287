"""What dots need that is computed, and that the loops before them store.

Level: warp (`fills_of`, for `form-nests`), and warp to intrinsic. The start of a dot's sum is stored where the sum is
going to be, its left operand in the type that its micro-kernel takes. Left operands of several dots are often made of
the same expensive values (attention's gradients: the probabilities, and their product with something else). They are
filled in one nest when the first of them is needed, so that what they share is computed once and stays in registers. An
operand that is a transpose is filled as what it is the transpose of, which other dots may need too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.attributes import Attribute, IntegerAttr, TypeAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import operands_behind, reached
from mltriton.ir.types import I1, TensorType, Type, shape_of
from mltriton.passes.intrinsic.tile_loops.dot_kernels import kernel_of, left_types, may_use_lines
from mltriton.passes.intrinsic.tile_loops.first_sums import is_zero
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Footprint, consumers, whole_use
from mltriton.passes.intrinsic.tile_loops.members import Fill
from mltriton.passes.intrinsic.tile_loops.operations import LOADS, is_virtual

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering
    from mltriton.passes.intrinsic.tile_loops.reader import Nests, Reader
    from mltriton.passes.intrinsic.tile_loops.tiles import Tile
    from mltriton.targets.base import MicroKernel


# Operations


def fills_of(nests: Nests, op: tt.Dot) -> Iterator[tuple[tile.Fill, Sequence[Operation]]]:
    """What is stored for a dot, in the order in which it joins the nest before it, each with the operations behind the
    dot that have to come before that. Operands that are read where they lie or packed are left to `match-target-size`,
    as are dots that may read their right operand line by line.
    """
    kernel = kernel_of(nests.spec, op)
    in_place = any(isinstance(user, ttg.LocalStore) for user in op.result.users)
    if kernel is None or in_place or may_use_lines(nests.spec, op):
        return
    if _is_computed(nests, op.c) and not is_zero(op.c):
        yield tile.Fill([op.c], (), {"start": IntegerAttr(1, I1)}, (), op.loc), ()
    value = _left(nests, op, kernel)
    if value is None:
        return
    for each in (value, *together(nests, op, value, kernel.operand)):
        if (later := _later_producers(each, op)) is None:
            continue
        element = None if _element(each) is kernel.operand else kernel.operand
        if not nests.is_stored(each, element):
            attributes: dict[str, Attribute] = {} if element is None else {"element": TypeAttr(element)}
            yield tile.Fill([each], (), attributes, (), op.loc), later


def _later_producers(value: Value, op: Operation) -> list[Operation] | None:
    """What of the block of `op` a value is made of and does not come before that, in order; None where something of it
    may not be moved.
    """
    if op.block is None:
        return []
    values = reached([value], lambda made: operands_behind(made) if _later(made, op) else ())
    found = {made for each in values if (made := _later(each, op)) is not None}
    if any(made is op or not made.pure or made.regions for made in found):
        return None
    return sorted(found, key=op.block.position)


def _later(value: Value, op: Operation) -> Operation | None:
    """The operation that gives a value, where it is of the block of `op` and not before that."""
    made = value.defining_op
    return None if made is None or made.block is not op.block or made.is_before(op) else made


def _left(nests: Nests, op: tt.Dot, kernel: MicroKernel) -> Value | None:
    """What is stored for the left operand; None where nothing is, or that is not known yet."""
    base, transposed = computed_value(op.a)
    is_own = _element(base) is kernel.operand
    is_load = isinstance(base.defining_op, LOADS)
    if op.a.defining_block is not op.block or (is_own and (is_load or not _is_computed(nests, base))):
        return None
    if nests.is_stored(base, kernel.operand) or (transposed and kernel.needs_rows):
        return None
    if shape_of(op.a.type)[-2] > 1 and len(shape_of(op.a.type)) == 2 and nests.contiguous_dim(op.a) == 0:
        return base if transposed and not is_load else None
    return op.a if transposed else base


def _is_computed(nests: Nests, value: Value) -> bool:
    """Whether a block is in no memory."""
    op = value.defining_op
    return op is not None and is_virtual(op) and not nests.is_stored(value)


def _element(value: Value) -> Type:
    return cast(TensorType, value.type).element


def place_of_sum(value: Value) -> Value | None:
    """The carried block in whose place a sum is going to live that a loop yields."""
    for user in value.users:
        if not isinstance(user, scf.Yield):
            continue
        parent: Any = user.parent_op
        number = user.operands.index(value)
        if isinstance(parent, scf.For):
            return parent.carried[number]
        if isinstance(parent, scf.While):
            return parent.before.block.arguments[number]
        return place_of_sum(cast(Operation, parent).results[number])
    return None


# Left operands


def computed_value(value: Value) -> tuple[Value, bool]:
    """What a value is in another layout, or a transpose of in two dimensions, and whether it is transposed."""
    transposed = False
    op = value.defining_op
    while isinstance(op, ttg.ConvertLayout) or (isinstance(op, tt.Trans) and tuple(op.order) == (1, 0)):
        transposed ^= isinstance(op, tt.Trans)
        value = op.operands[0]
        op = value.defining_op
    return value, transposed


def together(low: Reader, op: tt.Dot, value: Value, element: Type) -> list[Value]:
    """What is filled with `value`, which the dot `op` needs as `element`s: what later dots of the block take on the
    left, if it is made of expensive values that `value` is made of too, and of nothing that comes after `op`.
    """
    costs = low.costs()
    shared = {part for part, _ in low.reads(value).visited if costs.of(part) >= EXPENSIVE}
    found: list[Value] = []
    for dot in _later_dots(op, shared, value):
        other, _ = computed_value(dot.a)
        read = low.reads(other)
        if _is_made_of(read, shared) and _is_known_before(read, op) and _takes(low, dot, other, element):
            found.append(other)
    return found


def fill_together(low: Lowering, op: tt.Dot, value: Value, element: Type) -> Tile:
    """A tile of `element`s for `value`, which the dot `op` needs; in the same nest tiles for what is filled with it."""
    others = together(low, op, value, element)
    filled = fill_operand(low, op, value, element, whole_use(op, op.a))
    for other in others:
        fill_operand(low, op, other, element)
    return filled


def filled_before(low: Lowering, value: Value, element: Type) -> Tile | None:
    """The tile with the elements of a value as others, or that the open loop nest fills with its own."""
    if value in low.nest.produced and _element(value) is element:
        return low.force(value)
    made, scope = low.packed.get(("filled", value, element), (None, None))
    return made if scope in low.e.emitter.scopes else None


def fill_operand(
    low: Lowering, op: Operation, value: Value, element: Type, served: Collection[tuple[Operation, Value]] = ()
) -> Tile:
    """The tile of a value, or one with its elements converted, which dots of the block find that come after `op`."""
    if _element(value) is element:
        return low.force(value)
    made = filled_before(low, value, element)
    if made is None:
        made = low.e.scratch.tile(shape_of(value.type), element)
        dots = [dot for dot in _later_dots(op, {value}, value) if _takes(low, dot, value, element)]
        uses = {*served, *(use for dot in dots for use in whole_use(dot, dot.a))}
        low.add(Fill(value, made, low.e.emitter.loc, defines=False, is_new=True, served=uses))
        low.packed["filled", value, element] = made, low.e.emitter.scopes[-1]
    return made


def _takes(low: Reader, dot: tt.Dot, value: Value, element: Type) -> bool:
    """Whether a dot is going to read its left operand from a tile of `value` with such elements."""
    if left_types(low.spec, dot) != {element}:
        return False
    base, transposed = computed_value(dot.a)
    if dot.a is value or base is not value or not transposed:
        return dot.a is value or base is value
    kernel = kernel_of(low.spec, dot)
    return _element(value) is element or (kernel is not None and not kernel.needs_rows)


def _later_dots(op: Operation, values: set[Value], operand: Value) -> list[tt.Dot]:
    """The dots after `op` in its block that multiply elements of the type of `operand` and need one of `values`, in
    order.
    """
    block = op.block
    assert block is not None
    users = {user for value in values for user, _ in consumers(value)}
    dots = [user for user in users if isinstance(user, tt.Dot) and user.block is block and op.is_before(user)]
    return sorted([dot for dot in dots if _element(dot.a) is _element(operand)], key=block.position)


def _is_made_of(found: Footprint, values: set[Value]) -> bool:
    return any(value in values for value, _ in found.visited)


def _is_known_before(found: Footprint, op: Operation) -> bool:
    """Whether everything that is read comes before `op`."""
    sources = [*(load.results[0] for load, _ in found.loads), *(leaf for leaf, _ in found.leaves)]
    return all(_later(value, op) is None for value in sources)
