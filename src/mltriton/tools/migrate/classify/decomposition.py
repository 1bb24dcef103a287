"""Tensors of pointers taken apart: a base, and for each dimension where it starts, how long it is and its stride.

Level: source text. `Affine` is scalar terms plus ranges `offset + arange(0, size)` times a stride, one for each
dimension. Every answer is a proof from the text of the function; what is not of this form is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.read.flow import Definition
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, factor, names_in, one_line, operand, walk

_HINTS = ("multiple_of", "max_contiguous", "max_constancy")  # give their first argument
_SCALARS = ("program_id", "num_programs", "cdiv", "minimum", "maximum", "cast", "multiple_of")
_BUILTINS = ("min", "max", "int")
LINE = -1  # the dimension of a range that was not given one by `[:, None]` yet: it is the last


@dataclass(frozen=True)
class Term:
    """A scalar with a sign: a product of factors. `parts`: the expressions and the statements that evaluate them."""

    sign: int
    factors: tuple[str, ...]
    text: str
    parts: tuple[tuple[cst.BaseExpression, cst.CSTNode], ...] = field(compare=False, default=())

    @property
    def key(self) -> tuple[str, ...]:
        """Terms with one key have one value, whatever the order of their factors."""
        return tuple(sorted(map(_bare, self.factors)))


@dataclass(frozen=True)
class IndexRange:
    """One dimension: (offset + arange(0, size)) * stride."""

    size: str
    offset: tuple[Term, ...] = ()
    stride: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Affine:
    """Scalar terms and ranges by dimension."""

    terms: tuple[Term, ...] = ()
    ranges: tuple[tuple[int, IndexRange], ...] = ()


class AffineForms:
    """The affine forms of one function's expressions."""

    def __init__(self, source: Source, bounds: Bounds) -> None:
        self.source = source
        self.bounds = bounds
        self.flow = bounds.flow
        self._asked: set[int] = set()

    @cached_property
    def is_launched(self) -> bool:
        """Whether nothing in the file calls the function, so that its parameters are no blocks."""
        name = self.flow.function.name.value
        calls = (node for node in walk(self.source.module) if isinstance(node, cst.Call))
        return not any(isinstance(call.func, cst.Name) and call.func.value == name for call in calls)

    # Scalars.

    def is_scalar(self, node: cst.CSTNode, at: cst.CSTNode) -> bool:
        """Whether an expression is a number or a pointer, and no block."""
        if isinstance(node, cst.Name):
            reaching = self.flow.reaching(node.value, at)
            return all(self._is_scalar_definition(each) for each in reaching)
        if isinstance(node, cst.Integer | cst.Float):
            return True
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            return self.is_scalar(node.left, at) and self.is_scalar(node.right, at)
        if isinstance(node, cst.UnaryOperation):
            return self.is_scalar(node.expression, at)
        if isinstance(node, cst.Comparison):
            return all(self.is_scalar(each, at) for each in (node.left, *(c.comparator for c in node.comparisons)))
        if isinstance(node, cst.IfExp):
            return all(self.is_scalar(each, at) for each in (node.test, node.body, node.orelse))
        return isinstance(node, cst.Call) and self._is_scalar_call(node, at)

    def _is_scalar_call(self, call: cst.Call, at: cst.CSTNode) -> bool:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "to":
            return self.is_scalar(call.func.value, at)
        callee = self.source.callee(call)
        values = [arg.value for arg in call.args]
        if callee == "cast":
            values = values[:1]
        plain = isinstance(call.func, cst.Name) and call.func.value in _BUILTINS
        return (plain or callee in _SCALARS or callee == "load") and all(self.is_scalar(each, at) for each in values)

    def _is_scalar_definition(self, definition: Definition) -> bool:
        at = definition.statement
        if definition.index in self._asked:
            return True  # by induction
        if isinstance(at, cst.Param):
            return self.is_launched or self.bounds.is_constexpr(definition.name)
        self._asked.add(definition.index)
        try:
            if isinstance(at, cst.For):
                return isinstance(at.target, cst.Name) and self._range(at) is not None
            if definition.augmented is not None:
                own = definition.augmented
                return self.is_scalar(own.value, at) and self.is_scalar(own.target, at)
            known = definition.value is not None and at in self.flow.before
            return known and definition.value is not None and self.is_scalar(definition.value, at)
        finally:
            self._asked.discard(definition.index)

    def _range(self, loop: cst.For) -> list[cst.BaseExpression] | None:
        call = loop.iter
        if not isinstance(call, cst.Call):
            return None
        plain = isinstance(call.func, cst.Name) and call.func.value == "range"
        if not plain and self.source.callee(call) not in ("range", "static_range"):
            return None
        return [arg.value for arg in call.args if arg.keyword is None and not arg.star]

    # Affine forms.

    def of(self, node: cst.BaseExpression, at: cst.CSTNode, depth: int = 0) -> Affine | None:
        """The affine form of an expression that a statement evaluates."""
        if depth > 16:
            return None
        if self.is_scalar(node, at):
            return Affine(self.scalar(node, at))
        if isinstance(node, cst.Name):
            return self._name(node.value, at, depth)
        if isinstance(node, cst.Subscript):
            inner, dim = self.of(node.value, at, depth + 1), spread(node)
            return _spread(inner, dim) if inner is not None and dim is not None else None
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node, at, depth)
        if isinstance(node, cst.Call):
            return self._call(node, at, depth)
        return None

    def scalar(self, node: cst.BaseExpression, at: cst.CSTNode) -> tuple[Term, ...]:
        """The terms of a scalar expression."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return (*self.scalar(node.left, at), *self.scalar(node.right, at))
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
            return (*self.scalar(node.left, at), *negated(self.scalar(node.right, at)))
        if constant_int(node) == 0:
            return ()
        return (Term(1, tuple(_factors(node)), one_line(node), ((node, at),)),)

    def _name(self, name: str, at: cst.CSTNode, depth: int) -> Affine | None:
        reaching = self.flow.reaching(name, at)
        if len(reaching) == 1 and reaching[0].value is not None and reaching[0].statement in self.flow.before:
            return self.of(reaching[0].value, reaching[0].statement, depth + 1)
        steps = [each for each in reaching if each.augmented is not None]
        starts = [each for each in reaching if each.value is not None]
        if len(reaching) == 2 and len(steps) == len(starts) == 1:
            return self._moved(starts[0], steps[0], at, depth)
        return None

    def _moved(self, start: Definition, step: Definition, at: cst.CSTNode, depth: int) -> Affine | None:
        """A variable that a loop moves once in each iteration, in an iteration before it is moved."""
        first, own = start.value, step.augmented
        parents = self.flow.parents[step.statement]
        loop = parents[-1] if parents else None
        if first is None or own is None or not isinstance(own.operator, cst.AddAssign) or not isinstance(loop, cst.For):
            return None
        bounds, count = self._range(loop), loop.target
        inside = [loop.body in [suite for suite, _ in self.flow.blocks[each]] for each in (at, step.statement)]
        regular = all(inside) and loop not in self.flow.parents[start.statement]
        jumps = any(isinstance(each, cst.Continue) for each in walk(loop.body))
        if not regular or jumps or not isinstance(count, cst.Name) or self.flow.dominates(step.statement, at):
            return None
        if not self.is_scalar(own.value, at) or not self.is_invariant(own.value, step.statement, loop):
            return None
        delta = self._steps(bounds or [], own.value, step.statement, count)
        value = self.of(first, start.statement, depth + 1)
        if delta is None or value is None or self._assigns(loop, count.value):
            return None
        return replace(value, terms=(*value.terms, delta))

    def _steps(
        self, bounds: Sequence[cst.BaseExpression], delta: cst.BaseExpression, at: cst.CSTNode, count: cst.Name
    ) -> Term | None:
        """How far a variable got that moves by `delta` in each iteration of `for count in range(bounds)`."""
        factors = _factors(delta)
        if len(bounds) == 3 and constant_int(bounds[0]) == 0:
            for each in _factors(bounds[2]):
                if each not in factors:
                    return None
                factors.remove(each)
        elif not bounds or (len(bounds) == 2 and constant_int(bounds[0]) != 0) or len(bounds) > 2:
            return None
        factors = [count.value, *factors]
        return Term(1, tuple(factors), " * ".join(factors), ((count, at), (delta, at)))

    def is_invariant(self, node: cst.BaseExpression, at: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Whether an expression in a loop has the value that it had before the loop."""
        reaching = [each for name in names_in(node) for each in self.flow.reaching(name, at)]
        within = [each for each in reaching if loop in (each.statement, *self.flow.parents.get(each.statement, ()))]
        return not within and self.bounds.is_pure(node)

    def _assigns(self, loop: cst.For, name: str) -> bool:
        return any(
            each.name == name and each.statement is not loop and loop in self.flow.parents.get(each.statement, ())
            for each in self.flow.definitions
        )

    def _binary(self, node: cst.BinaryOperation, at: cst.CSTNode, depth: int) -> Affine | None:
        left, right = self.of(node.left, at, depth + 1), self.of(node.right, at, depth + 1)
        if left is None or right is None:
            return None
        if isinstance(node.operator, cst.Add):
            return _sum(left, right)
        if isinstance(node.operator, cst.Subtract) and not right.ranges:
            return replace(left, terms=(*left.terms, *negated(right.terms)))
        if isinstance(node.operator, cst.Multiply):
            block, other = (left, node.right) if left.ranges else (right, node.left)
            if len(block.ranges) == 1 and self.is_scalar(other, at):
                ((dim, indices),) = block.ranges
                if not indices.stride:
                    stride = Term(1, tuple(_factors(other)), factor(other), ((other, at),))
                    return Affine((), ((dim, IndexRange(indices.size, (*indices.offset, *block.terms), (stride,))),))
        return None

    def _call(self, call: cst.Call, at: cst.CSTNode, depth: int) -> Affine | None:
        callee = self.source.callee(call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "to" and len(call.args) == 1:
            wide = code_of(call.args[0].value).endswith(("int64", "int32"))
            return self.of(call.func.value, at, depth + 1) if wide else None
        if callee in _HINTS and call.args:
            return self.of(call.args[0].value, at, depth + 1)
        if callee == "arange" and len(call.args) == 2 and constant_int(call.args[0].value) == 0:
            return Affine((), ((LINE, IndexRange(one_line(call.args[1].value))),))
        return None


def spread(node: cst.Subscript) -> int | None:
    """The dimension that `[:, None]` or `[None, :]` gives a range."""
    return {":,None": 0, "None,:": 1}.get(",".join(code_of(each.slice).strip() for each in node.slice))


def _spread(value: Affine, dim: int) -> Affine | None:
    if [each for each, _ in value.ranges] != [LINE]:
        return None
    ((_, indices),) = value.ranges
    if indices.stride and value.terms:
        return None
    return Affine((), ((dim, replace(indices, offset=(*indices.offset, *value.terms))),))


def _sum(left: Affine, right: Affine) -> Affine | None:
    ranges = dict(left.ranges)
    for dim, indices in right.ranges:
        if dim in ranges:
            return None
        ranges[dim] = indices
    if len(ranges) == 2 and LINE in ranges:
        if 1 in ranges:
            return None
        ranges[1] = ranges.pop(LINE)
    return Affine((*left.terms, *right.terms), tuple(sorted(ranges.items())))


def negated(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms of the negative."""
    return tuple(replace(each, sign=-each.sign) for each in terms)


def cancelled(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Terms without those that come to zero together."""
    found: list[Term] = []
    for term in terms:
        other = next((each for each in found if each.key == term.key and each.sign == -term.sign), None)
        if other is not None:
            found.remove(other)
        else:
            found.append(term)
    return tuple(found)


def written(terms: Sequence[Term]) -> str:
    """The sum as text."""
    text = ""
    for term in sorted(terms, key=lambda each: -each.sign):
        part = operand(cst.parse_expression(term.text))
        if not text:
            text = part if term.sign > 0 else f"-{factor(cst.parse_expression(term.text))}"
        else:
            text += f" + {part}" if term.sign > 0 else f" - {_taken(term)}"
    return text or "0"


def _taken(term: Term) -> str:
    node = cst.parse_expression(term.text)
    sums = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract)
    return f"({term.text})" if sums and not node.lpar else operand(node)


def _bare(text: str) -> str:
    """A factor without white space and outer parentheses."""
    if text.startswith("("):
        node = cst.parse_expression(text)
        text = code_of(node.with_changes(lpar=[], rpar=[]))
    return text.replace(" ", "")


def _factors(node: cst.BaseExpression) -> list[str]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [one_line(node)]
