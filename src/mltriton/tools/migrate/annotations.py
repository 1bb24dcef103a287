"""Rules 9 and 10, which report and change nothing: integer annotations of contiguous strides, masks of other loads.

Level: source text.
"""

from __future__ import annotations

from mltriton.tools.migrate.bounds import Bounds
from mltriton.tools.migrate.choice import annotated_strides
from mltriton.tools.migrate.flow import Env
from mltriton.tools.migrate.parse import Source
from mltriton.tools.migrate.pointers import Pointers
from mltriton.tools.migrate.result import Note, Result
from mltriton.tools.migrate.syntax import code_of, cst, names_in, walk

_BOUND = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


def note_annotations(source: Source, pointers: Pointers, bounds: Bounds, result: Result) -> None:
    """Add the notes of one function that has block pointers."""
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
    for node, at in _masked_loads(source, pointers):
        kind = classify(source, pointers, bounds, node, at)
        result.counts[f"mask: {kind}"] += 1
        result.notes.append(Note(source.line(node), "mask", _MASK_TEXT[kind]))


_MASK_TEXT = {
    "boundary": "masked load of pointers, left: its mask is a bound, so a descriptor's shape could take its place",
    "data-dependent": "masked load of pointers, left: its mask depends on data; with a descriptor it is a tl.where",
    "mixed": "masked load of pointers, left: a part of its mask is a bound; the rest would be a tl.where",
}


def _masked_loads(source: Source, pointers: Pointers) -> list[tuple[cst.Call, cst.CSTNode]]:
    """Loads with a mask of blocks, and their statements."""
    found: list[tuple[cst.Call, cst.CSTNode]] = []
    for statement in pointers.flow.before:
        if isinstance(statement, cst.If | cst.For | cst.While | cst.With | cst.FunctionDef | cst.ClassDef):
            continue
        for node in walk(statement):
            if source.callee(node) == "load":
                assert isinstance(node, cst.Call)
                arguments = source.arguments(node) or {}
                if "mask" in arguments and code_of(arguments["mask"].value) != "None":
                    found.append((node, statement))
    return found


def classify(source: Source, pointers: Pointers, bounds: Bounds, call: cst.Call, at: cst.CSTNode) -> str:
    """What a mask is: `boundary`, `data-dependent` or `mixed`."""
    arguments = source.arguments(call) or {}
    env = pointers.flow.before[at]
    parts = _conjuncts(arguments["mask"].value, pointers, env, 0)
    ranged = [_is_bound(part, pointers, at, source) for part in parts]
    if all(ranged):
        return "boundary"
    return "mixed" if any(ranged) else "data-dependent"


def _conjuncts(node: cst.BaseExpression, pointers: Pointers, env: Env, depth: int) -> list[cst.BaseExpression]:
    """The parts of a mask that are joined by `&`, through variables that are assigned once."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        return [part for side in (node.left, node.right) for part in _conjuncts(side, pointers, env, depth)]
    if isinstance(node, cst.Subscript):
        return _conjuncts(node.value, pointers, env, depth)
    if isinstance(node, cst.Name) and depth < 4:
        reach = env.get(node.value, frozenset())
        values = [pointers.flow.definitions[index].value for index, _ in reach]
        if len(values) == 1 and values[0] is not None:
            return _conjuncts(values[0], pointers, env, depth + 1)
    return [node]


def _is_bound(node: cst.BaseExpression, pointers: Pointers, at: cst.CSTNode, source: Source) -> bool:
    """Whether a condition compares a range with a number that is the same for the whole block."""
    if not (isinstance(node, cst.Comparison) and len(node.comparisons) == 1):
        return False
    comparison = node.comparisons[0]
    if not isinstance(comparison.operator, _BOUND):
        return False
    sides = (_has_range(node.left, pointers, at, source, 0), _has_range(comparison.comparator, pointers, at, source, 0))
    return sides[0] != sides[1] and "loaded" not in sides


def _has_range(node: cst.CSTNode, pointers: Pointers, at: cst.CSTNode, source: Source, depth: int) -> bool | str:
    """Whether an expression contains a range of places; `loaded` where it contains a block from memory."""
    callees = {source.callee(each) for each in walk(node)}
    if "arange" in callees:
        return True
    if "load" in callees:
        return "loaded"
    if depth > 4 or at not in pointers.flow.before:
        return False
    found: bool | str = False
    for name in names_in(node):
        for definition in pointers.flow.reaching(name, at):
            if definition.value is not None:
                inner = _has_range(definition.value, pointers, definition.statement, source, depth + 1)
                found = inner or found
    return found
