"""Tuples that hold block pointers become a variable for each element.

Level: source text, before the other rules. `pair = (p, q)` becomes `pair_0, pair_1 = (p, q)` where the tuple is only
written out, unpacked, indexed by numbers, returned, spread with a star, or passed to helpers that do the same with it.
Guarantees: the result does the same; any other tuple stays and is explained by the analysis of pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.flatten.parameters import New, spread, take_apart
from mltriton.tools.migrate.flatten.program import Change, Changed, Program, Site
from mltriton.tools.migrate.read.flow import parameters_of
from mltriton.tools.migrate.read.parse import MAKERS, Source, functions_of
from mltriton.tools.migrate.read.syntax import children, code_of, constant_int, cst, elements, walk
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.naming import Namer


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

    def fits(self, size: int) -> bool:
        """Whether the function takes it for a tuple of so many."""
        return self.understood and self.size in (0, size) and all(index < size for _, index in self.indexed)


def without_tuple(program: Program) -> Changed | None:
    """Take one tuple apart, or one tuple that is passed to a helper; None when there is none (more)."""
    for path, source in program.sources.items():
        for function in functions_of(source.module):
            for name in sorted(_pointer_tuples(source, function)):
                uses = _uses(function, name)
                if not uses.size or not uses.fits(uses.size):
                    continue
                whole = [each for each in uses.passed if each[1].star == ""]
                if not whole:
                    return [], {path: _taken_apart(source, function, uses)}
                changed = next((found for each in whole if (found := _parameter(program, path, *each))), None)
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
    edits = Edits()
    edits.functions.add(function)
    _replace(edits, uses, [namer.fresh(f"{uses.name}_{index}") for index in range(uses.size)])
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
        edits.replace[arg] = lambda updated: spread(updated, names, names)


def _parameter(program: Program, path: str, call: cst.Call, arg: cst.Arg) -> Changed | None:
    """Take the tuple apart that a helper gets through one of its parameters, in the helper and in its calls."""
    receiver = program.receiver(path, call, arg)
    if receiver is None:
        return None
    function, parameter = receiver
    sites, change = program.sites(function), Change(program, function)
    param = next((each for each in parameters_of(change.helper) if each.name.value == parameter), None)
    texts = [_elements(site, parameter) for site in sites]
    uses, size = _uses(change.helper, parameter), len(texts[0])
    alike = size > 0 and all(len(each) == size for each in texts)
    if param is None or param.annotation is not None or not alike or not uses.fits(size) or uses.made or uses.passed:
        return None
    namer = Namer(code_of(change.helper))
    names = [namer.fresh(f"{parameter}_{index}") for index in range(size)]
    take_apart(change, param, sites, [New(*each) for each in zip(names, zip(*texts, strict=True), strict=True)])
    _replace(change.own, uses, names)
    return change.finished(f"takes {', '.join(names)} instead of the tuple {parameter}")


def _elements(site: Site, parameter: str) -> list[str]:
    """The elements of the tuple that a call passes, as text; none where they are not known."""
    arg = site.passed.get(parameter)
    if arg is not None and isinstance(arg.value, cst.Name):
        return [f"{arg.value.value}[{index}]" for index in range(_uses(site.caller, arg.value.value).size)]
    return [code_of(each) for each in elements(arg.value) or ()] if arg is not None else []
