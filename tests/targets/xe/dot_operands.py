"""A product of two blocks whose operands come in every way that there is to load them, and what numpy makes of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned

from .element_moves import bits_of, packed

Array = np.ndarray[Any, Any]

# Types of both operands, and what their products are summed in.
PAIRS = {
    ("float16", "float16"): "float32",
    ("bfloat16", "bfloat16"): "float32",
    ("float32", "float32"): "float32",
    ("int8", "int8"): "int32",
    ("uint8", "uint8"): "int32",
    ("int8", "uint8"): "int32",
    ("uint8", "int8"): "int32",
    ("float8e4nv", "float8e4nv"): "float32",
    ("float8e5", "float8e5"): "float32",
    ("float8e4nv", "float8e5"): "float32",
}
BY_POINTERS = ("plain", "masked", "turned", "gathered", "converted")
WAYS = (*BY_POINTERS, "descriptor", "turned descriptor", "block", "turned block")


@triton.jit
def operand(
    base, lines, line, first, down, across, height, width, KIND: tl.constexpr, HELD: tl.constexpr, WAY: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """`ROWS` from `line` on, `COLUMNS` from `first` on, of a matrix of `height` and `width`."""
    base = base.to(tl.pointer_type(HELD), bitcast=True)
    i, j = line + tl.arange(0, ROWS), first + tl.arange(0, COLUMNS)
    if WAY == "descriptor":
        value = tl.make_tensor_descriptor(base, [height, width], [down, 1], [ROWS, COLUMNS]).load([line, first])
    elif WAY == "turned descriptor":
        value = tl.make_tensor_descriptor(base, [width, height], [across, 1], [COLUMNS, ROWS]).load([first, line]).T
    elif WAY == "block":
        block = tl.make_block_ptr(base, (height, width), (down, 1), (line, first), (ROWS, COLUMNS), (1, 0))
        value = tl.load(block, boundary_check=(0, 1))
    elif WAY == "turned block":
        block = tl.make_block_ptr(base, (height, width), (1, across), (line, first), (ROWS, COLUMNS), (0, 1))
        value = tl.load(block, boundary_check=(0, 1))
    elif WAY == "turned":
        value = tl.trans(tl.load(base + j[:, None] * across + i[None, :] * down))
    elif WAY == "gathered":
        value = tl.load(base + tl.load(lines + i)[:, None] * down + j[None, :] * across)
    elif WAY == "masked":
        inside = (i[:, None] < height) & (j[None, :] < width)
        value = tl.load(base + i[:, None] * down + j[None, :] * across, mask=inside, other=0)
    else:
        value = tl.load(base + i[:, None] * down + j[None, :] * across)
    return value.to(KIND)


@triton.jit
def product(
    a, b, c, rows, depths, m, n, k, am, ak, bk, bn, A: tl.constexpr, B: tl.constexpr, HA: tl.constexpr,
    HB: tl.constexpr, SUM: tl.constexpr, WA: tl.constexpr, WB: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    K: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    total = tl.zeros((M, N), SUM)
    for step in range(STEPS):
        x = operand(a, rows, 0, step * K, am, ak, m, k, A, HA, WA, M, K)
        y = operand(b, depths, step * K, 0, bk, bn, k, n, B, HB, WB, K, N)
        total = tl.dot(x, y, total)
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.store(c + i[:, None] * N + j[None, :], total)


@dataclass(frozen=True)
class Product:
    """`steps` products of [rows, depth] and [depth, columns]; `strides`: elements between neighbours of an operand
    that pointers bring.
    """

    kinds: tuple[str, str]
    ways: tuple[str, str]
    rows: int = 16
    columns: int = 32
    depth: int = 32
    steps: int = 2
    strides: tuple[int, int] = (1, 1)
    ragged: bool = False
    warps: int = 1
    codegen: str = "simt"

    def run(self, rng: np.random.Generator, target: str = "xe:pvc") -> None:
        """On whole numbers that every type has; raises `AssertionError` where a sum is wrong."""
        deep = self.depth * self.steps
        sides = [self._side(rng, number, size) for number, size in enumerate(((self.rows, deep), (deep, self.columns)))]
        (a, x, (am, ak), m, k0), (b, y, (bk, bn), k1, n) = sides
        k = min(k0, k1)
        if self._checks(self.ways[0]):
            x[:, k:] = 0
        if self._checks(self.ways[1]):
            y[k:] = 0
        c = np.zeros((self.rows, self.columns), np.int32 if PAIRS[self.kinds] == "int32" else np.float32)
        rows, depths = (rng.permutation(size).astype(np.int32) for size in (self.rows, deep))
        if self.ways[0] == "gathered":
            x = x[rows]
        if self.ways[1] == "gathered":
            y = y[depths]
        held = (held_as(kind, way) for kind, way in zip(self.kinds, self.ways, strict=True))
        types = (getattr(tl, name) for name in (*self.kinds, *held, PAIRS[self.kinds]))
        sizes = (*self.ways, self.rows, self.columns, self.depth, self.steps)
        arguments = (a, b, c, rows, depths, m, n, k, am, ak, bk, bn, *types, *sizes)
        product[(1,)](*arguments, target=target, num_warps=self.warps, codegen=self.codegen)
        np.testing.assert_array_equal(c, x @ y, err_msg=str(self))

    def _side(self, rng: np.random.Generator, number: int, size: tuple[int, int]) -> tuple[Any, ...]:
        """An operand: the array, its numbers with 0 outside, its strides, and how much of it is inside."""
        kind, way = self.kinds[number], self.ways[number]
        low = 0 if kind.startswith("u") else -4
        turned, by_pointers = way.startswith("turned"), way in BY_POINTERS
        numbers = rng.integers(low, 5, size)
        step = self.strides[number] if by_pointers else 1
        lines, length = size[::-1] if turned else size
        memory = aligned(np.zeros((lines, (length + 8) * step), packed(np.zeros(1), held_as(kind, way)).dtype))
        memory[:, : length * step : step] = packed(numbers.T if turned else numbers, held_as(kind, way))
        inside = tuple(max(1, extent - 5) for extent in size) if self._checks(way) else size
        shown = np.zeros(size, np.int64)
        shown[: inside[0], : inside[1]] = numbers[: inside[0], : inside[1]]
        pitch = memory.shape[1]
        strides = (step, pitch) if turned else (pitch, step)
        return memory, shown, strides, *inside

    def _checks(self, way: str) -> bool:
        return self.ragged and way in ("masked", "descriptor", "turned descriptor", "block", "turned block")


def held_as(kind: str, way: str) -> str:
    """The type of what is loaded for an operand: another one where it is converted."""
    if way != "converted":
        return kind
    return {8: "int32", 16: "int8", 32: "float16"}[bits_of(kind)]


def random_product(rng: random.Random) -> Product:
    """Any types, ways and sizes."""
    kinds, rows = rng.choice(list(PAIRS)), rng.choice([8, 16, 32, 64])
    narrow = rows * bits_of(kinds[0]) < 128  # too narrow for a descriptor
    return Product(
        kinds,
        (
            rng.choice(["turned block" if narrow and way == "turned descriptor" else way for way in WAYS]),
            rng.choice(WAYS),
        ),
        rows,
        rng.choice([16, 32, 64]),
        rng.choice([16, 32, 64]) if bits_of(kinds[0]) > 8 else rng.choice([32, 64]),
        rng.choice([1, 2]),
        (rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])),
        ragged=rng.random() < 0.4,
        warps=rng.choice([1, 1, 2, 4, 8]),
        codegen=rng.choice(["simt", "simd"]),
    )
