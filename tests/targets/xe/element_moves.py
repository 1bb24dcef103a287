"""One block that is loaded, converted and stored, in every way to load and to store, and what numpy makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.ir.floats import bits_to_float, float_to_bits
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, FloatType

Array = np.ndarray[Any, Any]

INTEGERS = {f"{'' if signed else 'u'}int{bits}": (bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)}
FLOATS: dict[str, FloatType] = {
    "float8e4nv": F8E4M3,
    "float8e5": F8E5M2,
    "float16": F16,
    "bfloat16": BF16,
    "float32": F32,
    "float64": F64,
}
TYPES = (*INTEGERS, *FLOATS)
LOADS = ("descriptor", "block", "plain", "masked")
TURNED_LOADS = ("turned descriptor", "turned block", "turned")
STORES = ("descriptor", "block", "plain", "masked")
PITCHES = {"tight": (0, 0), "wide": (64, 64), "odd": (3, 5)}  # elements between the rows of both matrices
_LEAST = 128  # bits of a row of a descriptor's block
_UNTOUCHED = 0x5A5A5A5A5A5A5A5A


@triton.jit
def moved(
    x, y, H, W, P, OH, OW, Q, SRC: tl.constexpr, DST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    LOAD: tl.constexpr, STORE: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    here, there = x.to(tl.pointer_type(SRC), bitcast=True), y.to(tl.pointer_type(DST), bitcast=True)
    i, j = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    if LOAD == "descriptor":
        value = tl.make_tensor_descriptor(here, [H, W], [P, 1], [BM, BN]).load([0, 0])
    elif LOAD == "block":
        value = tl.load(tl.make_block_ptr(here, (H, W), (P, 1), (0, 0), (BM, BN), (1, 0)), boundary_check=(0, 1))
    elif LOAD == "plain":
        value = tl.load(here + i * P + j)
    elif LOAD == "masked":
        value = tl.load(here + i * P + j, mask=(i < H) & (j < W), other=0)
    elif LOAD == "turned descriptor":
        value = tl.trans(tl.make_tensor_descriptor(here, [W, H], [P, 1], [BN, BM]).load([0, 0]))
    elif LOAD == "turned block":
        value = tl.load(tl.make_block_ptr(here, (H, W), (1, P), (0, 0), (BM, BN), (0, 1)), boundary_check=(0, 1))
    else:
        value = tl.load(here + i + j * P, mask=(i < H) & (j < W), other=0)
    value = value.to(DST)
    if STORE == "descriptor":
        if TURNED:
            tl.make_tensor_descriptor(there, [OW, OH], [Q, 1], [BN, BM]).store([0, 0], tl.trans(value))
        else:
            tl.make_tensor_descriptor(there, [OH, OW], [Q, 1], [BM, BN]).store([0, 0], value)
    elif STORE == "block":
        down, across, order = (1, Q, (0, 1)) if TURNED else (Q, 1, (1, 0))
        to = tl.make_block_ptr(there, (OH, OW), (down, across), (0, 0), (BM, BN), order)
        tl.store(to, value, boundary_check=(0, 1))
    else:
        to = there + i + j * Q if TURNED else there + i * Q + j
        if STORE == "masked":
            tl.store(to, value, mask=(i < OH) & (j < OW))
        else:
            tl.store(to, value)


@dataclass(frozen=True)
class Move:
    """A block of `rows` and `columns`; `turned`: it is stored transposed; `ragged`: both matrices are smaller."""

    source: str
    target: str
    rows: int
    columns: int
    load: str = "descriptor"
    store: str = "descriptor"
    turned: bool = False
    ragged: bool = False
    pitch: str = "wide"
    warps: int = 1
    codegen: str = "simt"

    def legal(self) -> Move:
        """The same with block pointers where rows are too short for descriptors."""
        load, store = self.load, self.store
        length = self.rows if load.startswith("turned") else self.columns
        if load.endswith("descriptor") and length * bits_of(self.source) < _LEAST:
            load = load.replace("descriptor", "block")
        if store == "descriptor" and (self.rows if self.turned else self.columns) * bits_of(self.target) < _LEAST:
            store = "block"
        return Move(**{**vars(self), "load": load, "store": store})

    def run(self, rng: np.random.Generator, target: str = "xe:pvc") -> None:
        """On random numbers; raises `AssertionError` where a byte of the result, or one around it, is wrong."""
        shape, whole = (self.rows, self.columns), (self.rows, self.columns)
        inside, stored = whole, whole
        if self.ragged and self.load != "plain":
            inside = max(1, shape[0] - 3), max(1, shape[1] - 5)
        if self.ragged and self.store != "plain":
            stored = max(1, shape[0] - 1), max(1, shape[1] - 7)
        turned_load = self.load.startswith("turned")
        x = self._matrix(rng, shape[::-1] if turned_load else shape)
        seen = x.T[: shape[0], : shape[1]] if turned_load else x[:, : shape[1]]
        held = np.zeros(shape, x.dtype)
        held[: inside[0], : inside[1]] = seen[: inside[0], : inside[1]]
        rows, columns = shape[::-1] if self.turned else shape
        untouched = _UNTOUCHED & (1 << bits_of(self.target)) - 1
        kind = raw(self.target)
        y = aligned(np.full((rows + 2, self._pitch(columns, self.target, 1)), untouched, kind))
        expected = y.copy()
        there = expected.T if self.turned else expected
        there[: stored[0], : stored[1]] = converted(held, self.source, self.target)[: stored[0], : stored[1]]
        types = getattr(tl, self.source), getattr(tl, self.target)
        numbers = (*inside, x.shape[1], *stored, y.shape[1])
        constants = (*shape, self.load, self.store, self.turned)
        moved[(1,)](x, y, *numbers, *types, *constants, target=target, num_warps=self.warps, codegen=self.codegen)
        np.testing.assert_array_equal(y, expected, err_msg=str(self))

    def _matrix(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        rows, columns = shape
        return aligned(numbers(rng, (rows, self._pitch(columns, self.source, 0)), self.source, self.target))

    def _pitch(self, columns: int, kind: str, side: int) -> int:
        return max(columns + PITCHES[self.pitch][side], _LEAST // bits_of(kind))


def bits_of(kind: str) -> int:
    """The width of an element."""
    return INTEGERS[kind][0] if kind in INTEGERS else FLOATS[kind].width


def raw(kind: str) -> np.dtype[Any]:
    """Integers of the width of a type, in which its bits are passed."""
    return np.dtype(f"u{bits_of(kind) // 8}")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], source: str, target: str) -> Array:
    """Bits of random numbers of type `source` that type `target` can hold, rounded."""
    if source in INTEGERS:
        return (
            rng.integers(0, 2 ** bits_of(source), shape, dtype=np.uint64, endpoint=False).astype(raw(source))
            if (bits_of(source) < 64)
            else rng.integers(0, 2**64 - 1, shape, dtype=np.uint64, endpoint=True)
        )
    normal = rng.standard_normal(shape) * np.exp2(rng.integers(-9, 7, shape))
    if target in INTEGERS:
        bits, signed = INTEGERS[target]
        normal = np.clip(normal, -90 if signed else 0, 90) if bits == 8 else normal if signed else np.abs(normal)
    return packed(normal, source)


def converted(bits: Array, source: str, target: str) -> Array:
    """Bits of the same numbers in another type: integers wrap around, floats are rounded to the nearest or to zero."""
    return bits if source == target else packed(values(bits, source), target)


def values(bits: Array, kind: str) -> Array:
    """The numbers of bits, as Python's integers or floats of 64 bits."""
    if kind in INTEGERS:
        return bits.view(np.dtype(f"{'i' if INTEGERS[kind][1] else 'u'}{bits_of(kind) // 8}")).astype(object)
    if kind in ("float16", "float32", "float64"):
        return bits.view(kind).astype(np.float64)
    known = {number: bits_to_float(int(number), FLOATS[kind]) for number in np.unique(bits)}
    return np.vectorize(known.get, otypes=[float])(bits)


def packed(numbers: Array, kind: str) -> Array:
    """The bits of numbers in a type, rounded to the nearest, or wrapped around."""
    mask = (1 << bits_of(kind)) - 1
    if kind in INTEGERS:
        made = np.vectorize(lambda value: int(value) & mask, otypes=[object])(numbers)
    else:
        made = np.vectorize(lambda value: float_to_bits(float(value), FLOATS[kind]), otypes=[object])(numbers)
    return made.astype(np.uint64).astype(raw(kind))
