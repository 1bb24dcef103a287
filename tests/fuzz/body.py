"""A program under way: its lines, and what is known of the values that can be named where they stand."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
LIMIT = {"float16": 512.0, "bfloat16": 64.0, "float32": 2.0**18, "float64": 2.0**36}
WHOLE = {"float16": 2.0**11, "bfloat16": 2.0**8, "float32": 2.0**24, "float64": 2.0**53}
LARGEST = 4096  # elements of a block


@dataclass(frozen=True)
class Var:
    """A value: `bound` limits the size of floats; `exact` tells whether it is the same however it is computed."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bound: float = 0.0
    exact: bool = True

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return self.dtype in LIMIT

    @property
    def is_tame(self) -> bool:
        """Whether it may be added and multiplied."""
        return not self.is_float or self.bound <= LIMIT[self.dtype]

    @property
    def bits(self) -> int:
        """The width of its elements."""
        return int("".join(filter(str.isdigit, self.dtype)))


@dataclass
class Body:
    """Lines under way, and the values that can be named where they stand."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])
    vars: list[Var] = field(default_factory=list[Var])
    indent: int = 1
    counter: int = 0

    def emit(self, line: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + line)

    def fresh(self, letter: str = "v") -> str:
        """A name that nothing has."""
        self.counter += 1
        return f"{letter}{self.counter}"

    def add(self, text: str, shape: tuple[int, ...], dtype: str, bound: float = 0.0, *, exact: bool = True) -> Var:
        """A new value."""
        var = Var(self.fresh(), shape, dtype, bound, exact)
        if var.is_float and exact and LIMIT[dtype] < bound <= WHOLE[dtype]:
            text, var = clamped(text, LIMIT[dtype], dtype), replace(var, bound=LIMIT[dtype])
        self.emit(f"{var.name} = {text}")
        self.vars.append(var)
        return var

    def pick(self, test: Callable[[Var], bool] = lambda _: True) -> Var | None:
        """A value for which the test holds, the newest ones more often."""
        found = [var for var in self.vars if test(var)]
        return found[-1 - min(int(self.rng.expovariate(0.3)), len(found) - 1)] if found else None

    @contextmanager
    def nested(self, header: str) -> Iterator[None]:
        """A block of statements; what it defines is not known behind it."""
        self.emit(header)
        known, before = list(self.vars), len(self.lines)
        self.indent += 1
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1
        self.vars = known


def tl(dtype: str) -> str:
    """A dtype's name in a program."""
    return f"tl.{dtype}"


def clamped(text: str, bound: float, dtype: str) -> str:
    """A float limited to a size."""
    return f"tl.maximum(tl.minimum({text}, {bound}), {-bound}).to({tl(dtype)})"


def shaped(var: Var, shape: tuple[int, ...]) -> str | None:
    """The text of a value that broadcasts to `shape`, with dimensions of size 1 put in; None if it does not."""
    if not var.shape or var.shape == shape:
        return var.name
    for dims in itertools.combinations(range(len(shape)), len(var.shape)):
        if all(size in (1, shape[dim]) for size, dim in zip(var.shape, dims, strict=True)):
            return f"{var.name}[{', '.join(':' if dim in dims else 'None' for dim in range(len(shape)))}]"
    return None
