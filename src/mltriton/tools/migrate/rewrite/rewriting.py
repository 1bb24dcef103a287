"""Rewrite one group of block pointers: its form, and the assignments that carry it.

Level: source text. `tl.advance` of a variable into itself disappears; the variables of its quantities move instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice
from mltriton.tools.migrate.classify.group import Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import Definition
from mltriton.tools.migrate.read.syntax import code_of, cst, elements
from mltriton.tools.migrate.rewrite.descriptor_form import DescriptorForm
from mltriton.tools.migrate.rewrite.edits import Edits, Replacement, constantly
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.pointer_form import PointerForm
from mltriton.tools.migrate.rewrite.values import Context

_POINTER_NAME = re.compile(r"_(block_ptr|blk_ptr|block_pointer|blockptr|bptr|ptrs?)$")


def rewrite_group(
    pointers: Pointers, bounds: Bounds, group: Group, choices: Mapping[Group, Choice], namer: Namer, edits: Edits
) -> Context:
    """Add the edits that migrate a group; returns what is known of it for the notes."""
    choice = choices[group]
    language = pointers.source.language() or ""
    context = Context(pointers, bounds, group, choice, namer, language, {})
    context.renamed = _renamed(context, choices)
    form = DescriptorForm(context) if choice.form == "descriptor" else PointerForm(context)
    form.edit(edits)
    for construct in group.constructs:
        for condition in choice.asserted:
            text = f"{language}.static_assert({condition})"
            if text not in edits.before.get(construct.statement, ()):
                edits.insert(construct.statement, [text])
    for advance in group.advances:
        text = form.main(advance.pointer)
        edits.replace[advance.call] = constantly(text)
    for statement in dict.fromkeys(definition.statement for definition in group.definitions):
        carry(context, edits, statement)
    _rename(context, edits)
    return context


def carry(context: Context, edits: Edits, statement: cst.CSTNode) -> None:
    """Write what keeps the quantities before a statement that gives a pointer of the group its value."""
    own = [definition for definition in context.group.definitions if definition.statement is statement]
    copies = [each for each in own if not _moves_itself(context, each)]
    if len(copies) > 1 and any(isinstance(each.value, cst.Name) for each in copies):
        pairs = [pair for each in copies for pair in context.pairs(each)]
        if pairs:
            targets, values = zip(*pairs, strict=True)
            edits.insert(statement, [f"{', '.join(targets)} = {', '.join(values)}"])
        own = [each for each in own if each not in copies]
    for definition in own:
        edits.insert(statement, context.assignments(definition))
    parts = _values(statement)
    if parts and all(_is_dropped(context, edits, part, statement) for part in parts):
        edits.remove.add(statement)


def _values(statement: cst.CSTNode) -> list[cst.BaseExpression]:
    value = statement.value if isinstance(statement, cst.Assign | cst.AnnAssign) else None
    if value is None:
        return []
    return elements(value) or [value]


def _moves_itself(context: Context, definition: Definition) -> bool:
    advance = next((each for each in context.group.advances if each.call is definition.value), None)
    return advance is not None and isinstance(advance.pointer, cst.Name) and advance.pointer.value == definition.name


def _is_dropped(context: Context, edits: Edits, part: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether a part of an assignment only moves a pointer, in this group or in one written before."""
    for definition in context.pointers.flow.definitions:
        if definition.statement is statement and definition.value is part:
            pointer = (
                context.pointers.source.arguments(part)
                if isinstance(part, cst.Call) and (context.pointers.source.callee(part) == "advance")
                else None
            )
            moved = pointer["base"].value if pointer is not None and "base" in pointer else None
            return isinstance(moved, cst.Name) and moved.value == definition.name and part in edits.replace
    return False


# Names.


def _renamed(context: Context, choices: Mapping[Group, Choice]) -> dict[str, str]:
    """New names for the variables of a group.

    `a_block_ptr` that holds a descriptor becomes `a_desc`. A variable of which another group with another form reaches
    an enclosing loop or branch gets a name of its own: a loop carries one type.
    """
    group = context.group
    found: dict[str, str] = {}
    flow = context.pointers.flow
    for name in dict.fromkeys(definition.name for definition in group.definitions):
        every = [definition for definition in flow.definitions if definition.name == name]
        foreign = [definition for definition in every if definition not in group.definitions]
        if not foreign and context.choice.form == "descriptor" and _POINTER_NAME.search(name):
            found[name] = context.namer.fresh(_POINTER_NAME.sub("_desc", name))
        elif any(_clashes(context, definition, name, choices) for definition in group.definitions):
            found[name] = context.namer.numbered(name)
    return found


def _clashes(context: Context, definition: Definition, name: str, choices: Mapping[Group, Choice]) -> bool:
    flow = context.pointers.flow
    if definition.name != name:
        return False
    for parent in flow.parents[definition.statement]:
        for index, _ in flow.before[parent].get(name, ()):
            other = flow.definitions[index]
            group = next((each for each in choices if other in each.definitions), None)
            if (
                group is not None
                and group is not context.group
                and _signature(group, choices) != _signature(context.group, choices)
            ):
                return True
    return False


def _signature(group: Group, choices: Mapping[Group, Choice]) -> object:
    choice = choices[group]
    return (
        choice.form,
        choice.permutation,
        bool(group.advances),
        [code_of(part) for part in group.constructs[0].block_shape],
    )


def _rename(context: Context, edits: Edits) -> None:
    """Rename targets, and the names in assignments that copy a pointer."""
    if not context.renamed:
        return
    for definition in context.group.definitions:
        new = context.renamed.get(definition.name)
        if new is not None and definition.target is not None:
            edits.replace[definition.target] = _to_name(new)
        for node in _copied(definition.value):
            if node.value in context.renamed:
                edits.replace[node] = _to_name(context.renamed[node.value])


def _to_name(name: str) -> Replacement:
    def rename(updated: cst.Name) -> cst.Name:
        return updated.with_changes(value=name)

    return rename


def _copied(node: cst.BaseExpression | None) -> list[cst.Name]:
    if isinstance(node, cst.Name):
        return [node]
    if isinstance(node, cst.IfExp):
        return [*_copied(node.body), *_copied(node.orelse)]
    return []
