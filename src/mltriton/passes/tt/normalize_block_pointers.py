"""normalize-block-pointers: every block pointer is made right before its use.

Level: tt. Takes any program and changes it in place. `tt.advance` becomes additions to i32 offsets; loops, branches and
selects hand on offsets instead of block pointers, and base, shape or strides too where a value may come from block
pointers that differ in them. Along dimensions whose size may exceed i32 offsets are i64: the block pointer begins at
the offset, and has what is left of the size. Guarantees: no block pointer crosses an operation with regions; no
`tt.advance` is left. Raises `PassError` for a block pointer that is a parameter of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mltriton.analysis.block_pointer_roots import Roots
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_carried import keep_for, keep_if, keep_while, yield_also
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.errors import PassError
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, I64, Type
from mltriton.records import record

LARGEST = 2**31 - 1  # of i32


class NormalizeBlockPointers(Pass):
    """Carry offsets instead of block pointers."""

    name = "normalize-block-pointers"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                _Normalizer(function).run()
        return module


@record(frozen=True)
class BlockPointer:
    """The operands of the `tt.make_tensor_ptr` that gives a block pointer: base, shape, strides, offsets."""

    maker: tt.MakeTensorPtr
    parts: tuple[Value, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return (len(self.parts) - 1) // 3

    @property
    def offsets(self) -> tuple[Value, ...]:
        """The offsets: i32, and i64 along dimensions that may be larger."""
        return self.parts[-self.rank :]

    def with_offsets(self, offsets: Iterable[Value]) -> BlockPointer:
        """The block pointer at other offsets."""
        return BlockPointer(self.maker, (*self.parts[: -self.rank], *offsets))

    def emit(self, builder: Builder) -> Value:
        """Make the block pointer where the builder stands."""
        maker, rank = self.maker, self.rank
        base, shape, strides, offsets = self.parts[0], list(self.parts[1:]), self.parts[1 + rank :], list(self.offsets)
        for dim, offset in enumerate(offsets):
            if offset.type == I64:
                start = builder.emit(arith.MaxSI, offset, arith.integer(builder, 0, I64))
                base = builder.emit(tt.AddPtr, base, builder.emit(arith.MulI, start, strides[dim]))
                shape[dim], rest = (builder.emit(arith.SubI, whole, start) for whole in (shape[dim], offset))
                offsets[dim] = builder.emit(arith.TruncI, rest, result_types=[I32])
        parts = (base, *shape[:rank], *strides[:rank], *offsets)
        made = tt.MakeTensorPtr(parts, [maker.result.type], maker.attributes, loc=builder.loc, segments=maker.segments)
        made.result.hint = maker.result.hint
        return builder.insert(made).result


class _Normalizer:
    """Rewrites one function. `pointers` says what each block pointer, old loop arguments and results included, is."""

    def __init__(self, function: tt.Func) -> None:
        self.function = function
        self.roots = Roots(function)
        # Of all block pointers with so many dimensions: they may meet in a loop or branch.
        self.wide = {
            (len(op.shape), dim)
            for op in function.walk()
            if isinstance(op, tt.MakeTensorPtr)
            for dim, size in enumerate(op.shape)
            if not fits(size)
        }
        self.pointers: dict[Value, BlockPointer] = {}
        self.replaced: list[Operation] = []

    def run(self) -> None:
        self.block(self.function.body.block)
        for op in reversed(self.replaced):
            op.erase()

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(self, op)
            else:
                self.other(op)

    def other(self, op: Operation) -> None:
        """An operation that takes a block pointer gets one of its own."""
        for index, operand in enumerate(op.operands):
            if is_block_pointer(operand.type):
                op.set_operand(index, self.pointer(operand).emit(Builder().before(op)))
        for block in op.blocks:
            self.block(block)

    def pointer(self, value: Value) -> BlockPointer:
        """What a block pointer is."""
        if value not in self.pointers:
            raise PassError(f"a block pointer that is a parameter of @{self.function.sym_name} cannot be taken apart")
        return self.pointers[value]

    # Operations that make block pointers

    def make(self, op: tt.MakeTensorPtr) -> None:
        builder, offsets = Builder().before(op), list(op.offsets)
        for dim, offset in enumerate(offsets):
            if (len(offsets), dim) in self.wide:
                offsets[dim] = builder.emit(arith.ExtSI, offset, result_types=[I64])
        self.pointers[op.result] = BlockPointer(op, tuple(op.operands)).with_offsets(offsets)
        self.replaced.append(op)

    def advance(self, op: tt.Advance) -> None:
        pointer, builder = self.pointer(op.ptr), Builder().before(op)
        offsets = [_sum(builder, offset, step) for offset, step in zip(pointer.offsets, op.offsets, strict=True)]
        self.pointers[op.result] = pointer.with_offsets(offsets)
        self.replaced.append(op)

    def select(self, op: arith.Select) -> None:
        if not is_block_pointer(op.result.type):
            return
        yes, no = self.pointer(op.true_value), self.pointer(op.false_value)
        builder = Builder().before(op)
        parts = [
            a if a is b else builder.emit(arith.Select, op.condition, a, b)
            for a, b in zip(yes.parts, no.parts, strict=True)
        ]
        self.pointers[op.result] = BlockPointer(yes.maker, tuple(parts))
        self.replaced.append(op)

    # Control flow

    def loop(self, op: scf.For) -> None:
        indices = [i for i, init in enumerate(op.inits) if is_block_pointer(init.type)]
        if not indices:
            self.block(op.body.block)
            return
        old_arguments, old_results = [op.carried[i] for i in indices], [op.results[i] for i in indices]
        yielded = [op.body.block.terminator.operands[i] for i in indices]
        starts = [self.pointer(op.inits[i]) for i in indices]
        changing = [self.roots.changing(argument, op) for argument in old_arguments]
        kept = _without(len(op.inits), indices)
        made = keep_for(op, kept, self.changing_parts(starts, changing))
        body = made.body.block
        self.define(old_arguments, starts, changing, body.arguments[1 + len(kept) :])
        self.block(body)
        yield_also(body, self.changing_parts([self.pointer(value) for value in yielded], changing))
        self.define(old_results, starts, changing, made.results[len(kept) :])

    def branch(self, op: scf.If) -> None:
        indices = [i for i, result in enumerate(op.results) if is_block_pointer(result.type)]
        if not indices:
            self.other(op)
            return
        results = [op.results[i] for i in indices]
        changing = [self.roots.changing(result, op) for result in results]
        ends = [[region.block.terminator.operands[i] for i in indices] for region in op.regions]
        kept = _without(len(op.results), indices)
        made = keep_if(op, kept, self.changing_types(results, changing))
        for region, yielded in zip(made.regions, ends, strict=True):
            self.block(region.block)
            yield_also(region.block, self.changing_parts([self.pointer(value) for value in yielded], changing))
        self.define(results, [self.pointer(value) for value in ends[0]], changing, made.results[len(kept) :])

    def while_loop(self, op: scf.While) -> None:
        """What `before` takes and what it hands on are two sets of block pointers, each with its own changing parts."""
        taken = [i for i, init in enumerate(op.inits) if is_block_pointer(init.type)]
        handed = [j for j, result in enumerate(op.results) if is_block_pointer(result.type)]
        if not taken and not handed:
            self.other(op)
            return
        before, after = op.before.block, op.after.block
        old_before, old_after = [before.arguments[i] for i in taken], [after.arguments[j] for j in handed]
        old_results = [op.results[j] for j in handed]
        shown = [before.terminator.operands[1 + j] for j in handed]
        yielded = [after.terminator.operands[i] for i in taken]
        starts = [self.pointer(op.inits[i]) for i in taken]
        changing = [self.roots.changing(argument, op) for argument in old_before]
        changing_after = [self.roots.changing(argument, op) for argument in old_after]
        kept, kept_results = _without(len(op.inits), taken), _without(len(op.results), handed)
        types = self.changing_types(old_after, changing_after)
        made = keep_while(op, kept, kept_results, self.changing_parts(starts, changing), types)
        before, after = made.before.block, made.after.block
        self.define(old_before, starts, changing, before.arguments[len(kept) :])
        self.block(before)
        middle = [self.pointer(value) for value in shown]
        yield_also(before, self.changing_parts(middle, changing_after))
        self.define(old_after, middle, changing_after, after.arguments[len(kept_results) :])
        self.block(after)
        yield_also(after, self.changing_parts([self.pointer(value) for value in yielded], changing))
        self.define(old_results, middle, changing_after, made.results[len(kept_results) :])

    def changing_types(self, values: Sequence[Value], changing: Sequence[Sequence[bool]]) -> list[Type]:
        """The types of what `changing_parts` gives for block pointers that are not known yet."""
        return [
            type
            for value, flags in zip(values, changing, strict=True)
            for type, changes in zip(self.types(value), flags, strict=True)
            if changes
        ]

    def types(self, value: Value) -> list[Type]:
        """The types of a block pointer's parts."""
        maker = self.roots.of(value)[0]
        rank, others = len(maker.offsets), [part.type for part in maker.operands[: -len(maker.offsets)]]
        return others + [I64 if (rank, dim) in self.wide else I32 for dim in range(rank)]

    def changing_parts(self, pointers: Sequence[BlockPointer], changing: Sequence[Sequence[bool]]) -> list[Value]:
        """The parts of block pointers that control flow hands on."""
        return [
            part
            for pointer, flags in zip(pointers, changing, strict=True)
            for part, changes in zip(pointer.parts, flags, strict=True)
            if changes
        ]

    def define(
        self,
        values: Sequence[Value],
        starts: Sequence[BlockPointer],
        changing: Sequence[Sequence[bool]],
        news: Sequence[Value],
    ) -> None:
        """`values` are the block pointers `starts` with the parts that change taken from `news`, in order."""
        rest = iter(news)
        for value, start, flags in zip(values, starts, changing, strict=True):
            parts = [next(rest) if changes else part for part, changes in zip(start.parts, flags, strict=True)]
            for part, changes in zip(parts, flags, strict=True):
                part.hint = part.hint or (value.hint if changes else None)
            self.pointers[value] = BlockPointer(start.maker, tuple(parts))


def _without(count: int, indices: Sequence[int]) -> list[int]:
    return [i for i in range(count) if i not in indices]


def _sum(builder: Builder, offset: Value, step: Value) -> Value:
    if splat_of(step) == 0:
        return offset
    if offset.type != step.type:
        step = builder.emit(arith.ExtSI, step, result_types=[offset.type])
    return builder.emit(arith.AddI, offset, step)


def fits(size: Value) -> bool:
    """Whether a size cannot exceed i32, as far as its operation says."""
    number, op = splat_of(size), size.defining_op
    if isinstance(op, arith.MinSI):
        return any(map(fits, op.operands))
    return isinstance(op, arith.ExtSI | arith.ExtUI) if number is None else number <= LARGEST


_RULES: dict[type[Operation], Callable[..., None]] = {
    tt.MakeTensorPtr: _Normalizer.make,
    tt.Advance: _Normalizer.advance,
    arith.Select: _Normalizer.select,
    scf.For: _Normalizer.loop,
    scf.If: _Normalizer.branch,
    scf.While: _Normalizer.while_loop,
}
