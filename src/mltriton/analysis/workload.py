"""Workload analysis: what kind of computation a function is, and how its dots depend on each other.

Level: tt. Takes a function; gives, for each dot, the later dot that consumes its result as an operand (attention's P
V after Q K), and a name for the whole: attention, gemm, reduction or elementwise. Nothing is changed. Source:
ML-Triton paper, section 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import scf, tt, ttg
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.records import NamedTuple


class Workload(NamedTuple):
    """`kind`, the dots in program order, and for a chained dot which operand (0 = A, 1 = B) of which later dot it
    feeds.
    """

    kind: str
    dots: tuple[tt.Dot, ...]
    feeds: dict[tt.Dot, tuple[tt.Dot, int]]


def analyse(function: tt.Func) -> Workload:
    """The workload of a function."""
    dots = tuple(op for op in function.walk() if isinstance(op, tt.Dot))
    feeds: dict[tt.Dot, tuple[tt.Dot, int]] = {}
    for dot in dots:
        for index, operand in enumerate((dot.a, dot.b)):
            for source in _dots_behind(operand):
                feeds.setdefault(source, (dot, index))
    if feeds:
        kind = "attention"
    elif dots:
        kind = "gemm"
    else:
        kind = "reduction" if any(isinstance(op, tt.Reduce | tt.Scan) for op in function.walk()) else "elementwise"
    return Workload(kind, dots, feeds)


def _dots_behind(value: Value) -> list[tt.Dot]:
    """Dots whose result reaches `value` element by element: through arithmetic on blocks of the same shape,
    transposes included.
    """
    blocks = reached([value], _same_elements)
    return [op for block in blocks if isinstance(op := block.defining_op, tt.Dot)]


def _same_elements(value: Value) -> Sequence[Value]:
    """The blocks of which each element of a block is computed, from the same place in each."""
    op = value.defining_op
    if isinstance(op, scf.If):
        return handed_from(value) or ()
    if op is None or isinstance(op, tt.Dot) or not (op.elementwise or isinstance(op, tt.Trans)):
        return ()
    return [operand for operand in op.operands if _same_size(operand, value)]


def _same_size(operand: Value, result: Value) -> bool:
    return (
        isinstance(operand.type, TensorType)
        and isinstance(result.type, TensorType)
        and operand.type.size == result.type.size
    )


def only_multiplied(value: Value) -> bool:
    """Whether nothing but dots, or transposes for dots, take a value."""
    return bool(value.users) and all(
        isinstance(op, tt.Dot) or (isinstance(op, tt.Trans) and only_multiplied(op.result)) for op in value.users
    )


PLACED = (ttg.ConvertLayout, ttg.LocalAlloc, ttg.MemDescTrans)  # the same elements elsewhere


def goes_along(load: Operation) -> bool:
    """Whether a load stands in a loop beside products, or beside loops with products: what it loads is copied ahead
    together with their operands.
    """
    loop = load.parent_op
    return isinstance(loop, scf.For) and any(isinstance(op, tt.Dot) for op in loop.walk())


def is_multiplied(value: Value, *, turned: bool = False) -> bool:
    """Whether a value goes into a dot as an operand, as it is or computed on element by element, or `turned`."""

    def computed(value: Value) -> list[Value]:
        return [user.results[0] for user in value.users if passes_on(user)]

    def passes_on(user: Operation) -> bool:
        return isinstance(user, (*PLACED, tt.Trans) if turned else PLACED) or (user.elementwise and user.pure)

    return any(
        isinstance(user, tt.Dot) and found in (user.a, user.b)
        for found in reached([value], computed)
        for user in found.users
    )


def adding_loop(dot: tt.Dot) -> scf.For | None:
    """The loop that adds a product to the same value in every iteration, which nothing else in it takes."""
    loop = dot.parent_op
    if not isinstance(loop, scf.For) or dot.c not in loop.carried or list(dot.c.users) != [dot]:
        return None
    yielded = loop.body.block.terminator
    is_yielded = list(dot.result.users) == [yielded] and yielded.operands.count(dot.result) == 1
    return loop if is_yielded and yielded.operands[number_of(loop, dot.c)] is dot.result else None


def only_adds_up(loop: scf.For) -> bool:
    """Whether all products of a loop, of which there are some, are added up by itself."""
    dots = _dots_of(loop)
    return bool(dots) and all(adding_loop(dot) is loop for dot in dots)


def products_of(loop: scf.For) -> int:
    """How many products an iteration adds up, those of elements of several bytes so often."""
    return sum(cast(TensorType, dot.result.type).size * _depth_bytes(dot) for dot in _dots_of(loop))


def _dots_of(loop: scf.For) -> list[tt.Dot]:
    return [op for op in loop.walk() if isinstance(op, tt.Dot)]


def _depth_bytes(dot: tt.Dot) -> int:
    left = cast(TensorType | MemDescType, dot.a.type)
    return left.shape[-1] * byte_width(left.element)


def number_of(loop: scf.For, carried: Value) -> int:
    """Which of the values that a loop carries an argument is."""
    return next(index for index, argument in enumerate(loop.carried) if argument is carried)
