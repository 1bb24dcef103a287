"""`ttng`: what goes on by itself beside the warps: matrix products that several of them compute together, and copies
of whole blocks between global and shared memory by an engine, with the barriers that say when they have come.

Level: ttg to intrinsic; `tensor_map`, `grid_size`, `grid_dependency_wait` and `launch_dependents` from tt on. Names are
upstream TritonNvidiaGPU's, but for these four, which it has not. The four warps of a group start a product of operands
in shared memory and go on; its result, and the operands' memory, are theirs again behind a wait. A barrier counts the
arrivals and the bytes of one phase after the other; waiting names the parity of the phase. What the engine or a product
reads in shared memory must have been written before a `fence_async_shared`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from mltriton.dialects import scf
from mltriton.dialects.scf_flow import handed_to
from mltriton.dialects.tt.blocks import verify_shape_and_strides
from mltriton.dialects.tt.compute import Dot
from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import descriptor, memory, pointer, require, require_type, require_types, scalars, types_of
from mltriton.ir.definition import boolean, enum, integer, operand, optional, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.rejection import reject
from mltriton.ir.types import I1, I32, I64, Type


class WarpGroupDot(Dot, name="ttng.warp_group_dot", pure=False, reads=True, writes=True, looks_around=True):
    """`ttng.warp_group_dot %a, %b, %c {isAsync = true}`: c + a b, as `tt.dot`. With `isAsync` it goes on after the
    operation, as a group of its own, or (`continues`) as one group with the next.

    Guarantees (verified): until a wait nobody takes the result but products that add to it and loops that carry it.
    """

    is_async = boolean(text="isAsync")
    continues = boolean()

    def verify(self) -> None:
        super().verify()
        require(self, self.is_async or not self.continues, "a product that is waited for at once ends its group")
        if self.is_async:
            for value in in_flight(self.result):
                for user in value.users:
                    if not _may_take(user, value):
                        reject(self, f"its result is taken by {user.name} before it was waited for")


class WarpGroupDotWait(Operation, name="ttng.warp_group_dot_wait", reads=True, writes=True):
    """`%r, ... = ttng.warp_group_dot_wait %x, ... {pendings = 1}`: waits until at most `pendings` groups are under
    way; the results are those products' that are done, and what else was given.
    """

    syntax = "$inputs attr-dict `:` functional-type($inputs, results)"
    inputs = variadic()
    pendings = integer(0)

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return types_of(operands)

    def verify(self) -> None:
        require(self, self.pendings >= 0, "pendings counts groups", "0 or more", self.pendings)
        require_types(self, "the results", types_of(self.results), types_of(self.inputs))


class _Effect(Operation):
    """Base of operations without results."""

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []


class TensorMap(Operation, name="ttng.tensor_map", pure=True):
    """`ttng.tensor_map %base, [%shape], [%strides] positive [%n] apart [%other]`: a descriptor (shape i64, strides i64
    in elements, the last one 1) that the launch makes for all programs: everything is computed of the kernel's
    parameters. It needs sizes and i64 numbers `positive` that are, and a base other than the pointers `apart`.
    """

    syntax = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` (`positive` `[` $positive^ `]`)? "
        "(`apart` `[` $apart^ `]`)? attr-dict `:` short<tt.ptr>($base) `,` short<tt.tensordesc>(result)"
    )
    base = operand()
    shape = variadic()
    strides = variadic()
    positive = variadic()
    apart = variadic()

    def verify(self) -> None:
        verify_shape_and_strides(self, self.base, self.shape, self.strides, self.result, I64)
        scalars(self, "positive", self.positive, I64, len(self.positive))
        for other in self.apart:
            pointer(self, "what the base is apart from", other)


class GridSize(Operation, name="ttng.grid_size", pure=True):
    """`ttng.grid_size : i32`: the programs along x that a launch asks for, of which fewer may run, one block of work
    after the other (`take-turns`).
    """

    syntax = "attr-dict `:` type(result)"

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [I32]

    def verify(self) -> None:
        require_type(self, "the result", self.result.type, I32)


class InitBarrier(_Effect, name="ttng.init_barrier", writes=True):
    """`ttng.init_barrier %barrier, 1`: phases of so many arrivals, the first one (parity 0) begins."""

    syntax = "$barrier `,` $count attr-dict `:` type($barrier)"
    barrier = operand()
    count = integer()

    def verify(self) -> None:
        _barrier(self, self.barrier)
        require(self, self.count > 0, "a phase has arrivals", "at least 1", self.count)


class InvalBarrier(_Effect, name="ttng.inval_barrier", writes=True):
    """`ttng.inval_barrier %barrier`: the memory is no barrier any more."""

    syntax = "$barrier attr-dict `:` type($barrier)"
    barrier = operand()

    def verify(self) -> None:
        _barrier(self, self.barrier)


class BarrierExpect(_Effect, name="ttng.barrier_expect", reads=True, writes=True):
    """`ttng.barrier_expect %barrier, 16384, %pred`: the phase ends only once so many bytes have come besides, and one
    has arrived. What copies overwrite that are started after it, all warps are done with before it.
    """

    syntax = "$barrier `,` $size (`,` $pred^)? attr-dict `:` type($barrier)"
    barrier = operand()
    pred = optional()
    size = integer()

    def verify(self) -> None:
        _barrier(self, self.barrier)
        _predicate(self, self.pred)


class ArriveBarrier(_Effect, name="ttng.arrive_barrier", reads=True, writes=True):
    """`ttng.arrive_barrier %barrier, 1, %pred`: so many have arrived."""

    syntax = "$barrier `,` $count (`,` $pred^)? attr-dict `:` type($barrier)"
    barrier = operand()
    pred = optional()
    count = integer()

    def verify(self) -> None:
        _barrier(self, self.barrier)
        _predicate(self, self.pred)


class WaitBarrier(_Effect, name="ttng.wait_barrier", reads=True, writes=True):
    """`ttng.wait_barrier %barrier, %phase`: until the phase of that parity has ended; what came in it is seen then."""

    syntax = "$barrier `,` $phase attr-dict `:` type($barrier)"
    barrier = operand()
    phase = operand()

    def verify(self) -> None:
        _barrier(self, self.barrier)
        require_type(self, "the parity", self.phase.type, I32)


class AsyncTMACopyGlobalToLocal(_Effect, name="ttng.async_tma_copy_global_to_local", reads=True, writes=True):
    """`ttng.async_tma_copy_global_to_local %desc[%indices] %memory, %barrier, %pred`: starts to copy the block at i32
    indices; elements outside of the tensor become 0. The barrier counts the bytes.
    """

    syntax = (
        "$desc `[` $indices `]` $memory `,` $barrier (`,` $pred^)? attr-dict `:` "
        "type($desc) `,` type($barrier) `->` type($memory)"
    )
    desc = operand()
    indices = variadic()
    memory = operand()
    barrier = operand()
    pred = optional()

    def verify(self) -> None:
        _copy(self, self.desc, self.indices, self.memory)
        _barrier(self, self.barrier)
        _predicate(self, self.pred)


class AsyncTMACopyLocalToGlobal(_Effect, name="ttng.async_tma_copy_local_to_global", reads=True, writes=True):
    """`ttng.async_tma_copy_local_to_global %desc[%indices] %source`: starts to copy to the block at i32 indices;
    elements outside of the tensor are dropped. Each is a group of its own for `async_tma_store_wait`.
    """

    syntax = "$desc `[` $indices `]` $source (`,` $pred^)? attr-dict `:` type($desc) `,` type($source)"
    desc = operand()
    indices = variadic()
    source = operand()
    pred = optional()

    def verify(self) -> None:
        _copy(self, self.desc, self.indices, self.source)
        _predicate(self, self.pred)


class AsyncTMAReduce(AsyncTMACopyLocalToGlobal, name="ttng.async_tma_reduce"):
    """`ttng.async_tma_reduce add, %desc[%indices] %source`: as `async_tma_copy_local_to_global`, but each element of
    the tensor is combined with the block's, as by `tt.descriptor_reduce`.
    """

    syntax = "$kind `,` $desc `[` $indices `]` $source (`,` $pred^)? attr-dict `:` type($desc) `,` type($source)"
    kind = enum("descriptor_reduce")


class AsyncTMAStoreWait(_Effect, name="ttng.async_tma_store_wait", reads=True, writes=True):
    """`ttng.async_tma_store_wait {pendings = 0}`: until at most so many copies to global memory that the warp started
    still read shared memory. `written`: until the others have written all, too: what the warp lets the engine write, or
    warps write that meet it, comes after that.
    """

    syntax = "attr-dict"
    pendings = integer(0)
    written = boolean()


class FenceAsyncShared(_Effect, name="ttng.fence_async_shared", reads=True, writes=True):
    """`ttng.fence_async_shared`: what the warp has written to shared memory is seen by products and tensor copies that
    start behind the next barrier. `everywhere`: they also write global memory only after what the warp has read of it.
    """

    syntax = "attr-dict"
    everywhere = boolean()


class GridDependencyWait(_Effect, name="ttng.grid_dependency_wait", reads=True, writes=True):
    """`ttng.grid_dependency_wait`: until the launches that this one may overlap are done, and what they wrote is seen:
    no access crosses it. PTX: `griddepcontrol.wait`.
    """

    syntax = "attr-dict"


class LaunchDependents(_Effect, name="ttng.launch_dependents", writes=True):
    """`ttng.launch_dependents`: the next launch may begin once all programs have come here. It orders no accesses: the
    next launch waits for all of them. PTX: `griddepcontrol.launch_dependents`.
    """

    syntax = "attr-dict"


def in_flight(value: Value) -> Iterator[Value]:
    """A value, and those that loops and branches hand on in its place."""
    return reached([value], lambda found: [after for user in found.users for after in handed_to(user, found)])


def _may_take(user: Operation, value: Value) -> bool:
    if isinstance(user, WarpGroupDot):
        return value not in (user.a, user.b)
    if isinstance(user, scf.Yield):
        return isinstance(user.parent_op, scf.For | scf.If)
    return isinstance(user, WarpGroupDotWait | scf.For)


def _barrier(op: Operation, value: Value) -> None:
    found = memory(op, "the barrier", value)
    require(op, found.element is I64 and prod(found.shape) == 1, "a barrier is one i64 in shared memory", found=found)


def _predicate(op: Operation, value: Value | None) -> None:
    if value is not None:
        require_type(op, "the predicate", value.type, I1)


def _copy(op: Operation, desc: Value, indices: list[Value], there: Value) -> None:
    """A block in shared memory is the descriptor's, without first dimensions of size 1."""
    block, found = descriptor(op, desc), memory(op, "the block", there)
    dropped = len(block.shape) - len(found.shape)
    same = dropped >= 0 and block.shape == (1,) * dropped + found.shape and found.element is block.element
    require(op, same, "the block in shared memory is not the descriptor's", block, found)
    scalars(op, "the indices", indices, I32, block.rank)
