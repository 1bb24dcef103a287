"""Block pointers that move and are passed to a helper or returned: their offsets become variables beside them.

Level: source text, before the other rules. Where such a pointer is passed or returned, it is made anew there from its
base, shape, strides and running offsets, so that the rules for arguments and returned values apply. Guarantees: the
result does the same; only pointers whose every call can change afterwards are touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice
from mltriton.tools.migrate.classify.group import Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.callers import Callers
from mltriton.tools.migrate.read.flow import parameters_of
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, cst, elements, keyword_of, one_line, walk
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.returns import can_return_parts
from mltriton.tools.migrate.rewrite.rewriting import carry
from mltriton.tools.migrate.rewrite.steps import Analyses, Changed, Notes
from mltriton.tools.migrate.rewrite.values import Context, Quantity

# An expression that is a block pointer, and the statement that passes or returns it.
_Use = tuple["cst.BaseExpression", "cst.CSTNode"]


def without_moving_argument(sources: Mapping[str, Source], callers: Callers, notes: Notes) -> Changed | None:
    """Spell out the offsets of one moving pointer that is passed on; None when there is none (more)."""
    analyses = Analyses(sources)
    for path, source in sources.items():
        for pointers, bounds in analyses.of(path):
            for group in pointers.groups:
                uses = list(_passed_on(path, pointers, group, callers, analyses)) if _is_plain(group) else []
                if uses and {id(node) for node, _ in group.problems} == {id(node) for node, _ in uses}:
                    text = _spelled_out(source, pointers, bounds, group, uses)
                    if text is not None:
                        return [], {path: text}
    return None


def _is_plain(group: Group) -> bool:
    """Whether a group is one pointer that moves."""
    return (
        len(group.constructs) == 1
        and bool(group.advances)
        and bool(group.problems)
        and not group.choices
        and group.constructs[0].rank > 0
        and all(len(each.deltas) == group.constructs[0].rank for each in group.advances)
    )


def _passed_on(path: str, pointers: Pointers, group: Group, callers: Callers, analyses: Analyses) -> Iterator[_Use]:
    """Where a group is passed to a helper whose every call passes a known pointer, or is returned to known callers."""
    problems = {id(node) for node, _ in group.problems}
    for at, env in pointers.flow.before.items():
        if isinstance(at, cst.Return) and at.value is not None:
            own = [each for each in elements(at.value) or [at.value] if id(each) in problems]
            if own and can_return_parts(analyses.sources, callers, path, pointers.function, at):
                yield from ((each, at) for each in own)
        if isinstance(at, cst.BaseCompoundStatement):
            continue
        for call in walk(at):
            if not isinstance(call, cst.Call):
                continue
            for arg in call.args:
                known = id(arg.value) in problems and pointers.is_pointer(arg.value, env)
                if known and _takes_known_pointers(path, call, arg, callers, analyses):
                    yield arg.value, at


def _takes_known_pointers(path: str, call: cst.Call, arg: cst.Arg, callers: Callers, analyses: Analyses) -> bool:
    """Whether a helper is only called, each time with a pointer of which the constructor is known in this place."""
    function = callers.called(path, call.func)
    if function is None or not callers.is_only_called(function):
        return False
    names = [each.name.value for each in parameters_of(callers.functions[function])]
    parameter = next((name for name, each in (keyword_of(call, names) or {}).items() if each is arg), None)
    if parameter is None:
        return False
    layouts: set[object] = set()
    for other, source in analyses.sources.items():
        for each in walk(source.module):
            if isinstance(each, cst.Call) and callers.called(other, each.func) == function:
                passed = (keyword_of(each, names) or {}).get(parameter)
                layouts.add(_layout(passed, analyses.of(other)) if passed is not None else None)
    return len(layouts) == 1 and None not in layouts


def _layout(arg: cst.Arg, known: list[tuple[Pointers, Bounds]]) -> object:
    """Rank and order of the only constructor that a passed pointer has."""
    for pointers, _ in known:
        for group in pointers.groups:
            if any(node is arg.value for node, _ in group.problems) and len(group.constructs) == 1:
                (construct,) = group.constructs
                return construct.rank, tuple(map(code_of, construct.order))
    return None


def _spelled_out(source: Source, pointers: Pointers, bounds: Bounds, group: Group, uses: list[_Use]) -> str | None:
    (construct,) = group.constructs
    parts = (construct.base, *construct.shape, *construct.strides, *construct.block_shape)
    for _, at in uses:
        if not all(bounds.is_stable(part, construct.statement, at) for part in parts):
            return None
    language = source.language() or "tl"
    namer = Namer(source.module.code_for_node(pointers.function))
    context = Context(pointers, bounds, group, Choice("unresolved"), namer, language, {})
    statements = [at for _, at in uses]
    every = [Quantity("offset", dim) for dim in range(context.rank)]
    context.carried = [each for each in every if context.needs_variable(each, statements)]
    edits = Edits()
    edits.functions.add(pointers.function)
    moves = not group.accesses
    for advance in group.advances if moves else ():
        edits.replace[advance.call] = constantly(code_of(advance.pointer))
    for statement in dict.fromkeys(each.statement for each in group.definitions):
        carry(context, edits, statement)
    columns = (construct.shape, construct.strides, None, construct.block_shape, construct.order)
    for node, _ in uses:
        offsets = [context.value(each, node) for each in every]
        texts = [[one_line(each) for each in column] if column is not None else offsets for column in columns]
        made = ", ".join(f"({', '.join(each)}{',' if len(each) == 1 else ''})" for each in texts)
        edits.replace[node] = constantly(f"{language}.make_block_ptr({code_of(construct.base)}, {made})")
    if moves:
        edits.remove |= {each.statement for each in group.definitions if isinstance(each.statement, cst.Assign)}
    return edits.apply(source.module)
