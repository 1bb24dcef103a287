"""The quantities of a block pointer beside its descriptor or pointer, carried through assignments as variables.

Level: source text. A quantity (an offset, an extent, ...) that every use can write as the constructor wrote it is
written there again; any other gets a variable wherever the pointer gets a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.bounds import Bounds, is_zero
from mltriton.tools.migrate.choice import Choice
from mltriton.tools.migrate.flow import Definition, Env
from mltriton.tools.migrate.naming import Namer
from mltriton.tools.migrate.pointers import Advance, Construct, Group, Pointers
from mltriton.tools.migrate.syntax import code_of, constant_int, cst, factor, one_line, operand

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
    carried: list[Quantity] = field(default_factory=list[Quantity])

    @property
    def rank(self) -> int:
        """How many dimensions the group's blocks have."""
        return self.group.constructs[0].rank

    @property
    def moving(self) -> set[int]:
        """The dimensions in which the pointer is advanced."""
        return {dim for advance in self.group.advances for dim in range(self.rank) if not is_zero(advance.deltas[dim])}

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
        places = f"{self.language}.arange(0, {size}).to({self.language}.int64)"
        return places if constant_int(node) == 0 else f"{operand(node)} + {places}"

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
            construct.statement is use
            or self.bounds.is_stable(self.source_of(quantity, construct), construct.statement, use)
            for construct in self.group.constructs
            for use in uses
        )

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
