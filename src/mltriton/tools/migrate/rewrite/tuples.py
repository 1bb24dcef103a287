"""Tuples that hold block pointers become a variable for each element.

Level: source text, before the other rules. `pair = (p, q)` becomes `pair_0, pair_1 = (p, q)` where the tuple is only
written out, unpacked, indexed by numbers, returned, spread with a star, or passed to helpers that do the same with it.
Guarantees: the result does the same; any other tuple stays and is explained by the analysis of pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.read.callers import Callers, Function
from mltriton.tools.migrate.read.flow import parameters_of
from mltriton.tools.migrate.read.parse import MAKERS, Source, functions_of
from mltriton.tools.migrate.read.syntax import children, code_of, constant_int, cst, elements, keyword_of, walk
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.steps import Changed, Notes, caller_notes


@dataclass
class _Uses:
    """What a function does with a name that holds a tuple. `size` is 0 where nothing says how many elements it has."""

    name: str
    made: list[cst.Assign] = field(default_factory=list[cst.Assign])
    indexed: list[tuple[cst.Subscript, int]] = field(default_factory=list[tuple[cst.Subscript, int]])
    whole: list[cst.Name] = field(default_factory=list[cst.Name])  # unpacked or returned
    passed: list[tuple[cst.Call, cst.Arg]] = field(default_factory=list[tuple[cst.Call, cst.Arg]])
    size: int = 0
    understood: bool = True

    def has_size(self, size: int) -> None:
        """Note how many elements there are."""
        self.understood = self.understood and self.size in (0, size)
        self.size = size


def without_tuple(sources: Mapping[str, Source], callers: Callers, notes: Notes) -> Changed | None:
    """Take one tuple apart, or one tuple that is passed to a helper; None when there is none (more)."""
    for path, source in sources.items():
        for function in functions_of(source.module):
            for name in sorted(_pointer_tuples(source, function)):
                uses = _uses(function, name)
                if not uses.understood or not uses.size or any(index >= uses.size for _, index in uses.indexed):
                    continue
                if not any(arg.star == "" for _, arg in uses.passed):
                    return [], {path: _taken_apart(source, function, uses)}
                for call, arg in uses.passed:
                    changed = _parameter(sources, callers, notes, path, call, arg) if arg.star == "" else None
                    if changed is not None:
                        return changed
    return None


def _pointer_tuples(source: Source, function: cst.FunctionDef) -> set[str]:
    """Names that are assigned a tuple in which a block pointer is made, or a name that was given one."""
    assigned = [node for node in walk(function.body) if isinstance(node, cst.Assign)]
    single = {code_of(node.targets[0].target) for node in assigned if source.callee(node.value) in MAKERS}
    found: set[str] = set()
    for node in assigned:
        target, parts = node.targets[0].target, elements(node.value)
        if isinstance(target, cst.Name) and parts:
            makes = any(source.callee(part) in MAKERS for part in parts)
            if makes or any(isinstance(part, cst.Name) and part.value in single for part in parts):
                found.add(target.value)
    return found


def _uses(function: cst.FunctionDef, name: str) -> _Uses:
    """Everything that a function does with a name."""
    uses = _Uses(name)
    for node, parents in _with_parents(function):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        parent, above = parents[-1], parents[-2] if len(parents) > 1 else None
        if isinstance(parent, cst.AssignTarget) and isinstance(above, cst.Assign) and _is_display(above):
            uses.made.append(above)
            uses.has_size(len(elements(above.value) or ()))
        elif isinstance(parent, cst.Subscript) and parent.value is node and (index := _index(parent)) is not None:
            uses.indexed.append((parent, index))
        elif isinstance(parent, cst.Assign) and parent.value is node and len(parent.targets) == 1:
            uses.whole.append(node)
            uses.has_size(len(elements(parent.targets[0].target) or ()))
        elif isinstance(parent, cst.Return):
            uses.whole.append(node)
        elif isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and parent.star in ("", "*"):
            uses.passed.append((above, parent))
        elif not isinstance(parent, cst.Param):
            uses.understood = False
    return uses


def _with_parents(
    node: cst.CSTNode, parents: tuple[cst.CSTNode, ...] = ()
) -> Iterator[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]]:
    for child in children(node):
        yield child, (*parents[-1:], node)
        yield from _with_parents(child, (*parents[-1:], node))


def _is_display(node: cst.Assign) -> bool:
    return len(node.targets) == 1 and bool(elements(node.value))


def _index(node: cst.Subscript) -> int | None:
    one = node.slice[0].slice if len(node.slice) == 1 else None
    value = constant_int(one.value) if isinstance(one, cst.Index) else None
    return value if value is not None and value >= 0 else None


def _taken_apart(source: Source, function: cst.FunctionDef, uses: _Uses) -> str:
    """The file with a variable for each element of a tuple."""
    namer = Namer(code_of(function))
    names = [namer.fresh(f"{uses.name}_{index}") for index in range(uses.size)]
    edits = Edits()
    edits.functions.add(function)
    _replace(edits, uses, names)
    return edits.apply(source.module)


def _replace(edits: Edits, uses: _Uses, names: Sequence[str]) -> None:
    every = ", ".join(names) + ("," if len(names) == 1 else "")
    for node in uses.made:
        edits.replace[node.targets[0].target] = constantly(every)
    for node in uses.whole:
        edits.replace[node] = constantly(every)
    for node, index in uses.indexed:
        edits.replace[node] = constantly(names[index])
    for _, arg in uses.passed:
        edits.replace[arg] = lambda updated: _spread(updated, names)


def _spread(updated: cst.Arg, texts: Sequence[str]) -> cst.FlattenSentinel[cst.Arg]:
    """An argument for each element; the last one ends as the old argument did."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    made = [cst.Arg(cst.parse_expression(text), comma=comma) for text in texts]
    made[-1] = made[-1].with_changes(comma=updated.comma, whitespace_after_arg=updated.whitespace_after_arg)
    return cst.FlattenSentinel(made)


# Parameters.


def _parameter(
    sources: Mapping[str, Source], callers: Callers, notes: Notes, path: str, call: cst.Call, arg: cst.Arg
) -> Changed | None:
    """Take the tuple apart that a helper gets through one of its parameters, in the helper and in its calls."""
    function = callers.called(path, call.func)
    if function is None or not callers.is_only_called(function):
        return None
    helper = callers.functions[function]
    names = [each.name.value for each in parameters_of(helper)]
    passed = keyword_of(call, names)
    parameter = next((name for name, each in (passed or {}).items() if each is arg), None)
    param = next((each for each in parameters_of(helper) if each.name.value == parameter), None)
    if parameter is None or param is None or param.annotation is not None or arg.keyword is not None:
        return None
    sites = list(_tuples(sources, callers, function, names, parameter))
    sizes = {len(texts) for _, _, _, texts in sites}
    uses = _uses(helper, parameter)
    if len(sizes) != 1 or 0 in sizes or not uses.understood or uses.made or uses.passed:
        return None
    size = sizes.pop()
    if uses.size not in (0, size) or any(index >= size for _, index in uses.indexed):
        return None
    namer = Namer(code_of(helper))
    new = [namer.fresh(f"{parameter}_{index}") for index in range(size)]
    edits = {each: Edits() for each in (function.path, *(site for site, _, _, _ in sites))}
    edits[function.path].functions.add(helper)
    edits[function.path].replace[param] = lambda updated: cst.FlattenSentinel(_params(updated, new))
    _replace(edits[function.path], uses, new)
    lines: dict[str, set[int]] = {}
    for site, each, old, texts in sites:
        edits[site].functions |= set(functions_of(sources[site].module))
        edits[site].replace[old] = lambda updated, texts=texts: _spread(updated, texts)
        lines.setdefault(site, set()).add(notes.line(sources[site], each))
    what = f"takes {', '.join(new)} instead of the tuple {parameter}"
    found = list(caller_notes(notes.line(sources[function.path], helper), function, what, lines))
    return found, {each: own.apply(sources[each].module) for each, own in edits.items()}


def _params(updated: cst.Param, names: Sequence[str]) -> list[cst.Param]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    made = [cst.Param(cst.Name(name), comma=comma) for name in names]
    made[-1] = made[-1].with_changes(comma=updated.comma)
    return made


def _tuples(
    sources: Mapping[str, Source], callers: Callers, function: Function, names: Sequence[str], parameter: str
) -> Iterator[tuple[str, cst.Call, cst.Arg, list[str]]]:
    """The calls of a helper, the argument of each that is a tuple, and its elements as text (none: not known)."""
    for path, source in sources.items():
        for outer in functions_of(source.module):
            for call in walk(outer.body):
                if not isinstance(call, cst.Call) or callers.called(path, call.func) != function:
                    continue
                arg = (keyword_of(call, names) or {}).get(parameter)
                if arg is None or arg.keyword is not None:
                    yield path, call, cst.Arg(cst.Name("None")), []
                elif isinstance(arg.value, cst.Name):
                    size = _uses(outer, arg.value.value).size
                    yield path, call, arg, [f"{arg.value.value}[{index}]" for index in range(size)]
                else:
                    yield path, call, arg, [code_of(each) for each in elements(arg.value) or ()]
