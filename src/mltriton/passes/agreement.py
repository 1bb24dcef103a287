"""What holds for encodings: every block has one that its level can use, and operands and results agree.

Level: ttg to intrinsic. `EncodingRules` is the part of `levels.py` that is cheap enough for every launch (the pass
`verify-encodings`): a type is looked at once, an operation by one rule of its class. Where warps share blocks, an
operation that reshapes has the whole of what it moves in every warp; only
`ttg.convert_layout` changes an encoding. Raises `VerificationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from mltriton.dialects import scf, tt, ttg, ttng
from mltriton.ir.operation import Encodings, Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import MemDescType, TensorType, Type, block_of
from mltriton.layouts.encodings import DotOperandEncoding, Encoding, SliceEncoding, same_part

BlockRule = Callable[[Operation, TensorType], None]


class EncodingRules:
    """The rules of one module; `holds` is what its level wants of the type of a block, None where no block has an
    encoding.
    """

    def __init__(self, holds: BlockRule | None) -> None:
        self._holds = holds or _unencoded
        self._agreements = _AGREEMENTS if holds else {}
        self._known: set[Type] = set()

    def __call__(self, op: Operation) -> None:
        """Check one operation."""
        for result in op.results:
            self._type(op, result.type)
        for block in op.blocks:
            for argument in block.arguments:
                self._type(op, argument.type)
        rule = self._agreements.get(op.__class__)
        if rule is not None:
            rule(op)
        elif op.encodings is not None and self._agreements:
            _as_declared(op, op.encodings)

    def _type(self, op: Operation, type: Type) -> None:
        if type not in self._known:
            block = block_of(type)
            if block is not None:
                self._holds(op, block)
            self._known.add(type)


# What a level wants of a block.


def _unencoded(op: Operation, type: TensorType) -> None:
    if type.encoding is not None:
        reject(op, "a block has an encoding", expected=str(type.with_encoding(None)), found=str(type))


def encoded(op: Operation, type: TensorType) -> None:
    """A block has an encoding."""
    if not isinstance(type.encoding, Encoding):
        reject(op, "a block has no encoding", expected="a layout encoding", found=str(type))


def in_one_warp(op: Operation, type: TensorType) -> None:
    """A block is what its encoding gives to one warp."""
    encoded(op, type)
    try:
        per_warp = cast(Encoding, type.encoding).per_warp_shape(type.shape)
    except (LookupError, ValueError):
        reject(op, "a block's encoding is of another rank", found=str(type))
    if per_warp != type.shape:
        reject(
            op,
            "a block is larger than its encoding's per-warp shape",
            expected=str(type.with_shape(per_warp)),
            found=str(type),
        )


def with_lanes(op: Operation, type: TensorType) -> None:
    """A block says which registers of which lanes of one warp hold it."""
    if not isinstance(type.encoding, Encoding):
        reject(op, "a block has no encoding", expected="a layout encoding with lanes", found=str(type))
    from mltriton.layouts.hardware import warp_layout  # Targets without lanes ask for no linear layout.

    try:
        warp_layout(type.encoding, type.shape)
    except ValueError as problem:
        reject(op, str(problem), expected="an encoding of one warp with lanes", found=str(type))


# Which encodings the operands and results of an operation have.


def _encoding(value: Value) -> Encoding | None:
    block = block_of(value.type)
    return cast(Encoding, block.encoding) if block is not None else None


def _block(value: Value) -> TensorType:
    return cast(TensorType, block_of(value.type))


def _expect(op: Operation, what: str, value: Value, wanted: Encoding | None) -> None:
    found = _encoding(value)
    if found is not None and wanted is not None and found is not wanted:
        reject(op, f"the encoding of {what} does not fit", expected=str(wanted), found=str(found))


def _as_declared(op: Operation, declared: Encodings) -> None:
    if declared.whole:
        _all_whole(op)
    else:
        _all_equal(op, declared.free)


def _all_equal(op: Operation, free: Sequence[int] = ()) -> None:
    wanted: Encoding | None = None
    for value in (*op.results, *(value for number, value in enumerate(op.operands) if number not in free)):
        found = _encoding(value)
        if wanted is None:
            wanted = found
        elif found is not None and found is not wanted:
            _expect(op, "an operand or result", value, wanted)


def _dot(op: tt.Dot) -> None:
    wanted = cast(Encoding, _encoding(op.result))
    _expect(op, "the accumulator", op.c, wanted)
    for index, operand in enumerate((op.a, op.b)):
        found = _encoding(operand)
        if isinstance(operand.type, MemDescType):
            continue
        if not (isinstance(found, DotOperandEncoding) and found.op_idx == index and found.parent is wanted):
            expected = str(DotOperandEncoding(index, wanted))
            reject(op, f"the encoding of operand {index} does not fit", expected=expected, found=str(found))


def _reduce(op: tt.Reduce) -> None:
    for source, result in zip(op.sources, op.results, strict=True):
        _expect(op, "a source", source, _encoding(op.sources[0]))
        _expect(op, "a result", result, SliceEncoding(op.axis, cast(Encoding, _encoding(source))))


def _scan(op: tt.Scan) -> None:
    _all_equal(op)
    _require_whole(op, op.sources[0], op.axis)


def _expand(op: tt.ExpandDims) -> None:
    _expect(op, "the source", op.source, SliceEncoding(op.axis, cast(Encoding, _encoding(op.result))))


def _require_whole(op: Operation, value: Value, *dims: int) -> None:
    """Every warp has the whole of the dimensions (of all, where none is given)."""
    block = _block(value)
    per_warp = cast(Encoding, block.encoding).per_warp_shape(block.shape)
    if any(per_warp[dim] != block.shape[dim] for dim in dims or range(block.rank)):
        where = f" along {', '.join(map(str, dims))}" if dims else ""
        reject(op, f"a warp has only a part of a block{where}", expected=str(block.shape), found=str(per_warp))


def _all_whole(op: Operation) -> None:
    for value in (*op.results, *op.operands):
        if isinstance(value.type, TensorType):
            _require_whole(op, value)


def _trans(op: tt.Trans) -> None:
    source, result = _block(op.source), _block(op.result)
    cuts = cast(Encoding, source.encoding).cut(source.shape)
    permuted = zip((cuts[dim] for dim in op.order), cast(Encoding, result.encoding).cut(result.shape), strict=True)
    if not all(same_part(a, b, extent) for (a, b), extent in zip(permuted, result.shape, strict=True)):
        reject(op, "the warps' parts are not permuted", expected=str(source), found=str(result))


def _cat(op: tt.Cat) -> None:
    _all_equal(op) if _encoding(op.lhs) is _encoding(op.result) else _all_whole(op)
    _require_whole(op, op.lhs, 0)


def _loop(op: scf.For) -> None:
    for init, argument, result, end in zip(
        op.inits, op.carried, op.results, op.body.block.terminator.operands, strict=True
    ):
        for value in (init, argument, end):
            _expect(op, "a carried block", value, _encoding(result))


def _while(op: scf.While) -> None:
    before, after = op.before.block, op.after.block
    for init, argument, end in zip(op.inits, before.arguments, after.terminator.operands, strict=True):
        for value in (init, end):
            _expect(op, "a carried block", value, _encoding(argument))
    for end, argument, result in zip(before.terminator.operands[1:], after.arguments, op.results, strict=True):
        for value in (end, argument):
            _expect(op, "a result", value, _encoding(result))


def _branch(op: scf.If) -> None:
    for block in op.blocks:
        for value, result in zip(block.terminator.operands, op.results, strict=True):
            _expect(op, "a yielded block", value, _encoding(result))


_AGREEMENTS: dict[type[Operation], Callable[..., None]] = {
    tt.Broadcast: _all_equal,
    ttg.ConvertLayout: ttg.ConvertLayout.verify,
    tt.Scan: _scan,
    tt.Dot: _dot,
    ttng.WarpGroupDot: _dot,
    tt.Reduce: _reduce,
    tt.ExpandDims: _expand,
    tt.Trans: _trans,
    tt.Cat: _cat,
    scf.For: _loop,
    scf.While: _while,
    scf.If: _branch,
}
