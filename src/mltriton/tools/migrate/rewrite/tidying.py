"""The last step: what the rules wrote, one pointer after the other, as a person would have written it.

Level: source text. Identical descriptors, counters and ranges become one, branches with identical bodies one body, and
comments speak of what is there. Guarantees: the text does the same; only functions that were migrated are touched, and
in them only what the migration wrote. Every comment survives, with new words for block pointers.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence

from mltriton.tools.migrate.read.parse import LANGUAGES, Source, functions_of, parse
from mltriton.tools.migrate.read.syntax import children, code_of, cst, dotted, walk
from mltriton.tools.migrate.rewrite.edits import Edits, Replacement
from mltriton.tools.migrate.rewrite.sharing import (
    Function,
    Old,
    drop_repeated_asserts,
    hoist_common,
    share_counters,
    share_descriptors,
    squeezed,
)

_ROUNDS = 32
_WORD = re.compile(r"[^\W\d]\w*")
_BLOCK_POINTER = re.compile(r"\b(b)lock[ _-]?(?:pointer|ptr)(s?)\b", re.IGNORECASE)


def tidied(text: str, path: str, names: Sequence[str], old_text: str) -> str:
    """The new text of a file whose functions `names` were migrated."""
    source = parse(text, path)
    old = Old(frozenset(_WORD.findall(old_text)), "".join(old_text.split()), set(_WORD.findall(text)))
    edits = Edits()
    for node in functions_of(source.module):
        if node.name.value in names:
            tidy = _tidied(source, node, old)
            if tidy is not node:
                edits.functions.add(node)
                edits.replace[node] = lambda _, tidy=tidy: tidy
    return edits.apply(source.module)


def _tidied(source: Source, node: cst.FunctionDef, old: Old) -> cst.FunctionDef:
    """A function after every step, each repeated until it finds nothing more."""
    for step in _STEPS:
        for _ in range(_ROUNDS):
            edits = Edits()
            if not step(Function(source, node, old), edits):
                break
            edits.functions.add(node)
            node = edits.applied(node)
    return _speaking_of_descriptors(node)


def join_branches(function: Function, edits: Edits) -> bool:
    """Take the one body of a branch whose sides do the same, where its test does nothing else."""
    for statement in function.flow.before:
        if not isinstance(statement, cst.If) or not isinstance(statement.orelse, cst.Else):
            continue
        sides = [_plain(suite) for suite in (statement.body, statement.orelse.body)]
        new = squeezed(statement) not in function.old.text
        if new and sides[0] == sides[1] and function.bounds.is_pure(statement.test):
            edits.unwrap.add(statement)
            return True
    return False


def join_choices(function: Function, edits: Edits) -> bool:
    """Take the one value of a choice between equals that the migration wrote."""
    chosen = [node for node in walk(function.node) if isinstance(node, cst.IfExp)]
    for node in chosen:
        new = squeezed(node) not in function.old.text
        if new and squeezed(node.body) == squeezed(node.orelse) and function.bounds.is_pure(node.test):
            edits.replace[node] = constantly_bare(node.body)
    return bool(edits.replace)


def constantly_bare(node: cst.BaseExpression) -> Replacement:
    """Another expression, in no more parentheses than its own."""
    return lambda updated: node.deep_clone()


class _Comments(cst.CSTTransformer):
    """Lets comments speak of what block pointers became."""

    def __init__(self, became: str) -> None:
        super().__init__()
        self.became = became

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:  # noqa: N802
        return updated_node.with_changes(value=_BLOCK_POINTER.sub(self._named, updated_node.value))

    def _named(self, found: re.Match[str]) -> str:
        return f"{self.became.capitalize() if found[1].isupper() else self.became}{found[2]}"


def _speaking_of_descriptors(node: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose comments speak of descriptors, or of pointers where it has none."""
    code = code_of(node)
    if "make_block_ptr" in code or not _BLOCK_POINTER.search(code):
        return node
    became = "descriptor" if ".make_tensor_descriptor(" in code else "pointer"
    changed = node.visit(_Comments(became))
    assert isinstance(changed, cst.FunctionDef)
    return changed


def _plain(suite: cst.BaseSuite) -> str:
    """A suite as text without white space and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(f"if 1:{code_of(suite)}\n").readline)
    kept = (each for each in tokens if each.type not in (tokenize.COMMENT, tokenize.NL))
    return " ".join(each.string if each.string.strip() else str(each.type) for each in kept)


_STEPS: Sequence[Callable[[Function, Edits], bool]] = (
    share_descriptors,
    drop_repeated_asserts,
    hoist_common,
    share_counters,
    join_choices,
    join_branches,
)


_GONE = ("make_block_ptr", "advance")


def without_unused_imports(text: str, direct: Mapping[str, str]) -> str:
    """A migrated text without imports of make_block_ptr and advance that nothing uses any more."""
    bound = {name for name, function in direct.items() if function in _GONE}
    if not bound:
        return text
    module = cst.parse_module(text)
    bound -= _names(module)
    edits = Edits()
    for node in walk(module):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            origin = dotted(node.module) if node.module is not None else None
            kept = [each for each in node.names if origin not in LANGUAGES or _bound(each) not in bound]
            if not kept:
                edits.remove.add(node)
            elif len(kept) < len(node.names):
                last = kept[-1].with_changes(comma=node.names[-1].comma)
                edits.replace[node] = lambda updated, names=[*kept[:-1], last]: updated.with_changes(names=names)
    return edits.apply(module, everywhere=True)


def _bound(alias: cst.ImportAlias) -> str:
    return (dotted(alias.asname.name) if alias.asname is not None else None) or dotted(alias.name) or ""


def _names(node: cst.CSTNode) -> set[str]:
    """Every name outside imports."""
    if isinstance(node, cst.Name):
        return {node.value}
    if isinstance(node, cst.Import | cst.ImportFrom):
        return set()
    return {name for child in children(node) for name in _names(child)}
