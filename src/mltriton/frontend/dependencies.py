"""What a function's meaning depends on besides its own text: the constants and functions it names.

Level: above `tt`. Gives a fingerprint (equal in every process) for cache keys, and a list of what to watch, since a
global may be given another value later. Guarantees: everything a kernel may read from outside itself is either in the
fingerprint or part of the compiler.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from mltriton.frontend import names
from mltriton.frontend.function import ConstexprFunction, LanguageFunction
from mltriton.language.constants import constexpr, unwrap

_COMPILER = "mltriton"


Watched = tuple[Callable[[str], Any], str, Any]


@dataclass
class Dependencies:
    """`parts` is text that identifies everything found.

    `watched` says how a name is looked up (`find(name)`), and what was found.
    """

    parts: list[str] = field(default_factory=list[str])
    watched: list[Watched] = field(default_factory=list[Watched])

    def have_changed(self) -> bool:
        """Whether a watched name means another object now."""
        return any(find(name) is not value for find, name, value in self.watched)


def dependencies(fn: LanguageFunction) -> Dependencies:
    """What `fn` and the functions it calls depend on."""
    found = Dependencies()
    _collect(fn, found, set())
    return found


def _collect(fn: LanguageFunction, found: Dependencies, seen: set[int]) -> None:
    if id(fn) in seen:
        return
    seen.add(id(fn))
    # The first line is part of the meaning: messages of the kernel name lines.
    found.parts.append(f"{fn.__name__} {fn.source.first_line} {fn.source.text}")
    found.parts.append(repr([(p.name, repr(unwrap(p.default))) for p in fn.signature.parameters.values()]))
    for chain in _outer_chains(fn.source.tree):
        for find, name, value in _objects(fn, chain):
            if _add(value, ".".join(chain), found, seen):
                found.watched.append((find, name, value))


def _outer_chains(tree: ast.FunctionDef) -> Iterator[tuple[str, ...]]:
    """The dotted names in a function's body that are not its own variables, each once."""
    parameters = {a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)}
    own = parameters | names.assigned(tree.body).keys()
    chains = (chain for stmt in tree.body for chain in names.loaded_chains(stmt))
    return iter(dict.fromkeys(chain for chain in chains if chain[0] not in own))


def _objects(fn: LanguageFunction, chain: tuple[str, ...]) -> Iterator[Watched]:
    """The objects on the way of a dotted name.

    The first name's, then attributes of modules that are not the compiler's.
    """
    if not fn.environment.has(chain[0]):
        return
    value = fn.environment.find(chain[0])
    yield fn.environment.lookup(chain[0]), chain[0], value
    for attribute in chain[1:]:
        if not isinstance(value, ModuleType) or value.__name__.split(".")[0] == _COMPILER:
            return
        find = vars(value).get
        value = find(attribute)
        yield find, attribute, value


def _add(value: Any, name: str, found: Dependencies, seen: set[int]) -> bool:
    """Add what a value contributes; whether it is worth watching."""
    if isinstance(value, LanguageFunction):
        _collect(value, found, seen)
        return True
    if isinstance(value, ConstexprFunction):
        found.parts.append(_text_of(value.fn))
        return not value.fn.__module__.startswith(_COMPILER)
    if isinstance(value, constexpr | tuple | int | float | str) or value is None:
        found.parts.append(f"{name} = {unwrap(value)!r}")
        return True
    return False


def _text_of(fn: Any) -> str:
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        return fn.__code__.co_code.hex() + repr(fn.__code__.co_consts)
