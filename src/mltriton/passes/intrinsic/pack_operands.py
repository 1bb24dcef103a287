"""pack-operands: how the operands of dots come to memory, in which order, and where.

Level: warp, targets whose blocks lie in memory; after `form-nests`, which says what is stored. Makes a `tile.pack` of
the operands of each dot for which the target has a micro-kernel: of the kernel's type, groups and panels, read along
the dimension along which their memory runs. It stands before the outermost loop that does not change the operand, if
nothing else than dots needs it in there; dots that want the same matrix in one block share it. What many elements of
a right operand share and is loaded with a stride (scales of groups) is stored before it.
Guarantees: both operands are packed, but for left ones that a nest stored as the elements that the micro-kernel takes.
A block that may be read where it lies says so. Masks and strides say when the program runs whether it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.attributes import Attribute, IntegerAttr, TypeAttr
from mltriton.ir.module import Module
from mltriton.ir.nesting import is_defined_inside, is_inside
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, I32, Type, element_type, shape_of
from mltriton.passes.intrinsic.tile_loops.directions import Directions
from mltriton.passes.intrinsic.tile_loops.dot_fills import computed_value, runs_along_rows
from mltriton.passes.intrinsic.tile_loops.dot_kernels import kernel_of, left_kernel, may_use_lines
from mltriton.passes.intrinsic.tile_loops.footprints import Footprint
from mltriton.passes.intrinsic.tile_loops.nest_regions import store_before
from mltriton.passes.intrinsic.tile_loops.operations import LOADS, is_virtual
from mltriton.passes.intrinsic.tile_loops.recomputed import repeated_parts
from mltriton.targets.base import MicroKernel, TargetSpec
from mltriton.targets.registry import spec_in_memory

NEAR_ROWS = 1024  # bytes from row to row up to which a right operand is read in place, whatever the number of rows of C
FEW_ROWS = 32  # rows of C up to which packing the right operand does not pay


class PackOperands(Pass):
    """Pack the operands of dots."""

    name = "pack-operands"

    def run(self, module: Module) -> Module:
        spec = spec_in_memory(module, self.name)
        for function in module.body.block.ops:
            assert isinstance(function, tt.Func)
            _Packer(function, spec).run()
        return module


def is_packed(op: tt.Dot, spec: TargetSpec) -> bool:
    """Whether a dot's right operand is copied before it is multiplied, as far as one can see from the dot."""
    kernel = next(iter(spec.micro_kernels.get(element_type(op.b.type), ())), None)
    return kernel is None or not _takes_blocks(kernel, op) or shape_of(op.a.type)[-2] > FEW_ROWS


def _takes_blocks(kernel: MicroKernel, op: tt.Dot) -> bool:
    """Whether a micro-kernel multiplies elements of the right operand's type in the order in which blocks have them."""
    return kernel.group == 1 and kernel.operand is element_type(op.b.type)


class _Packer:
    """What is known of one function: which blocks are stored, and what loop nests give."""

    def __init__(self, function: tt.Func, spec: TargetSpec) -> None:
        self.function, self.spec = function, spec
        self.directions = Directions(function, spec.lanes, self._reads)
        ops = list(function.walk())
        self.dots = [op for op in ops if isinstance(op, tt.Dot)]
        self.stored = {op.source for op in ops if isinstance(op, tile.Fill) and op.defines}
        self.given: dict[Value, Value] = {}  # result of a nest -> what is yielded there
        for op in ops:
            if isinstance(op, tile.Nest):
                self.given.update(zip(op.results, op.body.block.terminator.operands, strict=True))
        self.fills: dict[tuple[Value, Type], list[tile.Fill]] = {}  # of blocks as other elements than their own
        for op in ops:
            if isinstance(op, tile.Fill) and op.element is not None:
                self.fills.setdefault((op.source, op.element), []).append(op)
        self.packs: dict[tuple[Block, Value, frozenset[tuple[str, Attribute]]], tile.Pack] = {}

    def run(self) -> None:
        """Pack for each dot, in the order of the program."""
        places = [(dot, _place(dot, dot.b), _place(dot, dot.a)) for dot in self.dots]  # Found from dots as users.
        for dot, place, _ in places:
            kernel = kernel_of(self.spec, dot)
            if kernel is not None:
                self._store_parts(dot.b, place)
                self._pack(dot, 1, place, kernel.operand, self._right(dot, place, kernel))
        for dot, _, place in places:
            kernel, form = kernel_of(self.spec, dot), left_kernel(self.spec, dot)
            if kernel is not None and form is not None and not self._is_filled(dot, form):
                how = self._left(dot, form.operand, needs_rows=kernel.needs_rows)
                self._pack(dot, 0, place, form.operand, how)

    def _pack(self, dot: tt.Dot, number: int, place: Operation, element: Type, how: Mapping[str, int]) -> None:
        value, block = dot.operands[number], place.block
        assert block is not None
        said = {name: part for name, part in how.items() if part > (name == "group")}
        attributes: dict[str, Attribute] = {"element": TypeAttr(element)}
        attributes |= {name: IntegerAttr(int(n), I1 if isinstance(n, bool) else I32) for name, n in said.items()}
        key = block, value, frozenset(attributes.items())
        is_batch = len(shape_of(value.type)) > 2  # Of which each dot packs its matrices one by one.
        if is_batch or key not in self.packs:
            self.packs[key] = tile.Pack([value], [value.type], attributes, (), dot.loc)
            block.insert_before(place, self.packs[key])
        dot.set_operand(number, self.packs[key].result)

    def _right(self, dot: tt.Dot, place: Operation, kernel: MicroKernel) -> dict[str, int]:
        *_, rows, columns = shape_of(dot.b.type)
        has_panels = 0 < kernel.panel < columns and columns % kernel.panel == 0
        in_place = _takes_blocks(kernel, dot) and self._runs_along_columns(dot.b)
        is_near = in_place and (place is not dot or shape_of(dot.a.type)[-2] > FEW_ROWS)
        return {
            "group": kernel.group,
            "panel": kernel.panel * has_panels,
            "near": NEAR_ROWS * is_near,
            "along_rows": self.directions.contiguous_dim(dot.b) == len(shape_of(dot.b.type)) - 2 and rows > 1,
            "in_place": in_place,
            "by_lines": may_use_lines(self.spec, dot),
        }

    def _left(self, dot: tt.Dot, element: Type, *, needs_rows: bool) -> dict[str, int]:
        along_rows = runs_along_rows(dot.a, self.directions.contiguous_dim)
        is_there = self._in_memory(dot.a) is not None and element_type(dot.a.type) is element
        return {
            "along_rows": along_rows,
            "by_columns": along_rows and not needs_rows,
            "in_place": is_there and not (along_rows and needs_rows),
        }

    def _is_filled(self, dot: tt.Dot, kernel: MicroKernel) -> bool:
        """Whether the loops before a dot store its left operand as other elements than its own."""
        base, transposed = computed_value(dot.a)
        forms = [dot.a] if transposed and kernel.needs_rows else [dot.a, base]
        fills = [fill for form in forms for fill in self.fills.get((self.given.get(form, form), kernel.operand), ())]
        return any(_is_before(fill, dot) for fill in fills)

    def _store_parts(self, value: Value, place: Operation) -> None:
        """Store what many elements of a computed block share, where it is made in the block of operations at hand."""
        if self._in_memory(value) is not None:
            return
        for part in repeated_parts(value, self._reads, self.directions.contiguous_dim):
            if part.defining_block is place.block and part not in self.stored:
                store_before(place, part)
                self.stored.add(part)

    def _reads(self, value: Value) -> Footprint:
        found = Footprint(aliases=self.given)
        found.follow(value, tuple(range(len(shape_of(value.type)))), self.stored)
        return found

    def _in_memory(self, value: Value) -> tuple[Value, int] | None:
        """The block that is loaded or stored of which a block has the elements, and along which of its dimensions the
        last one runs; None where that is computed.
        """
        dim = len(shape_of(value.type)) - 1
        value = self.given.get(value, value)
        op = value.defining_op
        while value not in self.stored and isinstance(op, tt.Trans | ttg.ConvertLayout):
            dim = op.order[dim] if isinstance(op, tt.Trans) else dim
            value = self.given.get(op.source, op.source)
            op = value.defining_op
        is_there = value in self.stored or op is None or isinstance(op, LOADS) or not is_virtual(op)
        return (value, dim) if is_there else None

    def _runs_along_columns(self, value: Value) -> bool:
        """Whether a block lies in memory, and neighbours along its last dimension next to each other there."""
        found = self._in_memory(value)
        if found is None:
            return False
        block, dim = found
        op = None if block in self.stored else block.defining_op
        return self.directions.is_unit(block, op if isinstance(op, LOADS) else None)[dim]


def _is_before(fill: tile.Fill, dot: tt.Dot) -> bool:
    """Whether the nest of a fill comes before a dot whenever that is reached."""
    nest = fill.parent_op
    assert nest is not None and nest.block is not None
    holder = dot.ancestor_in(nest.block)
    return holder is not None and nest.is_before(holder)


def _place(dot: tt.Dot, value: Value) -> Operation:
    """What an operand of a dot is packed before: matrices of a batch one by one, each when it is multiplied."""
    place, loop = dot, dot.parent_op
    if len(shape_of(value.type)) > 2:
        return dot
    while loop is not None and not is_defined_inside(value, loop):
        if isinstance(loop, scf.For | scf.While):
            users = [user for user in value.users if is_inside(user, loop)]
            place = loop if all(isinstance(user, tt.Dot) and value is not user.c for user in users) else place
        loop = loop.parent_op
    return place
