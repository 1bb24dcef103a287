"""Functions that return one block pointer or another, by a branch on constants: the branch moves to the caller.

Level: source text, before the other rules. `p = make(x, M, N, T)` becomes `if T: p = ... else: p = ...` where the test
and all parts of the pointers are made of parameters. Guarantees: the result does the same; a function that nobody in
the given files calls any more goes, unless another file names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.read.callers import Callers, Function
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, cst, walk
from mltriton.tools.migrate.rewrite.edits import Edits
from mltriton.tools.migrate.rewrite.returns import (
    PARTS,
    Call,
    Returned,
    calls_of,
    is_known,
    may_return_pointer,
    returned_at,
    with_arguments,
)
from mltriton.tools.migrate.rewrite.steps import Analyses, Changed, Notes, caller_notes


@dataclass(frozen=True)
class _Arm:
    """What is returned under a test, and the statement that says so; the last arm has no test."""

    test: cst.BaseExpression | None
    statement: cst.Return | cst.Assign

    @property
    def value(self) -> cst.BaseExpression:
        """The pointer."""
        return self.statement.value or cst.Name("None")


def without_chosen_return(sources: Mapping[str, Source], callers: Callers, notes: Notes) -> Changed | None:
    """Move one branch to the callers of its helper; None when there is none (more)."""
    analyses = Analyses(sources)
    for function, helper in callers.functions.items():
        arms = _arms(helper)
        if len(arms) < 2 or not may_return_pointer(sources[function.path], helper):
            continue
        known = next((each for each in analyses.of(function.path) if each[0].function is helper), None)
        calls = calls_of(sources, callers, function, helper, 1) if known is not None else []
        if known is None or not calls:
            continue
        pointers, bounds = known
        made = [returned_at(arm.value, pointers, bounds, arm.statement) for arm in arms]
        parts = [part for each in made if each is not None for part in _parts(each)]
        tests = [arm.test for arm in arms if arm.test is not None]
        constant = all(bounds.is_constant(test, pointers.flow.before[arms[0].statement]) for test in tests)
        if None not in made and constant and all(is_known(each, helper, calls) for each in (*parts, *tests)):
            pointers_made = [each for each in made if each is not None]
            return _rewrite(sources, notes, function, helper, arms, pointers_made, calls)
    return None


def _arms(helper: cst.FunctionDef) -> list[_Arm]:
    """The branch at the end of a function whose sides return, or give one name a value that is returned behind it."""
    body = list(helper.body.body)
    final = _last(body[-1:])
    if isinstance(final, cst.Return):
        body.pop()
    else:
        final = None
    branch = body[-1] if body else None
    name = code_of(final.value) if final is not None and isinstance(final.value, cst.Name) else ""
    arms: list[_Arm] = []
    while isinstance(branch, cst.If):
        sides = [(branch.test, branch.body)]
        sides += [(None, branch.orelse.body)] if isinstance(branch.orelse, cst.Else) else []
        for test, suite in sides:
            inner = _last(suite.body)
            given = isinstance(inner, cst.Assign) and [code_of(each.target) for each in inner.targets] == [name]
            if not isinstance(inner, cst.Return | cst.Assign) or (isinstance(inner, cst.Assign) and not given):
                return []
            arms.append(_Arm(test, inner))
        branch = branch.orelse
    if final is not None and arms and arms[-1].test is not None and not name:
        arms.append(_Arm(None, final))
    returned = [node for node in walk(helper.body) if isinstance(node, cst.Return)]
    own = {id(arm.statement) for arm in arms}
    own.add(id(final) if name else 0)
    alike = len({type(arm.statement) for arm in arms}) == 1
    complete = bool(arms) and arms[-1].test is None and alike
    return arms if complete and all(id(each) in own for each in returned) else []


def _last(body: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """The last small statement of a suite."""
    line = body[-1] if body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else line


def _parts(pointer: Returned) -> list[cst.BaseExpression]:
    return [pointer.construct.base, *(part for name in PARTS for part in pointer.parts[name])]


def _rewrite(
    sources: Mapping[str, Source],
    notes: Notes,
    function: Function,
    helper: cst.FunctionDef,
    arms: Sequence[_Arm],
    made: Sequence[Returned],
    calls: Sequence[Call],
) -> Changed:
    edits = {path: Edits() for path in {function.path, *(call.path for call in calls)}}
    lines: dict[str, set[int]] = {}
    for call in calls:
        own, source = edits[call.path], sources[call.path]
        own.functions.add(call.function)
        own.insert(call.statement, [_branch(call, arms, made, source.language() or "tl")])
        own.remove.add(call.statement)
        lines.setdefault(call.path, set()).add(notes.line(source, call.call))
    what = "returned one block pointer or another: its calls choose"
    found = list(caller_notes(notes.line(sources[function.path], helper), function, what, lines))
    texts = {path: own.apply(sources[path].module) for path, own in edits.items()}
    if not any(function.name in source.text for path, source in sources.items() if path != function.path):
        texts[function.path] = _without(texts[function.path], function.name)
    return found, texts


def _branch(call: Call, arms: Sequence[_Arm], made: Sequence[Returned], language: str) -> str:
    """The statement that makes the pointer in the caller."""
    text = ""
    for index, (arm, pointer) in enumerate(zip(arms, made, strict=True)):
        test = f"{'el' if index else ''}if {with_arguments(arm.test, call)}" if arm.test is not None else "else"
        columns = [[with_arguments(part, call) for part in pointer.parts[name]] for name in PARTS]
        tuples = ", ".join(f"({', '.join(column)}{',' if len(column) == 1 else ''})" for column in columns)
        order = code_of(cst.Tuple([cst.Element(each) for each in pointer.construct.order]))
        base = with_arguments(pointer.construct.base, call)
        text += f"{test}:\n    {call.targets[0].value} = {language}.make_block_ptr({base}, {tuples}, {order})\n"
    return text


def _without(text: str, name: str) -> str:
    """A file without a function that nothing in it uses."""
    module = cst.parse_module(text)
    used = sum(isinstance(node, cst.Name) and node.value == name for node in walk(module))
    kept = [each for each in module.body if not (isinstance(each, cst.FunctionDef) and each.name.value == name)]
    return module.with_changes(body=kept).code if used == 1 and len(kept) < len(module.body) else text
