"""start-dots: products that a target computes while its warps go on are started, and waited for.

Level: ttg, after `pipeline-loads`. Takes dots whose instruction is asynchronous (`DotSize.asynchronous`) and changes
them in place: `ttng.warp_group_dot`, and a `ttng.warp_group_dot_wait` in front of what takes its result. A product that
every iteration of a loop adds to, and nothing else takes, is waited for one iteration later, where the loop keeps what
was multiplied so long (`KEPT`: up to the barrier behind the next product, if there is any), and once more behind the
loop. Guarantees: nobody takes a result before its wait; no memory is written again before the products that read it are
done.
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.workload import adding_loop, number_of
from mltriton.dialects import gpu, scf, tt, ttg, ttng
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.nesting import is_inside
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import F32, I32, MemDescType, TensorType, element_type
from mltriton.layouts.encodings import MatrixEncoding
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of

KEPT = "ttg.slots-kept"  # attribute of a loop: for how many further iterations it leaves what it has copied


# What a loop does to start copies into buffers that no product under way reads.
COPIES = (
    ttg.AsyncCopyGlobalToLocal,
    ttg.AsyncCommitGroup,
    ttng.BarrierExpect,
    ttng.AsyncTMACopyGlobalToLocal,
)

# What touches no memory that a product under way reads: new blocks in shared memory, and global memory.
ELSEWHERE = (ttg.LocalAlloc, tt.Store, tt.AtomicRMW, tt.AtomicCAS)


class StartDots(Pass):
    """Start products and wait for them."""

    name = "start-dots"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        for op in list(module.walk()):
            if isinstance(op, tt.Dot) and is_asynchronous(op, spec):
                _start(op, spec)
        return module


def is_asynchronous(dot: tt.Dot, spec: TargetSpec) -> bool:
    """Whether the instruction that a dot is made of goes on by itself."""
    result, size = dot.result.type, spec.dot.get(cast(TensorType | MemDescType, dot.a.type).element)
    encoding = cast(TensorType, result).encoding
    if size is None or not isinstance(encoding, MatrixEncoding):
        return False
    return size.acting(encoding.together).asynchronous


def _start(dot: tt.Dot, spec: TargetSpec) -> None:
    loop, builder = adding_loop(dot), Builder().before(dot)
    started = builder.insert(ttng.WarpGroupDot(dot.operands, [dot.result.type], dot.attributes, (), dot.loc))
    started.result.hint = dot.result.hint
    started.is_async = _goes_on(dot)
    if not started.is_async:
        dot.replace_by([started.result])
        return
    later = loop is not None and all(_stays(operand, loop) for operand in (dot.a, dot.b))
    pendings = int(later)
    if loop is not None and later:
        builder = Builder().before(_end(dot, loop))
    else:
        user, pendings = _first_user(dot, spec)
        builder = Builder().before(user)
    with builder.at(dot.loc):
        waited = _waited(builder, started, started.result, pendings=pendings)
    if loop is not None and later:
        _wait_behind(loop, started, loop.results[number_of(loop, dot.c)])
    dot.replace_by([waited])
    if not later:
        _wait_in_order(cast(ttng.WarpGroupDotWait, waited.defining_op), started, spec)


def _end(dot: tt.Dot, loop: scf.For) -> Operation:
    """In front of which operation the products of the iteration before must be done: where all warps meet behind a
    product, copies may follow that write what they read.
    """
    body = loop.body.block
    behind = body.ops[body.position(dot) :]
    return next((op for op in behind if isinstance(op, gpu.Barrier | ttng.ArriveBarrier)), body.terminator)


def _first_user(dot: tt.Dot, spec: TargetSpec) -> tuple[Operation, int]:
    """In front of which operation a product must be done, and how many others have been started until then: where its
    result is taken, or what it reads may be written.
    """
    block, started = dot.block, 0
    assert block is not None
    kept = KEPT in dot.parent_op.attributes if dot.parent_op is not None else False
    for op in block.ops[block.position(dot) + 1 :]:
        passes = (
            op.pure or isinstance(op, ttng.WarpGroupDotWait | ttng.WaitBarrier) or (kept and isinstance(op, COPIES))
        )
        is_start = _is_start(op, spec)
        passes = passes or is_start or isinstance(op, ELSEWHERE) or (op.reads and not op.writes and not op.regions)
        if op.terminator or dot.result in op.operands or not passes:
            return op, started
        started += is_start
    raise AssertionError("a block without an end")


def _wait_in_order(wait: ttng.WarpGroupDotWait, dot: ttng.WarpGroupDot, spec: TargetSpec) -> None:
    """Who waits for a product has waited for those that were started before it: their waits come first."""
    block = wait.block
    assert block is not None
    for other in [op for op in block.ops[block.position(wait) :] if isinstance(op, ttng.WarpGroupDotWait)]:
        before = other.operands[0].defining_op
        if before is not None and before.block is block and before.is_before(dot):
            block.ops.remove(other)
            block.insert_before(wait, other)
            between = block.ops[block.position(before) + 1 : block.position(other)]
            other.pendings = sum(_is_start(op, spec) for op in between)


def _is_start(op: Operation, spec: TargetSpec) -> bool:
    """Whether an operation is, or becomes, the start of a product that goes on by itself."""
    if isinstance(op, ttng.WarpGroupDot):
        return op.is_async
    return isinstance(op, tt.Dot) and is_asynchronous(op, spec) and _goes_on(op)


def _goes_on(dot: tt.Dot) -> bool:
    """Whether sums are as the instruction adds them up; others are taken apart and put together around it."""
    return element_type(dot.result.type) in (F32, I32)


def _waited(builder: Builder, dot: ttng.WarpGroupDot, result: Value, *, pendings: int) -> Value:
    """A result behind a wait, up to which registers that the product reads keep what they hold."""
    inside = dot.block is builder.block
    values = [result, *([dot.a] if inside and isinstance(dot.a.type, TensorType) else [])]
    types = [value.type for value in values]
    wait = builder.create(ttng.WarpGroupDotWait, values, result_types=types, pendings=pendings)
    wait.results[0].hint = result.hint
    return wait.results[0]


def _wait_behind(loop: scf.For, dot: ttng.WarpGroupDot, result: Value) -> None:
    """The loop's result is there behind one more wait."""
    block, users = loop.block, list(result.users)
    assert block is not None
    builder = Builder().before(block.ops[block.position(loop) + 1])
    builder.loc = dot.loc
    waited = _waited(builder, dot, result, pendings=0)
    for user in users:
        for index, operand in enumerate(user.operands):
            if operand is result:
                user.set_operand(index, waited)


def _stays(operand: Value, loop: scf.For) -> bool:
    """Whether what a product reads is left as it is until the next iteration's product has started."""
    if not isinstance(operand.type, MemDescType):
        return operand.defining_op is not None and not is_inside(operand.defining_op, loop)
    kept, window = loop.attributes.get(KEPT), operand.defining_op
    while isinstance(window, ttg.MemDescTrans):
        window = window.memory.defining_op
    if isinstance(kept, IntegerAttr) and kept.value > 0 and isinstance(window, ttg.MemDescSubview):
        return True
    memory = _allocation(operand)
    return memory is not None and memory.parent_op is not loop and not _is_written(memory.result, loop)


def _allocation(memory: Value) -> ttg.LocalAlloc | None:
    op = memory.defining_op
    while isinstance(op, ttg.MemDescSubview | ttg.MemDescTrans):
        op = op.memory.defining_op
    return op if isinstance(op, ttg.LocalAlloc) else None


def _is_written(memory: Value, loop: scf.For) -> bool:
    for user in memory.users:
        if isinstance(user, ttg.MemDescSubview | ttg.MemDescTrans):
            if _is_written(user.result, loop):
                return True
        elif isinstance(user, tt.Dot | ttg.LocalLoad | ttg.LocalGather):
            continue
        elif is_inside(user, loop) or isinstance(user, ttng.AsyncTMACopyGlobalToLocal):  # It may be another warp's.
            return True
    return False
