"""Products of four warps: `wgmma` reads shared memory by descriptors, and goes on until it is waited for.

What is computed is there at once; errors are a register of a product under way that anything but a copy takes or sets,
memory that is written while a product reads it, and sums that were set without a fence before the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import Array, EmulationError
from .text import Instruction, Operand
from .warps import FACTORS, added, fragments, put

if TYPE_CHECKING:
    from .threads import Threads

GROUP, ROWS = 128, 64  # threads; rows of a result
SPACE = 0x3FFFF
WIDTHS = {1: 128, 2: 64, 3: 32}  # bytes that are swizzled, by the number in a descriptor


class Products:
    """Products under way of a group of warps: registers of sums and of operands by the group in which they are, and
    the units of 16 bytes that are read.
    """

    def __init__(self) -> None:
        self.closed = 0  # groups
        self.sums: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.reads: list[tuple[int, Array]] = []

    def wait(self, pendings: int) -> None:
        """Groups are done until so many are left."""
        done = self.closed - pendings
        self.sums = {name: group for name, group in self.sums.items() if group >= done}
        self.kept = {name: group for name, group in self.kept.items() if group >= done}
        self.reads = [(group, units) for group, units in self.reads if group >= done]


def check(t: Threads, i: Instruction, names: Sequence[str]) -> str | None:
    """Nobody takes or sets a sum of a product under way; a copy of sums is one. The register that a product reads and
    that may be set to what it is. `names` are all registers of the instruction.
    """
    if not any(name in known for p in t.products.values() for known in (p.sums, p.kept) for name in names):
        return None
    for group in _groups_at_hand(t):
        products = t.products.get(group)
        if products is None:
            continue
        if i.opcode[0] == "mov" and len(names) == 2 and names[1] in products.sums:
            products.sums[names[0]] = products.sums[names[1]]
        elif found := [name for name in names if name in products.sums]:
            raise EmulationError(f"the sum {found[0]} is taken or set while a product is under way")
        elif names and i.opcode[0] not in ("st", "bra") and names[0] in products.kept:
            return names[0]
    return None


def check_write(t: Threads, addresses: Array) -> None:
    """Nobody writes what a product reads."""
    for products in t.products.values():
        for _, units in products.reads:
            if np.isin(addresses >> np.uint64(4), units).any():
                raise EmulationError("shared memory is written while a product reads it")


def names_in(operands: Any) -> Iterator[str]:
    """The registers that operands name."""
    for operand in operands:
        if operand.kind == "register":
            yield operand.name
        yield from names_in(operand.parts)


def _groups_at_hand(t: Threads) -> list[int]:
    return [int(group) for group in np.unique(t.numbers[t.active] // GROUP)]


def _groups(t: Threads) -> Iterator[tuple[int, Array]]:
    """The groups that execute an instruction, and their threads. An error where warps are missing."""
    numbers = np.flatnonzero(t.active)
    for group in _groups_at_hand(t):
        threads = numbers[t.numbers[numbers] // GROUP == group]
        if len(threads) != GROUP:
            raise EmulationError("warps of a group are missing")
        yield group, threads


def run(t: Threads, i: Instruction) -> None:
    """`wgmma` of every kind."""
    kind = i.opcode[1]
    t.races.off = True
    for group, threads in _groups(t):
        products = t.products.setdefault(group, Products())
        if kind == "mma_async":
            mask, t.mask = t.mask, np.isin(np.arange(t.count), threads)
            _multiply(t, i, products, threads)
            t.mask = mask
        elif kind == "commit_group":
            products.closed += 1
        elif kind == "wait_group":
            products.wait(i.operands[0].number)


_ZEROS = {"f32": np.float32, "s32": np.int32}


def _multiply(t: Threads, i: Instruction, products: Products, threads: Array) -> None:
    d, a, b, *rest = i.operands
    shape, sums, left, right = i.opcode[4], i.opcode[5], i.opcode[6], i.opcode[7]
    columns, depth = int(shape[shape.index("n") + 1 : shape.index("k")]), int(shape[shape.index("k") + 1 :])
    turned, adds = [bool(operand.number) for operand in rest[3:]], bool(rest[0].number)
    if any(part.name in products.sums and products.sums[part.name] > products.closed for part in d.parts):
        raise EmulationError("sums of a product that cannot be")
    if a.kind == "vector":
        first = _rows(fragments(t, a.parts, threads.reshape(4, 32), left), depth)
        products.kept |= {part.name: products.closed for part in a.parts}
        turned = [False, *turned]
    else:
        first = _shared(t, products, a, threads, left, (ROWS, depth), bool(turned and turned[0]))
    second = _shared(t, products, b, threads, right, (columns, depth), bool(turned[1:] and turned[1]))
    product = first @ second.T
    lane, warp = threads % 32, threads // 32 % 4
    row, column = 16 * warp + lane // 4, 2 * (lane % 4)
    if sums == "f16":
        for number, part in enumerate(d.parts):
            words = np.ascontiguousarray(t.read(part, "b32")[threads]) if adds else np.zeros(len(threads), np.uint32)
            held = words[:, None].view(np.float16).astype(np.float64)
            places = (row + 8 * (number & 1))[:, None], (8 * (number >> 1) + column)[:, None] + np.arange(2)
            halves = np.ascontiguousarray((product[places] + held).astype(np.float16))
            put(t, part, threads, halves.view(np.uint32)[:, 0], "b32")
    else:
        kind = {"f32": "f32", "s32": "s32"}[sums]
        for number, part in enumerate(d.parts):
            held = t.read(part, kind)[threads] if adds else np.zeros(len(threads), _ZEROS[kind])
            found = product[row + 8 * (number >> 1 & 1), 8 * (number >> 2) + column + (number & 1)]
            put(t, part, threads, added(found, held), kind)
    products.sums |= {part.name: products.closed for part in d.parts}


def _rows(found: Array, depth: int) -> Array:
    """A left operand of the registers of four warps."""
    _, _, words, width = found.shape
    big, lane = np.zeros((4, 16, depth)), np.arange(32)
    for word in range(words):
        for part in range(width):
            at = width * (lane & 3) + part + 4 * width * (word >> 1)
            big[:, (lane >> 2) + 8 * (word & 1), at] = found[:, :, word, part]
    return big.reshape(ROWS, depth)


@lru_cache(256)
def _places(
    address: int, leading: int, stride: int, width: int, size: int, shape: tuple[int, int], turned: bool
) -> Array:
    """Where a descriptor's elements lie."""
    outer, inner = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
    if turned:
        outer, inner = inner, outer
    each = width // size
    along = inner // each * leading + inner % each * size if turned else inner * size
    place = address + outer // 8 * stride + outer % 8 * width + along
    return place ^ (place >> 7 & (width // 16 - 1)) << 4


def _shared(
    t: Threads, products: Products, operand: Operand, threads: Array, name: str, shape: tuple[int, int], turned: bool
) -> Array:
    """An operand in shared memory, with K along its second dimension."""
    described = np.unique(t.read(operand, "u64")[threads])
    if len(described) != 1:
        raise EmulationError("the threads of a group name different operands")
    word = int(described[0])
    width = WIDTHS.get(word >> 62)
    if width is None:
        raise EmulationError("a descriptor without a swizzle")
    address, leading, stride = ((word >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    bits, numbers = FACTORS[name]
    size = bits // 8
    place = _places(address, leading, stride, width, size, shape, turned)
    base = next(iter(t.symbols[name] for name in t.module.shared))
    found = np.uint64(base) + ((place - base) & SPACE).astype(np.uint64)
    products.reads.append((products.closed, np.unique(found >> np.uint64(4))))
    data = t.memory.read(found.reshape(-1), size).view(f"u{size}")
    return numbers(np.ascontiguousarray(data[:, 0])).astype(np.float64).reshape(shape)


RULES = {"wgmma": run}
