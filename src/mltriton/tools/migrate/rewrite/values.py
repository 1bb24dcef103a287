"""The quantities of a block pointer beside its descriptor or pointer, carried through assignments as variables.

Level: source text. A quantity (an offset, an extent, ...) that every use can write as the constructor wrote it is
written there again; any other gets a variable wherever the pointer gets a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.classify.bounds import Bounds, is_zero
from mltriton.tools.migrate.classify.choice import Choice
from mltriton.tools.migrate.classify.group import Advance, Construct, Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import Definition, Env
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, factor, one_line, operand
from mltriton.tools.migrate.rewrite.naming import Namer

# What each kind of quantity is called: a prefix of the tensor's name.
PREFIX: Mapping[str, str] = {"offset": "off", "range": "o", "extent": "n", "stride": "s"}


@dataclass(frozen=True)
class Quantity:
    """One number (or range of numbers) of a block pointer, in one dimension."""

    kind: str
    dim: int


@dataclass
class Context:
    """All that the rewriting of one group needs."""

    pointers: Pointers
    bounds: Bounds
    group: Group
    choice: Choice
    namer: Namer
    language: str
    renamed: Mapping[str, str]
    notes: list[str] = field(default_factory=list[str])
    assumed: set[str] = field(default_factory=set[str])  # conditions that the form relies on
    carried: list[Quantity] = field(default_factory=list[Quantity])

    @property
    def rank(self) -> int:
        """How many dimensions the group's blocks have."""
        return self.group.constructs[0].rank

    @property
    def moving(self) -> set[int]:
        """The dimensions in which the pointer is advanced."""
        return {dim for advance in self.group.advances for dim in range(self.rank) if not is_zero(advance.deltas[dim])}

    @property
    def uses(self) -> list[cst.CSTNode]:
        """The statements that read or write through the pointers, or give one to another variable."""
        calls = {construct.call for construct in self.group.constructs}
        copies = [each.statement for each in self.group.definitions if each.value not in calls]
        return [*(access.statement for access in self.group.accesses), *copies]

    def env(self, at: cst.CSTNode) -> Env:
        """What reaches a statement."""
        return self.pointers.flow.before[at]

    # Quantities.

    def source_of(self, quantity: Quantity, construct: Construct) -> cst.BaseExpression:
        """The expression that the constructor gives for a quantity."""
        parts = {
            "offset": construct.offsets,
            "range": construct.offsets,
            "extent": construct.shape,
            "stride": construct.strides,
        }
        return parts[quantity.kind][quantity.dim]

    def text_at(self, quantity: Quantity, construct: Construct) -> str:
        """The value of a quantity where the pointer is made."""
        node = self.source_of(quantity, construct)
        if quantity.kind != "range":
            return one_line(node)
        size = one_line(construct.block_shape[quantity.dim])
        indices = f"{self.language}.arange(0, {size}).to({self.language}.int64)"
        return indices if constant_int(node) == 0 else f"{operand(node)} + {indices}"

    def needs_variable(self, quantity: Quantity, uses: Sequence[cst.CSTNode]) -> bool:
        """Whether a quantity cannot be written again at all of these statements."""
        if quantity.kind in ("offset", "range") and quantity.dim in self.moving:
            return True
        if quantity.kind == "range":
            return True
        texts = {one_line(self.source_of(quantity, construct)) for construct in self.group.constructs}
        if len(texts) > 1:
            return True
        return not all(
            self.holds(self.source_of(quantity, construct), construct, use)
            for construct in self.group.constructs
            for use in uses
        )

    def holds(self, node: cst.BaseExpression, construct: Construct, use: cst.CSTNode) -> bool:
        """Whether an expression has the value at a use of the pointer that it had where the pointer was made."""
        if construct.statement is use or self.bounds.is_stable(node, construct.statement, use):
            return True
        return self._is_from_this_iteration(use) and self.bounds.reads_the_same(node, construct.statement, use)

    def _is_from_this_iteration(self, use: cst.CSTNode) -> bool:
        """Whether the pointers that reach a use were made where they are, not copied, and not before a loop's end."""
        calls = {construct.call for construct in self.group.constructs}
        if not all(each.value in calls for each in self.group.definitions):
            return False
        own = {each.index for each in self.group.definitions}
        reach = [each for found in self.env(use).values() for each in found if each[0] in own]
        return not any(carried for _, carried in reach)

    def branch(self, uses: Sequence[cst.CSTNode]) -> cst.If | None:
        """The branch on a constant whose two sides make the pointer, if its test has the same value at all uses."""
        group, flow = self.group, self.pointers.flow
        if len(group.constructs) != 2 or len(group.definitions) != 2 or group.advances or group.choices:
            return None
        parents = flow.parents[group.constructs[0].statement]
        branch = parents[-1] if parents else None
        if not isinstance(branch, cst.If) or not isinstance(branch.orelse, cst.Else):
            return None
        suites = [flow.blocks[each.statement][-1][0] for each in group.constructs]
        names = {each.name for each in group.definitions}
        if suites != [branch.body, branch.orelse.body] or len(names) > 1:
            return None
        fixed = self.bounds.is_constant(branch.test, flow.before[branch])
        same = all(self.holds(branch.test, each, use) for each in group.constructs for use in uses)
        return branch if fixed and same else None

    def variable(self, quantity: Quantity, name: str) -> str:
        """The name of a quantity of the pointer called `name`."""
        alone = self.rank == 1 or (quantity.kind == "offset" and len(self.moving) == 1 and quantity.dim in self.moving)
        suffix = "" if alone else f"_{quantity.dim}"
        return self.namer.name(self.group, name, PREFIX[quantity.kind], suffix)

    def fixed(self, quantity: Quantity, name: str) -> str | None:
        """The number that a quantity of a variable always is, though other pointers of the group move."""
        every = [each for each in self.pointers.flow.definitions if each.name == name]
        construct = self.pointers.construct_of(every[0].value) if len(every) == 1 and every[0].value else None
        if construct is None or quantity.kind == "range":
            return None
        node = self.source_of(quantity, construct)
        return code_of(node) if constant_int(node) is not None else None

    def value(self, quantity: Quantity, node: cst.BaseExpression, *, inline: bool = False) -> str:
        """A quantity of the pointer that an expression gives."""
        if isinstance(node, cst.Name):
            if quantity in self.carried:
                fixed = self.fixed(quantity, node.value)
                return self.variable(quantity, node.value) if fixed is None else fixed
            return self.text_at(quantity, self.group.constructs[0])
        if isinstance(node, cst.IfExp):
            then, other = self.value(quantity, node.body), self.value(quantity, node.orelse)
            return then if then == other else f"({then} if {code_of(node.test)} else {other})"
        construct = self.pointers.construct_of(node)
        if construct is not None:
            return self.text_at(quantity, construct)
        advance = self.advance_of(node)
        inner = self.value(quantity, advance.pointer)
        delta = advance.deltas[quantity.dim]
        if quantity.kind not in ("offset", "range") or is_zero(delta):
            return inner
        negative = constant_int(delta)
        if negative is not None and negative < 0:
            return f"{inner} - {-negative}"
        return operand(delta) if inner == "0" else f"{inner} + {operand(delta)}"

    def advance_of(self, node: cst.CSTNode) -> Advance:
        """The advance that a call is."""
        return next(advance for advance in self.group.advances if advance.call is node)

    # Statements that keep the variables.

    def assignments(self, definition: Definition) -> list[str]:
        """What to write before a definition of the pointer."""
        assert definition.value is not None
        node, name = definition.value, definition.name
        if code_of(node) == "None":
            return []
        lines: list[str] = []
        advance = next((each for each in self.group.advances if each.call is node), None)
        moves_itself = advance is not None and isinstance(advance.pointer, cst.Name) and advance.pointer.value == name
        for quantity in self.carried:
            if self.fixed(quantity, name) is not None:
                continue
            own = self.variable(quantity, name)
            if moves_itself:
                assert advance is not None
                lines += self._moved(own, quantity, advance)
                continue
            value = self.value(quantity, node)
            if value != own:
                lines.append(f"{own} = {value}")
        return lines

    def _moved(self, own: str, quantity: Quantity, advance: Advance) -> list[str]:
        delta = advance.deltas[quantity.dim]
        if quantity.kind not in ("offset", "range") or is_zero(delta):
            return []
        value = constant_int(delta)
        if value is not None and value < 0:
            return [f"{own} -= {-value}"]
        if isinstance(delta, cst.UnaryOperation) and isinstance(delta.operator, cst.Minus) and not delta.lpar:
            return [f"{own} -= {factor(delta.expression)}"]
        return [f"{own} += {one_line(delta)}"]

    def pairs(self, definition: Definition) -> list[tuple[str, str]]:
        """The same as targets and values, for an assignment of several names at once."""
        assert definition.value is not None
        return [
            (self.variable(quantity, definition.name), self.value(quantity, definition.value))
            for quantity in self.carried
            if self.fixed(quantity, definition.name) is None
        ]
