"""Products as users write them: sums over K in any kind of loop, of operands that are computed where they are loaded.

Sizes are no multiples of the blocks; masks depend on what the loop counts and leave any number in place of what is
outside; operands are scaled, unpacked, chosen, gathered or of mixed signs; a sum is read, stored, changed or left alone
inside the loop, goes on in another loop, or lies in memory between iterations. Numbers are whole and small: every way
to compute them gives the same.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from fuzz.body import tl

if TYPE_CHECKING:
    from fuzz.programs import Writer

ELEMENTS = ["float16", "bfloat16", "float32", "int8", "uint8", "int8, uint8", "uint8, int8"]
SIZES = (1, 2, 4, 8, 16, 16, 32, 32, 64, 128)
LARGEST_BLOCK = 4096


class Operand(NamedTuple):
    """One side of the products: `lines` load it into `name`, given the counter's name."""

    name: str
    lines: list[str]
    at_end: list[str]


def products(w: Writer) -> None:
    """A program of this kind."""
    _Products(w).write()


class _Products:
    def __init__(self, w: Writer) -> None:
        rng = w.rng
        self.w, self.rng, self.emit = w, rng, w.body.emit
        kinds = rng.choice(ELEMENTS).split(", ")
        self.kinds = kinds[0], kinds[-1]
        self.is_float = kinds[0].startswith(("f", "b"))
        self.sum = "float32" if self.is_float else "int32"
        while True:
            self.bm, self.bn, self.bk = (rng.choice(SIZES) for _ in range(3))
            if max(self.bm * self.bn, self.bm * self.bk, self.bn * self.bk) <= LARGEST_BLOCK:
                break
        self.steps = rng.choice([0, 1, 1, 2, 3, 4])
        self.k = max(0, self.bk * self.steps - rng.choice([0, 0, 1, self.bk // 2, rng.randrange(self.bk)]))
        self.tiles = rng.choice([1, 1, 2, 3])
        self.m = max(1, self.bm * self.tiles - rng.choice([0, 0, 1, rng.randrange(self.bm)]))
        self.n = max(1, self.bn - rng.choice([0, 0, 1, rng.randrange(self.bn)]))
        self.room_k = self.bk * (self.steps + 1)
        w.programs = self.tiles
        w.args |= {"M": self.m, "N": self.n, "K": self.k, "flag": rng.randint(0, 1)}
        w.dtypes |= dict.fromkeys("MNK", "int32")
        self.advancing = rng.random() < 0.4

    def write(self) -> None:
        """Indices, operands, the loop, what follows."""
        self.emit(f"m = pid * {self.bm} + tl.arange(0, {self.bm})")
        self.emit(f"n = tl.arange(0, {self.bn})")
        self.emit(f"k = tl.arange(0, {self.bk})")
        a, b = self._operand("a"), self._operand("b")
        self._start("acc")
        second = self.rng.random() < 0.25
        if second:
            self._start("other")
        for headers, before, after in self._loops():
            for line in before:
                self.emit(line)
            with ExitStack() as nest:
                for header in headers:
                    nest.enter_context(self.w.body.nested(header))
                for line in [*a.lines, *b.lines]:
                    self.emit(line)
                self._inside("acc", a.name, b.name)
                if second:
                    self._inside("other", *self.rng.choice([(a.name, b.name), (f"({a.name})", f"-{b.name}")]))
                for line in [*a.at_end, *b.at_end, *after]:
                    self.emit(line)
        if second:
            self.emit(self.rng.choice(["acc = acc - other", "acc = tl.maximum(acc, other)", "acc = acc + other * 2"]))
        self._end()

    # Operands

    def _array(self, name: str, size: int, dtype: str) -> str:
        is_small = self.is_float or self.rng.random() < 0.3
        self.w.input(name, size, dtype, "small" if is_small else "full")
        return name

    def _operand(self, side: str) -> Operand:
        """Loaded by places that are computed or by pointers that advance, then changed."""
        rng, left = self.rng, side == "a"
        dtype = self.kinds[0 if left else 1]
        across, size = ("m", self.bm) if left else ("n", self.bn)
        wide = size * (self.tiles if left else 1)
        limit = across.upper()
        along, step = rng.choice([(self.room_k + rng.choice([0, 3]), 1), (1, wide + rng.choice([0, 1, 16]))])
        if rng.random() < 0.15:
            along, step = along * 2, step * 2
        turned = rng.random() < 0.25
        # rows of the block that is loaded run along `across`, except where it is loaded the other way around
        rows_across = left != turned
        first, last = ("[:, None]", "[None, :]") if rows_across else ("[None, :]", "[:, None]")
        index = across if rng.random() < 0.8 else f"({across} % {limit})"
        if rng.random() < 0.15:
            table = self._array(f"{side}_rows", wide, "int32")
            self.w.args[table] = self.w.numbers.integers(0, wide, wide).astype("i4")
            self.emit(f"{side}i = tl.load({table} + {across})")
            index = f"{side}i"
        length = wide * along + self.room_k * step + 8
        self._array(side, length, dtype)
        at_end: list[str] = []
        counter = "at" if rng.random() < 0.9 else f"(at // {self.bk} * {self.bk})"
        places = f"{index}{first} * {along} + k{last} * {step}"
        if self.advancing:
            self.emit(f"{side}p = {side} + {places}")
            pointers, at_end = f"{side}p", [f"{side}p += {self.bk * step}"]
        else:
            pointers = f"{side} + {counter} * {step} + {places}"
        parts = [f"({across}{first} < {limit})"] if rng.random() < 0.7 else []
        if self.k % max(self.bk, 1) or rng.random() < 0.4 or not parts:
            parts.append(rng.choice([f"(at + k{last} < K)", f"(k{last} < K - at)"]))
        zero = rng.choice(["0", "0", "0", "1", "3"])
        rng.shuffle(parts)
        held = f", mask={' & '.join(parts)}, other={zero}" if parts else ""
        lines = [f"x = tl.load({pointers}{held})"]
        lines += self._changed(side, dtype, last, first, across)
        if zero != "0" or not any("K" in part for part in parts):
            lines.append(f"x = tl.where(at + k{last} < K, x, 0).to({tl(dtype)})")
        lines.append(f"{side}x = {'tl.trans(x)' if turned else 'x'}")
        return Operand(f"{side}x", lines, at_end)

    def _changed(self, side: str, dtype: str, along: str, over: str, across: str) -> list[str]:
        """What is done to a block that was loaded; it stays small."""
        rng, kind = self.rng, tl(dtype)
        if dtype in ("int8", "uint8"):
            return rng.choice(
                [
                    [],
                    [],
                    [f"x = (x >> 4).to({kind})"],
                    [f"x = ((x >> (k{along} % 2 * 4)) & 15).to({kind})"],
                    [f"x = (x // 3).to({kind})"],
                    [f"x = tl.where(({across}{over} + k{along} + at) % 3 == 0, x, 1).to({kind})"],
                ]
            )
        scale = f"{side}_scale"
        how = rng.randrange(7)
        if how == 0:
            self._array(scale, self.room_k, dtype)
            return [f"x = (tl.maximum(tl.minimum(x * tl.load({scale} + at + k){along}, 16), -16)).to({kind})"]
        if how == 1:
            self._array(scale, self.bm * self.tiles + self.bn, dtype)
            return [f"x = (x + tl.load({scale} + {across}){over}).to({kind})"]
        if how == 2:
            return [f"x = tl.where({across}{over} >= k{along} + at - 3, x, 0).to({kind})"]
        if how == 3:
            return [f"x = tl.maximum(tl.abs(x) - 2, 0).to({kind})"]
        if how == 4:
            return [f"x = (x.to(tl.float32) * 0.5 + tl.floor(x.to(tl.float32) * 0.5)).to({kind})"]
        return []

    # Sums

    def _start(self, name: str) -> None:
        rng, kind = self.rng, tl(self.sum)
        start = f"tl.zeros(({self.bm}, {self.bn}), {kind})"
        how = rng.randrange(6)
        if how == 0:
            start = f"tl.full(({self.bm}, {self.bn}), 3, {kind})"
        elif how == 1:
            self._array(f"{name}c", self.bm * self.bn * self.tiles, self.sum)
            start = f"tl.load({name}c + m[:, None] * {self.bn} + n[None, :], mask=(m[:, None] < M) & (n < N), other=2)"
        elif how == 2:
            self._array(f"{name}b", self.bn, self.sum)
            start += f" + tl.load({name}b + n)[None, :]"
        elif how == 3:
            start += f" + m[:, None].to({kind})"
        self.emit(f"{name} = {start}")

    def _loops(self) -> list[tuple[list[str], list[str], list[str]]]:
        """One or two: their headers, what stands before it, and what ends an iteration."""
        rng, end = self.rng, f"tl.cdiv(K, {self.bk})"
        how = rng.choice(["range", "range", "count", "while", "stages", "two", "outer", "static", "if"])
        plain = f"for at in range(0, K, {self.bk}):"
        if how == "count":
            return [([f"for j in range({end}):"], ["at = pid * 0"], [f"at += {self.bk}"])]
        if how == "while":
            return [(["while at < K:"], ["at = pid * 0"], [f"at += {self.bk}"])]
        if how == "static" and self.k > 0:
            return [([f"for at in tl.static_range(0, {self.k}, {self.bk}):"], [], [])]
        if how == "two" and not self.advancing:
            half = f"K // {2 * self.bk} * {self.bk}"
            return [([f"for at in range({bounds}, {self.bk}):"], [], []) for bounds in (f"0, {half}", f"{half}, K")]
        if how == "outer" and not self.advancing:
            return [(["for j in range(flag + 1):", plain], [], [])]
        if how == "if":
            return [(["if flag > 0:"], ["at = pid * 0"], [])]
        if how == "stages":
            return [([f"for at in tl.range(0, K, {self.bk}, num_stages={self.rng.randint(1, 4)}):"], [], [])]
        return [([plain], [], [])]

    def _inside(self, name: str, left: str, right: str) -> None:
        rng = self.rng
        precision = ", input_precision='ieee'" if self.kinds[0] == "float32" else ""

        def dot(into: str = "") -> str:
            return f"tl.dot({left}, {right}{into and ', ' + into}, out_dtype={tl(self.sum)}{precision})"

        number = self.w.body.fresh("d")
        texts = [
            *[[f"{name} = {dot(name)}"], [f"{name} += {dot()}"]] * 3,
            [f"{name} = {name} - {dot()}"],
            [f"{name} = {dot(f'-{name}')}"],
            [f"{number} = {dot()}", f"{name} += {number} + tl.sum({number}, 1)[:, None] * 2"],
            [f"{number} = {dot(name)}", f"{name} = tl.where(m[:, None] % 2 == 0, {number}, {name} + 1)"],
            [f"{name} = {dot(f'{name} * tl.where(m % 3 == 0, -1, 1)[:, None].to({tl(self.sum)})')}"],
            [f"if (at // {self.bk}) % 2 == flag:", f"    {name} = {dot(name)}"],
            [f"if at > {self.bk}:", f"    {name} = {dot(name)}", "else:", f"    {name} += 1"],
            [f"{name} = {dot(name)}", f"{name} += tl.max({left}.to({tl(self.sum)}), 1)[:, None]"],
            [f"{name} = {dot(name)}", f"{name} = {dot(name)}"],
            [f"{number} = {dot()}", f"{number} = {number} * 2", f"{name} = {name} + {number}"],
        ]
        chosen = rng.choice(texts)
        if rng.random() < 0.2:
            self._array(f"{name}o", self.bm * self.bn * self.tiles, self.sum)
            trace = f"tl.store({name}o + m[:, None] * {self.bn} + n[None, :], {name}, mask=(m[:, None] < M) & (n < N))"
            chosen = [trace, *chosen] if rng.random() < 0.5 else [*chosen, trace]
        for line in chosen:
            self.emit(line)

    def _end(self) -> None:
        """What is computed of the sum, and where it goes."""
        rng, kind = self.rng, tl(self.sum)
        how = rng.randrange(7)
        if how == 0:
            self._array("bias", self.bn, self.sum)
            self.emit("acc += tl.load(bias + n, mask=n < N, other=0)[None, :]")
        elif how == 1:
            self.emit("acc = tl.maximum(acc, 0)")
        elif how == 2:
            self.emit("acc = acc - tl.max(acc, 1)[:, None]")
        elif how == 3:
            self._array("total", self.bm * self.tiles, self.sum)
            self.emit("tl.store(total + m, tl.sum(acc, 1))")
        elif how == 4:
            self._array("kept", self.bm * self.bn * self.tiles, self.sum)
            self.emit(f"acc += tl.load(kept + m[:, None] * {self.bn} + n, mask=(n < N) & (m[:, None] < M), other=0)")
        elif how == 5:
            self._array("columns", self.bn * self.tiles, self.sum)
            self.emit(f"tl.store(columns + pid * {self.bn} + n, tl.max(acc, 0))")
        self._array("out", self.bm * self.bn * self.tiles, self.sum)
        down, along = rng.choice([(self.bn, 1), (self.bn, 1), (1, self.bm * self.tiles)])
        mask = rng.choice(
            ["", ", mask=(m[:, None] < M) & (n[None, :] < N)", ", mask=(m[:, None] < M) & (n > 0)[None, :]"]
        )
        self.emit(f"tl.store(out + m[:, None] * {down} + n[None, :] * {along}, acc.to({kind}){mask})")
