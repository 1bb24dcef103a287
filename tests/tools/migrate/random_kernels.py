"""Random kernels with block pointers, as text."""

from __future__ import annotations

from random import Random

HEADER = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, M, N, s, FIRST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(BM >= 16 and BN >= 16)
    i, j = tl.program_id(0), tl.program_id(1)
"""
LAYOUTS = (("(N, 1)", "(1, 0)"), ("(1, M)", "(0, 1)"), ("(2 * N, 2)", "(1, 0)"), ("(N, 1)", "(0, 1)"))
OFFSETS = ("0", "i * BM", "i * BM - 3", "j * BM + s", "5", "s - i")
CHECKS = (
    "boundary_check=(0, 1)",
    "boundary_check=(0, 1)",
    "boundary_check=(1, 0), padding_option='nan'",
    "boundary_check=(0,)",
)
STEPS = ("(0, BN)", "(BM, 0)", "(-BM, 1)", "(s, -2)", "(0, 0)")


class Kernel:
    """Writes one kernel: what it loads is added up and stored at the end."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.names: list[str] = []

    def text(self) -> str:
        """The whole file."""
        self.line(4, "acc = tl.zeros((BM, BN), dtype=tl.float32)")
        for name in self.random.sample(["p", "q", "a_block_ptr"], self.random.randint(1, 3)):
            self.make(4, name)
        for _ in range(self.random.randint(1, 3)):
            self.random.choice([self.loop, self.branch, self.change, self.use])(4)
        self.use(4)
        self.make(4, "out", "z_ptr")
        self.line(4, "tl.store(out, acc.to(out.dtype.element_ty), boundary_check=(0, 1))")
        return HEADER + "".join(self.lines)

    def line(self, indent: int, text: str) -> None:
        self.lines.append(f"{' ' * indent}{text}\n")

    def pick(self, choices: tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def construct(self, base: str) -> str:
        strides, order = self.random.choice(LAYOUTS) if base != "z_ptr" else ("(N, 1)", "(1, 0)")
        offsets = f"({self.pick(OFFSETS)}, {self.pick(OFFSETS)})" if base != "z_ptr" else "(i * BM, j * BN)"
        return f"tl.make_block_ptr({base} + 256, (M, N), {strides}, {offsets}, (BM, BN), {order})"

    def make(self, indent: int, name: str, base: str | None = None) -> None:
        self.line(indent, f"{name} = {self.construct(base or self.pick(('x_ptr', 'y_ptr')))}")
        if base is None and name not in self.names:
            self.names.append(name)

    def use(self, indent: int) -> None:
        name = self.random.choice(self.names)
        pointer = f"tl.advance({name}, {self.pick(STEPS)})" if self.random.random() < 0.2 else name
        self.line(indent, f"acc += tl.load({pointer}, {self.pick(CHECKS)})")

    def change(self, indent: int) -> None:
        name, other = self.random.choice(self.names), self.random.choice(self.names)
        kind = self.random.randrange(4)
        if kind == 0:
            self.line(indent, f"{name} = tl.advance({name}, {self.pick(STEPS)})")
        elif kind == 1:
            self.line(indent, f"{name} = tl.advance({other}, {self.pick(STEPS)})")
        elif kind == 2:
            self.line(indent, f"{name}, {other} = {other}, {name}" if name != other else f"{name} = {name}")
        else:
            self.line(indent, "s += 1")

    def loop(self, indent: int) -> None:
        head = self.pick(("for k in range(0, 3):", "for k in range(2, -1, -1):"))
        self.line(indent, head)
        if self.random.random() < 0.3:
            self.make(indent + 4, self.random.choice(self.names))
        self.use(indent + 4)
        self.change(indent + 4)

    def branch(self, indent: int) -> None:
        self.line(indent, self.pick(("if FIRST:", "if s > 2:", "if i == 0:")))
        name = self.random.choice(self.names)
        self.random.choice([lambda: self.make(indent + 4, name), lambda: self.change(indent + 4)])()
        if self.random.random() < 0.5:
            self.line(indent, "else:")
            self.random.choice([lambda: self.use(indent + 4), lambda: self.change(indent + 4)])()
