"""Random programs: nested branches, loops that may not run, early exits, values used around them.

`program(seed)` gives a `Program`: its text and the arguments of a launch. `STYLES` says what it is made of: control
flow around every kind of step, operations on shapes before reductions and scans in one to four dimensions, dots of
operands that lie in memory in any way, loops of dots that take each other's results (`chains.py`), or sums over K as
users write them (`products.py`). `evaluator.py` says what it computes.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz import values
from fuzz.blocks import DType
from fuzz.body import INTEGERS, LIMIT, SIGNED, UNSIGNED, WHOLE, Body, Var, clamped, shaped, tl
from fuzz.chains import chains
from fuzz.evaluator import encoded
from fuzz.memory import memory
from fuzz.products import products
from fuzz.values import COMBINES, STEPS

HEADER = "import mltriton as triton\nimport mltriton.language as tl\n\n\n"
SCALARS = ("n", "flag", "k")
OTHERS = {"full": ("0", "1", "5"), "small": ("0", "-1", "1"), "negative": ("-1", "-3"), "large": ("2147483648.0",)}


@dataclass(frozen=True)
class Program:
    """A program with a launch for it. `body` is the text without imports; arrays hold elements as they lie there."""

    seed: int
    body: str
    args: dict[str, Any]
    dtypes: dict[str, str]
    grid: tuple[int, ...]
    num_warps: int

    @property
    def source(self) -> str:
        """The file that holds the program."""
        return HEADER + self.body


@dataclass
class Writer:
    """Writes one program."""

    seed: int
    style: str
    rng: random.Random = field(init=False)
    body: Body = field(init=False)
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    dtypes: dict[str, str] = field(default_factory=dict[str, str])
    warps: int = 0  # where the style chooses

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.style} {self.seed}")
        self.numbers = np.random.default_rng(self.seed)
        self.body = Body(self.rng)

    def write(self) -> Program:
        """The whole program."""
        rng = self.rng
        self.programs = rng.choice([1, 1, 2, 3])
        self.args |= {"n": rng.randint(-1, 70), "flag": rng.randint(0, 1), "k": rng.choice([-1, 0, 0, 1, 2, 4])}
        self.dtypes |= dict.fromkeys(SCALARS, "int32")
        self.body.emit("pid = tl.program_id(0)")
        self.body.vars += [Var(name, (), "int32") for name in (*SCALARS, "pid")]
        STYLES[self.style](self)
        parameters = ", ".join(self.args)
        text = f"{COMBINES}\n\n\n@triton.jit\ndef kernel({parameters}):\n" + "\n".join(self.body.lines) + "\n"
        return Program(
            self.seed, text, self.args, self.dtypes, (self.programs,), self.warps or rng.choice([1, 2, 4, 8, 16])
        )

    def steps(self, count: int, table: dict[Any, int]) -> None:
        """Some steps of a table."""
        for step in self.rng.choices(list(table), list(table.values()), k=count):
            step(self if step in CONTROL else self.body)

    # Memory

    def shape(self, largest: int = 1024) -> tuple[int, ...]:
        """Sizes of a block of one to four dimensions."""
        rank = self.rng.choice([1, 1, 2, 2, 2, 3, 4])
        sizes = [self.rng.choice([1, 2, 4, 8, 16, 32, 64, 128]) for _ in range(rank)]
        while math.prod(sizes) > largest:
            sizes[sizes.index(max(sizes))] //= 2
        while math.prod(sizes) < 4:
            sizes[self.rng.randrange(rank)] *= 2
        return tuple(sizes)

    def load(self, shape: tuple[int, ...], dtype: str | None = None, kind: str | None = None) -> Var:
        """A block of a new input, which lies in memory along any of its dimensions, with gaps or without."""
        rng = self.rng
        dtype = dtype or rng.choice([*INTEGERS, *LIMIT, "int32", "float32", "float32"])
        kinds = ["full", "small", "negative", *(["large"] if dtype == "float32" else [])]
        kind = kind or rng.choice([kind for kind in kinds if kind != "negative" or dtype not in UNSIGNED])
        strides, step = [0] * len(shape), rng.choice([1, 1, 1, 2])
        order = list(range(len(shape)))[::-1] if rng.random() < 0.6 else rng.sample(range(len(shape)), len(shape))
        for dim in order:
            strides[dim], step = step, step * shape[dim]
        name, offsets = self.body.fresh("x"), self.offsets(shape, strides)
        size = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1
        self.input(name, size + (self.programs - 1) * step, dtype, kind)
        mask = self.mask(shape)
        other = rng.choice(OTHERS[kind]) if dtype in SIGNED or dtype in LIMIT else rng.choice(("0", "1"))
        masked = f", mask={mask}, other={other}" if mask else ""
        return self.body.add(
            f"tl.load({name} + pid * {step} + {offsets}{masked})", shape, dtype, 2.0**32 if kind == "large" else 8.0
        )

    def input(self, name: str, size: int, dtype: str, kind: str) -> None:
        """An array of numbers."""
        signed = dtype not in UNSIGNED
        if kind == "large":
            numbers = self.numbers.integers(2**23, 2**24, size) * 256.0
        elif kind == "negative":
            numbers = -self.numbers.integers(1, 9, size)
        elif kind == "full" and dtype in INTEGERS:
            limits = np.iinfo(dtype)
            numbers = self.numbers.integers(limits.min, limits.max, size, dtype, endpoint=True)
            numbers[self.numbers.random(size) < 0.1] = limits.min
        else:
            numbers = self.numbers.integers(-8 if signed else 0, 9, size)
        self.args[name] = encoded(np.asarray(numbers), DType(dtype))
        self.dtypes[name] = dtype

    def offsets(self, shape: tuple[int, ...], strides: list[int]) -> str:
        """The text of a block's places in memory."""
        return " + ".join(f"{self.index(shape, dim)} * {stride}" for dim, stride in enumerate(strides))

    def index(self, shape: tuple[int, ...], dim: int) -> str:
        """The numbers of a block's elements along a dimension."""
        if len(shape) == 1:
            return f"tl.arange(0, {shape[0]})"
        places = ", ".join(":" if other == dim else "None" for other in range(len(shape)))
        return f"tl.arange(0, {shape[dim]})[{places}]"

    def mask(self, shape: tuple[int, ...]) -> str | None:
        """Comparisons of places with numbers of the launch, parts that are the same everywhere, data; None for none."""
        rng, parts = self.rng, list[str]()
        for dim in range(len(shape)):
            if rng.random() < 0.4:
                limit = rng.choice(["n", str(rng.randint(0, shape[dim])), "k * 3", "n - pid * 2"])
                parts.append(f"({self.index(shape, dim)} {rng.choice(['<', '<=', '<', '>', '>='])} {limit})")
        if parts and rng.random() < 0.4:
            parts.append(rng.choice(["(flag > 0)", "(k <= 1)", "(n > 20)"]))
        data = self.body.pick(lambda var: var.exact and var.shape == shape and var.dtype == "int32")
        if data is not None and rng.random() < 0.2:
            parts.append(f"({data.name} > 0)")
        rng.shuffle(parts)
        if not parts:
            return None
        full = " & ".join(parts)
        return full if any(":" in part or len(shape) == 1 for part in parts) and _covers(parts, shape) else (
            f"tl.broadcast_to({full}, {shape})"
        )  # fmt: skip

    def store(self, var: Var) -> None:
        """A value to an output of its own."""
        name, size = self.body.fresh("o"), math.prod(var.shape)
        self.input(name, size * self.programs, var.dtype, "small")
        if not var.shape:
            self.body.emit(f"tl.store({name} + pid, {var.name})")
            return
        strides = [math.prod(var.shape[dim + 1 :]) for dim in range(len(var.shape))]
        mask = self.mask(var.shape)
        masked = f", mask={mask}" if mask else ""
        self.body.emit(f"tl.store({name} + pid * {size} + {self.offsets(var.shape, strides)}, {var.name}{masked})")

    def stores(self, count: int) -> None:
        """Some of the values, old ones as well as new ones."""
        known = [var for var in self.body.vars if var.name.startswith("v")]
        for var in dict.fromkeys([*known[-2:], *self.rng.sample(known, min(count, len(known)))]):
            self.store(var)

    # Control flow

    def condition(self) -> str:
        """A scalar that decides: of the launch, of the program, or of data."""
        rng = self.rng
        scalar = self.body.pick(lambda var: not var.shape and var.exact and var.name.startswith(("v", "j")))
        parts = [f"flag {rng.choice(['>', '=='])} 0", f"k > {rng.randint(-1, 3)}", "pid == 0", "n % 2 == 0"]
        if scalar is not None:
            parts += [f"{scalar.name} {rng.choice(['>', '<=', '!='])} {'1.0' if scalar.is_float else '1'}"] * 2
        one, other = rng.choice(parts), rng.choice(parts)
        return one if rng.random() < 0.7 else rng.choice([f"{one} and {other}", f"({one}) | ({other})"])

    def reassign(self) -> None:
        """A value that exists changes: to one of its shape and type, within its bound."""
        b = self.body
        old = b.pick(lambda var: len(var.shape) > 0 and var.name.startswith("v") and var.is_tame)
        if old is None:
            return
        new = b.pick(
            lambda var: var.is_tame and (var.exact or not old.exact) and shaped(var, old.shape) is not None
            and var.is_float == old.is_float
        )  # fmt: skip
        assert new is not None
        text = shaped(new, old.shape)
        if not old.is_float:
            mixed = b.rng.choice(
                [f"{old.name} * 3 + {text}", f"{old.name} ^ {text}", f"tl.maximum({old.name}, {text})"]
            )
            b.emit(f"{old.name} = ({mixed}).to({tl(old.dtype)})")
        elif old.bound + new.bound <= min(WHOLE[old.dtype], WHOLE[new.dtype]):
            mixed = b.rng.choice([f"{old.name} + {text}", f"{text} - {old.name}", f"tl.maximum({old.name}, {text})"])
            b.emit(f"{old.name} = {clamped(mixed, old.bound, old.dtype)}")

    def turn(self) -> None:
        """Other elements of a value that exists are needed where it changes."""
        b = self.body
        old = b.pick(lambda var: len(var.shape) > 0 and var.name.startswith("v") and not var.is_float)
        if old is None:
            return
        axis = b.rng.randrange(len(old.shape))
        into = b.pick(lambda var: var.shape == old.shape and var.name.startswith("v") and not var.is_float) or old
        b.emit(f"{into.name} = ({into.name} ^ tl.flip({old.name}, {axis})).to({tl(into.dtype)})")
        b.emit(f"{old.name} = ({old.name} * 3 + 1).to({tl(old.dtype)})")

    def inside(self) -> None:
        """What a region does."""
        deep = self.body.indent > 3
        self.steps(self.rng.randint(1, 3), STEPS if deep else {**STEPS, **NESTED})
        for _ in range(self.rng.randint(1, 2)):
            self.reassign()
        if self.rng.random() < 0.2:
            self.turn()
        if self.rng.random() < 0.15:
            var = self.body.pick(lambda var: var.name.startswith("v"))
            if var is not None:
                self.store(var)

    def branch(self) -> None:
        """A branch, with another side or without."""
        with self.body.nested(f"if {self.condition()}:"):
            self.inside()
        if self.rng.random() < 0.5:
            with self.body.nested("else:"):
                self.inside()

    def loop(self) -> None:
        """A counted loop, which may not run at all, or end early."""
        rng, counter = self.rng, self.body.fresh("j")
        bounds = rng.choice(["k", "k - 1", "2", "0, k", "flag", "1, k, 2", "flag, 3"])
        with self.body.nested(f"for {counter} in range({bounds}):"):
            self.body.vars.append(Var(counter, (), "int32"))
            if rng.random() < 0.25:
                self.leave("break")
            self.inside()
            if rng.random() < 0.2:
                self.leave("break")
                self.reassign()

    def leave(self, how: str) -> None:
        """Leave the loop, under a condition."""
        with self.body.nested(f"if {self.condition()}:"):
            self.reassign()
            self.body.emit(how)

    def while_loop(self) -> None:
        """A loop with a condition."""
        counter = self.body.fresh("c")
        self.body.emit(f"{counter} = k + {self.rng.randint(-1, 1)}")
        with self.body.nested(f"while {counter} > 0:"):
            self.body.emit(f"{counter} -= 1")
            self.inside()

    def early_return(self) -> None:
        """The rest is left out, under a condition."""
        if self.body.indent > 1:
            return
        with self.body.nested(f"if {self.condition()}:"):
            self.steps(2, STEPS)
            self.stores(1)
            self.body.emit("return")

    # Styles

    def control(self) -> None:
        """Control flow around steps of every kind."""
        shape = self.shape(2048)
        for _ in range(self.rng.randint(2, 4)):
            self.load(shape if self.rng.random() < 0.7 else self.shape(256))
        self.steps(self.rng.randint(1, 4), STEPS)
        for _ in range(self.rng.randint(1, 3)):
            self.steps(1, NESTED)
            self.steps(self.rng.randint(0, 2), STEPS)
            if self.rng.random() < 0.15:
                self.early_return()
        self.stores(4)

    def shapes(self) -> None:
        """Operations on shapes, then reductions and scans."""
        for _ in range(self.rng.randint(1, 2)):
            self.load(self.shape(512))
        for _ in range(self.rng.randint(1, 3)):
            values.shape_step(self.body)
        for _ in range(self.rng.randint(1, 2)):
            self.rng.choice([values.reduction, values.reduction, values.scan])(self.body)
        self.steps(self.rng.randint(0, 2), {values.integers: 1, values.floats: 1, values.shape_step: 2})
        self.stores(3)

    def rows(self) -> None:
        """Long rows under masks."""
        shape = (self.rng.choice([512, 1024, 4096]),) if self.rng.random() < 0.5 else (2, self.rng.choice([256, 1024]))
        self.args["n"] = self.rng.choice([-3, 0, 1, 63, 64, 200, shape[-1] - 1, shape[-1], 5000])
        for _ in range(self.rng.randint(1, 3)):
            self.load(shape)
        self.steps(self.rng.randint(2, 5), {**STEPS, values.shape_step: 1})
        self.stores(3)

    def dots(self) -> None:
        """A dot of operands that lie anyhow, were computed, or gathered; used before, in and behind control flow."""
        rng, b = self.rng, self.body
        m, n, k = (rng.choice([16, 32, 64]) for _ in range(3))
        dtype = rng.choice(["float32", "float16", "bfloat16", "int8", "uint8"])
        kind = "full" if dtype in INTEGERS else "small"
        acc = "int32" if dtype in INTEGERS else "float32"
        left, right = (self.operand(shape, dtype, kind) for shape in ((m, k), (k, n)))
        total = b.add(f"tl.zeros(({m}, {n}), {tl(acc)})", (m, n), acc, 2.0**17)
        text = f"tl.dot({left.name}, {right.name}, {{}}, out_dtype={tl(acc)}, input_precision='ieee')"
        how = rng.choice(["for {0} in range(k):", "for {0} in range(2):", "if flag > 0:", "if k > 1:"])
        with b.nested(how.format(b.fresh("j"))):
            b.emit(f"{total.name} = {text.format(total.name)}")
        if rng.random() < 0.6:
            b.add(text.format(f"tl.zeros(({m}, {n}), {tl(acc)})"), (m, n), acc, 2.0**14)
        self.steps(rng.randint(1, 3), STEPS)
        self.stores(3)

    def operand(self, shape: tuple[int, ...], dtype: str, kind: str) -> Var:
        """A matrix: as it was loaded, transposed, or computed."""
        b, how = self.body, self.rng.choice(["loaded", "loaded", "transposed", "computed", "gathered"])
        if how == "transposed":
            x = self.load(shape[::-1], dtype, kind)
            return b.add(f"tl.trans({x.name})", shape, dtype, 8.0)
        x = self.load(shape, dtype, kind)
        if how == "computed":
            text = f"({x.name} // 3)" if dtype in INTEGERS else f"tl.maximum({x.name}, -2.0)"
            return b.add(f"{text}.to({tl(dtype)})", shape, dtype, 8.0)
        if how == "gathered":
            rows = b.fresh("x")
            self.input(rows, shape[0], "int32", "small")
            self.args[rows] = self.numbers.integers(0, shape[0], shape[0]).astype("i4")
            table = b.fresh("x")
            self.input(table, math.prod(shape), dtype, kind)
            at = f"tl.load({rows} + tl.arange(0, {shape[0]}))[:, None] * {shape[1]} + tl.arange(0, {shape[1]})[None, :]"
            return b.add(f"tl.load({table} + {at})", shape, dtype, 8.0)
        return x


def _covers(parts: list[str], shape: tuple[int, ...]) -> bool:
    """Whether the parts of a mask broadcast to the whole shape by themselves."""
    if len(shape) == 1:
        return any("arange" in part or part.startswith("(v") for part in parts)
    covered = {part.split("[")[1].split("]")[0].split(", ").index(":") for part in parts if "[" in part}
    return len(covered | {dim for dim, size in enumerate(shape) if size == 1}) == len(shape) or any(
        part.startswith("(v") for part in parts
    )


STYLES: dict[str, Callable[[Writer], None]] = {
    "control": Writer.control,
    "shapes": Writer.shapes,
    "rows": Writer.rows,
    "dots": Writer.dots,
    "memory": memory,
    "chains": chains,
    "products": products,
}
NESTED: dict[Callable[[Writer], None], int] = {Writer.branch: 4, Writer.loop: 3, Writer.while_loop: 1}
CONTROL = set(itertools.chain(NESTED, [Writer.early_return]))


def program(seed: int, style: str) -> Program:
    """The program of a seed."""
    return Writer(seed, style).write()
