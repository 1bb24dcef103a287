"""Random programs at level tt: rectangles loaded through blocks of pointers, multiplied, and stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SIZE = 8  # of every block, both ways


@dataclass
class Text:
    """Lines of a function, with fresh names."""

    random: np.random.Generator
    lines: list[str] = field(default_factory=list[str])
    indent: str = "  "
    count: int = 0

    def let(self, text: str) -> str:
        """A line with one result, and its name."""
        self.count += 1
        self.lines.append(f"{self.indent}%v{self.count} = {text}")
        return f"%v{self.count}"

    def pick(self, *choices: str) -> str:
        """One of them."""
        return choices[self.random.integers(len(choices))]

    def chance(self, probability: float) -> bool:
        """True so often."""
        return bool(self.random.random() < probability)

    # Scalars and lines.

    def number(self, value: int) -> str:
        return self.let(f"arith.constant {value} : i32")

    def binary(self, op: str, a: str, b: str, type_: str = "i32") -> str:
        return self.let(f"arith.{op} {a}, {b} : {type_}")

    def start(self) -> str:
        """Where a block starts along a dimension."""
        blocks = self.binary("muli", self.program(), self.number(SIZE))
        match self.pick("blocks", "blocks", "blocks", "shifted", "argument", "constant"):
            case "blocks":
                return blocks
            case "shifted":
                return self.binary("addi", blocks, self.number(int(self.random.integers(-5, 5))))
            case "argument":
                return self.binary(self.pick("addi", "subi"), blocks, "%d")
            case _:
                return self.number(int(self.random.integers(-3, 9)))

    def program(self) -> str:
        """A number made of the program's ids."""
        one, other = self.pick("%px", "%py"), self.pick("%m", "%d", "%k", self.number(2))
        match self.pick("itself", "itself", "itself", "divsi", "remsi", "grouped"):
            case "itself":
                return one
            case "grouped":
                room = self.binary("subi", other, "%py")
                return self.binary(self.pick("divsi", "remsi"), one, self.binary("minsi", room, self.number(2)))
            case op:
                return self.binary(op, one, other)

    def line(self, start: str) -> str:
        """Places from `start` on."""
        whole = f"tensor<{SIZE}xi32>"
        places = self.let(f"tt.make_range {{end = {SIZE} : i32, start = 0 : i32}} : {whole}")
        return self.binary("addi", self.spread(start, whole), places, whole)

    def spread(self, scalar: str, type_: str) -> str:
        return self.let(f"tt.splat {scalar} : i32 -> {type_}")

    def bent(self, line: str, end: str) -> str:
        """The same places within `end`, and others beyond it."""
        whole = f"tensor<{SIZE}xi32>"
        ends = self.spread(end, whole)
        match self.pick("remsi", "minsi", "select", "none", "none"):
            case "remsi":
                return self.binary("remsi", line, ends, whole)
            case "minsi":
                last = self.spread(self.binary("subi", end, self.number(1)), whole)
                return self.binary("minsi", line, last, whole)
            case "select":
                inside = self.let(f"arith.cmpi slt, {line}, {ends} : {whole}")
                zeros = self.let(f"arith.constant dense<0> : {whole}")
                return self.let(f"arith.select {inside}, {line}, {zeros} : tensor<{SIZE}xi1>, {whole}")
            case _:
                return line

    def wide(self, line: str, dim: int, element: str = "i32") -> str:
        """A line along dimension `dim` of a block."""
        shape = f"{SIZE}x1" if dim == 0 else f"1x{SIZE}"
        thin = self.let(
            f"tt.expand_dims {line} {{axis = {1 - dim} : i32}} : tensor<{SIZE}x{element}> -> tensor<{shape}x{element}>"
        )
        return self.let(f"tt.broadcast {thin} : tensor<{shape}x{element}> -> tensor<{SIZE}x{SIZE}x{element}>")

    def compared(self, line: str, end: str) -> str:
        """A bound on the places of a line."""
        whole = f"tensor<{SIZE}xi32>"
        ends = self.spread(end, whole)
        text = self.pick(
            f"slt, {line}, {ends}", f"slt, {line}, {ends}", f"sle, {line}, {ends}", f"sgt, {ends}, {line}",
            f"sge, {ends}, {line}", f"sge, {line}, {ends}",
        )  # fmt: skip
        return self.let(f"arith.cmpi {text} : {whole}")

    def natural(self, line: str) -> str:
        zeros = self.let(f"arith.constant dense<0> : tensor<{SIZE}xi32>")
        return self.let(f"arith.cmpi sge, {line}, {zeros} : tensor<{SIZE}xi32>")


@dataclass
class Operand:
    """A block of pointers before the loop, and how a loop moves and masks it."""

    pointers: str
    lines: tuple[str, str]
    ends: tuple[str, str]
    stride: str
    moving: int | None
    step: int
    turned: bool


BLOCK = f"tensor<{SIZE}x{SIZE}xi32>"
POINTERS = f"tensor<{SIZE}x{SIZE}x!tt.ptr<f32>>"
VALUES = f"tensor<{SIZE}x{SIZE}xf32>"
MASKS = f"tensor<{SIZE}x{SIZE}xi1>"


def _operand(t: Text, base: str, k_dim: int, starts: tuple[str, str]) -> Operand:
    """Pointers to the rectangle that starts at `starts`; `k_dim` is the dimension along which a loop goes."""
    ends = ("%m", "%k") if k_dim == 1 else ("%k", "%n")
    lines = (t.line(starts[0]), t.line(starts[1]))
    bent = tuple(
        t.bent(line, end) if dim != k_dim else line for dim, (line, end) in enumerate(zip(lines, ends, strict=True))
    )
    turned = t.chance(0.2)
    stride = t.pick("%s", "%s", "%s", t.number(40))
    rows, columns = (t.wide(line, dim) for dim, line in enumerate(bent))
    scaled, plain = (columns, rows) if turned else (rows, columns)
    offsets = t.binary("addi", t.binary("muli", scaled, t.spread(stride, BLOCK), BLOCK), plain, BLOCK)
    if t.chance(0.3):
        base = t.let(f"tt.addptr {base}, {t.pick('%d', t.number(32))} : !tt.ptr<f32>, i32")
    whole = t.let(f"tt.splat {base} : !tt.ptr<f32> -> {POINTERS}")
    pointers = t.let(f"tt.addptr {whole}, {offsets} : {POINTERS}, {BLOCK}")
    moving = k_dim if t.chance(0.85) else None
    step = int(t.random.choice([SIZE, SIZE, SIZE, 3, -SIZE]))
    return Operand(pointers, lines, ends, stride, moving, step, turned)


def _mask(t: Text, operand: Operand, k_dim: int, moved: str) -> str | None:
    """A conjunction of bounds. `moved`: by how much the loop has moved the block."""
    parts: list[str] = []
    for dim, (line, end) in enumerate(zip(operand.lines, operand.ends, strict=True)):
        if not t.chance(0.75):
            continue
        if dim == k_dim and operand.moving is not None and t.chance(0.9):
            end = t.binary("subi", end, moved)
        parts.append(t.wide(t.compared(line, end), dim, "i1"))
        if t.chance(0.25):
            parts.append(t.wide(t.natural(line), dim, "i1"))
    if t.chance(0.1):
        parts.append(t.let(f"tt.splat %flag : i1 -> {MASKS}"))
    mask = parts[0] if parts else None
    for part in parts[1:]:
        mask = t.binary("andi", mask or "", part, MASKS)
    return mask


def _load(t: Text, pointers: str, mask: str | None) -> str:
    if mask is None:
        return t.let(f"tt.load {pointers} : {POINTERS}")
    match t.pick("none", "zero", "zero", "seven"):
        case "none":
            return t.let(f"tt.load {pointers}, {mask} : {POINTERS}")
        case other:
            value = t.let(f"arith.constant dense<{0.0 if other == 'zero' else 7.0:e}> : {VALUES}")
            return t.let(f"tt.load {pointers}, {mask}, {value} : {POINTERS}")


def program(seed: int) -> str:
    """A product of two rectangles; its blocks are stored to a third one."""
    t = Text(np.random.default_rng(seed))
    t.lines.append(
        'module attributes {mltriton.level = "tt", ttg.target = "xe:pvc"} {\n'
        "tt.func public @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %m: i32, %n: i32, %k: i32, %s: i32, %d: i32, "
        "%turns: i32, %flag: i1) {"
    )
    t.lines += ["  %px = tt.get_program_id x : i32", "  %py = tt.get_program_id y : i32"]
    t.lines.append("  %always = arith.cmpi eq, %d, %d : i32")
    middle = t.let(f"tt.addptr %x, {t.number(int(t.random.choice([0, 50, 2000])))} : !tt.ptr<f32>, i32")
    base = t.let(f"arith.select %always, {middle}, %x : !tt.ptr<f32>")  # nobody sees where in x it is
    zero, row, column = t.number(0), t.start(), t.start()
    a = _operand(t, base, 1, (row, t.pick(zero, zero, t.start())))
    b = _operand(t, base, 0, (t.pick(zero, zero, t.start()), column))
    carried = (t.let(f"arith.constant dense<0.000000e+00> : {VALUES}"), a.pointers, b.pointers)
    before = zero
    for number in range(1 + t.chance(0.25)):
        carried = _loop(t, number, (a, b), carried, before)
        before = "%turns"
    _store(t, row, column, carried[0])
    return "\n".join([*t.lines, "  tt.return", "}", "}", ""])


def _loop(
    t: Text, number: int, operands: tuple[Operand, Operand], inits: tuple[str, str, str], before: str
) -> tuple[str, str, str]:
    """A loop over products; `before` iterations came before it. What it carries, afterwards."""
    step = t.pick("1", "1", str(SIZE), "3")
    lower, by = t.number(int(t.random.choice([0, 0, 2]))), t.number(int(step))
    upper = t.binary("addi", lower, t.binary("muli", by, "%turns"))
    results, arguments = ((f"%{name}{number}{end}" for name in "sab") for end in ("_after", ""))
    sum_after, a_after, b_after = results
    acc, *pointers = arguments
    counter = f"%i{number}"
    carried = ", ".join(f"{name} = {init}" for name, init in zip((acc, *pointers), inits, strict=True))
    types = f"({VALUES}, {POINTERS}, {POINTERS})"
    t.lines.append(
        f"  {sum_after}, {a_after}, {b_after} = scf.for {counter} = {lower} to {upper} step {by} iter_args({carried}) "
        f"-> {types} : i32 {{"
    )
    t.indent = "    "
    turns = t.binary("divsi", t.binary("subi", counter, lower), by)
    loaded: list[str] = []
    for operand, k_dim, name in zip(operands, (1, 0), pointers, strict=True):
        in_loop = t.binary("muli", turns, t.number(operand.step))
        if step == str(operand.step):
            in_loop = t.binary("subi", counter, lower)
        moved = t.binary("addi", in_loop, t.binary("muli", before, t.number(operand.step)))
        loaded.append(_load(t, name, _mask(t, operand, k_dim, moved)))
    product = t.let(f"tt.dot {loaded[0]}, {loaded[1]}, {acc} : {VALUES} * {VALUES} -> {VALUES}")
    following = [_moved(t, operand, name) for operand, name in zip(operands, pointers, strict=True)]
    t.lines.append(f"    scf.yield {product}, {following[0]}, {following[1]} : {VALUES}, {POINTERS}, {POINTERS}\n  }}")
    t.indent = "  "
    return sum_after, a_after, b_after


def _moved(t: Text, operand: Operand, name: str) -> str:
    if operand.moving is None:
        return name
    amount = t.number(operand.step)
    if (operand.moving == 0) != operand.turned:
        amount = t.binary("muli", amount, operand.stride)
    return t.let(f"tt.addptr {name}, {t.spread(amount, BLOCK)} : {POINTERS}, {BLOCK}")


def _store(t: Text, row: str, column: str, value: str) -> None:
    lines = (t.line(row), t.line(column))
    rows, columns = (t.wide(line, dim) for dim, line in enumerate(lines))
    offsets = t.binary("addi", t.binary("muli", rows, t.spread("%s", BLOCK), BLOCK), columns, BLOCK)
    middle = t.let(f"tt.addptr %y, {t.number(2000)} : !tt.ptr<f32>, i32")
    base = t.let(f"arith.select %always, {middle}, %y : !tt.ptr<f32>")
    whole = t.let(f"tt.splat {base} : !tt.ptr<f32> -> {POINTERS}")
    pointers = t.let(f"tt.addptr {whole}, {offsets} : {POINTERS}, {BLOCK}")
    parts = [
        t.wide(t.let(f"arith.cmpi slt, {line}, {t.spread(end, f'tensor<{SIZE}xi32>')} : tensor<{SIZE}xi32>"), dim, "i1")
        for dim, (line, end) in enumerate(zip(lines, ("%m", "%n"), strict=True))
        if t.chance(0.85)
    ]
    mask = t.binary("andi", parts[0], parts[1], MASKS) if len(parts) == 2 else parts[0] if parts else None
    t.lines.append(f"  tt.store {pointers}, {value}{f', {mask}' if mask else ''} : {POINTERS}")
