"""Instructions of a warp: exchanges between lanes, votes, matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tensor_copies, values
from .memory import Array, EmulationError
from .text import Instruction

if TYPE_CHECKING:
    from .threads import Threads

WARP = 32


def _warps(t: Threads) -> Array:
    """The numbers of whole warps' threads: [warps, 32]. An error where lanes are missing."""
    numbers = np.flatnonzero(t.active)
    if len(numbers) % WARP or (numbers.reshape(-1, WARP) % WARP != np.arange(WARP)).any():
        raise EmulationError("lanes of a warp are missing")
    return numbers.reshape(-1, WARP)


def _shuffle(t: Threads, i: Instruction) -> None:
    warps = _warps(t)
    value, which = t.read(i.operands[1], "b32"), t.read(i.operands[2], "u32")
    lanes = np.broadcast_to(np.arange(WARP), warps.shape)
    source = lanes ^ which[warps] if "bfly" in i.opcode else which[warps] % WARP
    made = np.zeros(t.count, np.uint32)
    made[warps] = np.take_along_axis(value[warps], source.astype(np.int64), 1)
    t.write(i.operands[0], made, "b32")


def _vote(t: Threads, i: Instruction) -> None:
    warps, condition = _warps(t), t.read(i.operands[1], "pred")
    made = np.zeros(t.count, bool)
    if "all" not in i.opcode:
        raise EmulationError("a vote of another kind")
    made[warps] = condition[warps].all(1)[:, None]
    t.write(i.operands[0], made, "pred")


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add.reduce, "min": np.minimum.reduce, "max": np.maximum.reduce, "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _reduce(t: Threads, i: Instruction) -> None:
    warps, kind = _warps(t), i.opcode[-1]
    value = t.read(i.operands[1], kind)
    made = np.zeros(t.count, value.dtype)
    made[warps] = _REDUCTIONS[i.opcode[2]](value[warps], axis=1, dtype=value.dtype)[:, None]
    t.write(i.operands[0], made, kind)


def _load_matrices(t: Threads, i: Instruction) -> None:
    warps, results = _warps(t), i.operands[0].parts
    addresses = t.address(i.operands[1])
    for number, result in enumerate(results):
        rows = addresses[warps[:, 8 * number : 8 * number + 8]]
        t.races.read(rows.reshape(-1), 16, t.numbers[warps[:, :8]].reshape(-1) // WARP)
        data = t.memory.read(rows.reshape(-1), 16).view(np.uint16).reshape(-1, 8, 8)
        if "trans" in i.opcode:
            data = data.transpose(0, 2, 1)
        words = np.ascontiguousarray(data).view(np.uint32).reshape(len(warps), WARP)
        made = np.zeros(t.count, np.uint32)
        made[warps] = words
        t.write(result, made, "b32")


def _store_matrices(t: Threads, i: Instruction) -> None:
    from .warp_groups import check_write  # It needs this module.

    warps, given = _warps(t), i.operands[1].parts
    addresses = t.address(i.operands[0])
    for number, part in enumerate(given):
        rows = addresses[warps[:, 8 * number : 8 * number + 8]]
        data = np.ascontiguousarray(t.read(part, "b32")[warps]).view(np.uint16).reshape(-1, 8, 8)
        if "trans" in i.opcode:
            data = data.transpose(0, 2, 1)
        check_write(t, rows.reshape(-1))
        t.races.write(rows.reshape(-1), 16, t.numbers[warps[:, :8]].reshape(-1) // WARP, data)
        t.memory.write(rows.reshape(-1), np.ascontiguousarray(data).reshape(-1, 8).view(np.uint8))


FACTORS: dict[str, tuple[int, Callable[[Array], Array]]] = {  # bits, and numbers of bits
    "f16": (16, lambda bits: bits.view(np.float16)),
    "bf16": (16, values.from_bf16),
    "tf32": (32, lambda bits: (bits & np.uint32(0xFFFFE000)).view(np.float32)),
    "s8": (8, lambda bits: bits.view(np.int8)),
    "u8": (8, lambda bits: bits),
    "e4m3": (8, lambda bits: values.from_fp8(bits, "e4m3")),
    "e5m2": (8, lambda bits: values.from_fp8(bits, "e5m2")),
    "f64": (64, lambda bits: bits.view(np.float64)),
}


def fragments(t: Threads, operands: Any, warps: Array, name: str) -> Array:
    """Numbers of the words of an operand: [warps, 32, words, elements of a word]."""
    bits, numbers = FACTORS[name]
    held = "b64" if bits == 64 else "b32"
    words = np.ascontiguousarray(np.stack([t.read(part, held)[warps] for part in operands], 2))
    parts = words[..., None].view(np.dtype(f"u{bits // 8}"))
    return numbers(np.ascontiguousarray(parts)).astype(np.float64)


def _multiply(t: Threads, i: Instruction) -> None:
    """D = A B + C, with the places of PTX's fragments."""
    warps, (d, a, b, c) = _warps(t), (operand.parts for operand in i.operands)
    shape, sums, left, right = i.opcode[3], i.opcode[6], i.opcode[7], i.opcode[8]
    rows, depth = int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])
    lane = np.arange(WARP)
    g, k = lane >> 2, lane & 3
    first, second = (fragments(t, words, warps, name) for words, name in ((a, left), (b, right)))
    width = first.shape[3]
    big_a, big_b = np.zeros((len(warps), rows, depth)), np.zeros((len(warps), depth, 8))
    for word in range(first.shape[2]):
        row, far = (word & 1, word >> 1) if rows == 16 else (0, word)
        for part in range(width):
            big_a[:, g + 8 * row, width * k + part + 4 * width * far] = first[:, :, word, part]
    for word in range(second.shape[2]):
        for part in range(width):
            big_b[:, width * k + part + 4 * width * word, g] = second[:, :, word, part]
    kind = {"f32": "f32", "f64": "f64", "s32": "s32", "f16": "b32"}[sums]
    held = [t.read(part, kind)[warps] for part in c]
    product = big_a @ big_b
    if sums == "f16":
        for number, result in enumerate(d):
            halves = np.ascontiguousarray(held[number])[..., None].view(np.float16).astype(np.float64)
            places = (slice(None), g[:, None] + 8 * number, 2 * k[:, None] + np.arange(2))
            total = np.ascontiguousarray((product[places] + halves).astype(np.float16)).view(np.uint32)[..., 0]
            put(t, result, warps, total, "b32")
        return
    for number, result in enumerate(d):
        places = (slice(None), g + 8 * (number >> 1), 2 * k + (number & 1))
        put(t, result, warps, added(product[places], held[number]), kind)


def added(product: Array, held: Array) -> Array:
    """A product in float64 and what it is added to, in that one's type: integers wrap."""
    exact = product.astype(np.int64) if held.dtype == np.int32 else product
    return (exact + held).astype(held.dtype)


def put(t: Threads, result: Any, warps: Array, value: Array, kind: str) -> None:
    made = np.zeros(t.count, value.dtype)
    made[warps] = value
    t.write(result, made, kind)


RULES = {
    "elect": tensor_copies.elect,
    "shfl": _shuffle,
    "vote": _vote,
    "redux": _reduce,
    "ldmatrix": _load_matrices,
    "stmatrix": _store_matrices,
    "mma": _multiply,
}
