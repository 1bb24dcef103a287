"""Migrate the text of one file.

Level: source text. Guarantees: the new text parses; what could not be decided is as it was and has a note; migrating
the new text again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice, choose, leaving
from mltriton.tools.migrate.classify.group import Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.classify.rows import Rows
from mltriton.tools.migrate.flatten.flattening import flattened
from mltriton.tools.migrate.flatten.program import Notes, moved
from mltriton.tools.migrate.read.parse import Source, functions_of, parse
from mltriton.tools.migrate.read.sizes import Sizes
from mltriton.tools.migrate.read.syntax import cst
from mltriton.tools.migrate.report.notes import note_annotations, note_group
from mltriton.tools.migrate.result import Note, Options, Result, Site
from mltriton.tools.migrate.rewrite.edits import Edits
from mltriton.tools.migrate.rewrite.naming import Namer
from mltriton.tools.migrate.rewrite.rewriting import rewrite_group
from mltriton.tools.migrate.rewrite.tidying import tidied, without_unused_imports

_BYTE_ORDER_MARK = "\ufeff"
MARKS = ("make_block_ptr", "advance", "boundary_check")
MASK = "mask="


def migrate_source(text: str, path: str = "<source>", options: Options | None = None) -> Result:
    """Migrate the text of a file; MigrationError where it does not parse."""
    return migrate_sources({path: text}, options)[path]


def migrate_sources(
    texts: Mapping[str, str], options: Options | None = None, launchers: Mapping[str, str] | None = None
) -> dict[str, Result]:
    """Migrate files that call each other's helpers; MigrationError where one does not parse.

    `launchers` are other files, which show how large the blocks of kernels are.
    """
    options = options or Options()
    launchers = launchers or {}
    if not any(mark in text for text in texts.values() for mark in (*MARKS, MASK)):
        return {path: Result(text, text, path) for path, text in texts.items()}
    parsed = {path: parse(text, path) for path, text in texts.items()}
    notes = Notes(texts)
    sources = flattened(parsed, notes)
    results = _migrated(sources, texts, notes, options, launchers)
    if any(result.unresolved and sources[path].text != texts[path] for path, result in results.items()):
        # That helpers take other things is no gain where what they do with them is not understood.
        as_they_are = _migrated(parsed, texts, Notes(texts), options, launchers)
        if _done(as_they_are) >= _done(results):
            return as_they_are
    return results


def _migrated(
    sources: Mapping[str, Source],
    texts: Mapping[str, str],
    notes: Notes,
    options: Options,
    launchers: Mapping[str, str],
) -> dict[str, Result]:
    results = {path: Result(text, text, path) for path, text in texts.items()}
    sizes = Sizes({**launchers, **{path: source.text for path, source in sources.items()}})
    for path, source in sources.items():
        _migrate_text(source, options, sizes, results[path], notes.of[path])
    if len(results) > 1:
        _set_beside(results, sources)
    return results


def _done(results: Mapping[str, Result]) -> int:
    """How many calls are migrated."""
    return sum(result.counts["descriptor"] + result.counts["pointer"] for result in results.values())


def _set_beside(results: Mapping[str, Result], sources: Mapping[str, Source]) -> None:
    """Let files that changed know each other, as what one calls in another may have changed as well."""
    changed = {path: result for path, result in results.items() if result.changed}
    contracts = {path: result.contract or sources[path].text for path, result in changed.items()}
    for path, result in changed.items():
        others = {other: each for other, each in changed.items() if other != path}
        result.beside = {other: (each.source, each.text, contracts[other]) for other, each in others.items()}
        result.contract = contracts[path] if others else result.contract


def _migrate_text(source: Source, options: Options, sizes: Sizes, result: Result, notes: Sequence[Note]) -> None:
    edits = Edits()
    contract = Edits()
    for function in functions_of(source.module):
        _migrate_function(source, function, options, sizes, edits, contract, result)
    mark = _BYTE_ORDER_MARK if result.source.startswith(_BYTE_ORDER_MARK) else ""
    text = without_unused_imports(edits.apply(source.module), source.direct)
    if edits.functions:
        text = tidied(text, source.path, result.kernels, source.text)
    result.text = mark + text.removeprefix(mark)
    result.contract = contract.apply(source.module) if contract.replace else None
    if source.text != result.source:
        lines = moved(source.text, result.source)
        result.notes = [*notes, *(replace(note, line=lines(note.line)) for note in result.notes)]
        for name, sites in result.sites.items():
            result.sites[name] = [Site(lines(site.line), -1, site.kind) for site in sites]
        result.counts["helpers changed"] += len(notes)


def _migrate_function(
    source: Source,
    function: cst.FunctionDef,
    options: Options,
    sizes: Sizes,
    edits: Edits,
    contract: Edits,
    result: Result,
) -> None:
    pointers = Pointers(source, function)
    if not pointers.groups:
        return
    bounds = Bounds(source, pointers)
    rows = Rows(source, pointers, sizes)
    choices: dict[Group, Choice] = {group: choose(group, bounds, rows, options) for group in pointers.groups}
    result.kernels.append(function.name.value)
    if source.language() is None:
        choices = {
            group: Choice("unresolved", ("the file does not import triton.language as a name",)) for group in choices
        }
    edits.functions.add(function)
    namer = Namer(source.module.code_for_node(function))
    for group, choice in choices.items():
        context = rewrite_group(pointers, bounds, group, choices, namer, edits) if choice.form != "unresolved" else None
        note_group(source, pointers, group, choice, context, result)
        if choice.form == "descriptor":
            _check_everything(group, choice, bounds, contract)
            contract.functions.add(function)
    note_annotations(source, pointers, bounds, result)


def _check_everything(group: Group, choice: Choice, bounds: Bounds, contract: Edits) -> None:
    """Let the accesses that had to stay inside their shape check every dimension, as the descriptor does."""
    for access in group.accesses:
        if leaving(group, bounds, access, choice.folded):
            dims = ", ".join(map(str, range(group.constructs[0].rank)))
            contract.replace[access.call] = lambda call, dims=dims: _with_check(call, dims)


def _with_check(call: cst.Call, dims: str) -> cst.Call:
    kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "boundary_check"]
    check = cst.Arg(cst.parse_expression(f"({dims},)"), keyword=cst.Name("boundary_check"))
    return call.with_changes(args=[*kept, check])
