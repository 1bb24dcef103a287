"""What a function's meaning depends on besides its own text: the constants and functions it names.

Level: above `tt`. Gives a fingerprint (equal in every process) for cache keys, and a list of what to watch, since a
global may be given another value later. Guarantees: everything a kernel may read from outside itself is either in the
fingerprint or part of the compiler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

from mltriton.frontend.function import ConstexprFunction, LanguageFunction
from mltriton.language.constants import constexpr, unwrap

_COMPILER = ("mltriton", "triton")  # Modules named triton are names of ours where mltriton stands in for it.


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
    pending, seen = [fn], {id(fn)}
    while pending:
        for called in _collect(pending.pop(), found):
            if id(called) not in seen:
                seen.add(id(called))
                pending.append(called)
    return found


def _collect(fn: LanguageFunction, found: Dependencies) -> list[LanguageFunction]:
    """Add what a function depends on itself; gives the functions that it names."""
    # The first line is part of the meaning: messages of the kernel name lines.
    found.parts.append(f"{fn.__name__} {fn.source.first_line} {fn.source.text}")
    found.parts.append(repr([(p.name, repr(unwrap(p.default))) for p in fn.signature.parameters.values()]))
    called: list[LanguageFunction] = []
    for find, name, value in _objects(fn):
        if isinstance(value, LanguageFunction):
            called.append(value)
        elif not _add(value, name, found):
            continue
        found.watched.append((find, name, value))
    return called


def _objects(fn: LanguageFunction) -> Iterator[Watched]:
    """The objects outside a function that its byte code may name: globals, closure variables, attributes of modules.

    Byte code does not say which module an attribute is read from, so every module named is asked for every attribute
    named: an object too many only makes the key more specific.
    """
    mentioned = list(dict.fromkeys(_names_in(fn.fn.__code__)))
    modules: list[ModuleType] = []
    for name in mentioned:
        if fn.environment.has(name):
            value = fn.environment.find(name)
            yield fn.environment.lookup(name), name, value
            modules += [value] if _is_users_module(value) else []
    for module in modules:  # Grows while modules of modules are found.
        for name in mentioned:
            value = vars(module).get(name)
            if value is not None:
                yield vars(module).get, name, value
                modules += [value] if _is_users_module(value) and value not in modules else []


def _is_users_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.split(".")[0] not in _COMPILER


def _names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in byte code, and the variables it closes over."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _add(value: Any, name: str, found: Dependencies) -> bool:
    """Add what a value contributes; whether it is worth watching."""
    if isinstance(value, ConstexprFunction):
        found.parts.append(_text_of(value.fn))
        return value.fn.__module__.split(".")[0] not in _COMPILER
    if isinstance(value, constexpr | tuple | int | float | str) or value is None:
        found.parts.append(f"{name} = {unwrap(value)!r}")
        return True
    return False


def _text_of(fn: Any) -> str:
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        return fn.__code__.co_code.hex() + repr(fn.__code__.co_consts)
