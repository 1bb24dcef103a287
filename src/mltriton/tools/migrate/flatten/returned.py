"""Functions that return a block pointer, alone, in a tuple or by a branch, return what it is made of instead.

Level: source text, before the other rules. The caller makes the pointer: of what it passed itself where the helper made
the pointer of its parameters, of values that the helper returns otherwise. Where a branch on constants returns one
pointer or another (`p = make(x, M, N, T)`), the branch moves to the caller (`if T: p = ... else: p = ...`). Guarantees:
the result is a program of block pointers that does the same; what is not understood stays and is explained by the
analysis of pointers; a function that nobody in the given files calls any more goes, unless another file names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.flatten.parts import WORDS, Parts, drop_unused, parts_at
from mltriton.tools.migrate.flatten.program import Change, Changed, Program, Site
from mltriton.tools.migrate.read.callers import Function
from mltriton.tools.migrate.read.flow import is_assigned, parameters_of
from mltriton.tools.migrate.read.parse import MAKERS, Source
from mltriton.tools.migrate.read.syntax import code_of, cst, elements, factor, names_in, one_line, walk
from mltriton.tools.migrate.rewrite.edits import constantly
from mltriton.tools.migrate.rewrite.naming import Namer


@dataclass(frozen=True)
class _Call:
    """A call whose result is assigned; `targets`: a name for each value that is returned."""

    site: Site
    statement: cst.Assign
    targets: tuple[str, ...]


def _calls_of(program: Program, function: Function, count: int) -> list[_Call]:
    """The calls of a helper, if the result of each is assigned to so many names."""
    found: list[_Call] = []
    for site in program.sites(function):
        statement = site.statement
        if not isinstance(statement, cst.Assign) or statement.value is not site.call or len(statement.targets) > 1:
            return []
        target = statement.targets[0].target
        parts = [target] if count == 1 else elements(target) or []
        names = tuple(each.value for each in parts if isinstance(each, cst.Name))
        if not site.alone or not len(names) == len(parts) == count:
            return []
        found.append(_Call(site, statement, names))
    return found


def _may_return_pointer(source: Source, helper: cst.FunctionDef) -> bool:
    """Whether a function makes or moves block pointers: a quick look before the analysis."""
    return any(source.callee(node) in MAKERS for node in walk(helper.body))


def _values(statement: cst.Return) -> list[cst.BaseExpression]:
    value = statement.value or cst.Name("None")
    return elements(value) or [value]


def _last(body: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """The last small statement of a suite."""
    line = body[-1] if body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else line


def _is_known(part: cst.BaseExpression, helper: cst.FunctionDef, calls: Sequence[_Call]) -> bool:
    """Whether every caller can write a part itself: it is made of parameters, and the call changes no argument."""
    names = names_in(part)
    if not names <= {each.name.value for each in parameters_of(helper)}:
        return False
    if any(isinstance(each, cst.Call) for each in walk(part)) or any(is_assigned(helper, name) for name in names):
        return False
    given = [(call, call.site.passed.get(name)) for call in calls for name in names]
    return all(
        arg is not None
        and not any(isinstance(each, cst.Call | cst.NamedExpr) for each in walk(arg.value))
        and not names_in(arg.value) & set(call.targets)
        for call, arg in given
    )


def _with_arguments(part: cst.BaseExpression, passed: Mapping[str, cst.Arg]) -> str:
    """An expression of a helper's parameters, written with a call's arguments."""
    if isinstance(part, cst.Name):
        return one_line(passed[part.value].value)
    return code_of(part.visit(_Substitution(passed)))  # pyright: ignore[reportArgumentType]


class _Substitution(cst.CSTTransformer):
    def __init__(self, passed: Mapping[str, cst.Arg]) -> None:
        super().__init__()
        self.passed = passed

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        argument = self.passed.get(original_node.value)
        return cst.parse_expression(factor(argument.value)) if argument is not None else updated_node


# One return.


def without_returned_pointer(program: Program) -> Changed | None:
    """Rewrite one helper that returns block pointers; None when there is none (more)."""
    for function, helper in program.callers.functions.items():
        statement = _only_return(helper)
        if statement is None or not _may_return_pointer(program.sources[function.path], helper):
            continue
        known = program.analysis(function.path, helper)
        env = known[0].flow.before.get(statement) if known is not None else None
        if known is None or env is None:
            continue
        values = _values(statement)
        parts = [parts_at(value, *known, statement) for value in values]
        wanted = [known[0].is_pointer(value, env) for value in values]
        if any(wanted) and all(part is not None or not want for part, want in zip(parts, wanted, strict=True)):
            calls = _calls_of(program, function, len(values))
            changed = _rewritten(program, function, statement, parts, calls) if calls else None
            if changed is not None:
                return changed
    return None


def can_return_parts(program: Program, path: str, helper: cst.FunctionDef, statement: cst.Return) -> bool:
    """Whether a statement is a helper's only return, and each of its calls assigns what it returns to names."""
    function = Function(path, helper.name.value)
    if program.callers.functions.get(function) is not helper or _only_return(helper) is not statement:
        return False
    return bool(_calls_of(program, function, len(_values(statement))))


def _only_return(helper: cst.FunctionDef) -> cst.Return | None:
    """The return at the end of a function that has no other."""
    last = _last(helper.body.body)
    every = [node for node in walk(helper.body) if isinstance(node, cst.Return)]
    return last if isinstance(last, cst.Return) and len(every) == 1 else None


def _rewritten(
    program: Program,
    function: Function,
    statement: cst.Return,
    returned: Sequence[Parts | None],
    calls: Sequence[_Call],
) -> Changed | None:
    change = Change(program, function)
    names: dict[_Call, list[str]] = {call: [] for call in calls}
    made: dict[_Call, list[str]] = {call: [] for call in calls}
    namers = {call.site.caller: Namer(code_of(call.site.caller)) for call in calls}
    given: list[str] = []
    for index, (value, parts) in enumerate(zip(_values(statement), returned, strict=True)):
        if parts is None:
            given.append(code_of(value))
            for call in calls:
                names[call].append(call.targets[index])
            continue
        missing = {
            id(part) for field in parts.fields.values() for part in field if not _is_known(part, change.helper, calls)
        }
        if any(id(part) in missing for part in parts.fields["block_shape"]):
            return None  # a size of blocks is a constant, and what a function returns is none
        given.append(code_of(parts.construct.base))
        given += [one_line(part) for field in parts.fields.values() for part in field if id(part) in missing]
        for call in calls:
            language = change.language(call.site.path)
            new, text = _made(call, call.targets[index], parts, missing, namers[call.site.caller], language)
            names[call] += new
            made[call].append(text)
    assert statement.value is not None
    change.own.replace[statement.value] = constantly(", ".join(given))
    known = program.analysis(function.path, change.helper)
    if known is not None:
        drop_unused(change.own, known[0], [statement])
    for call in calls:
        edits = change.at(call.site)
        edits.replace[call.statement.targets[0].target] = constantly(", ".join(names[call]))
        edits.after[call.statement] = made[call]
    return change.finished(f"returns {', '.join(given)} instead of a block pointer")


def _made(
    call: _Call, target: str, parts: Parts, missing: set[int], namer: Namer, language: str
) -> tuple[list[str], str]:
    """The statement that makes the pointer in the caller, and the names of what it needs of the helper."""
    names = [namer.name(call.site.call, target, "", "_base").lstrip("_")]
    columns: list[list[str]] = []
    for field, word in WORDS.items():
        columns.append([])
        for dim, part in enumerate(parts.fields[field]):
            if id(part) in missing:
                names.append(namer.name(call.site.call, target, "", f"_{word}_{dim}").lstrip("_"))
                columns[-1].append(names[-1])
            else:
                columns[-1].append(_with_arguments(part, call.site.passed))
    return names, f"{target} = {parts.made(language, names[0], columns)}"


# A branch that returns one or another.


@dataclass(frozen=True)
class _Arm:
    """What is returned under a test, and the statement that says so; the last arm has no test."""

    test: cst.BaseExpression | None
    statement: cst.Return | cst.Assign


def without_chosen_return(program: Program) -> Changed | None:
    """Move one branch to the callers of its helper; None when there is none (more)."""
    for function, helper in program.callers.functions.items():
        arms = _arms(helper)
        if len(arms) < 2 or not _may_return_pointer(program.sources[function.path], helper):
            continue
        known = program.analysis(function.path, helper)
        calls = _calls_of(program, function, 1) if known is not None else []
        if known is None or not calls:
            continue
        found = [parts_at(arm.statement.value or cst.Name("None"), *known, arm.statement) for arm in arms]
        made = [each for each in found if each is not None]
        tests = [arm.test for arm in arms if arm.test is not None]
        needed = [*tests, *(part for each in made for part in each.all)]
        constant = all(known[1].is_constant(test, known[0].flow.before[arms[0].statement]) for test in tests)
        if len(made) == len(arms) and constant and all(_is_known(each, helper, calls) for each in needed):
            return _moved(program, function, arms, made, calls)
    return None


def _arms(helper: cst.FunctionDef) -> list[_Arm]:
    """The branch at the end of a function whose sides return, or give one name a value that is returned behind it."""
    body = list(helper.body.body)
    final = _last(body)
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
    own = {id(arm.statement) for arm in arms} | {id(final) if name else 0}
    alike = len({type(arm.statement) for arm in arms}) == 1
    complete = bool(arms) and arms[-1].test is None and alike
    return arms if complete and all(id(each) in own for each in returned) else []


def _moved(
    program: Program, function: Function, arms: Sequence[_Arm], made: Sequence[Parts], calls: Sequence[_Call]
) -> Changed:
    change = Change(program, function)
    for call in calls:
        edits = change.at(call.site)
        edits.insert(call.statement, [_branch(call, arms, made, change.language(call.site.path))])
        edits.remove.add(call.statement)
    found, texts = change.finished("returned one block pointer or another: its calls choose")
    if not any(function.name in source.text for path, source in program.sources.items() if path != function.path):
        texts[function.path] = _without(texts[function.path], function.name)
    return found, texts


def _branch(call: _Call, arms: Sequence[_Arm], made: Sequence[Parts], language: str) -> str:
    """The statement that makes the pointer in the caller."""
    text, passed = "", call.site.passed
    for index, (arm, parts) in enumerate(zip(arms, made, strict=True)):
        test = f"{'el' if index else ''}if {_with_arguments(arm.test, passed)}" if arm.test is not None else "else"
        columns = [[_with_arguments(part, passed) for part in field] for field in parts.fields.values()]
        pointer = parts.made(language, _with_arguments(parts.construct.base, passed), columns)
        text += f"{test}:\n    {call.targets[0]} = {pointer}\n"
    return text


def _without(text: str, name: str) -> str:
    """A file without a function that nothing in it uses."""
    module = cst.parse_module(text)
    used = sum(isinstance(node, cst.Name) and node.value == name for node in walk(module))
    kept = [each for each in module.body if not (isinstance(each, cst.FunctionDef) and each.name.value == name)]
    return module.with_changes(body=kept).code if used == 1 and len(kept) < len(module.body) else text
