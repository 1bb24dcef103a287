"""canonicalize: everything in its simplest form.

Level: tt to intrinsic. Takes any program and changes it in place. What an operation says of itself (`fold`: constants,
identities, casts that cancel) and what is known of loops and branches is done by the greedy driver of `folding.py`;
the table below adds forms that need a new operation. Guarantees: the program computes the same, bit for bit. A product
or quotient by a power of two stays what it is: targets choose the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from mltriton.dialects import arith, scf, ttig
from mltriton.dialects.arith import Binary
from mltriton.dialects.scf_carried import body_taken_over, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant, splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, element_type
from mltriton.passes.any.folding import fold_all


class Canonicalize(Pass):
    """Fold and simplify until nothing changes."""

    name = "canonicalize"

    def run(self, module: Module) -> Module:
        fold_all(module, PATTERNS)
        return module


def sum_of_constants(op: arith.AddI) -> Sequence[Value] | None:
    """(x + a) + b is x + (a + b) where a and b are constants."""
    return _reassociated(op, lambda a, b: a + b)


def product_of_constants(op: arith.MulI) -> Sequence[Value] | None:
    """(x * a) * b is x * (a * b) where a and b are constants."""
    return _reassociated(op, lambda a, b: a * b)


def _reassociated(op: Binary, combine: Callable[[int, int], int]) -> Sequence[Value] | None:
    inner, outer_number = op.lhs.defining_op, splat_of(op.rhs)
    if not isinstance(inner, type(op)) or outer_number is None:
        return None
    inner_number = splat_of(inner.rhs)
    if inner_number is None:
        return None
    number = make_constant(op.result.type, (combine(cast(int, inner_number), cast(int, outer_number)),))
    builder = Builder().before(op)
    return [builder.emit(type(op), inner.lhs, builder.emit(arith.Constant, value=number))]


OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def negated_comparison(op: arith.XOrI) -> Sequence[Value] | None:
    """not (a < b) is a >= b."""
    inner = op.lhs.defining_op
    if element_type(op.result.type) is not I1 or splat_of(op.rhs) != 1:
        return None
    if not isinstance(inner, arith.CmpI) or inner.result.uses > 1:
        return None
    sign, order = inner.predicate[:-2], inner.predicate[-2:]
    return [Builder().before(op).emit(arith.CmpI, inner.lhs, inner.rhs, predicate=sign + OPPOSITE[order])]


def comparison_of_boolean(op: arith.CmpI) -> Sequence[Value] | None:
    """A boolean widened and compared with 0 or 1 is the boolean, or its opposite."""
    inner, number = op.lhs.defining_op, splat_of(op.rhs)
    if op.predicate not in ("eq", "ne") or number not in (0, 1) or not isinstance(inner, arith.ExtUI):
        return None
    if element_type(inner.source.type) is not I1:
        return None
    if (op.predicate == "ne") == (number == 0):
        return [inner.source]
    builder = Builder().before(op)
    true = builder.emit(arith.Constant, value=make_constant(inner.source.type, (1,)))
    return [builder.emit(arith.XOrI, inner.source, true)]


def repeated_bound(op: Binary) -> Sequence[Value] | None:
    """max(max(x, y), y) is max(x, y), and the same for minima."""
    for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = value.defining_op
        if isinstance(inner, type(op)) and other in inner.operands:
            return [value]
    return None


def selection(op: scf.If) -> Sequence[Value] | None:
    """A branch that computes nothing is a select; a result that both regions give alike is that value."""
    if not op.results or any(len(region.block.ops) > 1 for region in op.regions):
        return None
    builder = Builder().before(op)
    ends = [region.block.terminator.operands for region in op.regions]
    return [
        yes if yes is no else builder.emit(arith.Select, op.condition, yes, no) for yes, no in zip(*ends, strict=True)
    ]


def common_results(op: scf.If) -> Sequence[Value] | None:
    """Let users of a result that both regions give alike use that value; the branch stays."""
    ends = [block.terminator.operands for block in op.blocks]
    for result in op.results:
        yes, no = (operands[result.index] for operands in ends)
        if yes is no and result.users:
            result.replace_by(yes)
    return None


def simpler_branch(op: scf.If) -> Sequence[Value] | None:
    """The first of the forms above that fits."""
    return selection(op) or common_results(op)


def carried_pieces(op: scf.For) -> Sequence[Value] | None:
    """A loop that starts with pieces put together and only looks at pieces carries the pieces."""
    split = [index for index, init in enumerate(op.inits) if _is_taken_apart(op.carried[index], init)]
    if not split:
        return None
    kept = [index for index in range(len(op.inits)) if index not in split]
    glues = [cast(ttig.Glue, op.inits[index].defining_op) for index in split]
    old = [(op.carried[index], op.body.block.terminator.operands[index]) for index in split]
    loop = body_taken_over(op, kept, [piece for glue in glues for piece in glue.pieces])
    builder, inside = Builder().before(op), Builder().before(loop.body.block.terminator)
    builder.insert(loop)
    made: dict[int, Value] = dict(zip(kept, loop.results, strict=False))
    first = len(kept)
    for index, glue, (argument, end) in zip(split, glues, old, strict=True):
        pieces = slice(first, first := first + len(glue.pieces))
        for user in list(argument.users):
            user.results[0].replace_by(loop.carried[pieces][cast(ttig.Extract, user).index])
        yield_also(loop.body.block, _pieces_of(inside, end, glue))
        made[index] = builder.emit(ttig.Glue, loop.results[pieces], result_types=[argument.type])
    return [made[index] for index in range(len(op.inits))]


def _is_taken_apart(argument: Value, init: Value) -> bool:
    """Whether a carried value starts as pieces put together, and a loop uses the like pieces of it only."""
    glue = init.defining_op
    if not isinstance(glue, ttig.Glue) or not argument.users:
        return False
    piece = glue.pieces[0].type
    return all(isinstance(user, ttig.Extract) and user.result.type is piece for user in argument.users)


def _pieces_of(builder: Builder, value: Value, like: ttig.Glue) -> Sequence[Value]:
    """The pieces of a value, of the size of those of `like`."""
    glue, type = value.defining_op, like.pieces[0].type
    if isinstance(glue, ttig.Glue) and glue.pieces[0].type is type:
        return glue.pieces
    count = len(like.pieces)
    return [builder.emit(ttig.Extract, value, result_types=[type], index=index) for index in range(count)]


PATTERNS: dict[type[Operation], Callable[[Any], Sequence[Value] | None]] = {
    arith.AddI: sum_of_constants,
    arith.MulI: product_of_constants,
    arith.XOrI: negated_comparison,
    arith.CmpI: comparison_of_boolean,
    arith.MaxSI: repeated_bound,
    arith.MinSI: repeated_bound,
    arith.MaxUI: repeated_bound,
    arith.MinUI: repeated_bound,
    arith.MaximumF: repeated_bound,
    arith.MinimumF: repeated_bound,
    arith.MaxNumF: repeated_bound,
    arith.MinNumF: repeated_bound,
    scf.If: simpler_branch,
    scf.For: carried_pieces,
}
