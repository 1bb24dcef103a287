"""Loops of products that take each other's results, as in attention and its gradients.

A block of each program stays, others come by from memory: along either dimension, by places that are computed, by
pointers that advance or through a descriptor. What is multiplied is any of them or an earlier product, as it is or
transposed; sums go on over the loop, with or without a new sign of rows whose largest element changes. All numbers are
whole and small, so that every way to compute them gives the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fuzz.body import tl

if TYPE_CHECKING:
    from fuzz.programs import Writer

LARGEST = 8  # an element of what is multiplied
WARPS = (1, 2, 4, 4, 4, 4, 8, 8, 8, 16)
SIZES = (32, 64, 64, 128, 128), (16, 32, 64, 64, 64, 128), (32, 64, 64, 64, 128)


class Matrix(NamedTuple):
    """A block that can be multiplied."""

    name: str
    rows: int
    columns: int

    @property
    def turned(self) -> Matrix:
        """Its transpose."""
        return Matrix(f"tl.trans({self.name})", self.columns, self.rows)


def chains(w: Writer) -> None:
    """A program of this kind."""
    _Chain(w).write()


class _Chain:
    def __init__(self, w: Writer) -> None:
        rng = w.rng
        self.w, self.rng, self.emit = w, rng, w.body.emit
        self.element = rng.choice(["float16"] * 4 + ["bfloat16", "bfloat16", "int8", "float32"])
        self.sum = "int32" if self.element == "int8" else "float32"
        self.m, self.n, self.d = (rng.choice(sizes) for sizes in SIZES)
        self.length = self.n * rng.randint(1, 4) - rng.choice([0, 0, 0, 5])
        self.at_end: list[str] = []  # of an iteration
        self.sums: list[Matrix] = []
        w.args["n"] = self.length
        w.programs, w.warps = rng.choice([1, 1, 2]), rng.choice(WARPS)

    def write(self) -> None:
        """What stays, the sums, the loops, the stores."""
        for name, size in (("im", self.m), ("i", self.n), ("d", self.d)):
            self.emit(f"{name} = tl.arange(0, {size})")
        pool = [self._staying("q")] + ([self._staying("g")] if self.rng.random() < 0.4 else [])
        loads = [self._coming(name) for name in ("x", "y")[: self.rng.randint(1, 2)]]
        pool += [block for block, _ in loads]
        inside = self._products(pool)
        body = [*(line for _, line in loads), *inside, *self.at_end]
        half = f"n // {2 * self.n} * {self.n}"
        # A loop without an iteration, of which a product runs one later, reads there what nothing has written, and
        # drops the result: the executor would complain.
        in_two = self.rng.random() < 0.3 and self.length >= 2 * self.n
        for bounds in [f"0, {half}", f"{half}, n"] if in_two else ["0, n"]:
            with self.w.body.nested(f"for at in {self._range(bounds)}:"):
                for line in body:
                    self.emit(line)
        for block in self.sums:
            self._store(block)

    def _range(self, bounds: str) -> str:
        if self.rng.random() < 0.3:
            return f"range({bounds}, {self.n})"
        special = ", warp_specialize=True" if self.rng.random() < 0.3 else ""
        return f"tl.range({bounds}, {self.n}, num_stages={self.rng.randint(1, 4)}{special})"

    # Memory

    def _numbers(self, name: str, size: int, dtype: str) -> str:
        """An array, of which each program has a part."""
        self.w.input(name, size * self.w.programs, dtype, "small")
        return f"{name} + pid * {size}"

    def _staying(self, name: str) -> Matrix:
        """A block that is loaded before the loop."""
        along, down = self.rng.choice([(1, self.d), (1, self.d), (self.m, 1)])
        base = self._numbers(name, self.m * self.d, self.element)
        self.emit(f"{name}0 = tl.load({base} + im[:, None] * {down} + d[None, :] * {along})")
        return Matrix(f"{name}0", self.m, self.d)

    def _coming(self, name: str) -> tuple[Matrix, str]:
        """A block of each iteration, and the line that loads it."""
        rng = self.rng
        lines_along = rng.random() < 0.3  # of the array: along what the loop counts
        long = -(-self.length // 16) * 16 + rng.choice([0, 16])
        wide = self.d + rng.choice([0, 0, 16])
        step, along = (1, long) if lines_along else (wide, 1)
        base = self._numbers(name, (self.d if lines_along else long) * (long if lines_along else wide), self.element)
        if rng.random() < 0.4:
            return self._described(name, base, (step, along))
        is_turned = rng.random() < 0.4
        place = f"i[None, :] * {step} + d[:, None] * {along}" if is_turned else f"i[:, None] * {step} + d * {along}"
        mask = f"at + {'i[None, :]' if is_turned else 'i[:, None]'} < n"
        if rng.random() < 0.5:
            self.emit(f"{name}p = {base} + {place}")
            self.at_end.append(f"{name}p += {self.n * step}")
            pointers = f"{name}p"
        else:
            pointers = f"{base} + at * {step} + {place}"
        rows, columns = (self.d, self.n) if is_turned else (self.n, self.d)
        return Matrix(f"{name}0", rows, columns), f"{name}0 = tl.load({pointers}, mask={mask}, other=0)"

    def _described(self, name: str, base: str, strides: tuple[int, int]) -> tuple[Matrix, str]:
        """Through a descriptor, whose last dimension has neighbours."""
        (step, along), is_turned = strides, strides[0] == 1
        shape, by = ((f"{self.d}, n"), f"{along}, 1") if is_turned else (f"n, {self.d}", f"{step}, 1")
        rows, columns = (self.d, self.n) if is_turned else (self.n, self.d)
        self.emit(f"{name}d = tl.make_tensor_descriptor({base}, [{shape}], [{by}], [{rows}, {columns}])")
        return Matrix(f"{name}0", rows, columns), f"{name}0 = {name}d.load([{'0, at' if is_turned else 'at, 0'}])"

    def _store(self, block: Matrix) -> None:
        """A sum to an output of its own."""
        base = self._numbers(f"o{block.name}", block.rows * block.columns, self.sum)
        if self.rng.random() < 0.3:
            shape = f"[{block.rows}, {block.columns}]"
            self.emit(f"{block.name}d = tl.make_tensor_descriptor({base}, {shape}, [{block.columns}, 1], {shape})")
            self.emit(f"{block.name}d.store([0, 0], {block.name})")
            return
        down, along = self.rng.choice([(block.columns, 1), (block.columns, 1), (1, block.rows)])
        rows, columns = f"tl.arange(0, {block.rows})[:, None]", f"tl.arange(0, {block.columns})[None, :]"
        self.emit(f"tl.store({base} + {rows} * {down} + {columns} * {along}, {block.name})")

    # Products

    def _products(self, pool: list[Matrix]) -> list[str]:
        """The lines of an iteration, which take what is in the pool and put products there."""
        lines: list[str] = []
        count = self.rng.randint(1, 4)
        for number in range(count):
            left, right = self._operands(pool)
            product = Matrix(f"s{number}", left.rows, right.columns)
            if number == count - 1 or self.rng.random() < 0.4:
                lines += self._added(product, left, right)
            else:
                lines += self._computed(product, left, right)
                pool.append(product._replace(name=f"p{number}"))
        return lines

    def _operands(self, pool: list[Matrix]) -> tuple[Matrix, Matrix]:
        """Two that fit, the newest more often."""
        newest = pool[-1] if self.rng.random() < 0.6 else self.rng.choice(pool)
        pairs = [
            pair
            for other in pool
            for a in (newest, newest.turned)
            for b in (other, other.turned)
            for pair in ((a, b), (b, a))
            if pair[0].columns == pair[1].rows and (newest is not other or len(pool) == 1)
        ]
        return self.rng.choice(pairs) if pairs else (newest, newest.turned)

    def _dot(self, left: Matrix, right: Matrix, into: str = "") -> str:
        precision = ", input_precision='tf32'" if self.element == "float32" else ""
        return f"tl.dot({left.name}, {right.name}{into and ', ' + into}, out_dtype={tl(self.sum)}{precision})"

    def _computed(self, product: Matrix, left: Matrix, right: Matrix) -> list[str]:
        """A product of the iteration alone, made small again."""
        name, number = product.name, product.name[1:]
        lines = [f"{name} = {self._dot(left, right)}"]
        if self.rng.random() < 0.3:
            kept = f"tl.arange(0, {product.rows})[:, None] >= tl.arange(0, {product.columns})[None, :] - at"
            lines.append(f"{name} = tl.where({kept}, {name}, 1)")
        if self.rng.random() < 0.3:
            lines.append(f"{name} = {name} - tl.max({name}, 1)[:, None] * 2")
        small = f"tl.maximum(tl.minimum({name}, {LARGEST}), {-LARGEST})"
        return [*lines, f"p{number} = {small}.to({tl(self.element)})"]

    def _added(self, product: Matrix, left: Matrix, right: Matrix) -> list[str]:
        """A product that is added to a sum, whose rows may get another sign before."""
        name = f"acc{product.name[1:]}"
        self.sums.append(product._replace(name=name))
        self.emit(f"{name} = tl.zeros(({product.rows}, {product.columns}), {tl(self.sum)})")
        sign = []
        if self.rng.random() < 0.4:
            self.emit(f"m{name} = tl.full(({product.rows},), -100, {tl(self.sum)})")
            highest = f"tl.maximum(m{name}, tl.max({left.name}.to({tl(self.sum)}), 1))"
            changes = f"tl.where(h{name} > m{name}, -1, 1).to({tl(self.sum)})"
            sign = [
                f"h{name} = {highest}",
                f"{name} = {name} * {changes}[:, None]",
                f"m{name} = h{name}",
            ]
        how = self.rng.choice([f"{name} = {self._dot(left, right, name)}", f"{name} += {self._dot(left, right)}"])
        return [*sign, how]
