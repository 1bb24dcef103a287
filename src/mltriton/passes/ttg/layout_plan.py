"""The layout plan: which encoding every block gets. The analysis half of `assign-layouts`.

Level: tt. Takes functions without encodings. Afterwards: `encodings` holds one encoding for every anchored block
value, `demanded` all encodings in which a flexible value is wanted, and `wanted` the encoding in which an operation
wants each operand. A *flexible* value is cheap to compute again (constants, ranges, splats, broadcasts, loads of little
where the target repeats them, and arithmetic on only those); every other block is *anchored*: it exists once.

Roots are taken in order: dots with a hint (`tiling_hints.py`), dots fed by another dot, other dots, reductions and
scans, then whatever is left (elementwise). From each root the encoding spreads along definitions and uses until it
meets a value that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from mltriton.analysis.workload import Workload, analyse
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.attributes import Attribute, DenseAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.order import operands_first
from mltriton.ir.types import PointerType, TensorType, Type, block_of
from mltriton.layouts import tiling
from mltriton.layouts.encodings import BlockedEncoding, Encoding, SliceEncoding
from mltriton.passes.ttg.layout_rules import decides, rule_of, same_everywhere
from mltriton.passes.ttg.tiling_hints import hinted_roots, smallest_part
from mltriton.targets.base import DotSize, TargetSpec


def functions(module: Module) -> Iterator[tt.Func]:
    """The functions of a module."""
    return (op for op in module.body.block.ops if isinstance(op, tt.Func))


def with_encoding(type: Type, encoding: Encoding | None) -> Type:
    """`type` with `encoding` on its block, if it has one."""
    block = block_of(type)
    if block is None or encoding is None:
        return type
    encoded = block.with_encoding(encoding)
    return PointerType(encoded, type.address_space) if isinstance(type, PointerType) else encoded


class LayoutPlan:
    """Decides the encodings of functions for `num_warps` warps on a target. See the module's docstring for what it
    holds.
    """

    def __init__(self, spec: TargetSpec, num_warps: int, ties: Ties | None = None) -> None:
        self.spec = spec
        self._ties = ties or Ties()
        self.num_warps = num_warps
        self.encodings: dict[Value, Encoding] = {}
        self.demanded: dict[Value, list[Encoding]] = {}
        self.wanted: dict[tuple[Operation, int], Encoding] = {}
        self._flexible: dict[Value, bool] = {}
        self.decided: set[Operation] = set()
        self.staged: dict[Operation, Encoding] = {}  # accesses that have encodings of their own
        self._pending: list[Value] = []
        self._postponed: list[tuple[Value, Encoding]] = []

    def add(self, function: tt.Func) -> None:
        """Decide for all blocks of a function."""
        self._ties = _with_one_encoding(function)
        if self.spec.copy_bytes:
            from mltriton.passes.ttg.dot_loads import staged_loads, staged_stores  # Other targets share no loads.

            room = self.spec.shared_bytes // 2
            self.staged = staged_loads(function, self.num_warps) | staged_stores(function, self.num_warps, room)
        workload = analyse(function)
        for dot, encoding in hinted_roots(workload.dots, self.spec, self.num_warps, self._reached):
            self._root(dot, encoding)
        for dot in _by_importance(workload):
            self._root(dot, self._root_layout(dot, workload))
        for op in function.walk():
            if isinstance(op, tt.Reduce | tt.Scan):
                self._seed(op)
                self._spread()
        for op in function.walk():
            self._give_default(op)
            self._spread()

    # Roots

    def _root(self, dot: tt.Dot, encoding: Encoding) -> None:
        """A dot's result has `encoding`, unless it was reached from another root; everything else follows."""
        self.anchor(dot.result, encoding)
        self._spread()

    def _root_layout(self, dot: tt.Dot, workload: Workload) -> Encoding:
        fed = [index for target, index in workload.feeds.values() if target is dot]
        shape_of_cut = "square" if not fed else "horizontal" if 0 in fed else "vertical"
        shape, smallest = _shape(dot.result), smallest_part(dot, self.spec)
        size = self.spec.dot.get(cast(TensorType, dot.a.type).element)
        size = size.precise(dot.precision) if size is not None else None
        if size is not None and size.k_major and not _lies_along_k(dot, size.k_major):
            size = size.otherwise
        grouped = self._in_groups(shape, size) if size and size.warps > 1 else None
        if grouped is not None and (not fed or grouped.warps_per_cta[0] == self.num_warps):
            return grouped
        cut = tiling.TILINGS[shape_of_cut](shape, self.num_warps, smallest)
        return tiling.at_least(cut, shape, (1, smallest[1])) if self.spec.has_lanes else cut

    def _in_groups(self, shape: tuple[int, ...], size: DotSize) -> BlockedEncoding | None:
        """Groups of warps below each other, each warp with as few rows as suffice."""
        found = (tiling.in_groups(shape, self.num_warps, rows, size.warps) for rows in (*size.fewer_rows, size.rows))
        return next((encoding for encoding in found if encoding is not None), None)

    def _reached(self, dot: tt.Dot, encoding: Encoding) -> Mapping[Value, Encoding]:
        """The encodings that follow where `dot` is the only root."""
        alone = LayoutPlan(self.spec, self.num_warps, self._ties)
        alone.staged = self.staged
        alone._root(dot, encoding)
        return alone.encodings

    def _seed(self, op: tt.Reduce | tt.Scan) -> None:
        """Visit a reduction or scan. Where nothing decides for the sources of a reduction, the axis is whole in each
        warp as far as the other dimensions go round.
        """
        for source in op.sources:
            self._settle_owner(source)
        if isinstance(op, tt.Reduce) and self.known(list(op.sources)) is None:
            shape = _shape(op.sources[0])
            others = tuple(dim for dim in range(len(shape)) if dim != op.axis)
            self.want(op, 0, tiling.along(shape, self.num_warps, (*others, op.axis)))
        self._visit(op)

    def _give_default(self, op: Operation) -> None:
        """Settle whatever no root reached: outer dimensions are cut first."""
        if op in self.decided or self.is_flexible_op(op):
            return
        if rule_of(op) is same_everywhere:
            values = [value for value in (*op.results, *op.operands) if block_of(value.type)]
            if values:
                self.agree(op, self.known(values) or self._default(values[0]))
            return
        self._visit(op)
        for value in (
            *op.results,
            *(arg for block in op.blocks for arg in block.arguments),
        ):
            if block_of(value.type) and value not in self.encodings and not self.is_flexible(value):
                self.anchor(value, self._default(value))
        self._visit(op)
        for index, operand in enumerate(op.operands):
            if block_of(operand.type) and (op, index) not in self.wanted:
                self.want(op, index, self.encodings.get(operand) or self._default(operand))

    def _default(self, value: Value) -> Encoding:
        return tiling.outer_first(_shape(value), self.num_warps)

    # Spreading

    def anchor(self, value: Value, encoding: Encoding, by: Operation | None = None) -> None:
        """`value` has `encoding`, unless it has one already.

        The result of an operation that decides for itself (`decides`) gets one from its own rule only (`by` is the
        operation): where others want another there is a conversion.
        """
        if value in self.encodings or not block_of(value.type) or self.is_flexible(value):
            return
        if by is not value.defining_op and self._settle_owner(value):
            return
        for same in self._ties.of(value):
            self.encodings[same] = encoding
            self._pending.append(same)

    def _settle_owner(self, value: Value) -> bool:
        """Let the operation that defines a value decide, if it is one that decides for itself; whether it is."""
        owner = value.defining_op
        if owner is None or not (decides(owner) or owner in self.staged):
            return False
        self._visit(owner)
        return True

    def _spread(self) -> None:
        while self._pending or self._postponed:
            if not self._pending:
                self.anchor(*self._postponed.pop(0))
                continue
            value = self._pending.pop()
            self._visit_definition(value)
            for user in list(value.users):
                self._visit(user)

    def _visit_definition(self, value: Value) -> None:
        """Visit the operation that defines a value, or in whose region it is an argument."""
        op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op
        if op is not None:
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        rule = rule_of(op)
        if rule is not None and not self.is_flexible_op(op):
            rule(self, op)

    def want(self, op: Operation, index: int, encoding: Encoding) -> None:
        """Operation `op` wants operand `index` in `encoding`."""
        operand = op.operands[index]
        if (op, index) in self.wanted or not block_of(operand.type):
            return
        self.wanted[op, index] = encoding
        if self.is_flexible(operand):
            self._demand(operand, encoding)
        else:
            self.anchor(operand, encoding)

    def _demand(self, value: Value, encoding: Encoding) -> None:
        """A flexible value is wanted in `encoding`; anchored values behind it get theirs when nothing else decides."""
        pending = [(value, encoding)]
        while pending:
            value, encoding = pending.pop()
            if not self.is_flexible(value):
                self._postponed.append((value, encoding))
                continue
            demanded = self.demanded.setdefault(value, [])
            if encoding in demanded:
                continue
            demanded.append(encoding)
            op = value.defining_op
            assert op is not None
            operands = zip(op.operands, self.flexible_operands(op, encoding), strict=True)
            pending += reversed([(operand, wanted) for operand, wanted in operands if wanted is not None])

    def known(self, values: list[Value]) -> Encoding | None:
        """The encoding of the first of `values` that has one."""
        return next((self.encodings[value] for value in values if value in self.encodings), None)

    def agree(self, op: Operation, encoding: Encoding) -> None:
        """All blocks of `op` have `encoding`."""
        self.decided.add(op)
        for result in op.results:
            if block_of(result.type):
                self.anchor(result, encoding)
        for index in range(len(op.operands)):
            self.want(op, index, encoding)

    # Flexible values

    def is_flexible(self, value: Value) -> bool:
        """Whether a block is computed again for each encoding it is wanted in."""
        found = self._flexible.get(value)
        if found is None:
            for each in operands_first(value, self._undecided_operands):
                found = self._flexible[each] = self._is_flexible(each.defining_op)
        return bool(found)

    def _is_flexible(self, op: Operation | None) -> bool:
        """The same of a value by the operation that defines it; it is known of blocks among the operands."""
        if op is None or isinstance(op, FLEXIBLE):
            return op is not None
        return self._may_repeat(op) and all(self._flexible[v] for v in op.operands if block_of(v.type))

    def _may_repeat(self, op: Operation) -> bool:
        """Whether an operation is cheap where its operands are."""
        if isinstance(op, tt.Load) and self.spec.repeats_loads:
            from mltriton.passes.ttg.dot_loads import is_small_spread  # Other targets share no loads.

            return is_small_spread(op, self.num_warps * self.spec.warp_size)
        return op.elementwise and op.pure

    def _undecided_operands(self, value: Value) -> list[Value]:
        """The operands on which it depends whether a block is flexible, of which that is not known yet."""
        op = value.defining_op
        if op is None or isinstance(op, FLEXIBLE) or not self._may_repeat(op):
            return []
        return [operand for operand in op.operands if operand not in self._flexible and block_of(operand.type)]

    def is_flexible_op(self, op: Operation) -> bool:
        """Whether the operation defines a flexible block."""
        if len(op.results) != 1 or not block_of(op.results[0].type) or not self.is_flexible(op.results[0]):
            return False
        self.demanded.setdefault(op.results[0], [])
        return True

    def flexible_operands(self, op: Operation, encoding: Encoding) -> list[Encoding | None]:
        """The encodings in which a flexible operation wants its operands to give its result in `encoding`."""
        wanted = SliceEncoding(op.axis, encoding) if isinstance(op, tt.ExpandDims) else encoding
        return [wanted if block_of(operand.type) else None for operand in op.operands]

    def retyped_attributes(self, op: Operation, types: list[Type]) -> dict[str, Attribute]:
        """The attributes of `op` for its new result types: a dense constant carries its type, and of a dot's hint
        nothing is left but the encoding.
        """
        if isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr):
            return op.attributes | {"value": DenseAttr(op.value.values, types[0])}
        if isinstance(op, tt.Dot):
            return {name: value for name, value in op.attributes.items() if name != "tiling"}
        return op.attributes


FLEXIBLE = (arith.Constant, tt.Splat, tt.MakeRange, tt.ExpandDims, tt.Broadcast)


class Ties:
    """Sets of values that have one encoding, joined two at a time."""

    def __init__(self) -> None:
        self._sets: dict[Value, list[Value]] = {}

    def of(self, value: Value) -> list[Value]:
        """The set of a value; every one of its values gives the same object."""
        return self._sets.get(value) or self._sets.setdefault(value, [value])

    def join(self, a: Value, b: Value) -> None:
        """What has the encoding of `a` has that of `b`, too."""
        one, other = self.of(a), self.of(b)
        if one is not other:
            joined = [*one, *other]
            self._sets.update(dict.fromkeys(joined, joined))


def _with_one_encoding(function: tt.Func) -> Ties:
    """What a loop carries and its result; a block pointer, which no loop hands on here, and what is loaded by it."""
    ties = Ties()
    for op in function.walk():
        if isinstance(op, tt.Load) and is_block_pointer(op.ptr.type):
            ties.join(op.ptr, op.result)
        elif isinstance(op, scf.For | scf.While):
            carried = op.carried if isinstance(op, scf.For) else op.after.block.arguments
            for argument, result in zip(carried, op.results, strict=True):
                ties.join(argument, result)
    return ties


def _lies_along_k(dot: tt.Dot, operands: Sequence[int]) -> bool:
    """Whether operands that are loaded have K along lines of memory."""
    from mltriton.analysis.axis_info import AxisInfoAnalysis  # Few units ask for an order in memory.
    from mltriton.passes.ttg.dot_loads import along_k

    return along_k(dot, AxisInfoAnalysis(_function_of(dot)), operands)


def _function_of(op: Operation) -> tt.Func:
    parent = op.parent_op
    while not isinstance(parent, tt.Func):
        assert parent is not None
        parent = parent.parent_op
    return parent


def _by_importance(workload: Workload) -> list[tt.Dot]:
    """Dots fed by another, then the rest."""
    fed = {target for target, _ in workload.feeds.values()}
    return sorted(workload.dots, key=lambda dot: dot not in fed)


def _shape(value: Value) -> tuple[int, ...]:
    return cast(TensorType, block_of(value.type)).shape
