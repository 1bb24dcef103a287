"""Functions that return a block pointer, alone or in a tuple, return what it is made of instead.

Level: source text, before the other rules. The caller makes the pointer: of what it passed itself where the helper made
the pointer of its parameters, of values that the helper returns otherwise. Guarantees: the result is a program of block
pointers that does the same; what is not understood stays and is explained by the analysis of pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.classify.bounds import Bounds, is_zero
from mltriton.tools.migrate.classify.group import Construct
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.callers import Callers, Function
from mltriton.tools.migrate.read.flow import is_assigned, parameters_of
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import (
    children,
    code_of,
    cst,
    elements,
    factor,
    keyword_of,
    names_in,
    one_line,
    operand,
    walk,
)
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.steps import Analyses, Changed, Notes, caller_notes

PARTS = ("shape", "strides", "offsets", "block_shape")


@dataclass(frozen=True)
class Returned:
    """A block pointer at the place where it is returned: its parts, as expressions of the helper."""

    construct: Construct
    parts: Mapping[str, tuple[cst.BaseExpression, ...]]


@dataclass
class Call:
    """A call of the helper whose result is assigned; `targets`: one for each value that is returned."""

    path: str
    call: cst.Call
    statement: cst.Assign
    function: cst.FunctionDef
    targets: tuple[cst.Name, ...]
    passed: Mapping[str, cst.Arg]
    made: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])


def without_returned_pointer(sources: Mapping[str, Source], callers: Callers, notes: Notes) -> Changed | None:
    """Rewrite one helper that returns block pointers; None when there is none (more)."""
    analyses = Analyses(sources)
    for function, helper in callers.functions.items():
        statement = _only_return(helper)
        if statement is None or not may_return_pointer(sources[function.path], helper):
            continue
        known = next((each for each in analyses.of(function.path) if each[0].function is helper), None)
        if known is None or statement not in known[0].flow.before:
            continue
        pointers, bounds = known
        values = (elements(statement.value) if statement.value else None) or [statement.value or cst.Name("None")]
        env = pointers.flow.before[statement]
        returned = [returned_at(value, pointers, bounds, statement) for value in values]
        asked = [pointers.is_pointer(value, env) for value in values]
        if not any(asked) or any(ask and each is None for ask, each in zip(asked, returned, strict=True)):
            continue
        calls = calls_of(sources, callers, function, helper, len(values))
        if calls:
            changed = _rewrite(sources, notes, function, pointers, statement, values, returned, calls)
            if changed is not None:
                return changed
    return None


def can_return_parts(
    sources: Mapping[str, Source], callers: Callers, path: str, helper: cst.FunctionDef, statement: cst.Return
) -> bool:
    """Whether a statement is a helper's only return, and each of its calls assigns what it returns to names."""
    function = Function(path, helper.name.value)
    if callers.functions.get(function) is not helper or _only_return(helper) is not statement:
        return False
    count = len((elements(statement.value) if statement.value else None) or (statement,))
    return bool(calls_of(sources, callers, function, helper, count))


def _only_return(helper: cst.FunctionDef) -> cst.Return | None:
    """The return at the end of a function that has no other."""
    last = helper.body.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if not isinstance(small, cst.Return):
        return None
    others = (node for node in walk(helper.body) if isinstance(node, cst.Return) and node is not small)
    return small if next(others, None) is None else None


def may_return_pointer(source: Source, helper: cst.FunctionDef) -> bool:
    """Whether a function makes or moves block pointers: a quick look before the analysis."""
    return any(source.callee(node) in ("make_block_ptr", "advance") for node in walk(helper.body))


def returned_at(node: cst.BaseExpression, pointers: Pointers, bounds: Bounds, at: cst.CSTNode) -> Returned | None:
    """What a returned pointer is made of; None where it is no pointer, or its parts are not known there."""
    deltas: list[tuple[cst.BaseExpression, ...]] = []
    statement, value = at, node
    for _ in range(16):
        reaching = pointers.flow.reaching(value.value, statement) if isinstance(value, cst.Name) else []
        if isinstance(value, cst.Name):
            if len(reaching) != 1 or reaching[0].value is None or reaching[0].statement not in pointers.flow.before:
                return None
            statement, value = reaching[0].statement, reaching[0].value
            continue
        construct = pointers.construct_of(value)
        if construct is not None:
            parts = {name: getattr(construct, name) for name in PARTS}
            held = [(each, construct.statement) for name in PARTS for each in parts[name]]
            if not construct.rank or not all(
                _holds(bounds, each, first, at) for each, first in [*held, (construct.base, construct.statement)]
            ):
                return None
            offsets = tuple(_sum(each, [step[dim] for step in deltas]) for dim, each in enumerate(construct.offsets))
            return Returned(construct, {**parts, "offsets": offsets})
        advance = next((each for group in pointers.groups for each in group.advances if each.call is value), None)
        if advance is None or not all(_holds(bounds, each, statement, at) for each in advance.deltas):
            return None
        deltas.append(advance.deltas)
        value = advance.pointer
    return None


def _holds(bounds: Bounds, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    return first is second or bounds.is_stable(node, first, second)


def _sum(offset: cst.BaseExpression, deltas: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    terms = [each for each in (offset, *reversed(deltas)) if not is_zero(each)]
    return cst.parse_expression(" + ".join(map(operand, terms)) or "0") if len(terms) != 1 else terms[0]


# Calls.


def calls_of(
    sources: Mapping[str, Source], callers: Callers, function: Function, helper: cst.FunctionDef, count: int
) -> list[Call]:
    """The calls of a helper, if the result of each is assigned to names."""
    names = [each.name.value for each in parameters_of(helper)]
    found: list[Call] = []
    if not callers.is_only_called(function):
        return []
    for path, source in sources.items():
        for caller, call, statement in _statements(source):
            if callers.called(path, call.func) != function:
                continue
            passed = keyword_of(call, names)
            targets = _targets(statement, call, count)
            if passed is None or targets is None or caller is None or not isinstance(statement, cst.Assign):
                return []
            found.append(Call(path, call, statement, caller, targets, passed))
    return found


def _statements(source: Source) -> Iterator[tuple[cst.FunctionDef | None, cst.Call, cst.CSTNode]]:
    """Every call of a file, with the function and the line around it."""
    waiting: list[tuple[cst.CSTNode, cst.FunctionDef | None, cst.CSTNode]] = [(source.module, None, source.module)]
    while waiting:
        node, function, statement = waiting.pop()
        if isinstance(node, cst.FunctionDef):
            function = node
        elif isinstance(node, cst.BaseCompoundStatement | cst.SimpleStatementLine | cst.SimpleStatementSuite):
            statement = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else node
        elif isinstance(node, cst.Call):
            yield function, node, statement
        waiting += [(child, function, statement) for child in reversed(children(node))]


def _targets(statement: cst.CSTNode, call: cst.Call, count: int) -> tuple[cst.Name, ...] | None:
    """The names that a statement gives what a call returns."""
    if not isinstance(statement, cst.Assign) or statement.value is not call or len(statement.targets) > 1:
        return None
    target = statement.targets[0].target
    found = [target] if count == 1 else elements(target) if isinstance(target, cst.Tuple | cst.List) else None
    if found is None or len(found) != count:
        return None
    names = tuple(each for each in found if isinstance(each, cst.Name))
    return names if len(names) == count else None


# Rewriting.


def _rewrite(
    sources: Mapping[str, Source],
    notes: Notes,
    function: Function,
    pointers: Pointers,
    statement: cst.Return,
    values: Sequence[cst.BaseExpression],
    returned: Sequence[Returned | None],
    calls: Sequence[Call],
) -> Changed | None:
    helper = pointers.function
    edits = {path: Edits() for path in (function.path, *(call.path for call in calls))}
    namers = {call.function: Namer(code_of(call.function)) for call in calls}
    given: list[str] = []
    for index, (value, pointer) in enumerate(zip(values, returned, strict=True)):
        if pointer is None:
            given.append(code_of(value))
            for call in calls:
                call.names.append(call.targets[index].value)
            continue
        open_parts = [
            (name, dim)
            for name in PARTS
            for dim, part in enumerate(pointer.parts[name])
            if not is_known(part, helper, calls)
        ]
        if any(name == "block_shape" for name, _ in open_parts):
            return None  # a size of blocks is a constant, and what a function returns is none
        given += [code_of(pointer.construct.base), *(one_line(pointer.parts[name][dim]) for name, dim in open_parts)]
        for call in calls:
            language = sources[call.path].language() or "tl"
            call.made.append(
                _made(call, call.targets[index].value, pointer, open_parts, namers[call.function], language)
            )
    edits[function.path].functions.add(helper)
    assert statement.value is not None
    edits[function.path].replace[statement.value] = constantly(", ".join(given))
    _drop_unused(edits[function.path], pointers, statement)
    lines: dict[str, set[int]] = {}
    for call in calls:
        own = edits[call.path]
        own.functions.add(call.function)
        own.replace[call.statement.targets[0].target] = constantly(", ".join(call.names))
        own.after[call.statement] = call.made
        lines.setdefault(call.path, set()).add(notes.line(sources[call.path], call.call))
    what = f"returns {', '.join(given)} instead of a block pointer"
    found = list(caller_notes(notes.line(sources[function.path], helper), function, what, lines))
    return found, {path: own.apply(sources[path].module) for path, own in edits.items()}


def is_known(part: cst.BaseExpression, helper: cst.FunctionDef, calls: Sequence[Call]) -> bool:
    """Whether every caller can write a part itself: it is made of parameters, and the call changes no argument."""
    parameters = {each.name.value for each in parameters_of(helper)}
    names = names_in(part)
    if not names <= parameters or any(isinstance(each, cst.Call) for each in walk(part)):
        return False
    if any(is_assigned(helper, name) for name in names):
        return False
    for call in calls:
        changed = {target.value for target in call.targets}
        for name in names:
            argument = call.passed.get(name)
            if argument is None or any(isinstance(each, cst.Call | cst.NamedExpr) for each in walk(argument.value)):
                return False
            if names_in(argument.value) & changed:
                return False
    return True


def _made(
    call: Call, target: str, pointer: Returned, open_parts: Sequence[tuple[str, int]], namer: Namer, language: str
) -> str:
    """The statement that makes the pointer in the caller; adds the names of what it needs to the call's."""
    base = namer.name(call.call, target, "", "_base").lstrip("_")
    call.names.append(base)
    fields: list[str] = []
    for name in PARTS:
        texts: list[str] = []
        for dim, part in enumerate(pointer.parts[name]):
            if (name, dim) in open_parts:
                texts.append(namer.name(call.call, target, "", f"_{_WORDS[name]}_{dim}").lstrip("_"))
                call.names.append(texts[-1])
            else:
                texts.append(with_arguments(part, call))
        fields.append(f"({', '.join(texts)}{',' if len(texts) == 1 else ''})")
    order = code_of(cst.Tuple([cst.Element(each) for each in pointer.construct.order]))
    return f"{target} = {language}.make_block_ptr({base}, {', '.join(fields)}, {order})"


_WORDS = {"shape": "shape", "strides": "stride", "offsets": "off", "block_shape": "block"}


def with_arguments(part: cst.BaseExpression, call: Call) -> str:
    """An expression of a helper's parameters, written with a call's arguments."""
    if isinstance(part, cst.Name):
        return one_line(call.passed[part.value].value)
    return code_of(part.visit(_Substitution(call.passed)))  # pyright: ignore[reportArgumentType]


class _Substitution(cst.CSTTransformer):
    def __init__(self, passed: Mapping[str, cst.Arg]) -> None:
        super().__init__()
        self.passed = passed

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        argument = self.passed.get(original_node.value)
        return cst.parse_expression(factor(argument.value)) if argument is not None else updated_node


def _drop_unused(edits: Edits, pointers: Pointers, statement: cst.Return) -> None:
    """Take away the pointers of a helper that were only returned."""
    gone = {id(node) for node in walk(statement)}
    names = {each.name for group in pointers.groups for each in group.definitions}
    names = {name for name in names if name not in {each.name.value for each in parameters_of(pointers.function)}}
    while True:
        unused = {name for name in names if all(id(node) in gone for node in _uses(pointers.function, name))}
        every = [each.statement for group in pointers.groups for each in group.definitions if each.name in unused]
        found = {each for each in every if _targets_of(each) <= unused} - edits.remove
        if not found:
            return
        edits.remove |= found
        gone |= {id(node) for each in found for node in walk(each)}


def _uses(function: cst.FunctionDef, name: str) -> list[cst.Name]:
    """The places where a function reads a name; an assignment of it reads nothing of it that matters."""
    own = {
        id(node)
        for each in walk(function.body)
        if isinstance(each, cst.Assign) and name in _targets_of(each)
        for node in walk(each)
    }
    return [
        node
        for node in walk(function.body)
        if isinstance(node, cst.Name) and node.value == name and id(node) not in own
    ]


def _targets_of(statement: cst.CSTNode) -> set[str]:
    """The names that an assignment gives a value; one that is no name for anything else."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) > 1:
        return {""}
    target = statement.targets[0].target
    parts = elements(target) or [target]
    return {each.value if isinstance(each, cst.Name) else "" for each in parts}
