"""Steps on memory that a program reads and writes: at shifted places, through pointers that loops move and exchange.

For a program that one thread runs: between a store and what follows stands a barrier; no two programs share a place.
Values are i32 blocks of one size; two arrays, `p` and `q`, are pointed to by variables that start there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fuzz.body import Var

if TYPE_CHECKING:
    from fuzz.programs import Writer

ROOM = 64  # elements before and behind what is accessed without moving


def memory(w: Writer) -> None:
    """A program of such steps."""
    size = w.rng.choice([4, 16, 32, 128, 256])
    step = size + 2 * ROOM
    for name in "pq":
        w.args[name] = w.numbers.integers(-99, 99, step * w.programs).astype("i4")
        w.dtypes[name] = "int32"
        for pointer in (f"{name}0", f"{name}1"):
            w.body.emit(f"{pointer} = {name} + pid * {step} + {ROOM}")
    w.body.emit(f"i = tl.arange(0, {size})")
    w.body.vars += [w.body.add("i * 3", (size,), "int32")]
    _steps(w, w.rng.randint(4, 8))
    w.stores(2)


def _steps(w: Writer, count: int) -> None:
    for step in w.rng.choices(list(STEPS), list(STEPS.values()), k=count):
        step(w)


def _pointers(w: Writer) -> str:
    """A block of pointers, forwards or backwards, shifted or not."""
    size = w.body.vars[-1].shape[0] if w.body.vars[-1].shape else _size(w)
    place = w.rng.choice(["i", "i", "i", f"({size - 1} - i)"])
    return f"{w.rng.choice(['p0', 'p1', 'q0', 'q1'])} + {place} + {w.rng.choice([0, 0, 0, 1, -1, 3, 16])}"


def _size(w: Writer) -> int:
    return next(var.shape[0] for var in w.body.vars if var.shape)


def _block(w: Writer) -> Var:
    """One of the newest blocks."""
    found = w.body.pick(lambda var: len(var.shape) == 1 and var.dtype == "int32" and var.name.startswith("v"))
    assert found is not None
    return found


def _load(w: Writer) -> None:
    mask = w.rng.choice(
        ["", "", f", mask=i < {w.rng.randint(0, 40)}, other=7", ", mask=(i < n) & (flag > 0), other=-1"]
    )
    w.body.add(f"tl.load({_pointers(w)}{mask})", (_size(w),), "int32")


def _store(w: Writer) -> None:
    mask = w.rng.choice(["", "", ", mask=i >= n", ", mask=i % 3 != 1"])
    w.body.emit(f"tl.store({_pointers(w)}, {_block(w).name}{mask})")
    w.body.emit("tl.debug_barrier()")


def _update(w: Writer) -> None:
    """A block in place, or moved."""
    w.body.emit(f"tl.store({_pointers(w)}, tl.load({_pointers(w)}) * 2 + 1)")
    w.body.emit("tl.debug_barrier()")


def _weigh(w: Writer) -> None:
    """A block in place, and a number that other elements give as they were."""
    at = _pointers(w)
    old = w.body.add(f"tl.load({at})", (_size(w),), "int32")
    w.body.add(f"tl.sum(tl.flip({old.name}, 0) * i, 0)", (), "int32")
    w.body.emit(f"tl.store({at}, {old.name} * 2 + 1)")
    w.body.emit("tl.debug_barrier()")


def _scalar(w: Writer) -> None:
    """One element, read and written."""
    pointer = w.rng.choice(["p0", "p1", "q0", "q1"])
    var = w.body.add(f"tl.load({pointer} + {w.rng.randint(0, 3)})", (), "int32")
    if w.rng.random() < 0.5:
        w.body.emit(f"tl.store({pointer} + {w.rng.randint(0, 3)}, {var.name} * 2)")
        w.body.emit("tl.debug_barrier()")


def _compute(w: Writer) -> None:
    text = w.rng.choice(["{a} * 3 - {b}", "({a} // 3 + {b} // 7)", "tl.cumsum({a}, 0) ^ {b}", "tl.flip({a}, 0) + {b}"])
    w.body.add(text.format(a=_block(w).name, b=_block(w).name), (_size(w),), "int32")


def _sum(w: Writer) -> None:
    w.body.add(f"tl.sum({_block(w).name}, 0)", (), "int32")


def _loop(w: Writer) -> None:
    """A loop that moves pointers, or exchanges them, and carries a block."""
    if w.body.indent > 2:
        return
    block = _block(w)
    with w.body.nested(f"for {w.body.fresh('j')} in range({w.rng.choice(['k', '2', '3', 'flag'])}):"):
        _steps(w, w.rng.randint(1, 3))
        move = w.rng.choice(["p1 += 1", "p1 -= 1", "q1 += 2", "t = p1|p1 = q1|q1 = t", "t = p0|p0 = q0|q0 = t", "pass"])
        for line in move.split("|"):
            w.body.emit(line)
        w.body.emit(f"{block.name} = {block.name} * 3 + {_block(w).name}")


def _branch(w: Writer) -> None:
    """A branch that loads and stores."""
    if w.body.indent > 2:
        return
    with w.body.nested(f"if {w.rng.choice(['flag > 0', 'k > 1', 'n > 20'])}:"):
        _steps(w, w.rng.randint(1, 2))
        block = _block(w)
        w.body.emit(f"{block.name} = {block.name} + tl.load({_pointers(w)})")


STEPS: dict[Callable[[Writer], None], int] = {
    _load: 6,
    _store: 4,
    _update: 2,
    _weigh: 1,
    _scalar: 1,
    _compute: 3,
    _sum: 1,
    _loop: 3,
    _branch: 2,
}
