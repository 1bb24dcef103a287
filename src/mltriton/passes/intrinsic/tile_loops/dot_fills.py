"""What dots need that is computed, and that the loops before them store.

Level: warp (`fills_of`, for `form-nests`), and warp to intrinsic. The start of a dot's sum is stored where the sum is
going to be, its left operand in the type that its micro-kernel takes. Left operands of several dots are often made of
the same expensive values (attention's gradients: the probabilities, and their product with something else). They are
filled in one nest when the first of them is needed, so that what they share is computed once and stays in registers. An
operand that is a transpose is filled as what it is the transpose of, which other dots may need too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.attributes import Attribute, IntegerAttr, TypeAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import operands_behind, reached
from mltriton.ir.types import I1, TensorType, Type, shape_of
from mltriton.passes.intrinsic.tile_loops.dot_kernels import kernel_of, left_kernel, may_use_lines
from mltriton.passes.intrinsic.tile_loops.first_sums import is_zero
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Footprint, consumers, whole_use
from mltriton.passes.intrinsic.tile_loops.members import Fill
from mltriton.passes.intrinsic.tile_loops.operations import LOADS, is_virtual

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering
    from mltriton.passes.intrinsic.tile_loops.reader import Nests, Reader
    from mltriton.targets.base import MicroKernel


# Operations


def fills_of(nests: Nests, op: tt.Dot) -> Iterator[tuple[tile.Fill, Sequence[Operation]]]:
    """What is stored for a dot, in the order in which it joins the nest before it, each with the operations behind the
    dot that have to come before that. Operands that are read where they lie or packed are left to `pack-operands`; the
    starts of sums in shared memory and of dots that may read their right operand line by line to `match-target-size`.
    """
    in_place = any(isinstance(user, ttg.LocalStore) for user in op.result.users)
    is_start = not in_place and not may_use_lines(nests.spec, op) and kernel_of(nests.spec, op) is not None
    if is_start and _is_computed(nests, op.c) and not is_zero(op.c):
        yield tile.Fill([op.c], (), {"start": IntegerAttr(1, I1)}, (), op.loc), ()
    left = left_fill(nests, op)
    if left is None:
        return
    element = left.element or _element(left.source)
    others = together(nests, op, left.source, element)
    yield left, ()
    for each in others:
        later = _later_producers(each, op)
        if later is not None and not nests.is_stored(each, None if _element(each) is element else element):
            yield _fill(each, element, op), later


def left_fill(nests: Nests, op: tt.Dot) -> tile.Fill | None:
    """What is stored for the left operand of a dot; None where it is stored, read where it lies, or packed."""
    kernel = left_kernel(nests.spec, op)
    value = None if kernel is None else _left(nests, op, kernel)
    return None if kernel is None or value is None else _fill(value, kernel.operand, op)


def _fill(value: Value, element: Type, op: tt.Dot) -> tile.Fill:
    attributes: dict[str, Attribute] = {} if _element(value) is element else {"element": TypeAttr(element)}
    return tile.Fill([value], (), attributes, (), op.loc)


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
    """What is stored for the left operand, in the type of the kernel's: the operand, or what it is the transpose of."""
    base, transposed = computed_value(op.a)
    is_own = _element(base) is kernel.operand
    is_load = isinstance(base.defining_op, LOADS)
    is_batch_by_lines = len(shape_of(op.a.type)) > 2 and may_use_lines(nests.spec, op)
    if is_own and (not _is_computed(nests, base) or (is_load and not is_batch_by_lines)):
        return None
    turned = transposed and kernel.needs_rows
    element = None if is_own else kernel.operand
    if nests.is_stored(op.a, element) or (not turned and nests.is_stored(base, element)):
        return None
    if runs_along_rows(op.a, nests.contiguous_dim):
        return base if transposed and not is_load and (is_own or not turned) else None
    return op.a if transposed else base


def runs_along_rows(left: Value, contiguous_dim: Callable[[Value], int]) -> bool:
    """Whether the memory from which a left operand is computed runs from row to row."""
    shape = shape_of(left.type)
    return len(shape) == 2 and shape[0] > 1 and contiguous_dim(left) == 0


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
    while isinstance(op, ttg.ConvertLayout | tile.Pack) or (isinstance(op, tt.Trans) and tuple(op.order) == (1, 0)):
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


def fill_operand(low: Lowering, op: tile.Fill, element: Type) -> None:
    """Store a block with its elements converted, for dots of the block that come after `op`."""
    value = op.source
    made = low.e.scratch.tile(shape_of(value.type), element)
    dots = [dot for dot in _later_dots(op, {value}, value) if _takes(low, dot, value, element)]
    uses = {use for dot in dots for use in whole_use(dot, dot.a)}
    low.add(Fill(value, made, op.loc, defines=False, is_new=True, served=uses))
    low.packed["filled", value, element] = made, low.e.emitter.scopes[-1]


def _takes(low: Reader, dot: tt.Dot, value: Value, element: Type) -> bool:
    """Whether a dot is going to read its left operand from a tile of `value` with such elements."""
    kernel, other = left_kernel(low.spec, dot), kernel_of(low.spec, dot)
    if kernel is None or other is None or not kernel.operand is other.operand is element:
        return False
    base, transposed = computed_value(dot.a)
    if dot.a is value or base is not value or not transposed:
        return dot.a is value or base is value
    return _element(value) is element or not kernel.needs_rows


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
