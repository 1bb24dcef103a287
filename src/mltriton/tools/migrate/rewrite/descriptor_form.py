"""Rules 1 to 8 and 11: a group of block pointers as tensor descriptors.

Level: source text. The constructor becomes make_tensor_descriptor without offsets and order; steps become additions to
running integers; loads and stores become methods that take the offsets. A tensor that is contiguous along another
dimension than its last is described as it lies in memory and its blocks are transposed; leading dimensions of which a
block has one element go into the base.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mltriton.tools.migrate.classify.group import Access, Construct
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, factor, one_line, operand
from mltriton.tools.migrate.rewrite.edits import Replacement, constantly, expression
from mltriton.tools.migrate.rewrite.form import Form
from mltriton.tools.migrate.rewrite.values import Context, Quantity


class DescriptorForm(Form):
    """Writes one group."""

    element_type = "dtype"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.choice = context.choice
        uses = context.uses
        offsets = [Quantity("offset", dim) for dim in self.choice.permutation]
        context.carried = [quantity for quantity in offsets if context.needs_variable(quantity, uses)]
        self.branch = context.branch(uses) if context.carried else None
        if self.branch is not None and all(
            context.holds(each.offsets[dim], each, use)
            for each in context.group.constructs
            for dim in self.choice.permutation
            for use in uses
        ):
            context.carried = []
        else:
            self.branch = None

    # Constructors.

    def made(self, construct: Construct) -> str:
        """The call itself."""
        return code_of(self.constructor(construct)(construct.call))

    def constructor(self, construct: Construct) -> Callable[[Any], cst.Call]:
        """A make_tensor_descriptor with the same arguments, less offsets and order."""

        def build(updated: cst.Call) -> cst.Call:
            arguments = self.context.pointers.source.arguments(updated) or {}
            kept = [arg for name, arg in arguments.items() if name not in ("offsets", "order")]
            kept = [self._argument(name, arg, construct) for name, arg in arguments.items() if arg in kept]
            last = updated.args[-1]
            if self.choice.padding:
                kept[-1] = kept[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
                kept.append(cst.Arg(cst.SimpleString('"nan"'), keyword=cst.Name("padding_option"), equal=_EQUAL))
            kept[-1] = _closing(kept[-1], last)
            function = cst.parse_expression(f"{self.context.language}.make_tensor_descriptor")
            return updated.with_changes(func=function, args=kept)

        return build

    def _argument(self, name: str, arg: cst.Arg, construct: Construct) -> cst.Arg:
        if name == "base":
            base = self._base(arg.value, construct)
            return arg.with_changes(value=base) if base is not None else arg
        if not isinstance(arg.value, cst.Tuple | cst.List):
            return arg.with_changes(value=cst.Tuple([cst.Element(arg.value, comma=cst.Comma())]))
        order = self.choice.permutation
        if list(order) == list(range(construct.rank)):
            return arg
        old = arg.value.elements
        new = [old[dim].with_changes(comma=old[index].comma) for index, dim in enumerate(order)]
        if len(new) == 1 and isinstance(arg.value, cst.Tuple):
            new[0] = new[0].with_changes(comma=cst.Comma())
        elif len(new) < len(old):
            new[-1] = new[-1].with_changes(comma=old[-1].comma)
        return arg.with_changes(value=arg.value.with_changes(elements=new))

    def _base(self, node: cst.BaseExpression, construct: Construct) -> cst.BaseExpression | None:
        terms: list[str] = []
        for dim in self.choice.folded:
            if constant_int(construct.offsets[dim]) == 0:
                continue
            language = self.context.language
            index = f"{language}.cast({one_line(construct.offsets[dim])}, {language}.int64)"
            stride = construct.strides[dim]
            terms.append(index if constant_int(stride) == 1 else f"{index} * {factor(stride)}")
        return cst.parse_expression(" + ".join([operand(node), *terms])) if terms else None

    # Accesses.

    def _offsets(self, access: Access) -> str:
        dims = self.choice.permutation
        if self.branch is None:
            return f"[{', '.join(self.context.value(Quantity('offset', dim), access.pointer) for dim in dims)}]"
        sides = [[one_line(each.offsets[dim]) for dim in dims] for each in self.context.group.constructs]
        test, pairs = one_line(self.branch.test), list(zip(*sides, strict=True))
        if sum(one != other for one, other in pairs) == 1:
            return f"[{', '.join(one if one == other else f'{one} if {test} else {other}' for one, other in pairs)}]"
        return " else ".join((f"[{', '.join(sides[0])}] if {test}", f"[{', '.join(sides[1])}]"))

    def access(self, access: Access) -> Replacement:
        """The descriptor's method, at the offsets that the pointer has there."""
        return self._load(access) if access.kind == "load" else self._store(access)

    def _load(self, access: Access) -> Replacement:
        text = f"{self.main(access.pointer)}.load({self._offsets(access)})"
        text = self._permuted(text, [self.choice.permutation.index(dim) for dim in sorted(self.choice.permutation)])
        if self.choice.folded:
            shape = self.context.group.constructs[0].block_shape
            text = f"{self.context.language}.reshape({text}, ({', '.join(map(one_line, shape))}))"
        self._hints(access)
        return constantly(text)

    def _store(self, access: Access) -> Replacement:
        start = f"{self.main(access.pointer)}.store({self._offsets(access)}, "
        self._hints(access)
        names = list(access.arguments)

        def build(updated: cst.Call) -> cst.BaseExpression:
            value = updated.args[names.index("value")].value
            return expression(f"{start}{self._stored(value)})", updated)

        return build

    def _stored(self, value: cst.BaseExpression) -> str:
        context = self.context
        shape = context.group.constructs[0].block_shape
        if _is_number(value):
            sizes = ", ".join(one_line(shape[dim]) for dim in self.choice.permutation)
            name = self.main(context.group.definitions[0].target or cst.Name("")) if context.group.definitions else ""
            return f"{context.language}.full(({sizes},), {code_of(value)}, {name}.dtype)"
        text = one_line(value)
        if self.choice.folded:
            dims = [dim for dim in range(context.rank) if dim not in self.choice.folded]
            sizes = ", ".join(one_line(shape[dim]) for dim in dims)
            text = f"{context.language}.reshape({text}, ({sizes}))"
        elif self.choice.is_transposed and len(self.choice.permutation) == 2:
            text = factor(value)
        kept = sorted(self.choice.permutation)
        return self._permuted(text, [kept.index(dim) for dim in self.choice.permutation])

    def _permuted(self, text: str, order: list[int]) -> str:
        """A block with its dimensions in another order."""
        if order == sorted(order):
            return text
        return f"{text}.T" if len(order) == 2 else f"{self.context.language}.permute({text}, {tuple(order)})"

    def _hints(self, access: Access) -> None:
        given = [name for name in ("cache_modifier", "eviction_policy") if access.has(name)]
        if given:
            self.context.notes.append(
                f"dropped {' and '.join(given)}, which a descriptor's {access.kind} does not take"
            )


def _closing(arg: cst.Arg, last: cst.Arg) -> cst.Arg:
    """An argument that is the last now: it ends as the last one did, and keeps the comment on its own line."""
    own = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else None
    comment = own.first_line.comment if isinstance(own, cst.ParenthesizedWhitespace) else None
    space = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else None
    if isinstance(space, cst.ParenthesizedWhitespace) and arg is not last:
        line = space.first_line.with_changes(comment=comment, whitespace=_GAP if comment else _NOTHING)
        comma = cst.Comma(whitespace_after=space.with_changes(first_line=line, empty_lines=[]))
        return arg.with_changes(comma=comma, whitespace_after_arg=last.whitespace_after_arg)
    return arg.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)


_GAP = cst.SimpleWhitespace("  ")
_NOTHING = cst.SimpleWhitespace("")


def _is_number(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return _is_number(node.expression)
    return isinstance(node, cst.Integer | cst.Float)


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
