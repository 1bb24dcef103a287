"""`ttng`: tensor copies (TMA) and the barriers in shared memory that count their bytes.

Level: intrinsic -> llvm. One lane, which the warp elects, starts a copy; the barrier's other operations are one lane's,
too, but for waiting. A block in `#ttg.nvmma_shared` takes a copy for each of its pieces, 128 bytes of all rows; each
pair of a tensor map and the box of its copies is a parameter of the kernel. Source: PTX ISA 8.7, "Tensors" and
"mbarrier".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import cast

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.dialects import tt, ttg, ttng
from mltriton.errors import BackendError
from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import BlockArgument, Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, IntegerType, MemDescType, TensorDescType, byte_width
from mltriton.layouts.shared import GROUP_BYTES, MOST_COPIED, NvmmaSharedEncoding
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, Value, constant, vector
from mltriton.targets.nvidia import tensor_maps
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.machine import NvidiaMachine
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted
from mltriton.targets.simt.moves import linear
from mltriton.targets.simt.shared import touch

Copy = ttng.AsyncTMACopyGlobalToLocal | ttng.AsyncTMACopyLocalToGlobal
_MOST = 128  # instructions of one block
ELECTED = "{ .reg .pred elected; elect.sync _|elected, -1;"


class Boxes(NamedTuple):
    """How a block is copied: boxes of `box` elements (slowest dimension first), each at `places`: its bytes from the
    block's beginning, and its first element.
    """

    box: tuple[int, ...]
    swizzle: int
    places: list[tuple[int, tuple[int, ...]]]


def boxes_of(memory: MemDescType, rank: int) -> Boxes:
    """The copies of a block of a tensor of `rank` dimensions. Raises `BackendError` for one that takes too many."""
    shape, width = (1,) * (rank - len(memory.shape)) + memory.shape, byte_width(memory.element)
    layout = memory.encoding
    if isinstance(layout, NvmmaSharedEncoding) and not layout.transposed:
        box = [1] * rank
        box[-1], box[-2] = max(GROUP_BYTES, layout.swizzle) // width, min(shape[-2], MOST_COPIED)
        found = Boxes(tuple(box), layout.swizzle, list(_pieces(shape, box, width)))
    elif layout is None:
        box = [*shape[:-1], min(shape[-1], MOST_COPIED)]
        steps = range(0, shape[-1], box[-1])
        found = Boxes(tuple(box), 0, [(step * width, (0,) * (rank - 1) + (step,)) for step in steps])
    else:
        raise BackendError("tensor copies leave blocks in other layouts", found=str(memory))
    if len(found.places) > _MOST:
        raise BackendError("a block takes too many tensor copies", expected=f"at most {_MOST}", found=str(memory))
    return found


def _pieces(shape: Sequence[int], box: Sequence[int], width: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Where boxes lie: pieces of all rows below each other, those of the next columns after them."""
    *outer, rows, columns = shape
    for number, before in enumerate(product(*map(range, outer))):
        for column, row in product(range(0, columns, box[-1]), range(0, rows, box[-2])):
            element = number * rows * columns + column * rows + row * box[-1]
            yield element * width, (*before, row, column)


# Parameters of the kernel.


class Parameter(NamedTuple):
    """A tensor map as a parameter: one for each size and swizzle of its boxes, for each direction of copies, and for
    what its elements are combined as.
    """

    op: Operation
    box: tuple[int, ...]
    swizzle: int
    stored: bool
    combined: int | None


def parameters(module: IRModule) -> tuple[Parameter, ...]:
    """Those that a kernel takes after its own."""
    return tuple(dict.fromkeys(_parameter(op) for op in module.walk() if isinstance(op, Copy)))


def _parameter(op: Copy) -> Parameter:
    maker = op.desc.defining_op
    if not isinstance(maker, ttng.TensorMap):
        raise BackendError("a tensor copy needs a descriptor that the launch makes", found=str(op.desc.type))
    boxes = boxes_of(_memory(op), len(op.indices))
    stored = isinstance(op, ttng.AsyncTMACopyLocalToGlobal)
    return Parameter(maker, boxes.box, boxes.swizzle, stored, _combined(op))


def _combined(op: Copy) -> int | None:
    """The data type of what is combined with a tensor's elements: maps of copies need none."""
    if not isinstance(op, ttng.AsyncTMAReduce):
        return None
    element = _memory(op).element
    if isinstance(element, FloatType):
        return tensor_maps.FLOATS[str(element)]
    signed = op.kind in ("min", "max")
    return (tensor_maps.SIGNED if signed else tensor_maps.UNSIGNED)[byte_width(element)]


def _memory(op: Copy) -> MemDescType:
    memory = op.memory if isinstance(op, ttng.AsyncTMACopyGlobalToLocal) else op.source
    return cast(MemDescType, memory.type)


def maps_of(maps: Sequence[Parameter]) -> tuple[tensor_maps.TensorMap, ...]:
    """What the launch must make of its arguments."""
    return tuple(map(_map, maps))


def _map(parameter: Parameter) -> tensor_maps.TensorMap:
    op = cast(ttng.TensorMap, parameter.op)
    width = byte_width(cast(TensorDescType, op.result.type).block.element)
    base, shift = op.base, Polynomial({})
    while isinstance(add := base.defining_op, tt.AddPtr):
        base, shift = add.ptr, shift + Polynomial.of(add.offset)
    sizes, strides = [list(map(Polynomial.of, values))[::-1] for values in (op.shape, op.strides)]
    numbers = [shift.times(width), *sizes, *(stride.times(width) for stride in strides[1:])]
    numbers += map(Polynomial.of, op.positive)
    wide = {_place(v) for number in numbers for v in number.values if cast(IntegerType, v.type).width == 64}
    made = [tuple((factor, tuple(map(_place, values))) for values, factor in n.terms.items()) for n in numbers]
    rank = len(sizes)
    parts = made[0], tuple(made[1 : 1 + rank]), tuple(made[1 + rank : 2 * rank])
    boxes, positive = (parameter.box[::-1], parameter.swizzle), tuple(made[2 * rank :])
    others = tuple(sorted(wide)), positive, tuple(map(_place, op.apart)), parameter.stored, parameter.combined
    return tensor_maps.TensorMap(_place(base), width, *parts, *boxes, *others)


def _place(value: IRValue) -> int:
    if not isinstance(value, BlockArgument) or not isinstance(value.block.parent_op, tt.Func):
        raise BackendError("a tensor map is made of the kernel's parameters", found=str(value))
    return value.index


# Operations.


def _tensor_map(e: Emitter, op: ttng.TensorMap) -> Emitted:
    """Its parameters are found by the copies; they come to the engine's cache while the program computes indices."""
    function = op.ancestor(tt.Func)
    assert isinstance(function, tt.Func) and isinstance(e.machine, NvidiaMachine)
    own = len(function.body.block.arguments)
    for number, parameter in enumerate(e.machine.maps):
        if isinstance(parameter, Parameter) and parameter.op is op:
            _once(e, op, "prefetch.tensormap [$0]", None, e.function.parameters[own + number])
    return constant(I32, 0)


def _map_of(e: Emitter, op: Copy) -> Value:
    function = op.ancestor(tt.Func)
    assert isinstance(function, tt.Func) and isinstance(e.machine, NvidiaMachine)
    number = e.machine.maps.index(_parameter(op))
    return e.function.parameters[len(function.body.block.arguments) + number]


def _barrier(e: Emitter, memory: IRValue) -> Value:
    """The address of a barrier."""
    return e.shared(memory).pointer


def _once(e: Emitter, op: Operation, text: str, pred: IRValue | None, *operands: Value) -> None:
    """An instruction of one lane, where a predicate holds; `text` numbers operands from `$0`. A partition's operations
    are one lane's already.
    """
    given = [] if pred is None else [e.get(pred)]
    if not alone(op):
        also = f" and.pred elected, elected, ${len(operands)};" if given else ""
        ptx(e.function, f"{ELECTED}{also} @elected {text}; }}", [], *operands, *given)
    else:
        ptx(e.function, f"@${len(operands)} {text};" if given else f"{text};", [], *operands, *given)


def alone(op: Operation) -> bool:
    """Whether an operation is a partition's (`ttg.warp_specialize`)."""
    around = op.ancestor(ttg.WarpSpecialize)
    return isinstance(around, ttg.WarpSpecialize) and op.ancestor_in(around.partition.block) is not None


def _init(e: Emitter, op: ttng.InitBarrier) -> None:
    _once(e, op, f"mbarrier.init.shared::cta.b64 [$0], {op.count}", None, _barrier(e, op.barrier))


def _inval(e: Emitter, op: ttng.InvalBarrier) -> None:
    _once(e, op, "mbarrier.inval.shared::cta.b64 [$0]", None, _barrier(e, op.barrier))


def _expect(e: Emitter, op: ttng.BarrierExpect) -> None:
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {op.size}"
    _once(e, op, text, op.pred, _barrier(e, op.barrier))


def _arrive(e: Emitter, op: ttng.ArriveBarrier) -> None:
    _once(e, op, f"mbarrier.arrive.shared::cta.b64 _, [$0], {op.count}", op.pred, _barrier(e, op.barrier))


def _wait(e: Emitter, op: ttng.WaitBarrier) -> None:
    text = (
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
        "@done bra over; bra again; over: }"
    )
    ptx(e.function, text, [], _barrier(e, op.barrier), e.get(op.phase))
    e.shared_accesses.forget(met=False)


def _copy_in(e: Emitter, op: ttng.AsyncTMACopyGlobalToLocal) -> None:
    described, barrier = _map_of(e, op), _barrier(e, op.barrier)
    rank = len(op.indices)
    text = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[$0], [$1, {{{_listed(3, rank)}}}], [$2]"
    )
    for there, at in _places(e, op, op.memory):
        _once(e, op, text, op.pred, there, described, barrier, *at)


def _copy_out(e: Emitter, op: ttng.AsyncTMACopyLocalToGlobal) -> None:
    described, rank = _map_of(e, op), len(op.indices)
    touch(e, op.source, writes=False)
    reduces = isinstance(op, ttng.AsyncTMAReduce)
    what, how = (".reduce", f".{op.kind.removeprefix('u')}") if reduces else ("", "")
    text = f"cp{what}.async.bulk.tensor.{rank}d.global.shared::cta{how}.tile.bulk_group"
    text += f" [$1, {{{_listed(2, rank)}}}], [$0]"
    for here, at in _places(e, op, op.source):
        _once(e, op, text, op.pred, here, described, *at)
    _once(e, op, "cp.async.bulk.commit_group", None)


def _listed(first: int, count: int) -> str:
    return ", ".join(f"${first + number}" for number in range(count))


def _places(e: Emitter, op: Copy, memory: IRValue) -> Iterator[tuple[Value, list[Value]]]:
    """The address of each box in shared memory, and its first element's coordinates, the fastest first."""
    block = e.shared(memory)
    pointer = block.pointer
    if block.swizzle is not None and any(start.literal != 0 for start in block.swizzle.offsets):
        parts = zip(block.swizzle.offsets, block.swizzle.images, strict=True)
        moved = reduce(e.function.add, (linear(e.function, start, images) for start, images in parts))
        pointer = e.affine.address(pointer, moved, vector(f"i{8 * byte_width(_memory(op).element)}", 1))
    boxes, indices = boxes_of(_memory(op), len(op.indices)), [e.get(index) for index in op.indices]
    for offset, at in boxes.places:
        there = e.affine.displaced(pointer, offset)
        yield there, [e.affine.add(i, constant(I32, step)) for i, step in zip(indices, at, strict=True)][::-1]


def _store_wait(e: Emitter, op: ttng.AsyncTMAStoreWait) -> None:
    _once(e, op, f"cp.async.bulk.wait_group{'' if op.written else '.read'} {op.pendings}", None)


def _fence(e: Emitter, op: ttng.FenceAsyncShared) -> None:
    ptx(e.function, f"fence.proxy.async{'' if op.everywhere else '.shared::cta'};", [])


RULES: Rules = {
    ttng.TensorMap: _tensor_map,
    ttng.InitBarrier: _init,
    ttng.InvalBarrier: _inval,
    ttng.BarrierExpect: _expect,
    ttng.ArriveBarrier: _arrive,
    ttng.WaitBarrier: _wait,
    ttng.AsyncTMACopyGlobalToLocal: _copy_in,
    ttng.AsyncTMACopyLocalToGlobal: _copy_out,
    ttng.AsyncTMAReduce: _copy_out,
    ttng.AsyncTMAStoreWait: _store_wait,
    ttng.FenceAsyncShared: _fence,
}
