"""check-warp-level: what a kernel that is written for warps must not do.

Level: tt, at its end. Takes any program and leaves it as it is; does nothing to a workgroup-level kernel. Guarantees
afterwards: all warps of a program reach every barrier and every operation across warps; no warp uses a result across
warps that it does not receive; windows into shared memory whose place is known lie inside; the shared memory, with
what operations across warps exchange, and the warps fit the target. `analysis/warp_uniformity.py` says what depends on
the warp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

from mltriton.analysis.warp_uniformity import Context, Fact, Facts, analyse
from mltriton.dialects import gpu, scf, tt, ttg
from mltriton.errors import (
    CompilationError,
    MissingResultError,
    OptionError,
    SharedMemoryError,
    WarpDivergenceError,
    excerpt,
)
from mltriton.ir.location import Location
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import MemDescType, byte_width, element_type, shape_of
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of


class CheckWarpLevel(Pass):
    """Refuse barriers that not all warps reach, results used where they are missing, and too much shared memory."""

    name = "check-warp-level"

    def run(self, module: Module) -> Module:
        if not is_warp_level(module):
            return module
        spec, num_warps = spec_of(module), num_warps_of(module)
        if num_warps > spec.max_warps:
            expected = f"at most {spec.max_warps}"
            raise OptionError(f"too many warps for {spec.name}", expected=expected, found=f"{num_warps}")
        for function in module.body.block.ops:
            assert isinstance(function, tt.Func)
            analyse(function, num_warps, _check)
            _require_memory(function, num_warps, spec)
        return module


MEETINGS: dict[type[Operation], str] = {
    gpu.Barrier: "a barrier",
    ttg.CrossWarpReduce: "a reduction across warps",
    ttg.CrossWarpScan: "a scan across warps",
}


def _check(op: Operation, context: Context, facts: Facts) -> None:
    """One operation."""
    if type(op) in MEETINGS and context.divergent is not None:
        raise _divergence(op, context.divergent, context.cause)
    for value in _used(op):
        _require_received(op, facts[value], context, facts)
    if isinstance(op, ttg.MemDescSubview):
        _require_inside(op, context, facts)


# Barriers


def _divergence(op: Operation, condition: Operation, cause: Operation | None) -> CompilationError:
    kind = "condition" if isinstance(condition, scf.If) else "number of iterations"
    because = "" if cause is None else f": {_ORIGINS.get(type(cause), cause.name)} at {_named(cause.loc)}"
    lines = [f"The {kind} at {_named(condition.loc)} depends on the warp{because}.", *_shown(condition.loc)]
    error = WarpDivergenceError(
        f"{MEETINGS[type(op)]} that not all warps of the program reach",
        hint="\n".join([*lines, "Move it to where all warps pass, or let all warps take the same way."]),
    )
    return _at(error, op.loc)


_ORIGINS: dict[type[Operation], str] = {
    gpu.SubgroupId: "tl.warp_id()",
    ttg.CrossWarpReduce: "a result that only some warps receive",
    ttg.CrossWarpScan: "a scan across warps",
    tt.AtomicRMW: "the old value of an atomic operation",
    tt.AtomicCAS: "the old value of an atomic operation",
}


# Results that some warps do not receive


def _used(op: Operation) -> Sequence[Value]:
    """The operands whose values matter to something outside the operation's results."""
    if isinstance(op, scf.If):
        return [op.condition]
    if isinstance(op, scf.For):
        return op.operands[:3]
    if isinstance(op, scf.Condition):
        return op.operands[:1]
    if op.pure or op.terminator or isinstance(op, scf.While):
        return []
    return op.operands


def _require_received(op: Operation, fact: Fact, context: Context, facts: Facts) -> None:
    lacking = sorted(warp for warp in context.active if warp in fact.missing and not _is_masked(op, warp, facts))
    if not lacking:
        return
    origin = fact.missing[lacking[0]]
    receivers = ", ".join(map(str, cast(ttg.CrossWarpReduce, origin).dst_warps))
    warps = ", ".join(map(str, lacking))
    error = MissingResultError(
        f"a result across warps is used on warp{'s' * (len(lacking) > 1)} {warps}, which did not receive it",
        expected=f"a use on warp {receivers} only",
        found=f"a use on {warps}",
        hint="\n".join(
            [
                f"It comes from the reduction at {_named(origin.loc)}, with dst_warps={receivers}.",
                *_shown(origin.loc),
                "Use it under a condition such as `if tl.warp_id() == 0:`, or let more warps receive it.",
            ]
        ),
    )
    raise _at(error, op.loc)


def _is_masked(op: Operation, warp: int, facts: Facts) -> bool:
    """Whether the operation does nothing on that warp, because its mask is false there."""
    mask = op.mask if isinstance(op, tt.Store | tt.Load | tt.AtomicRMW) else None
    return mask is not None and facts[mask].number(warp) == 0


# Shared memory


def _require_inside(op: ttg.MemDescSubview, context: Context, facts: Facts) -> None:
    """The window lies in its buffer on every warp on which its place is known."""
    whole, part = cast(MemDescType, op.memory.type), cast(MemDescType, op.result.type)
    sizes = (*[1] * (len(whole.shape) - len(part.shape)), *part.shape)
    for dim, (offset, size, extent) in enumerate(zip(op.offsets, sizes, whole.shape, strict=True)):
        for warp in sorted(context.active):
            at = facts[offset].number(warp)
            if at is not None and not 0 <= at <= extent - size:
                error = SharedMemoryError(
                    f"a window of {list(sizes)} reaches outside its buffer in shared memory along dimension {dim}",
                    expected=f"an offset of 0 to {extent - size}",
                    found=f"{at} on warp {warp}",
                    hint=f"The buffer has the shape {list(whole.shape)}.",
                )
                raise _at(error, op.loc)


def _require_memory(function: tt.Func, num_warps: int, spec: TargetSpec) -> None:
    """All buffers together fit the target."""
    buffers = list(_buffers(function, num_warps))
    total = sum(size for _, size, _ in buffers)
    if total <= spec.shared_bytes:
        return
    largest = max(buffers, key=lambda buffer: buffer[1])
    alike = Counter(f"  {size:>8} bytes at {_named(op.loc)}: {what}" for op, size, what in buffers)
    lines = [line if count == 1 else f"{line} ({count} times)" for line, count in alike.items()]
    error = SharedMemoryError(
        f"the kernel needs more shared memory than {spec.name} has",
        expected=f"at most {spec.shared_bytes} bytes",
        found=f"{total} bytes",
        hint="\n".join(["Its buffers are:", *lines]),
    )
    raise _at(error, largest[0].loc)


def _buffers(function: tt.Func, num_warps: int) -> Iterator[tuple[Operation, int, str]]:
    """Every buffer: the operation that needs it, its bytes, and what it is."""
    for op in function.walk():
        if isinstance(op, ttg.LocalAlloc):
            buffer = cast(MemDescType, op.result.type)
            size = prod(buffer.shape) * byte_width(buffer.element)
            yield op, size, f"tl.alloc({_text(buffer.shape)}, {buffer.element})"
        elif isinstance(op, ttg.CrossWarpReduce | ttg.CrossWarpScan) and any(result.uses for result in op.results):
            size = sum(prod(shape_of(value.type)) * byte_width(element_type(value.type)) for value in op.sources)
            yield op, num_warps * size, f"{MEETINGS[type(op)]}, {size} bytes for each of {num_warps} warps"


def _text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


# Places


def _at(error: CompilationError, loc: Location) -> CompilationError:
    error.at(loc.in_source)
    for caller in loc.callers():
        error.called_from(caller)
    return error


def _named(loc: Location) -> str:
    return str(loc.in_source or "an unknown line")


def _shown(loc: Location) -> list[str]:
    return excerpt(loc.in_source)
