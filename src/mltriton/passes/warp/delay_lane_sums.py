"""delay-lane-sums: what loops sum up of rows is put together of the lanes' parts once, behind the loops.

Level: warp. Takes sums of a block's rows that a loop adds to what it carries, which nothing else takes in the loop, and
which it may multiply by a number of each row: `l = l * alpha + sum(p)` of a softmax. Changes them in place: the loop,
and branches and loops that it begins with or hands its sum to, carry a part for each lane that holds elements of a row
(`tensor<16xf32>` becomes `tensor<16x4xf32>`), and the parts are summed up where something else takes the sum.
Guarantees: sums begin at 0; they are rounded in another order. Purpose: exchanges between lanes once, not in every
iteration. Where two groups of warps have a producer one exchanges while the other multiplies: such programs stay as
they are, which was faster (attention of 128: 1.17 to 1.20 of upstream's speed, 1.11 to 1.12 with delayed sums).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.nesting import is_inside
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import FloatType, TensorType
from mltriton.layouts.encodings import Encoding, SliceEncoding
from mltriton.layouts.explicit import LinearEncoding
from mltriton.layouts.hardware import warp_layout
from mltriton.records import NamedTuple
from mltriton.targets.registry import TOTAL_WARPS, num_warps_of, spec_of

Use = tuple[Operation, int]  # an operation and the number of its operand


class DelayLaneSums(Pass):
    """Let loops carry a part of a sum for each lane."""

    name = "delay-lane-sums"

    def run(self, module: Module) -> Module:
        for op in list(module.walk()) if not _are_two_groups(module) else ():
            if isinstance(op, tt.Reduce) and op.ancestor(scf.For) is not None and _is_row_sum(op):
                parts = _parts_of(cast(TensorType, op.sources[0].type))
                web = _Web(op) if parts is not None else None
                if parts is not None and web is not None and web.follow():
                    web.write(parts)
        return module


def _are_two_groups(module: Module) -> bool:
    """Whether a program has two groups of warps, and a producer."""
    groups, warps = spec_of(module).warp_groups, num_warps_of(module)
    return groups is not None and warps == 2 * groups.warps and TOTAL_WARPS in module.attributes


class _Parts(NamedTuple):
    """How a block of rows is cut: `cut` has each column as the number of a group, the lane within it, and the element
    of the lane; `kept` are a row's parts.
    """

    cut: TensorType
    kept: TensorType


def _parts_of(block: TensorType) -> _Parts | None:
    """None where lanes do not share a row out by equal groups of columns."""
    layout = warp_layout(cast(Encoding, block.encoding), block.shape)
    steps = sorted(column for _, column in layout.vectors("lane") if column)
    vectors = (vector for name in ("register", "lane") for vector in layout.vectors(name))
    if not steps or any(row and column for row, column in vectors):
        return None
    low, high = steps[0], 2 * steps[-1]
    if steps != [low << bit for bit in range(len(steps))]:
        return None
    rows, columns = block.shape

    def split(vectors: object) -> tuple[tuple[int, ...], ...]:
        return tuple((r, c // high, c % high // low, c % low) for r, c in cast("list[tuple[int, int]]", vectors))

    def left(vectors: object) -> tuple[tuple[int, ...], ...]:
        return tuple((r, c % high // low) for r, c in cast("list[tuple[int, int]]", vectors))

    registers, lanes = layout.vectors("register"), layout.vectors("lane")
    kept = tuple(vector for vector in left(registers) if any(vector))
    cut = TensorType((rows, columns // high, high // low, low), block.element)
    return _Parts(
        cut.with_encoding(LinearEncoding(4, split(registers), split(lanes), ())),
        TensorType((rows, high // low), block.element, LinearEncoding(2, kept, left(lanes), ())),
    )


def _is_row_sum(op: tt.Reduce) -> bool:
    """Whether a sum of a block's rows is added to something."""
    users = list(op.results[0].users)
    source = op.sources[0].type
    is_rows = isinstance(source, TensorType) and source.rank == 2 and op.axis == 1 and len(op.sources) == 1
    return is_rows and op.combiner is arith.AddF and len(users) == 1 and isinstance(users[0], arith.AddF)


class _Web:
    """The values that hold a sum so far, and what takes it besides."""

    def __init__(self, start: tt.Reduce) -> None:
        self.type = start.results[0].type
        self.values: dict[Value, None] = {}
        self.sums: dict[Operation, tt.Reduce] = {}
        self.factors: dict[Operation, int] = {}
        self.zeros: list[Use] = []
        self.outside: list[Use] = []
        self.pending: list[Value] = [next(iter(start.results[0].users)).results[0]]

    def follow(self) -> bool:
        """Find all; whether they can be changed."""
        while self.pending:
            value = self.pending.pop()
            if value not in self.values:
                self.values[value] = None
                if value.type is not self.type or not self._made(value):
                    return False
                self.pending += [taken for user in value.users for taken in _handed_on(user, value)]
        for value in self.values:
            for user in dict.fromkeys(value.users):
                for number, operand in enumerate(user.operands):
                    if operand is value and not self._takes(user, number):
                        self.outside.append((user, number))
        loops = {op for op in map(_loop_of, self.values) if op is not None}
        return bool(loops) and not any(is_inside(user, *loops) for user, _ in self.outside)

    def _made(self, value: Value) -> bool:
        """Follow what a value is made of, and where loops and branches hand it on."""
        op = value.defining_op
        if isinstance(op, arith.AddF):
            sums = [(n, v.defining_op) for n, v in enumerate(op.operands)]
            found = next(((n, s) for n, s in sums if isinstance(s, tt.Reduce) and _is_row_sum(s)), None)
            if found is None or found[1].sources[0].type is not self._block(found[1]):
                return False
            self.sums[op] = found[1]
            return self._came(op, 1 - found[0])
        if isinstance(op, arith.MulF):
            factors = [n for n, v in enumerate(op.operands) if not _hands_on(v)]
            if len(factors) != 1:
                return False
            self.factors[op] = factors[0]
            return self._came(op, 1 - factors[0])
        if isinstance(value, OpResult) and isinstance(op, scf.If):
            return all(self._came(end, value.index) for end in _ends(op))
        loop, index = _loop_of(value), _number_in_loop(value)
        if loop is None or index < 0:
            return False
        self.pending += [loop.results[index], loop.carried[index]]
        return self._came(loop, 3 + index) and self._came(loop.body.block.terminator, index)

    def _block(self, op: tt.Reduce) -> object:
        """The type of blocks whose rows are summed up: one for the whole web."""
        first = next(iter(self.sums.values()), op)
        return first.sources[0].type

    def _came(self, op: Operation, number: int) -> bool:
        value = op.operands[number]
        if isinstance(value.defining_op, arith.Constant):
            self.zeros.append((op, number))
            return splat_of(value) == 0
        self.pending.append(value)
        return True

    def _takes(self, user: Operation, number: int) -> bool:
        """Whether a use is one of the web's own."""
        if user in self.factors:
            return number != self.factors[user]
        if user in self.sums:
            return True
        if isinstance(user, scf.For):
            return number >= 3 and user.results[number - 3] in self.values
        parent = user.parent_op
        if isinstance(user, scf.Yield) and isinstance(parent, scf.For | scf.If):
            return parent.results[number] in self.values
        return False

    # Writing

    def write(self, parts: _Parts) -> None:
        """Change the types of all, and what goes in and comes out."""
        start = next(iter(self.sums.values()))
        for op, sum_ in self.sums.items():
            builder = Builder().before(sum_)
            number = next(n for n, v in enumerate(op.operands) if v.defining_op is sum_)
            op.set_operand(number, _lanes_parts(builder, sum_, parts))
        for op, number in self.factors.items():
            op.set_operand(number, _spread(Builder().before(op), op.operands[number], parts.kept))
        for op, number in self.zeros:
            op.set_operand(number, arith.filled(Builder().before(op), 0.0, parts.kept))
        for value in self.values:
            value.type = parts.kept
        for op, number in self.outside:
            builder = Builder().before(op)
            whole = _reduced(builder, start, op.operands[number], 1)
            op.set_operand(number, builder.emit(ttg.ConvertLayout, whole, result_types=[self.type]))
        for sum_ in self.sums.values():
            sum_.erase()


def _hands_on(value: Value) -> bool:
    """Whether a value may be a sum so far."""
    made = isinstance(value.defining_op, arith.AddF | arith.MulF | scf.If)
    return made or _loop_of(value) is not None or splat_of(value) == 0


def _handed_on(user: Operation, value: Value) -> Sequence[Value]:
    """What is a sum, too, where a value is one."""
    numbers = [number for number, operand in enumerate(user.operands) if operand is value]
    if isinstance(user, scf.For):
        return [user.results[number - 3] for number in numbers]
    if isinstance(user, scf.Yield):
        parent = user.parent_op
        return [parent.results[number] for number in numbers] if isinstance(parent, scf.For | scf.If) else []
    sums = isinstance(user, arith.AddF) and any(
        isinstance(v.defining_op, tt.Reduce) and _is_row_sum(v.defining_op) for v in user.operands
    )
    grows = isinstance(user, arith.MulF) and user.ancestor(scf.For) is not None
    return user.results if sums or grows else []


def _ends(branch: scf.If) -> Iterator[Operation]:
    for region in branch.regions:
        yield region.block.terminator


def _loop_of(value: Value) -> scf.For | None:
    op = value.block.parent_op if isinstance(value, BlockArgument) else value.defining_op
    return op if isinstance(op, scf.For) else None


def _number_in_loop(value: Value) -> int:
    """The number of a value among those that its loop carries."""
    return value.index - isinstance(value, BlockArgument) if isinstance(value, BlockArgument | OpResult) else -1


def _lanes_parts(builder: Builder, sum_: tt.Reduce, parts: _Parts) -> Value:
    """The sum of each lane's elements of a row."""
    value = builder.emit(tt.Reshape, sum_.sources[0], result_types=[parts.cut])
    for axis in (3, 1):
        value = _reduced(builder, sum_, value, axis)
    return builder.emit(ttg.ConvertLayout, value, result_types=[parts.kept])


def _reduced(builder: Builder, like: tt.Reduce, value: Value, axis: int) -> Value:
    """A block's sum along an axis, by the operation of another sum."""
    block, region = cast(TensorType, value.type), Region([])
    like.combine.clone_into(region, {})
    shape = block.shape[:axis] + block.shape[axis + 1 :]
    made = TensorType(shape, block.element, SliceEncoding(axis, cast(Encoding, block.encoding)))
    return builder.create(tt.Reduce, value, result_types=[made], regions=[region], axis=axis).results[0]


def _spread(builder: Builder, factor: Value, to: TensorType) -> Value:
    """A number of each row for all its parts."""
    rows, encoding = to.shape[0], cast(Encoding, to.encoding)
    assert isinstance(to.element, FloatType)
    own = builder.emit(
        ttg.ConvertLayout, factor, result_types=[TensorType((rows,), to.element, SliceEncoding(1, encoding))]
    )
    column = builder.emit(tt.ExpandDims, own, axis=1, result_types=[TensorType((rows, 1), to.element, encoding)])
    return builder.emit(tt.Broadcast, column, result_types=[to])
