"""Block pointers that move and are passed to a helper or returned: their offsets become variables beside them.

Level: source text, before the other rules. Where such a pointer is passed or returned, it is made anew there from its
base, shape, strides and running offsets, so that the rules for arguments and returned values apply. Guarantees: the
result does the same; only pointers whose every call can change afterwards are touched.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice
from mltriton.tools.migrate.classify.group import Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.flatten.parts import WORDS, Parts
from mltriton.tools.migrate.flatten.program import Changed, Program
from mltriton.tools.migrate.flatten.returned import can_return_parts
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, cst, elements, one_line, walk
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.rewriting import carry
from mltriton.tools.migrate.rewrite.values import Context, Quantity

# An expression that is a block pointer, and the statement that passes or returns it.
_Use = tuple["cst.BaseExpression", "cst.CSTNode"]


def without_moving_argument(program: Program) -> Changed | None:
    """Spell out the offsets of one moving pointer that is passed on; None when there is none (more)."""
    for path, source in program.sources.items():
        for pointers, bounds in program.of(path):
            for group in pointers.groups:
                uses = list(_passed_on(program, path, pointers, group)) if _is_plain(group) else []
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


def _passed_on(program: Program, path: str, pointers: Pointers, group: Group) -> Iterator[_Use]:
    """Where a group is passed to a helper whose every call passes a known pointer, or is returned to known callers."""
    problems = {id(node) for node, _ in group.problems}
    for at, env in pointers.flow.before.items():
        if isinstance(at, cst.Return) and at.value is not None:
            own = [each for each in elements(at.value) or [at.value] if id(each) in problems]
            if own and can_return_parts(program, path, pointers.function, at):
                yield from ((each, at) for each in own)
        if isinstance(at, cst.BaseCompoundStatement):
            continue
        for call in walk(at):
            for arg in call.args if isinstance(call, cst.Call) else ():
                known = id(arg.value) in problems and pointers.is_pointer(arg.value, env)
                if known and isinstance(call, cst.Call) and _takes_known_pointers(program, path, call, arg):
                    yield arg.value, at


def _takes_known_pointers(program: Program, path: str, call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a helper is only called, each time with a pointer of which the constructor is known in this place."""
    receiver = program.receiver(path, call, arg)
    if receiver is None:
        return False
    function, parameter = receiver
    layouts = {_layout(program, site.path, site.passed.get(parameter)) for site in program.sites(function)}
    return len(layouts) == 1 and None not in layouts


def _layout(program: Program, path: str, arg: cst.Arg | None) -> object:
    """Rank and order of the only constructor that a passed pointer has."""
    groups = [group for pointers, _ in program.of(path) for group in pointers.groups if len(group.constructs) == 1]
    for group in groups:
        if arg is not None and any(node is arg.value for node, _ in group.problems):
            return Parts(group.constructs[0], {}).layout
    return None


def _spelled_out(source: Source, pointers: Pointers, bounds: Bounds, group: Group, uses: list[_Use]) -> str | None:
    (construct,) = group.constructs
    parts = Parts(construct, {name: getattr(construct, name) for name in WORDS})
    still = [construct.base, *(part for name, field in parts.fields.items() if name != "offsets" for part in field)]
    if not all(bounds.is_stable(part, construct.statement, at) for _, at in uses for part in still):
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
    for node, _ in uses:
        offsets = [context.value(each, node) for each in every]
        columns = [offsets if name == "offsets" else list(map(one_line, field)) for name, field in parts.fields.items()]
        edits.replace[node] = constantly(parts.made(language, code_of(construct.base), columns))
    if moves:
        edits.remove |= {each.statement for each in group.definitions if isinstance(each.statement, cst.Assign)}
    return edits.apply(source.module)
