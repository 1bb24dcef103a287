"""What a block pointer is made of where it is passed on: base, shape, strides, offsets and sizes as expressions.

Level: source text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.classify.bounds import Bounds, is_zero
from mltriton.tools.migrate.classify.group import Construct
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import parameters_of
from mltriton.tools.migrate.read.syntax import code_of, cst, elements, operand, walk
from mltriton.tools.migrate.rewrite.edits import Edits

WORDS = {"shape": "shape", "strides": "stride", "offsets": "off", "block_shape": "block"}  # in names of variables


@dataclass(frozen=True)
class Parts:
    """A block pointer: where it is made, and each field as expressions of the function around it."""

    construct: Construct
    fields: Mapping[str, tuple[cst.BaseExpression, ...]]

    @property
    def all(self) -> list[cst.BaseExpression]:
        """Everything that it is made of, the base first."""
        return [self.construct.base, *(part for field in self.fields.values() for part in field)]

    @property
    def layout(self) -> object:
        """What must not differ where one pointer or another is meant: rank and order."""
        return self.construct.rank, tuple(map(code_of, self.construct.order))

    def made(self, language: str, base: str, columns: Iterable[Sequence[str]]) -> str:
        """The call that makes it of other texts, a column for each field."""
        listed = [*columns, [code_of(each) for each in self.construct.order]]
        tuples = ", ".join(f"({', '.join(each)}{',' if len(each) == 1 else ''})" for each in listed)
        return f"{language}.make_block_ptr({base}, {tuples})"


def parts_at(node: cst.BaseExpression, pointers: Pointers, bounds: Bounds, at: cst.CSTNode) -> Parts | None:
    """What a pointer is made of; None where an expression is none, or its parts are not known at this statement."""
    deltas: list[tuple[cst.BaseExpression, ...]] = []
    statement, value = at, node
    for _ in range(16):
        if isinstance(value, cst.Name):
            reaching = pointers.flow.reaching(value.value, statement)
            if len(reaching) != 1 or reaching[0].value is None or reaching[0].statement not in pointers.flow.before:
                return None
            statement, value = reaching[0].statement, reaching[0].value
            continue
        construct = pointers.construct_of(value)
        if construct is not None:
            fields = {name: getattr(construct, name) for name in WORDS}
            parts = Parts(construct, fields)
            if not construct.rank or not all(_holds(bounds, each, construct.statement, at) for each in parts.all):
                return None
            offsets = tuple(_sum(each, [step[dim] for step in deltas]) for dim, each in enumerate(construct.offsets))
            return Parts(construct, {**fields, "offsets": offsets})
        advance = next((each for group in pointers.groups for each in group.advances if each.call is value), None)
        if advance is None or not all(_holds(bounds, each, statement, at) for each in advance.deltas):
            return None
        deltas.append(advance.deltas)
        value = advance.pointer
    return None


def _holds(bounds: Bounds, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    return first is second or bounds.is_stable(node, first, second)


def _sum(offset: cst.BaseExpression, deltas: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    terms = [each for each in (offset, *reversed(deltas)) if not is_zero(each)]
    return cst.parse_expression(" + ".join(map(operand, terms)) or "0") if len(terms) != 1 else terms[0]


def drop_unused(edits: Edits, pointers: Pointers, replaced: Iterable[cst.CSTNode]) -> None:
    """Take away the pointers of a function that only these nodes used."""
    gone = {id(node) for each in replaced for node in walk(each)}
    names = {each.name for group in pointers.groups for each in group.definitions}
    names -= {each.name.value for each in parameters_of(pointers.function)}
    while True:
        uses = {name: _uses(pointers.function, name) for name in names}
        unused = {name for name, every in uses.items() if every and all(id(node) in gone for node in every)}
        every = [each.statement for group in pointers.groups for each in group.definitions if each.name in unused]
        found = {each for each in every if targets_of(each) <= unused} - edits.remove
        if not found:
            return
        edits.remove |= found
        gone |= {id(node) for each in found for node in walk(each)}


def _uses(function: cst.FunctionDef, name: str) -> list[cst.Name]:
    """The places where a function reads a name; an assignment of it reads nothing of it that matters."""
    own = {
        id(node)
        for each in walk(function.body)
        if isinstance(each, cst.Assign) and name in targets_of(each)
        for node in walk(each)
    }
    named = (node for node in walk(function.body) if isinstance(node, cst.Name) and node.value == name)
    return [node for node in named if id(node) not in own]


def targets_of(statement: cst.CSTNode) -> set[str]:
    """The names that an assignment gives a value; one that is no name for anything else."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) > 1:
        return {""}
    target = statement.targets[0].target
    return {each.value if isinstance(each, cst.Name) else "" for each in elements(target) or [target]}
