"""Imports of functions that Triton has no longer: `from triton.language import advance` fails there.

Level: source text.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.tools.migrate.read.parse import LANGUAGES
from mltriton.tools.migrate.read.syntax import children, cst, dotted, walk
from mltriton.tools.migrate.rewrite.edits import Edits

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
