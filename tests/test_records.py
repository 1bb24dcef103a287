"""Records behave as dataclasses do, and named tuples as `typing`'s: each claim is checked on both kinds of a class."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import ClassVar
from typing import NamedTuple as TypingsNamedTuple

import pytest

from mltriton.records import NamedTuple, record


def classes(decorate):
    """The same classes by either decorator: frozen, changeable, derived."""

    @decorate(frozen=True)
    class Point:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, compare=False)
        kind: ClassVar[str] = "point"
        hidden: int = field(default=5, repr=False, kw_only=True)

        def __post_init__(self):
            if self.x < 0:
                raise ValueError("left of the axis")

    @decorate()
    class Box:
        size: int = 1

    @decorate(frozen=True)
    class Deeper(Point):
        z: int = 3

    return Point, Box, Deeper


BOTH = pytest.mark.parametrize("decorate", [record, dataclass])


@BOTH
def test_making(decorate):
    point, box, deeper = classes(decorate)
    made = point(1, names=["a"])
    assert (made.x, made.y, made.names, made.hidden, made.kind) == (1, 2, ["a"], 5, "point")
    assert deeper(1, 2, ["n"], 9).z == 9
    assert point(1).names is not point(1).names
    assert box().size == 1 and box(4).size == 4
    for wrong in ((), (1, 2, [], 5)):
        with pytest.raises(TypeError):
            point(*wrong)
    for wrong in ({"other": 1}, {"x": 2}):
        with pytest.raises(TypeError):
            point(1, **wrong)
    with pytest.raises(ValueError, match="axis"):
        point(-1)


@BOTH
def test_comparing_and_showing(decorate):
    point, box, deeper = classes(decorate)
    assert point(1, names=["a"]) == point(1) != point(1, 3)
    assert point(1) != deeper(1)
    assert hash(point(1)) == hash(point(1, names=["a"])) and box.__hash__ is None
    assert repr(point(1)).endswith("Point(x=1, y=2, names=[])")
    assert repr(deeper(1)).endswith("Deeper(x=1, y=2, names=[], z=3)")
    match point(4):
        case point(x, y):
            assert (x, y) == (4, 2)


@BOTH
def test_changing(decorate):
    point, box, _ = classes(decorate)
    made = point(1)
    with pytest.raises(FrozenInstanceError):
        made.x = 2
    with pytest.raises(FrozenInstanceError):
        del made.x
    assert replace(made, y=7) == point(1, 7)
    changed = box()
    changed.size = 3
    assert changed == box(3)


@BOTH
def test_fields(decorate):
    point, _, deeper = classes(decorate)
    assert [item.name for item in fields(deeper)] == ["x", "y", "names", "hidden", "z"]
    assert asdict(point(1)) == {"x": 1, "y": 2, "names": [], "hidden": 5} and is_dataclass(point)
    assert not hasattr(point, "names") and point.y == 2


def test_both_kinds_inherit_from_each_other():
    for outer, inner in ((record, dataclass), (dataclass, record)):
        point = classes(inner)[0]

        @outer(frozen=True)
        class Named(point):
            name: str = "n"

        assert Named(1) == Named(1, 2) and Named(1, name="m").name == "m" and Named(1).hidden == 5


@record(frozen=True)
class Slotted:
    __slots__ = ("first", "second")
    first: int
    second: int

    def __eq__(self, other):
        return isinstance(other, Slotted) and self.first == other.first


@record()
class Plain:
    items: list[int] = field(default_factory=list)


def test_slots_and_methods_of_the_class_are_kept():
    made = Slotted(1, 2)
    assert not hasattr(made, "__dict__") and made == Slotted(1, 5) and replace(made, second=3).second == 3
    assert pickle.loads(pickle.dumps(Plain([3]))) == Plain([3])


class Ours(NamedTuple):
    """A part of a line."""

    first: int
    size: int = 3

    @property
    def end(self) -> int:
        return self.first + self.size


class Typings(TypingsNamedTuple):
    """A part of a line."""

    first: int
    size: int = 3

    @property
    def end(self) -> int:
        return self.first + self.size


@pytest.mark.parametrize("part", [Ours, Typings])
def test_named_tuples(part):
    made = part(1)
    assert made == (1, 3) == part(first=1) == part(1, size=3) == part(size=3, first=1)
    assert (made.first, made.size, made.end, *made, made[-1]) == (1, 3, 4, 1, 3, 3)
    assert hash(made) == hash((1, 3)) and made < part(2) and isinstance(made, tuple)
    assert made._replace(size=7) == (1, 7) and made._asdict() == {"first": 1, "size": 3}
    assert part._fields == part.__match_args__ == ("first", "size")
    assert repr(made) == f"{part.__name__}(first=1, size=3)"
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made and type(copy) is part
    match made:
        case part(first, size=3):
            assert first == 1
        case _:
            pytest.fail("no pattern fits")
    with pytest.raises(AttributeError):
        made.first = 2
    with pytest.raises(AttributeError):
        made.other = 2
    for wrong, names in (((), {}), ((1, 2, 3), {}), ((1, 2), {"size": 4}), ((1,), {"other": 4}), ((), {"size": 1})):
        with pytest.raises(TypeError):
            part(*wrong, **names)
    with pytest.raises((TypeError, ValueError)):
        made._replace(other=1)

    class Derived(part):
        kind = "part"

    assert Derived(1) == (1, 3) and Derived(2).end == 5 and Derived.kind == "part"
