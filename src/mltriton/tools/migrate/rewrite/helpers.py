"""Rule 12: functions that receive a block pointer receive what it is made of instead.

Level: source text, before the other rules. Where every call of a helper, in all the given files, passes a block pointer
that was made in the caller, the helper's parameter becomes base, shape, strides and offsets, the pointer is made inside
the helper, and the calls pass these. Guarantees: the result is a program of block pointers that does the same; what is
not understood stays and is explained by the analysis of pointers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.group import Construct
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.callers import Callers, Function
from mltriton.tools.migrate.read.flow import is_assigned, parameters_of
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, keyword_of, one_line, walk
from mltriton.tools.migrate.rewrite.edits import Edits
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.steps import Analyses, Changed, Notes, caller_notes, may_be_pointer

_PARTS = (("shape", "shape"), ("strides", "stride"), ("offsets", "off"), ("block_shape", "block"))


@dataclass(frozen=True)
class _Site:
    """A call of a helper: the argument that is a block pointer, and where that was made."""

    path: str
    call: cst.Call
    statement: cst.CSTNode
    argument: cst.Arg
    passed: Mapping[str, cst.Arg]
    construct: Construct
    pointers: Pointers
    bounds: Bounds


def without_pointer_argument(sources: Mapping[str, Source], callers: Callers, notes: Notes) -> Changed | None:
    """Rewrite one parameter of one helper; None when there is nothing (more) to do."""
    calls: dict[Function, list[tuple[str, cst.Call]]] = {}
    wanted: set[Function] = set()
    for path, source in sources.items():
        for call in walk(source.module):
            function = callers.called(path, call.func) if isinstance(call, cst.Call) else None
            if function is None or not isinstance(call, cst.Call):
                continue
            calls.setdefault(function, []).append((path, call))
            if any(may_be_pointer(source, arg.value, source.made) for arg in call.args):
                wanted.add(function)
    analyses = Analyses(sources)
    for function in sorted(wanted, key=lambda each: (each.path, each.name)):
        if not callers.is_only_called(function):
            continue
        helper = callers.functions[function]
        for parameter in parameters_of(helper):
            sites = _sites(helper, parameter, calls[function], analyses)
            if sites:
                return _rewrite(sources, notes, function, helper, parameter, sites)
    return None


def _sites(
    helper: cst.FunctionDef, parameter: cst.Param, calls: Sequence[tuple[str, cst.Call]], analyses: Analyses
) -> list[_Site]:
    """The calls of a helper, if each passes a block pointer whose parts are known where it is called."""
    names = [each.name.value for each in parameters_of(helper)]
    found: list[_Site] = []
    for path, call in calls:
        passed = keyword_of(call, names)
        argument = (passed or {}).get(parameter.name.value)
        site = _site(path, call, argument, passed or {}, analyses) if argument is not None else None
        if site is None:
            return []
        found.append(site)
    alike = {(site.construct.rank, tuple(map(code_of, site.construct.order))) for site in found}
    return found if len(alike) == 1 else []


def _site(
    path: str, call: cst.Call, argument: cst.Arg, passed: Mapping[str, cst.Arg], analyses: Analyses
) -> _Site | None:
    for pointers, bounds in analyses.of(path):
        statement = next((each for each in pointers.flow.before if _owns(each, call)), None)
        if statement is None:
            continue
        construct = pointers.construct_of(_origin(argument.value, pointers, statement))
        if construct is None or construct.rank == 0:
            return None
        parts = (construct.base, *construct.shape, *construct.strides, *construct.offsets, *construct.block_shape)
        if construct.statement is statement or all(
            bounds.is_stable(part, construct.statement, statement) for part in parts
        ):
            return _Site(path, call, statement, argument, passed, construct, pointers, bounds)
    return None


def _origin(node: cst.BaseExpression, pointers: Pointers, at: cst.CSTNode) -> cst.BaseExpression:
    """The expression that gives an argument its value: through the only assignments that reach it, or the argument."""
    for _ in range(16):
        reaching = pointers.flow.reaching(node.value, at) if isinstance(node, cst.Name) else []
        if len(reaching) != 1 or reaching[0].value is None or reaching[0].statement not in pointers.flow.before:
            break
        node, at = reaching[0].value, reaching[0].statement
    return node


def _owns(statement: cst.CSTNode, call: cst.Call) -> bool:
    compound = isinstance(statement, cst.If | cst.For | cst.While | cst.With | cst.FunctionDef | cst.ClassDef)
    return not compound and any(node is call for node in walk(statement))


# Rewriting.


@dataclass(frozen=True)
class _Part:
    """One number that makes up the pointer: the text inside the helper; `name` when it is a new parameter."""

    text: str
    name: str | None = None
    is_constant: bool = False
    values: tuple[cst.BaseExpression, ...] = ()


def _rewrite(
    sources: Mapping[str, Source],
    notes: Notes,
    function: Function,
    helper: cst.FunctionDef,
    parameter: cst.Param,
    sites: Sequence[_Site],
) -> Changed:
    pointer = parameter.name.value
    namer = Namer(code_of(helper))
    base = _Part(namer.name(None, pointer, "", "_base").lstrip("_"), None)
    base = _Part(base.text, base.text, values=tuple(site.construct.base for site in sites))
    parts: dict[str, list[_Part]] = {}
    for field, word in _PARTS:
        rank = sites[0].construct.rank
        parts[field] = [_part(helper, sites, namer, pointer, field, word, dim) for dim in range(rank)]
    new = [part for part in (base, *(each for field, _ in _PARTS for each in parts[field])) if part.name is not None]
    language = sources[function.path].language() or "tl"
    edits = {path: Edits() for path in (function.path, *(site.path for site in sites))}
    edits[function.path].functions.add(helper)
    edits[function.path].replace[parameter] = lambda updated: _parameters(updated, new, language)
    tuples = [
        f"({', '.join(part.text for part in parts[field])},)".replace(",)", ",)" if len(parts[field]) == 1 else ")")
        for field, _ in _PARTS
    ]
    order = code_of(cst.Tuple([cst.Element(each) for each in sites[0].construct.order]))
    made = f"{pointer} = {language}.make_block_ptr({base.text}, {', '.join(tuples)}, {order})"
    edits[function.path].insert(_first_statement(helper), [made])
    for index, site in enumerate(sites):
        edits[site.path].functions.add(site.pointers.function)
        edits[site.path].replace[site.argument] = lambda updated, index=index: _arguments(updated, new, index)
    for path, own in edits.items():
        _drop_unused(own, [site for site in sites if site.path == path])
    taken = ", ".join(part.name or "" for part in new)
    lines: dict[str, set[int]] = {}
    for site in sites:
        lines.setdefault(site.path, set()).add(notes.line(sources[site.path], site.call))
    what = f"takes {taken} instead of the block pointer {pointer}"
    return list(caller_notes(notes.line(sources[function.path], helper), function, what, lines)), {
        path: own.apply(sources[path].module) for path, own in edits.items()
    }


def _part(
    helper: cst.FunctionDef, sites: Sequence[_Site], namer: Namer, pointer: str, field: str, word: str, dim: int
) -> _Part:
    values = tuple(getattr(site.construct, field)[dim] for site in sites)
    literals = {constant_int(value) for value in values}
    if len(literals) == 1 and None not in literals:
        return _Part(str(literals.pop()))
    for each in parameters_of(helper):
        name = each.name.value
        given = [site.passed.get(name) for site in sites]
        same = all(
            arg is not None and code_of(arg.value) == code_of(value) for arg, value in zip(given, values, strict=True)
        )
        if same and not is_assigned(helper, name):
            return _Part(name)
    name = namer.name(None, pointer, "", f"_{word}_{dim}").lstrip("_")
    return _Part(name, name, field == "block_shape", values)


def _first_statement(helper: cst.FunctionDef) -> cst.CSTNode:
    body = helper.body.body
    first = body[0]
    small = first.body[0] if isinstance(first, cst.SimpleStatementLine) else first
    is_text = isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)
    if is_text and len(body) > 1:
        second = body[1]
        return second.body[0] if isinstance(second, cst.SimpleStatementLine) else second
    return small


def _parameters(updated: cst.Param, new: Sequence[_Part], language: str) -> cst.FlattenSentinel[cst.Param]:
    made: list[cst.Param] = []
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    own = _without_comment(updated.comma) or comma
    for part in new:
        kind = cst.Annotation(cst.parse_expression(f"{language}.constexpr")) if part.is_constant else None
        made.append(cst.Param(cst.Name(part.name or ""), annotation=kind, comma=own))
    made[-1] = made[-1].with_changes(comma=updated.comma)
    return cst.FlattenSentinel(made)


def _arguments(updated: cst.Arg, new: Sequence[_Part], index: int) -> cst.FlattenSentinel[cst.Arg]:
    made: list[cst.Arg] = []
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    for part in new:
        value = cst.parse_expression(one_line(part.values[index]))
        keyword = cst.Name(part.name or "") if updated.keyword is not None else None
        own = _without_comment(updated.comma) or comma
        made.append(updated.with_changes(value=value, keyword=keyword, comma=own))
    made[-1] = made[-1].with_changes(comma=updated.comma)
    return cst.FlattenSentinel(made)


def _without_comment(comma: object) -> cst.Comma | None:
    """A comma that breaks the line where this one does; only the last of several has the comment."""
    if not isinstance(comma, cst.Comma):
        return None
    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return comma.with_changes(whitespace_after=space.with_changes(first_line=line, empty_lines=[]))


def _drop_unused(edits: Edits, sites: Sequence[_Site]) -> None:
    """Take away constructors whose pointer was only passed on."""
    rewritten = {site.argument for site in sites}
    for site in sites:
        if not isinstance(site.argument.value, cst.Name):
            continue
        name = site.argument.value.value
        uses = sum(isinstance(node, cst.Name) and node.value == name for node in walk(site.pointers.function.body))
        mine = sum(isinstance(arg.value, cst.Name) and arg.value.value == name for arg in rewritten)
        definition = site.construct.statement
        if not isinstance(definition, cst.Assign) or len(definition.targets) > 1:
            continue
        if isinstance(definition.targets[0].target, cst.Name) and uses == mine + 1:
            edits.remove.add(definition)
