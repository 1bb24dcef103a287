"""Random warp-level kernels without races, as Python source: exchanges in loops and branches, values that live long."""

from __future__ import annotations

import random

HEADER = """\
import mltriton as triton
import mltriton.language as tl


@triton.jit
def kernel(x, y, n, m, N: tl.constexpr):
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((2, warps, N), tl.float32)
    s0 = tl.load(x + w)
    s1 = w * 0.5
    b0 = tl.load(x + w * N + i)
    b1 = b0 * 0.5 + w
    b2 = tl.zeros((N,), tl.float32)
"""
FOOTER = "    tl.store(y + w * N + i, b0 + b1 * 2 + b2 * 3 + s0 + s1)\n"


class Writer:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0

    def source(self) -> str:
        """The kernel's file."""
        self.statements(1, 6)
        return HEADER + "".join(self.lines) + FOOTER

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text + "\n")

    def block(self) -> str:
        return self.random.choice(["b0", "b1", "b2"])

    def scalar(self) -> str:
        return self.random.choice(["s0", "s1"])

    def statements(self, depth: int, count: int) -> None:
        for _ in range(self.random.randint(1, count)):
            self.random.choice(
                [
                    self.compute,
                    self.compute,
                    self.exchange,
                    self.exchange,
                    self.loop,
                    self.branch,
                    self.apart,
                    self.total,
                    self.dealt,
                    self.in_grid,
                ]
            )(depth)

    def compute(self, depth: int) -> None:
        a, b, s = self.block(), self.block(), self.scalar()
        self.line(
            depth,
            self.random.choice(
                [
                    f"{a} = {b} * 0.5 + {s}",
                    f"{a}, {b} = {b}, {a}",
                    f"{a} = tl.exp(-tl.abs({b})) + tl.load(x + w * N + i)",
                    f"{s} = {s} * 0.25 + tl.sum({a}, axis=0) * 0.125",
                    f"{s} = {s} + w",
                    f"{a} = tl.where({b} > 0, {a} * 0.5, {s})",
                    f"{a} = {a} * 0.5 + tl.max({b}, axis=0)",
                ]
            ),
        )

    def exchange(self, depth: int) -> None:
        buffer, shift, value = self.random.randint(0, 1), self.random.randint(0, 3), self.block()
        self.line(depth, f"tl.store(shared[{buffer}, w], {value} + {self.scalar()})")
        if self.random.random() < 0.5:
            self.compute(depth)
        self.line(depth, "tl.barrier()")
        self.line(depth, f"c = tl.load(shared[{buffer}, (w + {shift}) % warps])")
        if self.random.random() < 0.5:
            self.compute(depth)
        if self.random.random() < 0.5:
            self.line(depth, f"{self.block()} = c * 0.5 + {self.block()} * 0.25")
            self.line(depth, "tl.barrier()")
        else:
            self.line(depth, "tl.barrier()")
            self.line(depth, f"{self.block()} = c * 0.5 + {self.block()} * 0.25")

    def loop(self, depth: int) -> None:
        if depth > 3:
            self.compute(depth)
            return
        self.loops += 1
        counter = f"k{self.loops}"
        self.line(depth, f"for {counter} in range({self.random.choice(['n', 'm', '2'])}):")
        self.statements(depth + 1, 3)
        self.line(depth + 1, f"{self.scalar()} += {counter} * 0.5")

    def branch(self, depth: int) -> None:
        if depth > 3:
            self.compute(depth)
            return
        self.line(depth, f"if {self.random.choice(['n > 1', 'm == 0', 'n > m'])}:")
        self.statements(depth + 1, 2)
        if self.random.random() < 0.5:
            self.line(depth, "else:")
            self.statements(depth + 1, 2)

    def apart(self, depth: int) -> None:
        """What differs from warp to warp."""
        a, s = self.block(), self.scalar()
        if self.random.random() < 0.5:
            self.line(depth, "for _ in range(w % 3):")
            self.line(depth + 1, f"{a} = {a} * 0.5 + {s}")
        else:
            self.line(depth, f"if {self.random.choice(['w == 0', 'w % 2 == 1', f'{s} > 0'])}:")
            self.line(depth + 1, f"{a} = {a} * 0.5 - {self.block()}")
            self.line(depth + 1, f"{s} = {s} * 0.5")

    def total(self, depth: int) -> None:
        value = self.random.choice([self.block(), self.scalar()])
        self.line(depth, f"{value} = {value} * 0.5 + tl.sum({value} * 0.25, cross_warp=True) / warps")

    def dealt(self, depth: int) -> None:
        """Iterations that the warps share out, some of them none."""
        self.loops += 1
        counter, a, b = f"k{self.loops}", self.block(), self.block()
        self.line(depth, f"for {counter} in range(m + w * 3, n * 5, 3 * warps):")
        self.compute(depth + 1)
        self.line(depth + 1, f"d = tl.dot({a}[:, None] - i[None, :], {b}[None, :] + i[:, None] + {counter})")
        self.line(depth + 1, f"{a} = {a} * 0.5 + tl.sum(d, axis=1) * 0.001")
        self.line(depth + 1, f"{self.scalar()} += {counter} * 0.5")
        if self.random.random() < 0.5:
            self.compute(depth + 1)

    def in_grid(self, depth: int) -> None:
        """An operand that the warps of a column, or of a row, share."""
        self.loops += 1
        counter, a, line = f"k{self.loops}", self.block(), self.random.choice(["w % 2", "w // 2"])
        self.line(depth, f"for {counter} in range(n + 1):")
        if self.random.random() < 0.5:
            self.compute(depth + 1)
        self.line(depth + 1, f"e = tl.load(x + ({line}) * N + i)[None, :] * 0.5 + i[:, None] + {counter}")
        self.line(depth + 1, f"{a} = {a} * 0.5 + tl.sum(tl.dot({a}[:, None] - i[None, :], e), axis=1) * 0.001")
