"""The rules of each level: what a module may hold.

Level: all. `verify_level` reads the module attribute `mltriton.level` (`tt` when absent) and checks the table of
docs/architecture.md. At level `intrinsic` the table of the target that the module names holds, too. Raises
`VerificationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from mltriton.dialects import gpu, scf, tt, ttg
from mltriton.dialects.builtin import Module
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import OperationError, reject
from mltriton.ir.types import PointerType, TensorType
from mltriton.ir.verifier import located
from mltriton.layouts.encodings import DotOperandEncoding, Encoding, SliceEncoding
from mltriton.layouts.hardware import warp_layout

LEVELS = ("tt", "ttg", "warp", "intrinsic")

# What a program whose tensors belong to one warp each may hold at `tt` already: the user wrote it.
WARP_LEVEL_OPERATIONS = (
    gpu.SubgroupId,
    ttg.LocalAlloc,
    ttg.LocalLoad,
    ttg.LocalStore,
    ttg.MemDescSubview,
    ttg.CrossWarpReduce,
    ttg.CrossWarpScan,
)


def level_of(module: Module) -> str:
    """The level that a module says it is on."""
    level = module.attributes.get("mltriton.level")
    return level.value if isinstance(level, StringAttr) else "tt"


def is_warp_level(module: Module) -> bool:
    """Whether the kernel was written for warps: every tensor belongs to one warp, at every level."""
    mark = module.attributes.get("mltriton.warp_level")
    return isinstance(mark, IntegerAttr) and bool(mark.value)


def verify_level(module: Module) -> None:
    """Check the rules of the module's level."""
    try:
        level = level_of(module)
        if level not in _RULES:
            reject(module, "unknown level", expected=" or ".join(_RULES), found=level)
        own = _tt_of_warps if level == "tt" and is_warp_level(module) else _RULES[level]
        rules = [own, *_rules_of_target(module, level)]
        for op in module.walk():
            for rule in rules:
                rule(op)
    except OperationError as error:
        raise located(error, module) from None


def _rules_of_target(module: Module, level: str) -> Iterator[Callable[[Operation], None]]:
    """The target's table of sizes, where operations have their final sizes."""
    if level == "intrinsic":
        # Targets are described in terms of the IR; only a module that names its target needs them here.
        from mltriton.targets.limits import lanes_matter, limits_of

        limits = limits_of(module)
        yield _of_one_warp if lanes_matter(module) else _without_encodings
        if limits is not None:
            yield limits


def blocks(values: list[Value]) -> Iterator[TensorType]:
    """The tensor types among values, those that pointers point to included."""
    for value in values:
        type = value.type.pointee if isinstance(value.type, PointerType) else value.type
        if isinstance(type, TensorType):
            yield type


def _defined(op: Operation) -> list[Value]:
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.arguments]
    return [*op.results, *arguments]


def _without_encodings(op: Operation) -> None:
    for type in blocks(_defined(op)):
        if type.encoding is not None:
            reject(op, "a block has an encoding", expected=str(type.with_encoding(None)), found=str(type))


def _tt(op: Operation) -> None:
    if op.name.partition(".")[0] in ("ttg", "ttig", "tile") or isinstance(op, gpu.SubgroupId):
        reject(op, "the operation belongs to a later level than tt")
    _without_encodings(op)


def _tt_of_warps(op: Operation) -> None:
    if isinstance(op, WARP_LEVEL_OPERATIONS):
        _without_encodings(op)
    else:
        _tt(op)


def _before_chunks(op: Operation) -> None:
    if op.name.startswith("tile."):
        reject(op, "the operation belongs to the intrinsic level")


def _ttg(op: Operation) -> None:
    _before_chunks(op)
    for type in blocks(_defined(op)):
        if not isinstance(type.encoding, Encoding):
            reject(op, "a block has no encoding", expected="a layout encoding", found=str(type))
    _agreement(op)


def _warp(op: Operation) -> None:
    _before_chunks(op)
    for type in blocks(_defined(op)):
        if not isinstance(type.encoding, Encoding):
            reject(op, "a block has no encoding", expected="a layout encoding", found=str(type))
        share = type.encoding.share(type.shape)
        if share != type.shape:
            expected = str(type.with_shape(share))
            reject(op, "a block is larger than one warp's share", expected=expected, found=str(type))
    _agreement(op)


def _intrinsic(op: Operation) -> None:
    if isinstance(op, ttg.CrossWarpReduce | ttg.CrossWarpScan):
        reject(op, "the operation belongs to an earlier level than intrinsic")


def _of_one_warp(op: Operation) -> None:
    """Where lanes matter, every block says which registers of which lanes hold it."""
    for type in blocks(_defined(op)):
        if not isinstance(type.encoding, Encoding):
            reject(op, "a block has no encoding", expected="a layout encoding with lanes", found=str(type))
        try:
            warp_layout(type.encoding, type.shape)
        except ValueError as problem:
            reject(op, str(problem), expected="an encoding of one warp with lanes", found=str(type))
    _agreement(op)


_RULES: dict[str, Callable[[Operation], None]] = {"tt": _tt, "ttg": _ttg, "warp": _warp, "intrinsic": _intrinsic}


# Which encodings the operands and results of an operation have, beyond what element-wise operations share.


def _agreement(op: Operation) -> None:
    rule = _AGREEMENTS.get(type(op))
    if rule is not None:
        rule(op)


def _encoding(value: Value) -> Encoding | None:
    return next((cast(Encoding, type.encoding) for type in blocks([value])), None)


def _expect(op: Operation, what: str, value: Value, wanted: Encoding | None) -> None:
    found = _encoding(value)
    if found is not None and wanted is not None and found is not wanted:
        reject(op, f"the encoding of {what} does not fit", expected=str(wanted), found=str(found))


def _all_equal(op: Operation) -> None:
    values = [*op.results, *op.operands]
    wanted = next((encoding for encoding in map(_encoding, values) if encoding is not None), None)
    for value in values:
        _expect(op, "an operand or result", value, wanted)


def _dot(op: tt.Dot) -> None:
    wanted = cast(Encoding, _encoding(op.result))
    _expect(op, "the accumulator", op.c, wanted)
    for index, operand in enumerate((op.a, op.b)):
        found = _encoding(operand)
        if not (isinstance(found, DotOperandEncoding) and found.op_idx == index and found.parent is wanted):
            expected = str(DotOperandEncoding(index, wanted))
            reject(op, f"the encoding of operand {index} does not fit", expected=expected, found=str(found))


def _reduce(op: tt.Reduce) -> None:
    for source, result in zip(op.sources, op.results, strict=True):
        _expect(op, "a source", source, _encoding(op.sources[0]))
        _expect(op, "a result", result, SliceEncoding(op.axis, cast(Encoding, _encoding(source))))


def _expand(op: tt.ExpandDims) -> None:
    _expect(op, "the source", op.source, SliceEncoding(op.axis, cast(Encoding, _encoding(op.result))))


def _loop(op: scf.For) -> None:
    for init, argument, result, end in zip(
        op.inits, op.carried, op.results, op.body.block.terminator.operands, strict=True
    ):
        for value in (init, argument, end):
            _expect(op, "a carried block", value, _encoding(result))


_AGREEMENTS: dict[type[Operation], Callable[..., None]] = {
    tt.Broadcast: _all_equal,
    tt.Load: _all_equal,
    tt.Store: _all_equal,
    tt.Advance: _all_equal,
    tt.AtomicRMW: _all_equal,
    tt.AtomicCAS: _all_equal,
    tt.Scan: _all_equal,
    ttg.CrossWarpReduce: _all_equal,
    ttg.CrossWarpScan: _all_equal,
    tt.Dot: _dot,
    tt.Reduce: _reduce,
    tt.ExpandDims: _expand,
    scf.For: _loop,
}
