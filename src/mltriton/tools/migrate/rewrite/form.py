"""What the forms of a group have in common: every constructor, access and element type is written anew.

Level: source text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mltriton.tools.migrate.classify.group import Access, Construct
from mltriton.tools.migrate.read.syntax import code_of, cst
from mltriton.tools.migrate.rewrite.edits import Edits, Replacement, constantly
from mltriton.tools.migrate.rewrite.values import Context


class Form(ABC):
    """Writes one group. `element_type`: what `p.dtype.element_ty` of a block pointer is called."""

    element_type: str

    def __init__(self, context: Context) -> None:
        self.context = context

    def edit(self, edits: Edits) -> None:
        """Add the edits of constructors, accesses and element types."""
        for construct in self.context.group.constructs:
            edits.replace[construct.call] = self.constructor(construct)
        for access in self.context.group.accesses:
            edits.replace[access.call] = self.access(access)
        for attribute in self.context.group.attributes:
            edits.replace[attribute.node] = constantly(f"{self.main(attribute.pointer)}.{self.element_type}")

    def main(self, node: cst.BaseExpression) -> str:
        """The descriptor or pointer that an expression gives."""
        if isinstance(node, cst.Name):
            return self.context.renamed.get(node.value, node.value)
        if isinstance(node, cst.IfExp):
            return f"({self.main(node.body)} if {code_of(node.test)} else {self.main(node.orelse)})"
        construct = self.context.pointers.construct_of(node)
        return self.made(construct) if construct is not None else self.main(self.context.advance_of(node).pointer)

    @abstractmethod
    def made(self, construct: Construct) -> str:
        """What a constructor makes, as part of another expression."""

    @abstractmethod
    def constructor(self, construct: Construct) -> Replacement:
        """What stands in a constructor's place."""

    @abstractmethod
    def access(self, access: Access) -> Replacement:
        """What stands in a load's or store's place."""
