"""Rule 11, and whatever no descriptor can do: a group of block pointers as masked tensors of pointers.

Level: source text. Element (i, j) is at base + (offset_0 + i) * stride_0 + (offset_1 + j) * stride_1, in 64 bits as in
a block pointer; the mask holds the dimensions of the boundary check, from below only where an offset may be negative.
"""

from __future__ import annotations

from mltriton.tools.migrate.classify.bounds import is_zero
from mltriton.tools.migrate.classify.group import Access, Construct
from mltriton.tools.migrate.read.syntax import code_of, cst, factor, one_line, operand
from mltriton.tools.migrate.rewrite.edits import Replacement, constantly, expression
from mltriton.tools.migrate.rewrite.form import Form
from mltriton.tools.migrate.rewrite.values import Context, Quantity

KEPT = ("cache_modifier", "eviction_policy", "volatile")


class PointerForm(Form):
    """Writes one group. A pointer that moves is its base; one that stays is the whole tensor of pointers."""

    element_type = "dtype.element_ty"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        group = context.group
        self.moves = bool(group.advances)
        uses = context.uses if self.moves else [access.statement for access in group.accesses]
        checked = {dim for access in group.accesses for dim in access.checked}
        wanted = [Quantity("range", dim) for dim in range(context.rank) if self.moves or dim in checked]
        wanted += [Quantity("extent", dim) for dim in sorted(checked)]
        if self.moves:
            wanted += [Quantity("stride", dim) for dim in range(context.rank)]
        context.carried = [quantity for quantity in wanted if context.needs_variable(quantity, uses)]

    def made(self, construct: Construct) -> str:
        """The base, or the whole tensor of pointers."""
        base = operand(construct.base)
        return base if self.moves else self._address(base, construct, None)

    def constructor(self, construct: Construct) -> Replacement:
        """The same as an assignment's value, with the ranges that have variables."""
        owners = [each for each in self.context.group.definitions if each.value is construct.call]
        alone = len(owners) == 1 and isinstance(owners[0].statement, cst.Assign) and _is_plain(owners[0].statement)
        name = owners[0].name if alone else None
        text = self.main(construct.call) if self.moves else None
        whole = text or self._address(operand(construct.base), construct, name)
        return constantly(whole if alone else factor(cst.parse_expression(whole)))

    def _address(self, base: str, construct: Construct, name: str | None) -> str:
        terms = [base]
        for dim in range(self.context.rank):
            quantity = Quantity("range", dim)
            known = name is not None and quantity in self.context.carried
            indices = (
                self.context.variable(quantity, name or "") if known else self.context.text_at(quantity, construct)
            )
            terms.append(self._term(indices, dim, one_line(construct.strides[dim])))
        return " + ".join(terms)

    def _term(self, indices: str, dim: int, stride: str) -> str:
        """What one dimension adds to the address; `stride` is an expression."""
        placed = self._spread(indices, dim)
        if stride == "1":
            return placed
        closed = self.context.rank > 1 or placed.isidentifier()
        return f"{placed if closed else f'({placed})'} * {factor(cst.parse_expression(stride))}"

    def _spread(self, text: str, dim: int) -> str:
        """A range along one dimension, of the block's rank."""
        rank = self.context.rank
        if rank == 1:
            return text
        index = ", ".join(":" if each == dim else "None" for each in range(rank))
        return f"{factor(cst.parse_expression(text))}[{index}]"

    # Accesses.

    def access(self, access: Access) -> Replacement:
        """The same function with the tensor of pointers and a mask for the boundary check."""
        pointer = self._moved_address(access) if self.moves else self.main(access.pointer)
        arguments = [pointer]
        names = list(access.arguments)
        mask = self._mask(access)
        padding = ', other=float("nan")' if access.padding == "nan" else ", other=0.0"
        tail = f", mask={mask}{padding if access.kind == 'load' else ''}" if mask else ""

        def build(updated: cst.Call) -> cst.BaseExpression:
            found = dict(zip(names, updated.args, strict=True))
            parts = [*arguments, *([code_of(found["value"].value)] if "value" in found else [])]
            kept = "".join(f", {name}={code_of(found[name].value)}" for name in KEPT if access.has(name))
            return expression(f"{code_of(updated.func)}({', '.join(parts)}{tail}{kept})", updated)

        return build

    def _moved_address(self, access: Access) -> str:
        terms = [self.main(access.pointer)]
        for dim in range(self.context.rank):
            indices = self.context.value(Quantity("range", dim), access.pointer)
            stride = self.context.value(Quantity("stride", dim), access.pointer)
            terms.append(self._term(indices, dim, stride))
        return " + ".join(terms)

    def _mask(self, access: Access) -> str:
        parts = [
            part for dim in sorted(access.checked) if dim < self.context.rank for part in self._checks(access, dim)
        ]
        if len(parts) == 1 and self.context.rank == 1:
            return parts[0].removeprefix("(").removesuffix(")")
        return " & ".join(parts)

    def _checks(self, access: Access, dim: int) -> list[str]:
        extent = self.context.value(Quantity("extent", dim), access.pointer)
        if self._is_inside(dim):
            return []
        indices = self._indices(access, dim)
        below = [] if self._is_natural(dim) else [f"({indices} >= 0)"]
        return [*below, f"({indices} < {operand(cst.parse_expression(extent))})"]

    def _indices(self, access: Access, dim: int) -> str:
        return self._spread(self.context.value(Quantity("range", dim), access.pointer), dim)

    def _is_inside(self, dim: int) -> bool:
        still = dim not in self.context.moving
        return still and all(self.context.bounds.is_inside(each, dim) for each in self.context.group.constructs)

    def _is_natural(self, dim: int) -> bool:
        """Whether no offset in this dimension can be negative."""
        bounds, group, env = self.context.bounds, self.context.group, self.context.env
        arrays: set[str] = set()
        starts = [bounds.is_index(each.offsets[dim], env(each.statement), arrays) for each in group.constructs]
        steps = [
            is_zero(each.deltas[dim]) or bounds.is_index(each.deltas[dim], env(each.statement), arrays)
            for each in group.advances
        ]
        natural = all(starts) and all(steps)
        for array in sorted(arrays) if natural else ():
            text = f"what {array} holds is taken for indices, which are not negative"
            self.context.assumed |= {text}
        return natural


def _is_plain(node: cst.Assign) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name)
