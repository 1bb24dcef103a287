"""`mltriton compile --remarks`: how each access to a block is done, one line each, and what to change where it is slow.

Level: ttg. Takes a program after its layouts are assigned, for a target whose lanes matter; gives remarks in the order
of the program. Guarantees: what a remark says is read from the types that later levels follow. The registers that a
program is expected to need are told of its last level.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, cast

from mltriton.analysis.block_io import BlockAccess, BlockIOAnalysis, BlockOperation
from mltriton.analysis.rectangles import Reason
from mltriton.analysis.registers import Peak, RegisterEstimate, choose_mode
from mltriton.analysis.regular_pointers import RegularPointers
from mltriton.dialects import tt, ttig
from mltriton.errors import OptionError, SourceLocation
from mltriton.ir.module import Module
from mltriton.ir.types import TensorType, block_of, byte_width
from mltriton.layouts.encodings import Encoding, MessageEncoding
from mltriton.layouts.hardware import linear_layout
from mltriton.layouts.lanes import LANE_BYTES
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.text import encoding_text
from mltriton.records import NamedTuple
from mltriton.targets.base import RunTimeChecks, TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of
from mltriton.tools.layout_values import conversions_of

if TYPE_CHECKING:
    from mltriton.compiler.kernel import CompiledKernel

Checks = Callable[[BlockOperation, bool | None], RunTimeChecks]


class Remark(NamedTuple):
    """One access: where it is, what it is (`load 256x32xf16`), how it is done, and what would make it faster."""

    location: SourceLocation | None
    what: str
    how: str
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.location.file}:{self.location.line}: " if self.location is not None else ""
        return f"{where}{self.what}: {self.how}{f'. {self.hint}' if self.hint else ''}"


def kernel_remarks(compiled: CompiledKernel, programs: int | None = None) -> list[str]:
    """The remarks on a compiled kernel: on its accesses and registers, on a launch of so many programs, and what the
    target's own assembler said.

    Raises `OptionError` for a target that has none.
    """
    said = None if compiled.binary is None else compiled.binary.metadata.get("remarks")
    job = compiled.job
    if said is not None:
        from mltriton.tools.specialization_remarks import pipeline_remarks, specialization_remarks  # As below.
        from mltriton.tools.tensor_copy_remarks import tensor_copy_remarks  # It has remarks of its own kind.

        found = *tensor_copy_remarks(job), *specialization_remarks(job), *pipeline_remarks(job)
        return [*map(str, found), *said, *_fewer_stages(compiled), *_residency(compiled, programs)]
    whole = job.module("ttg")
    found = (*remarks_of(whole), *conversion_remarks(whole), *register_remarks(job.module("intrinsic")))
    return list(map(str, found))


def _fewer_stages(compiled: CompiledKernel) -> list[str]:
    """Of loops that copy less ahead than they were asked to."""
    count = compiled.job.fewer_stages
    why = "shared memory does not hold more beside what crosses warps. Take smaller blocks, or a smaller num_stages"
    return [f"loops have {count} stage{'s' * (count > 1)} less than there could be: {why}"] * (count > 0)


def _residency(compiled: CompiledKernel, programs: int | None) -> list[str]:
    """How many programs run beside each other, where that is known: rounds of a grid are so many for each of the GPU's
    multiprocessors.
    """
    compiled = _launched(compiled, programs)
    spec, binary = compiled.job.target.spec, compiled.binary
    registers = None if binary is None else binary.metadata.get("registers")
    if binary is None or registers is None or spec.multiprocessor is None:
        return []
    shared, warps = compiled.metadata.shared, binary.metadata["facts"]["num_warps"]
    beside = spec.multiprocessor.programs(spec.warp_size * warps, registers, shared)
    each = f"{warps} warps with {registers} registers of a lane and {shared} bytes of shared memory"
    fits = f"{beside} {'program fits' if beside == 1 else 'programs fit'} on a multiprocessor: {each}"
    waves = spec.multiprocessor.waves(programs, beside) if programs is not None and beside > 0 else None
    return [fits] if waves is None else [fits, _waves(programs, *waves)]


def _launched(compiled: CompiledKernel, programs: int | None) -> CompiledKernel:
    """The kernel that a launch of so many programs runs: another one where they all run at a time."""
    from mltriton.compiler.compilation import compile_job  # It imports the compiler.

    processor, binary = compiled.job.target.spec.multiprocessor, compiled.binary
    beside = 1 if binary is None else binary.metadata.get("facts", {}).get("beside", 1)
    if programs is None or processor is None or processor.number is None or beside == 1:
        return compiled
    others = processor.number < programs <= processor.number * beside
    return compile_job(compiled.job.in_one_round()) if others else compiled


def _waves(programs: int | None, rounds: int, efficiency: float) -> str:
    each = f"{rounds} round{'s' * (rounds > 1)}"
    return f"{programs} programs run in {each}, {efficiency:.0%} of whose places are taken (wave efficiency)"


def conversion_remarks(module: Module) -> list[Remark]:
    """The conversions of a module at level ttg that take instructions, and what each does."""
    return [
        Remark(op.loc.in_source, f"convert {'x'.join(map(str, change.shape))}x{change.element}", how)
        for op, change in conversions_of(module)
        if change.cost != 0 and (how := f"{change.summary()}: {change.names}")
    ]


def remarks_of(module: Module) -> list[Remark]:
    """The remarks on a module at level ttg. Raises `OptionError` for a target that has none."""
    spec = spec_of(module)
    if spec.block_load is None or not spec.has_lanes:
        raise OptionError(
            f"there are no remarks for {spec.name}",
            hint="They tell how the lanes of a GPU access blocks: --target cuda:90, for instance, or xe:pvc.",
        )
    return list(dict.fromkeys(remark for _, remark in access_remarks(module)))  # Prefetches before a loop are alike.


def access_remarks(module: Module, *, layouts: bool = True) -> Iterator[tuple[BlockAccess, Remark]]:
    """Each access to a block with its remark, for a target with 2D block accesses; `layouts`: name the layout."""
    limits = spec_of(module).block_load
    assert limits is not None
    warps, caching = num_warps_of(module), limits.caching or _nothing_cached
    for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
        regular = RegularPointers(function, limits)
        checks_of = limits.run_time_checks(function, warps) if limits.run_time_checks is not None else _no_checks
        for found in BlockIOAnalysis(function, limits).accesses.values():
            access = _with_reason(found, regular)
            remark = _remark(access, layouts, checks_of)
            yield access, remark._replace(how=f"{remark.how}{_cached(access, caching)}")


def is_block_access(access: BlockAccess) -> bool:
    """Whether an access was given the layout of 2D block messages."""
    return isinstance(_moved(access).encoding, MessageEncoding)


def register_remarks(module: Module) -> list[Remark]:
    """How many registers each function of a module at level intrinsic is expected to need, and for what."""
    spec, warps = spec_of(module), num_warps_of(module)
    functions = (op for op in module.body.block.ops if isinstance(op, tt.Func))
    return [_on_registers(RegisterEstimate(function, spec).peak, spec, warps) for function in functions]


def _on_registers(peak: Peak, spec: TargetSpec, num_warps: int) -> Remark:
    mode = choose_mode(spec, peak.registers, num_warps)
    location = peak.op.loc.in_source if peak.op is not None else None
    counts: Counter[str] = Counter()
    for value, registers in peak.values:
        if registers > 1:
            block = cast(TensorType, block_of(value.type))
            counts[f"{'x'.join(map(str, block.shape))}x{block.element}"] += registers
    most = ", ".join(f"{count} in blocks {what}" for what, count in counts.most_common(4))
    given = f"of {mode.registers} that a warp gets" if mode is not None else "which no mode has"
    how = f"about {peak.registers} {given}{f': {most}' if most else ''}"
    fits = mode is not None and peak.registers <= mode.registers
    hint = "Smaller blocks or more warps (up to those that may have as many registers) leave more of them free"
    return Remark(location, "registers", how, None if fits else hint)


def _with_reason(access: BlockAccess, regular: RegularPointers) -> BlockAccess:
    """The access with what keeps its block of pointers from being a block pointer."""
    if isinstance(access.op, tt.Load | tt.Store) and isinstance(access.op.ptr.type, TensorType):
        judged = regular.of(access.op)
        if isinstance(judged, Reason):
            reason = f"each element has a pointer of its own: {judged.why}"
            return replace(access, reason=reason, hint=judged.hint)
    return access


def _no_checks(_access: object, _transposed: bool | None) -> RunTimeChecks:
    return RunTimeChecks()


def _nothing_cached(_stores: bool, _modifier: str, _eviction: str) -> None:
    return None


def _cached(access: BlockAccess, caching: Callable[[bool, str, str], object | None]) -> str:
    """What an access asks of the caches, where it asks for anything."""
    op = access.op
    if isinstance(op, ttig.Prefetch | tt.DescriptorStore) or (op.cache, op.evict) == ("none", "evict_normal"):
        return ""
    asked = caching(access.stores, op.cache, op.evict)
    named = op.cache if op.cache != "none" else op.evict
    return (
        f"; {asked}" if asked is not None else f"; the caches as usual, since {named} is no hint of a {_verb(access)}"
    )


def _remark(access: BlockAccess, layouts: bool, checks_of: Checks) -> Remark:
    block = _moved(access)
    what = f"{_verb(access)} {'x'.join(map(str, block.shape))}x{block.element}"
    encoding = cast(Encoding, block.encoding)
    if isinstance(encoding, MessageEncoding):
        filled = ["lanes put NaN in outside of the tensor"] if access.pads_with_nan else []
        checks = checks_of(access.op, access.transposes)
        parts = (_as_blocks(access, block, encoding, layouts), filled, _checked(checks))
        advice = f"Where that does not hold, the launch warns: {'; '.join(checks.advice)}" if checks.advice else None
        return Remark(access.op.loc.in_source, what, "; ".join(chain.from_iterable(parts)), advice)
    layout, run = f" in {encoding_text(encoding)}" if layouts else "", _run(access, block, encoding)
    how = f"each lane accesses {run} bytes at a time{layout}, since {_reason(access, block, encoding, run)}"
    return Remark(access.op.loc.in_source, what, how, access.hint)


def _moved(access: BlockAccess) -> TensorType:
    """The block with the encoding in which it is accessed."""
    if isinstance(access.op, tt.DescriptorLoad):
        return cast(TensorType, access.op.result.type)
    if isinstance(access.op, tt.DescriptorStore):
        return cast(TensorType, access.op.value.type)
    pointed = cast(TensorType, block_of(access.op.ptr.type))
    return pointed.with_element(access.block.element)


def _verb(access: BlockAccess) -> str:
    return "prefetch" if isinstance(access.op, ttig.Prefetch) else "store" if access.stores else "load"


def _as_blocks(access: BlockAccess, block: TensorType, encoding: MessageEncoding, layouts: bool) -> Iterator[str]:
    per_warp = encoding.per_warp_shape(block.shape)
    messages = math.prod(per_warp) // math.prod(encoding.tile)
    kind = "transposing 2D block" if access.transposes else "2D block"
    layout = f", {encoding_text(encoding)}" if layouts else ""
    yield f"{messages} {kind} message{'s' if messages > 1 else ''} a warp, {encoding.summary}{layout}"


def _checked(checks: RunTimeChecks) -> Iterator[str]:
    """What a launch and the kernel check before they access a matrix by blocks."""
    if checks.broken is not None:
        yield f"but element by element, since {checks.broken}"
        return
    for when, limits in (("at the launch", checks.launch), ("in the kernel", checks.kernel)):
        if limits:
            yield f"checked {when}: {', '.join(limits)}"


def _reason(access: BlockAccess, block: TensorType, encoding: Encoding, run: int) -> str:
    """Why an access is not one by blocks."""
    if access.reason is None and run == LANE_BYTES:
        return "that costs less than 2D blocks and moving their elements between lanes"
    return (
        access.reason
        or f"no 2D block of the target fits a warp's {'x'.join(map(str, encoding.per_warp_shape(block.shape)))}"
    )


def _run(access: BlockAccess, block: TensorType, encoding: Encoding) -> int:
    """How many bytes a lane accesses at a time, at best."""
    layout = linear_layout(encoding, block.shape)
    dim = access.fastest if access.fastest is not None else block.rank - 1
    return min(_neighbours(layout, dim) * byte_width(block.element), LANE_BYTES)


def _neighbours(layout: LinearLayout, dim: int) -> int:
    """Registers of a lane that hold neighbours along a dimension."""
    steps = [tuple(v * (d == dim) for d in range(len(layout.outputs))) for v in _powers(layout.sizes[dim])]
    count = 1
    for step, vector in zip(steps, layout.vectors("register"), strict=False):
        if vector != step:
            break
        count *= 2
    return count


def _powers(end: int) -> list[int]:
    return [1 << bit for bit in range(end.bit_length() - 1)]
