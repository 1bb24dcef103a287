"""What a report says of one group: what was done, how fast it will be, or why it was left.

Level: source text.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice, annotated_strides
from mltriton.tools.migrate.classify.group import Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, names_in, walk
from mltriton.tools.migrate.result import Note, Result, Site
from mltriton.tools.migrate.rewrite.values import Context


def note_group(
    source: Source, pointers: Pointers, group: Group, choice: Choice, context: Context | None, result: Result
) -> None:
    """Add the notes and counts of a group."""
    line = source.line(group.first)
    name = _name(group)
    result.counts["sites"] += group.sites
    if context is None:
        result.counts["unresolved"] += group.sites
        for where, text in group.problems or [(group.first, "; ".join(choice.reasons))]:
            result.notes.append(Note(source.line(where), "unresolved", f"{name}: {text}"))
        return
    _count(group, choice, result)
    result.sites.setdefault(pointers.function.name.value, []).extend(_sites(source, group))
    result.notes.append(Note(line, "change", f"{name}: {'; '.join(_changes(group, choice, context))}"))
    result.notes += [Note(line, "change", f"{name}: {text}") for text in context.notes]
    conditions = (*choice.conditions, *sorted(context.assumed))
    result.notes += [Note(line, "condition", f"{name}: {text}") for text in conditions]
    if choice.form == "descriptor":
        text, detail = performance(source, pointers, group, choice)
        result.notes.append(Note(line, "performance", f"{name}: {text}", detail=detail))


def _sites(source: Source, group: Group) -> Iterator[Site]:
    calls = [(each.call, "make_block_ptr") for each in group.constructs]
    calls += [(each.call, "advance") for each in group.advances]
    for call, kind in [*calls, *((each.call, each.kind) for each in group.accesses)]:
        start = source.positions[call].start
        yield Site(start.line, start.column, kind)


def _name(group: Group) -> str:
    names = dict.fromkeys(definition.name for definition in group.definitions)
    return ", ".join(f"`{name}`" for name in names) or f"`{code_of(group.first).partition('(')[0]}(...)`"


def _count(group: Group, choice: Choice, result: Result) -> None:
    result.counts[choice.form] += group.sites
    result.counts[f"make_block_ptr -> {choice.form}"] += len(group.constructs)
    result.counts["advance removed"] += len(group.advances)
    for access in group.accesses:
        result.counts[f"{access.kind} -> {choice.form}"] += 1
    if choice.form == "descriptor":
        result.counts["transposed"] += len(group.constructs) if choice.is_transposed else 0
        result.counts["folded into the base"] += len(group.constructs) if choice.folded else 0
    else:
        for reason in choice.reasons:
            result.counts[f"pointer: {_class(reason)}"] += len(group.constructs)


# Reasons name strides and dimensions; counts are by what they have in common.
_CLASSES = {
    "no stride of": "no stride is known to be 1",
    "is not checked": "a dimension is not checked",
    "bytes: a descriptor": "rows below 16 bytes",
    "may have fewer than 16 bytes": "rows that may be below 16 bytes",
    "not known to be a multiple": "alignment unknown",
}


def _class(reason: str) -> str:
    return next((text for mark, text in _CLASSES.items() if mark in reason), reason)


def _changes(group: Group, choice: Choice, context: Context) -> Iterator[str]:
    if choice.form == "pointer":
        yield f"rewritten to masked pointers, as {'; '.join(choice.reasons)}"
        yield "stays on the pointer path: no 2D block I/O"
        return
    yield f"replaced {len(group.constructs)} make_block_ptr with make_tensor_descriptor"
    if choice.is_transposed:
        yield "described as it lies in memory, blocks are transposed with .T"
    if choice.folded:
        yield f"dimension {', '.join(map(str, choice.folded))} folded into the base"
    if choice.padding:
        yield "padding_option='nan' moved to the constructor"
    if group.advances:
        yield f"removed {len(group.advances)} tl.advance: offsets run as integers"
    elif context.carried:
        yield "kept offsets in variables"


# Performance: the rules of 2D block I/O as far as the text shows them.


def performance(source: Source, pointers: Pointers, group: Group, choice: Choice) -> tuple[str, str]:
    """Whether a descriptor is on the 2D block path, or why not, in one line; and what is known beside."""
    reasons = list(_reasons(source, pointers, group, choice))
    if not reasons:
        pitch = ", ".join(dict.fromkeys(code_of(each.strides[choice.permutation[0]]) for each in group.constructs))
        use = "feeds a dot" if any(access.kind == "load" for access in group.accesses) else "stores a block"
        text = f"on the 2D block path if its pitch {pitch} is a multiple of 16 bytes"
        return text, f"2D, last stride 1, made where it is used, {use}, pads with zero"
    return f"not on the 2D block path: {reasons[0]}", "; ".join(reasons[1:])


def _reasons(source: Source, pointers: Pointers, group: Group, choice: Choice) -> Iterator[str]:
    if len(choice.permutation) == 1:
        yield "a 1D descriptor, which the hardware does not load as a 2D block today"
    elif len(choice.permutation) > 2:
        yield "its rank is above 2"
    if choice.padding:
        yield "it pads with nan"
    if len(choice.permutation) == 2:
        for construct in group.constructs:
            pitch = constant_int(construct.strides[choice.permutation[0]])
            if pitch is not None and pitch % 2:
                yield f"its pitch of {pitch} elements is no multiple of 16 bytes"
    loads = [access for access in group.accesses if access.kind == "load"]
    fed = {_feeds_dot(source, pointers, access.call, access.statement) for access in loads}
    if loads and "yes" not in fed:
        yield min(fed - {"yes"}, key=len)


def _feeds_dot(source: Source, pointers: Pointers, call: cst.Call, statement: cst.CSTNode) -> str:
    """`yes` when a loaded block gets to a dot as an operand, through assignments; otherwise why not."""
    reached: set[str] = set()
    for definition in pointers.flow.definitions:
        if definition.statement is statement and definition.value is not None and call in walk(definition.value):
            reached.add(definition.name)
    dots = [node for node in walk(pointers.function) if source.callee(node) in ("dot", "dot_scaled")]
    if any(call in walk(arg) for dot in dots for arg in _operands(dot)):
        return "yes"
    while True:
        before = len(reached)
        for definition in pointers.flow.definitions:
            if (
                definition.value is not None
                and _elementwise(definition.value, source)
                and (names_in(definition.value) & reached)
            ):
                reached.add(definition.name)
        if len(reached) == before:
            break
    if any(names_in(arg.value) & reached for dot in dots for arg in _operands(dot)):
        return "yes"
    for node in walk(pointers.function):
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value in dir(builtins):
            continue
        if any(names_in(arg.value) & reached for arg in node.args):
            return f"what it loads is passed to {code_of(node.func)}, and whether that feeds a tl.dot is not known"
    return "what it loads does not feed a tl.dot"


def _operands(dot: cst.CSTNode) -> list[cst.Arg]:
    assert isinstance(dot, cst.Call)
    return list(dot.args[:2])


def _elementwise(node: cst.BaseExpression, source: Source) -> bool:
    """Whether an expression keeps a block in its shape: a reduction or a dot makes another one of it."""
    return not any(source.callee(each) in ("dot", "sum", "max", "min", "reduce", "load") for each in walk(node))


def note_annotations(source: Source, pointers: Pointers, bounds: Bounds, result: Result) -> None:
    """Rule 10, which reports and changes nothing: add notes of integer annotations of contiguous strides."""
    seen: set[str] = set()
    for group in pointers.groups:
        for annotation, parameter in annotated_strides(group, bounds):
            name = parameter.name.value
            if name not in seen:
                seen.add(name)
                text = (
                    f"flagged `{name}: {annotation}`: an annotated contiguous stride is never the constant 1; "
                    "leave the annotation out or make it tl.constexpr"
                )
                result.notes.append(Note(source.line(parameter), "annotation", text))
