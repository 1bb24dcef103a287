"""What a function's meaning depends on besides its own text: the constants and functions it names.

Level: above `tt`. Gives a fingerprint (equal in every process) for cache keys, a list of what to watch, since a global
may be given another value later, and the snapshot that is compiled. Guarantees: what a kernel reads by name from
outside itself is either in the fingerprint or part of the compiler.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from functools import partial
from types import CodeType, ModuleType
from typing import Any, cast

from mltriton.frontend.environment import ABSENT
from mltriton.frontend.function import ConstexprFunction, LanguageFunction, as_constexpr_function
from mltriton.frontend.snapshot import Snapshot
from mltriton.language.constants import constexpr, unwrap
from mltriton.language.types import dtype
from mltriton.records import record

_LOOP = re.compile(r"\b(for|while)\b")
_COMPILER = ("mltriton", "triton")  # Modules named triton are names of ours where mltriton stands in for it.


Watched = tuple[Callable[[str], Any], str, Any]


@record()
class Dependencies:
    """`parts` is text that identifies everything found, and `snapshot` has the objects themselves.

    `watched` says how a name is looked up (`find(name)`), and what was found.
    """

    parts: list[str] = field(default_factory=list[str])
    watched: list[Watched] = field(default_factory=list[Watched])
    snapshot: Snapshot = field(default_factory=Snapshot)

    def have_changed(self) -> bool:
        """Whether a watched name means another object now."""
        return any(find(name) is not value for find, name, value in self.watched)

    @property
    def may_loop(self) -> bool:
        """Whether one of the functions may have a loop: its text has such a word, if only in a comment."""
        return any(map(_LOOP.search, self.parts))

    def with_functions(self, functions: Sequence[LanguageFunction]) -> Dependencies:
        """What depends on other functions too, which are watched here from now on."""
        if not functions:
            return self
        others = dependencies(*functions)
        known = {(name, id(value)) for _, name, value in self.watched}
        self.watched += [watched for watched in others.watched if (watched[1], id(watched[2])) not in known]
        joined = Dependencies([*self.parts, *others.parts], self.watched)
        joined.snapshot.add(self.snapshot)
        joined.snapshot.add(others.snapshot)
        return joined


def dependencies(*functions: LanguageFunction) -> Dependencies:
    """What functions and the functions they call depend on."""
    found = Dependencies()
    pending, seen = list(functions), set(map(id, functions))
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
    found.parts.append(repr([(p.name, identity(p.default)) for p in fn.signature.parameters.values()]))
    called: list[LanguageFunction] = []
    for find, name, value in _objects(fn, found.snapshot):
        inner = unwrap(value)
        if not isinstance(inner, ModuleType) and getattr(inner, "is_aggregate", False):
            called += _methods(inner, found)
        if isinstance(inner, LanguageFunction):
            called.append(inner)
        elif not _add(value, name, found):
            continue
        found.watched.append((find, name, value))
    return called


def _methods(kind: type, found: Dependencies) -> list[LanguageFunction]:
    """Add what an aggregate is; gives its methods that are written in the language."""
    found.parts.append(text_of(kind))
    functions = [getattr(member, "fn", member) for member in vars(kind).values()]
    found.parts += [text_of(fn) for fn in functions if inspect.isfunction(fn)]
    return [fn for fn in functions if isinstance(fn, LanguageFunction)]


def _objects(fn: LanguageFunction, snapshot: Snapshot) -> Iterator[Watched]:
    """The objects outside a function that its byte code may name: globals, closure variables, attributes of modules and
    classes.

    Byte code does not say of what an attribute is read, so every module and class named is asked for every attribute
    named: an object too many only makes the key more specific.
    """
    mentioned = list(dict.fromkeys(_names_in(fn.fn.__code__)))
    owners: list[Any] = []
    for name in mentioned:
        value = snapshot.names[fn.environment, name] = fn.environment.look_up(name)
        if value is not ABSENT:
            yield fn.environment.lookup(name), name, value
            owners += [value] if _is_users(value) else []
    for owner in owners:  # Grows while modules of modules are found.
        find = vars(owner).get if isinstance(owner, ModuleType) else partial(_attribute, owner)
        for name in mentioned:
            value = find(name, ABSENT)
            if value is not ABSENT:
                snapshot.attributes[id(owner), name] = value
                yield find, name, value
                owners += [value] if _is_users(value) and value not in owners else []


def _attribute(owner: type, name: str, absent: object = None) -> Any:
    return getattr(owner, name, absent)


def _is_users(value: Any) -> bool:
    """Whether a value is a module or a class that is no part of the compiler, nor Python's own."""
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__ if isinstance(value, type) else ""
    return bool(name) and name.split(".")[0] not in (*_COMPILER, "builtins")


def _names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in byte code, and the variables it closes over."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _add(value: Any, name: str, found: Dependencies) -> bool:
    """Add what a value contributes; whether it is worth watching."""
    value = as_constexpr_function(value) if isinstance(value, constexpr) else value
    if isinstance(value, ConstexprFunction):
        is_users = value.fn.__module__.split(".")[0] not in _COMPILER
        found.parts.append(text_of(value))
        if is_users and value not in found.snapshot.functions:
            found.snapshot.functions.append(value)
        return is_users
    if isinstance(value, tuple | int | float | str | dtype | Enum) or value is None:
        found.parts.append(f"{name} = {identity(value)}")
        return True
    return _is_users(value)


def identity(value: Any) -> str:
    """What identifies a constant in every process; an object that nothing identifies is told apart by its address."""
    value = value.value if isinstance(value, constexpr) else value
    if isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        return f"{type(items).__name__} {[identity(item) for item in items]}"
    if isinstance(value, Enum):
        return f"{type(value).__module__}.{type(value).__qualname__}.{value.name} {identity(value.value)}"
    return f"dtype {value.name}" if isinstance(value, dtype) else repr(value)


def text_of(fn: Any) -> str:
    """The text of a class, or of a function that runs when compiling; what stands for it where no file has it."""
    if isinstance(fn, ConstexprFunction):
        return fn.__dict__.get("_text") or text_of(fn.fn)
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        if isinstance(fn, type):
            return repr(fn)
        return fn.__code__.co_code.hex() + repr(fn.__code__.co_consts)
