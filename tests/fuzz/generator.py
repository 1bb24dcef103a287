"""Random kernels in the language: elementwise work, reductions, scans, loops, branches, dots, on masked blocks.

`generate(seed)` gives a `Kernel`: its source, and the arguments to launch it with. The numbers stay tame, so that
levels which round differently still agree: values have a bound, nothing large meets a function that grows, sums of
values with common ancestors do not cancel, and what decides (comparisons, conversions to integers, argmax) is exact
on every level. `Kernel.only(output)` is the part that one output needs: what to read when a kernel fails.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

FLOATS = ("fp32", "fp16", "bf16")
INTEGERS = ("i32", "i16", "i8", "i64")
TL = {"fp32": "tl.float32", "fp16": "tl.float16", "bf16": "tl.bfloat16"} | {
    f"i{width}": f"tl.int{width}" for width in (8, 16, 32, 64)
}
LARGEST = {"fp32": 1e6, "fp16": 200.0, "bf16": 200.0}
_NAME = re.compile(r"\b[a-z]\w*\b")


@dataclass(frozen=True)
class Var:
    """A value of the kernel. `shape` names block sizes; `bound` limits its size.

    `roots` are the inputs it comes from; `depth` counts roundings.
    """

    name: str
    shape: tuple[str, ...]
    dtype: str
    bound: float
    roots: frozenset[str]
    exact: bool
    depth: int = 0

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return self.dtype in FLOATS


@dataclass(frozen=True)
class Statement:
    """Lines that define `name` (or store, then `name` is the output)."""

    name: str
    text: str
    is_store: bool = False

    @property
    def uses(self) -> set[str]:
        """The names that appear in the text."""
        return set(_NAME.findall(self.text))


@dataclass(frozen=True)
class Kernel:
    """A kernel with a launch for it."""

    seed: int
    parameters: tuple[str, ...]
    constants: tuple[str, ...]
    statements: tuple[Statement, ...]
    args: dict[str, Any]
    grid: tuple[int, ...]
    num_warps: int

    @property
    def source(self) -> str:
        """The file that holds the kernel."""
        parameters = ", ".join([*self.parameters, *[f"{name}: tl.constexpr" for name in self.constants]])
        body = "\n".join(line for statement in self.statements for line in statement.text.splitlines())
        indented = "\n".join(f"    {line}" for line in body.splitlines())
        return (
            "import mltriton as triton\nimport mltriton.language as tl\n\n\n"
            f"@triton.jit\ndef kernel({parameters}):\n{indented}\n"
        )

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [statement.name for statement in self.statements if statement.is_store]

    @property
    def args_of_parameters(self) -> dict[str, Any]:
        """The arguments, in the order of the parameters."""
        return {name: self.args[name] for name in (*self.parameters, *self.constants)}

    def only(self, output: str) -> Kernel:
        """The same kernel storing nothing but `output`, without what that does not need."""
        needed: set[str] = set()
        kept: list[Statement] = []
        for statement in reversed(self.statements):
            if statement.name == output if statement.is_store else statement.name in needed:
                needed |= statement.uses
                kept.append(statement)
        return replace(self, statements=tuple(reversed(kept)))


@dataclass
class Writer:
    """Writes one kernel, statement by statement."""

    seed: int
    rng: random.Random = field(init=False)
    statements: list[Statement] = field(default_factory=list)
    vars: list[Var] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)
    counter: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    # The frame: sizes, offsets, masks.

    def write(self) -> Kernel:
        """The whole kernel."""
        rng = self.rng
        self.is_2d = rng.random() < 0.7
        self.R, self.C = (
            (rng.choice([1, 2, 4, 8, 16, 32, 64]), rng.choice([16, 32, 64, 128]))
            if self.is_2d
            else (1, rng.choice([16, 64, 128, 256, 512]))
        )
        self.has_dot = self.is_2d and rng.random() < 0.4
        if self.has_dot:
            self.R, self.C = rng.choice([16, 32, 64]), rng.choice([16, 32, 64])
        self.rows = rng.choice([self.R, 2 * self.R, 2 * self.R + 1, max(1, self.R - 1)]) if self.is_2d else 1
        self.columns = rng.choice([self.C, 2 * self.C, self.C + 3, self.C - 5, 2 * self.C - 1])
        self._frame()
        for dtype in rng.sample([*FLOATS, "fp32", "i32", rng.choice(INTEGERS)], rng.randint(2, 4)):
            self.load(dtype)
        if self.has_dot:
            self.dot()
        for _ in range(rng.randint(3, 12)):
            rng.choice(STEPS)(self)
        self.stores()
        programs = (
            (-(-self.columns // self.C), -(-self.rows // self.R)) if self.is_2d else (-(-self.columns // self.C),)
        )
        constants = tuple(name for name in ("R", "C", "K") if name in self.args)
        parameters = tuple(name for name in self.args if name not in constants)
        return Kernel(
            self.seed, parameters, constants, tuple(self.statements), self.args, programs, rng.choice([1, 2, 4, 8])
        )

    def _frame(self) -> None:
        self.args |= {"n": self.columns, "C": self.C}
        self.define("col", "tl.program_id(0) * C + tl.arange(0, C)")
        if self.is_2d:
            self.args |= {"m": self.rows, "R": self.R}
            self.define("row", "tl.program_id(1) * R + tl.arange(0, R)")
            self.define("mask", "(row[:, None] < m) & (col[None, :] < n)")
            self.define("where", "row[:, None] * n + col[None, :]")
        else:
            self.define("mask", "col < n")
            self.define("where", "col")
        self.full = ("R", "C") if self.is_2d else ("C",)

    def define(self, name: str, expression: str) -> None:
        """`name = expression`."""
        self.statements.append(Statement(name, f"{name} = {expression}"))

    def add(self, expression: str, like: Var, **changes: Any) -> Var:
        """A new value from an expression, described like `like` but for the changes."""
        self.counter += 1
        var = replace(like, name=f"v{self.counter}", **changes)
        if var.is_float and var.bound > LARGEST[var.dtype]:
            expression, var = (
                f"({expression}) * {LARGEST[var.dtype] / var.bound / 4:.3g}",
                replace(var, bound=LARGEST[var.dtype] / 4),
            )
        self.define(var.name, expression)
        self.vars.append(var)
        return var

    # Values.

    def pick(self, test: Callable[[Var], bool]) -> Var | None:
        """A value for which the test holds, the newest ones more often."""
        found = [var for var in self.vars if test(var)]
        return found[min(int(self.rng.expovariate(0.4)), len(found) - 1) * -1 - 1] if found else None

    def load(self, dtype: str) -> Var:
        """A block of a new input."""
        name = f"x{len(self.args)}"
        shape = (self.rows, self.columns) if self.is_2d else (self.columns,)
        self.args[name] = f"{'x'.join(map(str, shape))}:{dtype}"
        bound = 2.0 if dtype in FLOATS else 8.0
        other = self.rng.choice(["", ", other=1" if dtype in INTEGERS else ", other=1.0"])
        proto = Var("", self.full, dtype, bound, frozenset([name]), exact=True)
        if self.is_2d and self.rng.random() < 0.25:
            offsets = "(tl.program_id(1) * R, tl.program_id(0) * C)"
            block = f"tl.make_block_ptr({name}, (m, n), (n, 1), {offsets}, (R, C), (1, 0))"
            return self.add(f"tl.load({block}, boundary_check=(0, 1), padding_option='zero')", proto)
        return self.add(f"tl.load({name} + where, mask=mask{other})", proto)

    def shaped(self, var: Var, shape: tuple[str, ...]) -> str:
        """The text of a value broadcast towards `shape`."""
        if var.shape == shape or not var.shape or len(shape) < 2:
            return var.name
        return f"{var.name}[:, None]" if var.shape == ("R",) else f"{var.name}[None, :]"

    def pair(self, test: Callable[[Var], bool]) -> tuple[Var, Var, tuple[str, ...]] | None:
        """Two values of one dtype and the shape that they broadcast to."""
        a = self.pick(test)
        b = self.pick(lambda var: a is not None and test(var) and var.dtype == a.dtype)
        if a is None or b is None:
            return None
        shape = a.shape if set(b.shape) <= set(a.shape) else b.shape if set(a.shape) <= set(b.shape) else self.full
        return a, b, shape

    def joined(self, a: Var, b: Var) -> dict[str, Any]:
        """What a value made of two others inherits."""
        return {"roots": a.roots | b.roots, "depth": max(a.depth, b.depth) + 1}

    # Dots.

    def dot(self) -> None:
        """acc = sum over blocks of K of a b, with an epilogue left to the other steps."""
        rng = self.rng
        dtype = rng.choice(["fp32", "fp16", "bf16", "i8", "fp16"])
        self.K = self.args["K"] = rng.choice([16, 32, 64])
        depth = rng.choice([self.K, 2 * self.K, 3 * self.K, self.K + 7])
        self.args |= {"a": f"{self.rows}x{depth}:{dtype}", "k": depth}
        transposed = rng.random() < 0.3
        self.args["b"] = f"{self.columns}x{depth}:{dtype}" if transposed else f"{depth}x{self.columns}:{dtype}"
        zero = "0" if dtype == "i8" else "0.0"
        acc = "tl.int32" if dtype == "i8" else "tl.float32"
        signs = random.Random(f"signs {self.seed}")  # leaves what else a seed stands for as it is
        cast_a, cast_b = (".to(tl.uint8)" if dtype == "i8" and signs.random() < 0.5 else "" for _ in range(2))
        b_at = "col[None, :] * k + at[:, None]" if transposed else "at[:, None] * n + col[None, :]"
        body = (
            f"acc = tl.zeros((R, C), {acc})\n"
            "for start in range(0, k, K):\n"
            "    at = start + tl.arange(0, K)\n"
            "    a_mask = (row[:, None] < m) & (at[None, :] < k)\n"
            f"    left = tl.load(a + row[:, None] * k + at[None, :], mask=a_mask, other={zero}){cast_a}\n"
            f"    right = tl.load(b + {b_at}, mask=(at[:, None] < k) & (col[None, :] < n), other={zero}){cast_b}\n"
            f"    acc = tl.dot(left, right, acc, out_dtype={acc}, input_precision='ieee')"
        )
        self.statements.append(Statement("acc", body))
        kind = "i32" if dtype == "i8" else "fp32"
        largest = (256.0 if cast_a else 8.0) * (256.0 if cast_b else 8.0)
        bound = largest * depth if dtype == "i8" else 4.0 * depth
        self.vars.append(Var("acc", ("R", "C"), kind, bound, frozenset("ab"), exact=dtype == "i8", depth=1))

    # Stores.

    def stores(self) -> None:
        """Store the last values of every shape, each to an output of its own."""
        chosen = [var for var in self.vars if var.name.startswith("v") or var.name == "acc"][-4:]
        for var in [*chosen, *[v for v in self.vars if len(v.shape) < len(self.full)][-2:]]:
            if f"o_{var.name}" in self.args:
                continue
            self.store(var)

    def store(self, var: Var) -> None:
        """Store one value: a block in place, a row or column as a vector for each program."""
        out = f"o_{var.name}"
        if var.shape == self.full:
            shape = (self.rows, self.columns) if self.is_2d else (self.columns,)
            text = f"tl.store({out} + where, {var.name}, mask=mask)"
            if self.is_2d and self.rng.random() < 0.2:
                shape = (self.columns, self.rows)
                text = f"tl.store({out} + col[:, None] * m + row[None, :], tl.trans({var.name}), mask=tl.trans(mask))"
        else:
            sizes = {"R": -(-self.rows // self.R) * self.R, "C": -(-self.columns // self.C) * self.C}
            programs = [-(-self.rows // self.R), -(-self.columns // self.C)]
            if var.shape == ():
                shape, at = (
                    tuple(programs),
                    "tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)" if self.is_2d else "tl.program_id(0)",
                )
            elif var.shape == ("R",):
                shape, at = (programs[1], sizes["R"]), f"tl.program_id(0) * {sizes['R']} + row"
            else:
                shape, at = (programs[0], sizes["C"]), f"tl.program_id(1) * {sizes['C']} + col"
            text = f"tl.store({out} + {at}, {var.name})"
        self.args[out] = f"{'x'.join(map(str, shape))}:{var.dtype}"
        self.statements.append(Statement(out, text, is_store=True))


# Steps: each adds at most one value.


def _shallow(var: Var) -> bool:
    """Whether a float may be rounded once more in its type without drifting too far."""
    return var.is_float and (var.dtype == "fp32" or var.depth < 2)


def arithmetic(w: Writer) -> None:
    """Sum, difference, product of floats."""
    found = w.pair(_shallow)
    if found is None:
        return
    a, b, shape = found
    left, right = w.shaped(a, shape), w.shaped(b, shape)
    symbol = w.rng.choice("+-*") if not a.roots & b.roots else "*"
    bound = a.bound * b.bound if symbol == "*" else a.bound + b.bound
    w.add(f"{left} {symbol} {right}", a, shape=shape, bound=bound, exact=False, **w.joined(a, b))


INTEGER_BINARY = [
    *[f"{{l}} {symbol} {{r}}" for symbol in "+-*&|^"],
    *["({l} // 3) + {r}", "({l} % 7) * {r}", "({l} << 2) - {r}", "({l} >> 1) ^ {r}"],
    *["tl.maximum({l}, {r})", "tl.minimum({l}, {r})"],
]


def integer_arithmetic(w: Writer) -> None:
    """Wrapping arithmetic and bits."""
    found = w.pair(lambda var: not var.is_float)
    if found is None:
        return
    a, b, shape = found
    left, right = w.shaped(a, shape), w.shaped(b, shape)
    text = w.rng.choice(INTEGER_BINARY)
    w.add(text.format(l=left, r=right), a, shape=shape, bound=1e18, **w.joined(a, b))


def extremes(w: Writer) -> None:
    """Maximum or minimum of two floats."""
    found = w.pair(lambda var: var.is_float)
    if found is None:
        return
    a, b, shape = found
    name = w.rng.choice(["maximum", "minimum"])
    text = f"tl.{name}({w.shaped(a, shape)}, {w.shaped(b, shape)})"
    w.add(
        text,
        a,
        dtype="fp32" if a.dtype == "bf16" else a.dtype,
        shape=shape,
        bound=max(a.bound, b.bound),
        exact=a.exact and b.exact,
        roots=a.roots | b.roots,
        depth=max(a.depth, b.depth),
    )


def select(w: Writer) -> None:
    """`tl.where` with an exact comparison."""
    found = w.pair(lambda var: True)
    decider = w.pick(lambda var: var.exact and var.shape == w.full)
    if found is None or decider is None:
        return
    a, b, _ = found
    symbol = w.rng.choice(["<", ">", "<=", ">=", "==", "!="])
    threshold = w.rng.choice(["0.5", "1.0", "-1.0"]) if decider.is_float else w.rng.choice(["0", "3", "-2"])
    text = f"tl.where({decider.name} {symbol} {threshold}, {w.shaped(a, w.full)}, {w.shaped(b, w.full)})"
    roots, depth = a.roots | b.roots, max(a.depth, b.depth)
    w.add(text, a, shape=w.full, bound=max(a.bound, b.bound), exact=a.exact and b.exact, roots=roots, depth=depth)


# Function of x, what it does to a bound, the largest bound it takes.
UNARY: list[tuple[str, Callable[[float], float], float]] = [
    ("tl.exp(-tl.abs({x}))", lambda b: 1.0, 100),
    ("tl.exp2(tl.minimum({x}, 3.0))", lambda b: 8.0, 100),
    ("tl.exp({x} * 0.1)", lambda b: 2.718 ** (b / 10), 30),
    ("tl.log(tl.abs({x}) + 1.5)", lambda b: b + 1, 1e6),
    ("tl.log2(tl.abs({x}) + 1.5)", lambda b: b + 1, 1e6),
    ("tl.sqrt(tl.abs({x}) + 0.5)", lambda b: b + 1, 1e6),
    ("tl.rsqrt(tl.abs({x}) + 0.5)", lambda b: 2.0, 1e6),
    ("tl.sin({x})", lambda b: 1.0, 10),
    ("tl.cos({x})", lambda b: 1.0, 10),
    ("tl.sigmoid({x})", lambda b: 1.0, 50),
    ("tl.erf({x})", lambda b: 1.0, 10),
    ("1.0 / (tl.abs({x}) + 0.75)", lambda b: 2.0, 1e6),
    ("tl.fma({x}, {x}, {x})", lambda b: b * b + b, 1e3),
    ("tl.clamp({x}, -1.5, 2.5)", lambda b: 2.5, 1e6),
]
EXACT_UNARY = ["tl.abs({x})", "-{x}"]


def function(w: Writer) -> None:
    """A function of one float; the transcendental ones want f32."""
    text, bound, largest = w.rng.choice(UNARY)
    x = w.pick(lambda var: var.dtype == "fp32" and var.bound <= largest)
    if x is not None:
        w.add(text.format(x=x.name), x, bound=bound(x.bound), exact=False, depth=x.depth + 1)


def exact_function(w: Writer) -> None:
    """A function that does not round."""
    x = w.pick(lambda var: True)
    if x is not None:
        w.add(w.rng.choice(EXACT_UNARY).format(x=x.name), x)


def convert(w: Writer) -> None:
    """A conversion that every level does alike."""
    x = w.pick(lambda var: var.is_float or var.exact)
    if x is None:
        return
    if x.is_float:
        if x.exact and x.bound < 100 and w.rng.random() < 0.3:
            w.add(
                f"({x.name} * 4.0).to(tl.int32)" if x.dtype == "fp32" else f"{x.name}.to(tl.int32)",
                x,
                dtype="i32",
                bound=400,
            )
            return
        target = w.rng.choice([t for t in FLOATS if t != x.dtype])
        if x.bound <= LARGEST[target]:
            w.add(f"{x.name}.to({TL[target]})", x, dtype=target, exact=x.exact, depth=x.depth + 1)
    elif w.rng.random() < 0.5:
        w.add(f"({x.name} % 13).to(tl.float32)", x, dtype="fp32", bound=13)
    else:
        target = w.rng.choice([t for t in INTEGERS if t != x.dtype])
        w.add(f"{x.name}.to({TL[target]})", x, dtype=target)


def reduction(w: Writer) -> None:
    """A sum, maximum, minimum, xor or argmax along an axis, or of everything."""
    x = w.pick(lambda var: len(var.shape) > 0 and var.dtype in ("fp32", "i32"))
    if x is None:
        return
    axis = w.rng.choice([*range(len(x.shape)), None]) if len(x.shape) == 2 else 0
    left = () if axis is None or len(x.shape) == 1 else tuple(s for i, s in enumerate(x.shape) if i != axis)
    size = w.R * w.C if axis is None else {"R": w.R, "C": w.C}[x.shape[axis]]
    where = "" if axis is None else f", axis={axis}"
    name = w.rng.choice(
        [
            "sum",
            "max",
            "min",
            *(["xor_sum"] if x.dtype == "i32" else []),
            *(["argmax", "argmin"] if x.exact and axis is not None else []),
        ]
    )
    if name == "sum":
        bound = x.bound * size if x.is_float else 1e18
        w.add(
            f"tl.sum({x.name}{where})", x, shape=left, bound=bound, exact=x.exact and not x.is_float, depth=x.depth + 1
        )
    elif name in ("argmax", "argmin"):
        w.add(f"tl.{name}({x.name}{where})", x, shape=left, dtype="i32", bound=size)
    else:
        w.add(f"tl.{name}({x.name}{where})", x, shape=left)


def scan(w: Writer) -> None:
    """A running sum along an axis."""
    x = w.pick(lambda var: len(var.shape) > 0 and var.dtype in ("fp32", "i32"))
    if x is None:
        return
    axis = w.rng.randrange(len(x.shape))
    size = {"R": w.R, "C": w.C}[x.shape[axis]]
    reverse = w.rng.choice(["", ", reverse=True"])
    w.add(f"tl.cumsum({x.name}, {axis}{reverse})", x, bound=x.bound * size, exact=not x.is_float, depth=x.depth + 1)


def loop(w: Writer) -> None:
    """A loop that carries a block; its length is an argument."""
    x = w.pick(lambda var: var.dtype == "fp32" and var.bound < 1e3)
    y = w.pick(
        lambda var: x is not None and var.dtype == "fp32" and set(var.shape) <= set(x.shape) and not var.roots & x.roots
    )
    if x is None:
        return
    w.args.setdefault("steps", w.rng.choice([0, 1, 3]))
    w.counter += 1
    name, other = f"v{w.counter}", w.shaped(y, x.shape) if y is not None else "1.0"
    body = w.rng.choice([f"{name} * 0.5 + {other}", f"tl.maximum({name} * 0.75, {other})", f"{name} * 0.25 + i"])
    w.statements.append(Statement(name, f"{name} = {x.name}\nfor i in range(steps):\n    {name} = {body}"))
    bound = x.bound + 4 * (y.bound if y is not None else 4)
    roots = x.roots | (y.roots if y is not None else frozenset())
    w.vars.append(replace(x, name=name, bound=bound, roots=roots, exact=False, depth=x.depth + 1))


def branch(w: Writer) -> None:
    """One of two values, chosen by an argument."""
    x = w.pick(lambda var: True)
    if x is None:
        return
    y = w.pick(lambda var: var.dtype == x.dtype and var.shape == x.shape)
    if y is None:
        return
    w.counter += 1
    name = f"v{w.counter}"
    w.statements.append(
        Statement(name, f"if n > {w.rng.choice([0, 40, 1000])}:\n    {name} = {x.name}\nelse:\n    {name} = {y.name}")
    )
    roots, depth = x.roots | y.roots, max(x.depth, y.depth)
    w.vars.append(
        replace(x, name=name, bound=max(x.bound, y.bound), roots=roots, exact=x.exact and y.exact, depth=depth)
    )


STEPS: list[Callable[[Writer], None]] = [
    *[arithmetic, arithmetic, integer_arithmetic, extremes, select, function, function, exact_function],
    *[convert, reduction, reduction, scan, loop, branch],
]


def generate(seed: int) -> Kernel:
    """The kernel of a seed."""
    return Writer(seed).write()
