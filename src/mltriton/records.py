"""Records: dataclasses for which no code is generated.

Level: all. `@record(...)` takes the place of `@dataclass(...)` on classes that every start of the compiler makes:
`dataclass` writes and compiles the text of up to six methods, 0.4 ms for each class; here all classes share methods
that read the list of fields, 0.05 ms. Guarantees: `fields`, `replace`, `asdict`, patterns and inheritance work as with
a dataclass, also between both kinds. Making an instance takes about 1 us more: classes with very many instances stay
dataclasses. A class that states `__slots__` has them.

`NamedTuple` takes the place of `typing.NamedTuple` in the same way: that one compiles each annotation and a method,
0.15 ms for each class, this one nothing, 0.01 ms. Making an instance is as fast where all fields are given by position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from operator import itemgetter
from types import MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _TupleClass(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if bases == (tuple,) or hasattr(bases[0], "_fields"):  # `NamedTuple` itself; a class derived from a tuple's
                return super().__new__(cls, name, bases, namespace)
            names = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in names if field in namespace}
            own = {"_fields": names, "_field_defaults": defaults, "__match_args__": names, "__slots__": ()}
            getters = {field: property(itemgetter(index)) for index, field in enumerate(names)}
            return super().__new__(cls, name, bases, namespace | own | getters)

    class NamedTuple(tuple, metaclass=_TupleClass):
        """A tuple whose items have names: the class's annotations. The values there are defaults."""

        __slots__ = ()

        def __new__(cls, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
            """An instance, of values by position or name."""
            if kwargs or len(args) != len(cls._fields):
                args = cls._completed(args, kwargs)
            return tuple.__new__(cls, args)

        @classmethod
        def _completed(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
            given = dict(zip(cls._fields, args, strict=False))
            values = cls._field_defaults | given | kwargs
            if len(args) > len(cls._fields) or given.keys() & kwargs.keys() or values.keys() ^ {*cls._fields}:
                raise TypeError(_complaint(cls, cls._fields, frozenset(), args, kwargs))
            return [values[name] for name in cls._fields]

        def _replace(self, **changes: Any) -> tuple[Any, ...]:
            return type(self)(**(self._asdict() | changes))

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"


@dataclass_transform(field_specifiers=(field,))
def record(*, frozen: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a class with annotated fields a record. The options are those of `dataclass`."""

    def make(cls: type[Any]) -> type[Any]:
        own = _fields_of(cls)
        compared = tuple(name for name, item in own.items() if item.compare)
        methods: dict[str, Any] = {"__init__": _init(cls, own), "__repr__": _repr}
        if eq:
            methods |= {"__eq__": _eq(compared), "__hash__": _hash(compared) if frozen else None}
        if frozen:
            methods |= {"__setattr__": _no_setting, "__delattr__": _no_deleting}
        methods["__match_args__"] = tuple(name for name, item in own.items() if item.init and not item.kw_only)
        written = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
        for name, method in methods.items():
            if name not in written:
                setattr(cls, name, method)
        cls.__dataclass_fields__ = own
        cls.__dataclass_params__ = SimpleNamespace(frozen=frozen, eq=eq)
        return cls

    return make


_ORDINARY: Any = vars(dataclasses)["_FIELD"]  # the mark of fields that belong to instances


def _fields_of(cls: type[Any]) -> dict[str, Field[Any]]:
    """Fields of base classes first, then the class's own."""
    found: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        found |= getattr(base, "__dataclass_fields__", {})
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        if not str(annotation).startswith("ClassVar"):
            found[name] = _own_field(cls, name, annotation)
    return found


def _own_field(cls: type[Any], name: str, annotation: Any) -> Field[Any]:
    """One field, and the class's attribute what `dataclass` makes of it: the default, or nothing."""
    stated: Any = vars(cls).get(name, MISSING)
    if isinstance(stated, MemberDescriptorType):  # a slot
        stated = MISSING
    made: Any = stated if _is_field(stated) else field(default=stated)
    made.name, made.type, made.kw_only, made._field_type = name, annotation, made.kw_only is True, _ORDINARY
    if made is stated and made.default is MISSING:
        delattr(cls, name)
    elif made is stated:
        setattr(cls, name, made.default)
    return made


def _is_field(stated: object) -> bool:
    return isinstance(stated, Field)


def _init(cls: type[Any], own: dict[str, Field[Any]]) -> Callable[..., None]:
    names = tuple(name for name, item in own.items() if item.init and not item.kw_only)
    taken = frozenset(name for name, item in own.items() if item.init)
    defaults = {name: item.default for name, item in own.items() if item.default is not MISSING}
    factories = [(name, item.default_factory) for name, item in own.items() if item.default_factory is not MISSING]
    has_slots, finish, count = "__slots__" in vars(cls), hasattr(cls, "__post_init__"), len(own)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs or len(args) > len(names):
            given = dict(zip(names, args, strict=False))
            if len(args) > len(names) or not kwargs.keys() <= taken - given.keys():
                raise TypeError(_complaint(cls, names, taken, args, kwargs))
            values = defaults | given | kwargs
        else:
            values = {**defaults, **dict(zip(names, args, strict=False))}
        for name, factory in factories:
            if name not in values:
                values[name] = factory()  # pyright: ignore[reportCallIssue]
        if len(values) != count:
            raise TypeError(_complaint(cls, names, taken, args, kwargs))
        if has_slots:
            for name, value in values.items():
                object.__setattr__(self, name, value)
        else:
            self.__dict__.update(values)
        if finish:
            self.__post_init__()

    return init


def _complaint(cls: type[Any], names: tuple[str, ...], taken: frozenset[str], args: Any, kwargs: Any) -> str:
    wanted = [*names, *sorted(taken.difference(names))]
    return f"{cls.__name__}.__init__() takes {', '.join(wanted)}; got {len(args)} by position and {[*kwargs]} by name"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{type(self).__qualname__}({shown})"


def _eq(compared: tuple[str, ...]) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    return equal


def _hash(compared: tuple[str, ...]) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(tuple([getattr(self, name) for name in compared]))

    return hashed


def _no_setting(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deleting(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
