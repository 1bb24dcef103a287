"""Block pointers that are migrated alike: where they are made, moved, read and written.

Level: source text. Plain data about nodes of one function's syntax tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mltriton.tools.migrate.read.flow import Definition
from mltriton.tools.migrate.read.syntax import code_of, cst


@dataclass(frozen=True, eq=False)
class Construct:
    """A call of make_block_ptr; sequences as their elements."""

    call: cst.Call
    statement: cst.CSTNode
    base: cst.BaseExpression
    shape: tuple[cst.BaseExpression, ...]
    strides: tuple[cst.BaseExpression, ...]
    offsets: tuple[cst.BaseExpression, ...]
    block_shape: tuple[cst.BaseExpression, ...]
    order: tuple[cst.BaseExpression, ...]

    @property
    def rank(self) -> int:
        """How many dimensions the block has."""
        return len(self.block_shape)


@dataclass(frozen=True, eq=False)
class Advance:
    """A call of advance."""

    call: cst.Call
    statement: cst.CSTNode
    pointer: cst.BaseExpression
    deltas: tuple[cst.BaseExpression, ...]


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store through a block pointer. `checked`: the dimensions of its boundary check."""

    call: cst.Call
    statement: cst.CSTNode
    kind: str
    pointer: cst.BaseExpression
    arguments: Mapping[str, cst.Arg]
    checked: frozenset[int]
    padding: str

    def has(self, name: str) -> bool:
        """Whether an argument is given and is not None."""
        arg = self.arguments.get(name)
        return arg is not None and code_of(arg.value) != "None"


@dataclass(frozen=True, eq=False)
class Attribute:
    """The element type of a pointer: `p.dtype.element_ty`."""

    node: cst.Attribute
    statement: cst.CSTNode
    pointer: cst.Name


@dataclass(eq=False)
class Group:
    """Block pointers that are migrated alike."""

    constructs: list[Construct] = field(default_factory=list[Construct])
    advances: list[Advance] = field(default_factory=list[Advance])
    definitions: list[Definition] = field(default_factory=list[Definition])
    accesses: list[Access] = field(default_factory=list[Access])
    attributes: list[Attribute] = field(default_factory=list[Attribute])
    choices: list[cst.IfExp] = field(default_factory=list[cst.IfExp])
    problems: list[tuple[cst.CSTNode, str]] = field(default_factory=list[tuple[cst.CSTNode, str]])

    @property
    def first(self) -> cst.CSTNode:
        """The node that stands for the group in notes."""
        nodes = [*(each.call for each in self.constructs), *(each.call for each in self.advances)]
        return nodes[0] if nodes else self.accesses[0].call

    @property
    def sites(self) -> int:
        """How many calls the group consists of."""
        return len(self.constructs) + len(self.advances) + len(self.accesses)

    def __repr__(self) -> str:
        return f"Group({code_of(self.first)})"
