"""A parameter that is a block pointer or a tuple of them becomes parameters for what that is made of (rule 12).

Level: source text. Where every call of a helper, in all the given files, passes a block pointer that was made in the
caller, the pointer is made inside the helper of base, shape, strides and offsets, which the calls pass. Guarantees: the
result is a program of block pointers that does the same; what is not understood stays and is explained by the analysis
of pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.flatten.parts import WORDS, Parts, drop_unused, parts_at
from mltriton.tools.migrate.flatten.program import Change, Changed, Program, Site, may_be_pointer
from mltriton.tools.migrate.read.callers import Function
from mltriton.tools.migrate.read.flow import is_assigned, parameters_of
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, one_line
from mltriton.tools.migrate.rewrite.naming import Namer


@dataclass(frozen=True)
class New:
    """A parameter that takes a part of what another one took, and the text that each call gives it."""

    name: str
    given: tuple[str, ...]
    is_constant: bool = False


def take_apart(change: Change, param: cst.Param, sites: Sequence[Site], new: Sequence[New]) -> None:
    """Replace a helper's parameter by others, in the helper and in its calls."""
    language = change.language(change.function.path)
    change.own.replace[param] = lambda updated: _parameters(updated, new, language)
    names = [each.name for each in new]
    for index, site in enumerate(sites):
        texts = [each.given[index] for each in new]
        argument = site.passed[param.name.value]
        change.at(site).replace[argument] = lambda updated, texts=texts: spread(updated, texts, names)


def _parameters(updated: cst.Param, new: Sequence[New], language: str) -> cst.FlattenSentinel[cst.Param]:
    constant = cst.Annotation(cst.parse_expression(f"{language}.constexpr"))
    comma = _between(updated.comma)
    made = [
        cst.Param(cst.Name(part.name), annotation=constant if part.is_constant else None, comma=comma) for part in new
    ]
    return cst.FlattenSentinel([*made[:-1], made[-1].with_changes(comma=updated.comma)])


def spread(updated: cst.Arg, texts: Sequence[str], names: Sequence[str]) -> cst.FlattenSentinel[cst.Arg]:
    """An argument for each text, by name where the old one was; the last one ends as that did."""
    comma = _between(updated.comma)
    made = [
        cst.Arg(
            cst.parse_expression(text), keyword=cst.Name(name) if updated.keyword is not None else None, comma=comma
        )
        for name, text in zip(names, texts, strict=True)
    ]
    last = made[-1].with_changes(comma=updated.comma, whitespace_after_arg=updated.whitespace_after_arg)
    return cst.FlattenSentinel([*made[:-1], last])


def _between(comma: object) -> cst.Comma:
    """A comma that breaks the line where this one does; only the last of several has the comment."""
    if not isinstance(comma, cst.Comma):
        return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return comma.with_changes(whitespace_after=space.with_changes(first_line=line, empty_lines=[]))


# Block pointers.


def without_pointer_argument(program: Program) -> Changed | None:
    """Rewrite one parameter of one helper that is a block pointer; None when there is nothing (more) to do."""
    for function, helper in sorted(program.callers.functions.items(), key=lambda each: (each[0].path, each[0].name)):
        sites = program.sites(function)
        if not any(_may_pass_pointer(program, site) for site in sites):
            continue
        for param in parameters_of(helper):
            parts = [_passed(program, site, param.name.value) for site in sites]
            known = [each for each in parts if each is not None]
            if len(known) == len(parts) and len({each.layout for each in known}) == 1:
                return _rewritten(program, function, param, sites, known)
    return None


def _may_pass_pointer(program: Program, site: Site) -> bool:
    """Whether a call may pass a block pointer."""
    source = program.sources[site.path]
    return any(may_be_pointer(source, arg.value, source.made) for arg in site.passed.values())


def _passed(program: Program, site: Site, parameter: str) -> Parts | None:
    known = program.analysis(site.path, site.caller)
    argument = site.passed.get(parameter)
    if known is None or argument is None or isinstance(site.statement, cst.BaseCompoundStatement):
        return None
    return parts_at(argument.value, *known, site.statement) if site.statement in known[0].flow.before else None


def _rewritten(
    program: Program, function: Function, param: cst.Param, sites: Sequence[Site], passed: Sequence[Parts]
) -> Changed:
    change, pointer = Change(program, function), param.name.value
    namer = Namer(code_of(change.helper))
    base = New(namer.name(None, pointer, "", "_base").lstrip("_"), tuple(one_line(p.construct.base) for p in passed))
    new = [base]
    columns: list[list[str]] = []
    for field, word in WORDS.items():
        columns.append([])
        for dim in range(passed[0].construct.rank):
            values = [each.fields[field][dim] for each in passed]
            text = _known(change.helper, sites, values)
            if text is None:
                text = namer.name(None, pointer, "", f"_{word}_{dim}").lstrip("_")
                new.append(New(text, tuple(map(one_line, values)), field == "block_shape"))
            columns[-1].append(text)
    take_apart(change, param, sites, new)
    made = passed[0].made(change.language(function.path), base.name, columns)
    change.own.insert(_first_statement(change.helper), [f"{pointer} = {made}"])
    for site in sites:
        known = program.analysis(site.path, site.caller)
        same = [each.passed[pointer].value for each in sites if each.caller is site.caller]
        if known is not None:
            drop_unused(change.at(site), known[0], same)
    return change.finished(f"takes {', '.join(each.name for each in new)} instead of the block pointer {pointer}")


def _known(helper: cst.FunctionDef, sites: Sequence[Site], values: Sequence[cst.BaseExpression]) -> str | None:
    """What a helper writes for a part that it need not be given: a number, or a parameter that has it already."""
    literals = {constant_int(value) for value in values}
    if len(literals) == 1 and None not in literals:
        return str(literals.pop())
    for each in parameters_of(helper):
        given = [site.passed.get(each.name.value) for site in sites]
        pairs = zip(given, values, strict=True)
        same = all(arg is not None and code_of(arg.value) == code_of(value) for arg, value in pairs)
        if same and not is_assigned(helper, each.name.value):
            return each.name.value
    return None


def _first_statement(helper: cst.FunctionDef) -> cst.CSTNode:
    """The first statement behind the docstring."""
    small = [each.body[0] if isinstance(each, cst.SimpleStatementLine) else each for each in helper.body.body]
    is_text = isinstance(small[0], cst.Expr) and isinstance(small[0].value, cst.SimpleString | cst.ConcatenatedString)
    return small[1] if is_text and len(small) > 1 else small[0]
