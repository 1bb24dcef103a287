"""Machine code written in Python's syntax: what its statements and expressions do, and what is refused."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import Any

import pytest

from mltriton.runtime.native import library
from mltriton.runtime.native.objects import load_object
from mltriton.runtime.native.translation import translated

pytestmark = pytest.mark.skipif(library.machine() is None, reason="no machine code for this machine")

HEAD = "from .language import *\n"


def function(source: str, name: str, result: Any, *parameters: Any) -> Any:
    """An exported function of a program."""
    image = library.compile_object(translated([HEAD + source]), f"{platform.machine()}-unknown-linux-gnu")
    loaded = load_object(image, (name,))
    made = ctypes.CFUNCTYPE(result, *parameters)(loaded.addresses[name])
    made.loaded = loaded  # type: ignore[attr-defined]
    return made


def test_loops_end_where_they_say() -> None:
    source = """
@exported
def collatz(n: i64) -> i64:
    steps = 0
    while True:
        if n == 1:
            break
        if n & 1 == 0:
            n = n >> 1
            steps += 1
            continue
        n = 3 * n + 1
        steps += 1
    for i in up_to(steps):
        if i > 1000:
            return -1
    return steps
"""
    collatz = function(source, "collatz", ctypes.c_int64, ctypes.c_int64)
    assert [collatz(n) for n in (1, 2, 3, 7, 27)] == [0, 1, 7, 16, 111]


def test_the_second_condition_is_looked_at_only_where_it_counts() -> None:
    source = """
calls: i64 = 0

def ask(answer: i64) -> i1:
    global calls
    calls += 1
    return answer != 0

@exported
def count(a: i64, b: i64) -> i64:
    global calls
    calls = 0
    both = ask(a) and not ask(b)
    if ask(a) or ask(b):
        calls += 100
    return calls + (1000 if both else 0)
"""
    count = function(source, "count", ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    assert {(a, b): count(a, b) for a in (0, 1) for b in (0, 1)} == {
        (0, 0): 1 + 2,
        (0, 1): 1 + 2 + 100,
        (1, 0): 2 + 1 + 1100,
        (1, 1): 2 + 1 + 100,
    }


def test_numbers_have_the_size_of_their_type() -> None:
    source = """
@exported
def mixed(a: i64, b: i32, x: f64) -> i64:
    low = i32(a)
    total = signed(low) + signed(b) + unsigned(b == low)
    wide, overflows = multiplied(a, a)
    if overflows:
        total += 10
    if below(a, 5) or x > 0.5:
        total += 100
    return total + ashr(a, 1) + umin(a, 3) + as_integer(x * 2.0)
"""
    mixed = function(source, "mixed", ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, ctypes.c_double)
    assert mixed(4, 4, 0.25) == 4 + 4 + 1 + 100 + 2 + 3
    assert mixed(-6, 1, 0.25) == -6 + 1 - 3 + 3
    assert mixed(1 << 40, 1, 1.5) == 0 + 1 + 10 + 100 + (1 << 39) + 3 + 3


def test_structures_and_arrays() -> None:
    source = """
class Entry(Struct):
    key: i32
    value: i64

class Pair(Struct):
    entries: Annotated[Array[Entry], 2]
    other: Entry | None
    count: Relaxed[i64]

_pair: Pair
_table: Annotated[Array[Entry], 4]

@exported
def fill(n: i64) -> i64:
    pair = Pair()
    pair.other = None
    pair.count.store(n)
    for i in up_to(2):
        entry = pair.entries[i]
        entry.key = i32(i + 1)
        entry.value = n * (i + 1)
        _table[i + 1].value = entry.value
    if pair.other is None:
        pair.other = _table[2]
    seen, is_done = pair.count.exchange(n, 7)
    if not is_done:
        return -1
    return pair.other.value + signed(pair.entries[1].key) + pair.count.load() + seen
"""
    fill = function(source, "fill", ctypes.c_int64, ctypes.c_int64)
    assert fill(10) == 20 + 2 + 7 + 10


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = [1]", "no expression"),
        ("x = a.b", "no such field"),
        ("x = 1\n    x = 1.0", "another type"),
        ("return 1.0", "is not i64"),
        ("x = g(1) if a == 1 else 2", "both sides"),
        ("with a: pass", "no statement"),
        ("a = a / 2", "no operator"),
        ("unknown(a)", "no place"),
    ],
)
def test_what_is_outside_of_the_language_is_refused(line: str, message: str) -> None:
    source = f"def g(a: i64) -> i64:\n    return a\ndef f(a: i64) -> i64:\n    {line}\n    return a\n"
    with pytest.raises(SyntaxError, match=message):
        translated([HEAD + source])


def test_every_file_is_translated() -> None:
    folder = Path(library.__file__).parent / "sources"
    assert {path.name for path in folder.iterdir() if path.is_file()} == {*library.SOURCES, "language.pyi"}
