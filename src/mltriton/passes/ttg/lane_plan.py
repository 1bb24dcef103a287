"""Which encoding with lanes stands for each that only says which warp owns what: the analysis half of `assign-lanes`.

Level: ttg to warp. One encoding stands for one wherever it appears, so that what agreed still does: the result of a dot
gets the matrix engine's layout, other blocks neighbouring lanes on neighbouring addresses, slices and operands follow
their parents. A block pointer (and what is loaded or stored through it) that can be a 2D block access gets the cheapest
block in its place; values on the way are converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.analysis.block_io import BlockAccess, BlockIOAnalysis
from mltriton.dialects import scf, tt, ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.errors import TargetError
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import MemDescType, TensorType, Type, block_of, byte_width
from mltriton.layouts.encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    MatrixEncoding,
    Shape,
    SliceEncoding,
    same_cut,
)
from mltriton.layouts.explicit import LinearEncoding
from mltriton.layouts.lanes import LANE_BYTES, by_rows, with_lanes
from mltriton.layouts.tiling import along, row_major, transposed
from mltriton.passes.ttg.dot_loads import along_k
from mltriton.passes.ttg.row_order import best_rows
from mltriton.records import NamedTuple
from mltriton.targets.base import BlockIO, Home, ResultPerWarp, TargetSpec, Wanted

WORD = 4  # bytes that a register has for each lane
DEEPER = 8  # how many times more often what is in a loop is done than what is around it


class Reach(NamedTuple):
    """How blocks of an encoding are accessed: dimensions with the fastest first, elements that a lane can take at a
    time, and how much depends on it.
    """

    order: Shape
    run: int
    weight: int


class LanePlan:
    """The encodings of one function. `of` maps an encoding; `blocks` has those of block pointers, `accesses` those of
    operations on them and on descriptors.
    """

    def __init__(self, function: tt.Func, spec: TargetSpec) -> None:
        self.spec = spec
        self.io = BlockIOAnalysis(function, spec.block_load or BlockIO(max_rows=1, max_row_bytes=1))
        self.blocks: dict[Value, Encoding] = {}
        self.accesses: dict[Operation, Encoding] = {}
        self.dots: dict[tt.Dot, MatrixEncoding] = {}
        self._widths: dict[Encoding, int] = {}  # `k_width` of operands
        self._in_memory: dict[Encoding, int] = {}  # operands that go to shared memory, and bytes of an element
        self._operands: dict[Encoding, Shape] = {}  # the largest sizes of the operands with an encoding
        self._known: dict[Encoding, Encoding] = {}
        self._reached: dict[Encoding, Reach] = {}
        self._lines: dict[Encoding, Encoding] = {}  # of operands that go to shared memory
        dots = sorted((op for op in function.walk() if isinstance(op, tt.Dot)), key=lambda op: -_depth(op))
        self._choose_for_results(dots)
        self._share_out(function)
        for dot in dots:
            self._keep_around(dot)
        found = self.io.accesses.values()
        self._of_pointers = {_encoding_of_access(a) for a in found if isinstance(a.pointer.type, TensorType)}
        for access in found:
            self._add_reach(access)
        self._add_transposed(function)
        self._add_blocks(function)

    def of(self, encoding: Encoding) -> Encoding:
        """The encoding that stands for another."""
        if encoding not in self._known:
            self._known[encoding] = self._made(encoding)
        return self._known[encoding]

    def _made(self, encoding: Encoding) -> Encoding:
        if isinstance(encoding, SliceEncoding):
            return SliceEncoding(encoding.dim, self.of(encoding.parent))
        if isinstance(encoding, DotOperandEncoding) and isinstance(self.of(encoding.parent), MatrixEncoding):
            if encoding in self._in_memory:
                return self._lines.get(encoding) or self._with_lanes(encoding)
            width = encoding.k_width or self._widths.get(encoding, 0)
            return DotOperandEncoding(encoding.op_idx, self.of(encoding.parent), width)
        if encoding in self._operands:  # of a dot whose result is none of the matrix engine's where it is used
            return self._with_lanes(encoding)
        if isinstance(encoding, BlockedEncoding) and encoding.size_per_thread is None:
            reach = self._reached.get(encoding, Reach(row_major(len(encoding.order)), 1, 0))
            sizes = zip(encoding.size_per_warp, encoding.warps_per_cta, strict=True)
            largest = tuple(size * warps for size, warps in sizes)
            return with_lanes(encoding, largest, self.spec.warp_size, reach.run, reach.order)
        return encoding

    def _with_lanes(self, operand: Encoding) -> Encoding:
        """That of operands which are no instruction's where they are used."""
        return with_lanes(operand, self._operands[operand], self.spec.warp_size)

    def _share_out(self, function: tt.Func) -> None:
        """Of operands which go to shared memory each warp has lines of its own, whatever it multiplies; unless one is
        the transpose of what lanes have.
        """
        turned = [op for op in function.walk() if isinstance(op, tt.Trans)]
        for operand, width in self._in_memory.items():
            shape = self._operands[operand]
            around = [op for op in turned if operand in map(_encoding, (op.source, op.result))]
            if len(shape) != 2 or not all(_is_seen_turned_only(op, function) for op in around):
                continue
            cut, run = along(shape, operand.warps, (0, 1)), LANE_BYTES // width
            self._lines[operand] = with_lanes(cut, shape, self.spec.warp_size, run)
            source = with_lanes(transposed(cut, (1, 0)), shape[::-1], self.spec.warp_size, run, (0, 1))
            self._known.update((_encoding(op.source), source) for op in around)

    # Dots

    def _choose_for_results(self, dots: Sequence[tt.Dot]) -> None:
        """The deepest dot decides for an encoding that several have, of those whose layout keeps the warps' parts of
        the results of all, and of operands that have it as well.
        """
        together: dict[Encoding, list[tt.Dot]] = {}
        for dot in dots:
            together.setdefault(_encoding(dot.result), []).append(dot)
            self.dots[dot] = self._matrix(dot, _encoding(dot.result))
        for group in together.values():
            for dot in group:
                self._add_operands(dot, self.dots[dot])
        for encoding, group in together.items():
            shapes = {_block(dot.result).shape for dot in group}
            shapes |= {self._operands[encoding]} if encoding in self._operands else set()
            for own in (self.dots[dot] for dot in group):
                if all(same_cut(own, encoding, shape) for shape in shapes):
                    self._known.setdefault(encoding, own)
            self._choose_rows(encoding, group)

    def _add_operands(self, dot: tt.Dot, own: MatrixEncoding) -> None:
        """What is known of operands besides the layout of the result."""
        for operand, home in zip((dot.a, dot.b), self.homes(dot), strict=True):
            if isinstance(operand.type, TensorType):
                sizes = self._operands.get(_encoding(operand), operand.type.shape)
                self._operands[_encoding(operand)] = tuple(map(max, sizes, operand.type.shape))
                self._widths.setdefault(_encoding(operand), own.k_width(byte_width(operand.type.element)))
                if home is Home.SHARED:
                    self._in_memory[_encoding(operand)] = byte_width(operand.type.element)

    def homes(self, dot: tt.Dot) -> tuple[Home, Home]:
        """Where the operands of a dot must be."""
        own = self.dots[dot]
        size = self.spec.dot[_element(dot)].acting(own.together)
        a, b = size.homes
        if a is Home.EITHER and (size.k_major or own.takes_lines(0)) and not along_k(dot, self.io.axes, (0,)):
            a = Home.REGISTERS
        return _home(a, dot.a), _home(b, dot.b)

    def _choose_rows(self, encoding: Encoding, dots: Sequence[tt.Dot]) -> None:
        """Another order of rows, where all dots with an encoding have one layout and gain by it."""
        own = self._known.get(encoding)
        if not isinstance(own, MatrixEncoding) or own is encoding or self.spec.block_load is None:
            return
        if all(self.dots[dot] is own for dot in dots):
            best = best_rows(dots, own, self.io.accesses.values(), self.spec.block_load, self.spec.warp_size)
            self._known[encoding] = best
            self.dots.update(dict.fromkeys(dots, best))

    def _keep_around(self, dot: tt.Dot) -> None:
        """Where the instruction of this dot, or of another with its encoding, is larger than a warp's part, the blocks
        around the dot keep theirs.
        """
        around = self.of(_encoding(dot.result))
        if isinstance(around, MatrixEncoding) and same_cut(around, self.dots[dot], _block(dot.result).shape):
            return
        for operand in (v for v in (dot.a, dot.b) if isinstance(v.type, TensorType)):
            self._known.setdefault(_encoding(operand), self._with_lanes(_encoding(operand)))

    def _matrix(self, dot: tt.Dot, encoding: Encoding) -> MatrixEncoding:
        if isinstance(encoding, MatrixEncoding):
            return encoding
        type, element = _block(dot.result), _element(dot)
        listed, cuts = self.spec.dot.get(element), encoding.cut(type.shape)
        k = cast(TensorType | MemDescType, dot.a.type).shape[-1]
        listed = listed.precise(dot.precision) if listed is not None else None
        if listed is not None and listed.k_major and not along_k(dot, self.io.axes, listed.k_major):
            listed = listed.otherwise
        size = listed.fitting(cuts, type.shape, k) if listed is not None else None
        if size is None or size.encoding is None:
            expected = ", ".join(map(str, self.spec.dot))
            message = f"the target {self.spec.name} has no dot of {element} elements"
            hint = "Convert the operands, as with .to(tl.float32)."
            raise TargetError(message, location=dot.loc.in_source, expected=expected, found=str(element), hint=hint)
        warps = tuple(cut.warps for cut in cuts)
        return size.encoding(size, ResultPerWarp(encoding.per_warp_shape(type.shape), warps, self.spec.warp_size))

    # Blocks of pointers

    def _add_reach(self, access: BlockAccess) -> None:
        """The order and the run that suit the accesses with an encoding: those of most elements, in inner loops."""
        encoding, element = _encoding_of_access(access), access.block.element
        if not isinstance(encoding, BlockedEncoding):
            return
        rank = access.block.rank
        fastest, run = access.fastest, 1 << 30
        if self.spec.block_load and access.contiguous == rank - 1 and encoding not in self._of_pointers:
            run = max(1, WORD // byte_width(element))  # as block messages leave it, so that nothing moves between lanes
        elif fastest is None and isinstance(access.pointer.type, TensorType):
            runs = [self.io.axes.contiguous_bytes(access.pointer, dim) for dim in range(rank)]
            fastest = max(range(rank), key=lambda dim: (runs[dim], dim))
            run = min(runs[fastest], self.io.axes.alignment(access.pointer)) // byte_width(element)
        first = rank - 1 if fastest is None else fastest
        order = (first, *(dim for dim in reversed(range(rank)) if dim != first))
        most = max(1, min(run, LANE_BYTES // byte_width(element)))
        weight = access.block.size * DEEPER ** _depth(access.op)
        old = self._reached.get(encoding)
        if old is None or weight > old.weight:
            limited = old is not None and old.order == order and old.weight * DEEPER > weight
            self._reached[encoding] = Reach(order, min(most, old.run) if old and limited else most, weight)
        elif old.order == order and weight * DEEPER > old.weight:
            self._reached[encoding] = old._replace(run=min(old.run, most))

    def _add_transposed(self, function: tt.Func) -> None:
        """What nobody accesses has the lanes of what it is the transpose of, so that only names change."""
        for op in (op for op in function.walk() if isinstance(op, tt.Trans)):
            reach = self._reached.get(_encoding(op.result))
            if reach is not None:
                order = tuple(op.order[dim] for dim in reach.order)
                self._reached.setdefault(_encoding(op.source), reach._replace(order=order))

    # 2D block accesses

    def _add_blocks(self, function: tt.Func) -> None:
        together: dict[Value, list[BlockAccess]] = {}
        for access in self.io.accesses.values():
            if is_block_pointer(access.pointer.type):
                together.setdefault(access.pointer, []).append(access)
            elif isinstance(access.op, tt.DescriptorLoad | tt.DescriptorStore):
                self._add_descriptor(access)
            elif isinstance(access.op, tt.Load):
                self._add_rows(access)
        for pointer, accesses in together.items():
            block = self._block_of(accesses)
            if block is not None:
                self.blocks[pointer] = block
                self.accesses.update((access.op, block) for access in accesses)

    def _add_descriptor(self, access: BlockAccess) -> None:
        block = self._block_of([access])
        if block is not None:
            self.accesses[access.op] = block

    def _add_rows(self, access: BlockAccess) -> None:
        """A right operand of a dot whose pointers are neighbours in no dimension is loaded by whole rows: columns that
        were dealt to lanes in another order are neighbours of some kind, and they are only seen within one piece.
        """
        encoding = self.of(_encoding_of_access(access))
        width = byte_width(access.block.element)
        runs = [self.io.axes.contiguous_bytes(access.pointer, dim) for dim in range(access.block.rank)]
        if isinstance(encoding, DotOperandEncoding) and encoding.op_idx == 1 and max(runs) <= width:
            self.accesses[access.op] = by_rows(encoding, access.block.shape)

    def _block_of(self, accesses: list[BlockAccess]) -> Encoding | None:
        """The block that all accesses through one pointer have; one for stores, too, where there is a store."""
        dims = {access.contiguous for access in accesses}
        first = accesses[0]
        contiguous = dims.pop()
        limits = self.spec.block_load
        if dims or contiguous is None or limits is None or limits.choose is None:
            return None
        stores = any(access.stores for access in accesses)
        width = byte_width(first.block.element)
        encoding = self.of(_encoding_of_access(first))
        if encoding is _encoding_of_access(first):
            return None  # It was given before.
        wanted = Wanted(encoding, first.block.shape, width, contiguous, stores)
        choice = limits.choose(wanted, limits, self.spec.warp_size)
        if choice is None:
            return None
        # Columns whose words a transposing load would bring to other lanes than those that want them.
        moves = choice.change and first.transposes and isinstance(encoding, LinearEncoding)
        direct = limits.lane_cost(wanted, LANE_BYTES) if moves and limits.lane_cost is not None else None
        return choice.encoding if direct is None or direct > choice.cost else None


def _is_seen_turned_only(op: tt.Trans, function: tt.Func) -> bool:
    """Whether an engine brings what is transposed, for products, and nothing else in a function has its encoding."""
    encoding = _encoding(op.source)
    return isinstance(_encoding(op.result), DotOperandEncoding) and all(
        isinstance(other, tt.DescriptorLoad) and all(isinstance(user, tt.Trans) for user in value.users)
        for other in function.walk()
        for value in other.results
        if isinstance(value.type, TensorType) and value.type.encoding is encoding
    )


def _home(home: Home, operand: Value) -> Home:
    """Where an operand is to be that may be in registers or in shared memory."""
    if home is not Home.EITHER:
        return home
    source = operand.defining_op
    while isinstance(source, ttg.ConvertLayout | tt.Trans):
        source = source.source.defining_op
    is_there = isinstance(operand.type, MemDescType) or isinstance(source, tt.Load | tt.DescriptorLoad)
    return Home.SHARED if is_there else Home.REGISTERS


def _encoding_of_access(access: BlockAccess) -> Encoding:
    return cast(Encoding, access.block.encoding)


def _encoding(value: Value) -> Encoding:
    return cast(Encoding, _block(value).encoding)


def _element(dot: tt.Dot) -> Type:
    """The elements of a dot's operands, wherever these are."""
    return cast(TensorType | MemDescType, dot.a.type).element


def _block(value: Value) -> TensorType:
    return cast(TensorType, block_of(value.type))


def _depth(op: Operation) -> int:
    """Loops around an operation."""
    depth, parent = 0, op.parent_op
    while parent is not None:
        depth += isinstance(parent, scf.For | scf.While)
        parent = parent.parent_op
    return depth
