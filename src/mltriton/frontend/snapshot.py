"""What a compilation sees of the world outside a kernel: what names meant when the key of its cache entry was made.

Level: above `tt`. A global may be given another value, by another thread, while a kernel that names it is compiled: the
compilation reads what the key covers. Python functions that run when compiling (`constexpr_function`) may answer by
anything: their calls are recorded, and an entry of the cache holds only where they give the same answers again.
Imports nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, cast

from mltriton.errors import NameNotFoundError
from mltriton.language.types import by_name, dtype
from mltriton.records import record

UNSEEN = object()

# Modules whose functions give the same result for the same arguments in every process of one version of Python.
_PURE = frozenset({"builtins", "math", "operator", "_operator", "mltriton", "triton"})

Call = list[Any]  # the number of a function among `Snapshot.functions`, its arguments, its keywords, its result


@record()
class Snapshot:
    """Objects by who names them: a function's `Environment`, or (by id) a module or class that has an attribute.

    `functions` are the Python functions that run when compiling; `calls` those of their calls that were made, in a form
    that another process can repeat, None where it could not.
    """

    names: dict[tuple[Any, str], Any] = field(default_factory=dict[tuple[Any, str], Any])
    attributes: dict[tuple[int, str], Any] = field(default_factory=dict[tuple[int, str], Any])
    functions: list[Any] = field(default_factory=list[Any])
    calls: list[Call] | None = field(default_factory=list[Call])

    @contextmanager
    def seen(self) -> Generator[None]:
        """Let names mean what they meant within the `with` statement; `calls` are those made there."""
        seen = replace(self, calls=[])
        token = _current.set(seen)
        try:
            yield
        finally:
            _current.reset(token)
            self.calls = seen.calls

    def add(self, other: Snapshot) -> None:
        """Take what another snapshot knows besides."""
        self.names |= other.names
        self.attributes |= other.attributes
        self.functions += [function for function in other.functions if function not in self.functions]

    def still_holds(self, calls: Iterable[Call]) -> bool:
        """Whether the functions give the results that a compilation was given."""
        try:
            return all(self._repeat(*call) == call[3] for call in calls)
        except Exception:  # A function that fails now must fail again while compiling, with a location.
            return False

    def _repeat(self, number: int, arguments: Any, keywords: Mapping[str, Any], _: Any) -> object:
        named = {name: _plain(value) for name, value in keywords.items()}
        return _portable(self.functions[number].fn(*_plain(arguments), **named))


_current: ContextVar[Snapshot | None] = ContextVar("mltriton_snapshot", default=None)


def seen_name(environment: Any, name: str) -> Any:
    """What a name of a function meant; `UNSEEN` outside a compilation, or where nobody knew of it."""
    snapshot = _current.get()
    return UNSEEN if snapshot is None else snapshot.names.get((environment, name), UNSEEN)


def attribute_of(owner: Any, name: str, *default: Any) -> Any:
    """What `owner.name` meant, or means where nobody knew of it; as `getattr` for nothing."""
    snapshot = _current.get()
    found = UNSEEN if snapshot is None else snapshot.attributes.get((id(owner), name), UNSEEN)
    return getattr(owner, name, *default) if found is UNSEEN else found


def record_call(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
    """Remember that the compilation was given `result` by a Python function."""
    snapshot = _current.get()
    if snapshot is None or snapshot.calls is None or _is_pure(getattr(function, "fn", function)):
        return
    try:
        named = {name: _portable(value) for name, value in keywords.items()}
        call = [snapshot.functions.index(function), _portable(tuple(arguments)), named, _portable(result)]
    except (TypeError, ValueError):
        snapshot.calls = None
    else:
        if call not in snapshot.calls:
            snapshot.calls.append(call)


def _is_pure(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return module.partition(".")[0] in _PURE


def _portable(value: Any) -> Any:
    """A constant as JSON. Raises `TypeError` for what another process may not know."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": repr(value)}
    if isinstance(value, dtype) and _is_named(value):
        return {"dtype": value.name}
    if type(value) in (tuple, list):
        return {type(value).__name__: [_portable(item) for item in cast("Sequence[Any]", value)]}
    raise TypeError


def _is_named(kind: dtype) -> bool:
    try:
        return by_name(kind.name) == kind
    except NameNotFoundError:
        return False


def _plain(value: Any) -> Any:
    """The constant of its JSON."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = cast("dict[str, Any]", value).items()
    if kind in ("tuple", "list"):
        items = [_plain(item) for item in content]
        return tuple(items) if kind == "tuple" else items
    return float(content) if kind == "float" else by_name(content)
