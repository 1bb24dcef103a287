"""Transposes of n vectors of n lanes, in registers.

Level: `llvm`. Works for any power of two n and element width. Every step is a shuffle of two vectors that x86 and
AArch64 have as one instruction: interleaves inside 128-bit parts first, then moves of whole 128-bit parts.
Guarantees: n log2(n) shuffles; a generic shuffle of n * n lanes would take LLVM seconds to compile. x86's code
generator tries to merge each shuffle with all those before it, though each is one instruction already: fences between
the two kinds of steps, which are no instructions, end that search.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.targets.llvm.types import Value
from mltriton.targets.llvm.writer import Function

_PART_BITS = 128


def transpose(function: Function, rows: Sequence[Value]) -> list[Value]:
    """Lane j of result i is lane i of row j. Takes as many rows as a row has lanes, a power of two."""
    size = len(rows)
    if size & (size - 1) or any(row.type.lanes != size for row in rows):
        raise ValueError(f"cannot transpose {size} rows of {rows[0].type}")
    if size == 1:
        return list(rows)
    inside = min(size, _PART_BITS // rows[0].type.bits)
    groups = [_inside_parts(function, rows[first : first + inside], inside) for first in range(0, size, inside)]
    if len(groups) > 1:
        groups = [[_fenced(function, row) for row in group] for group in groups]
    columns = [_parts(function, [group[lane] for group in groups], inside) for lane in range(inside)]
    return [columns[i % inside][i // inside] for i in range(size)]


def _inside_parts(function: Function, rows: Sequence[Value], inside: int) -> list[Value]:
    """Transpose the squares that `inside` rows form in each 128-bit part.

    Interleaving row i with row i + inside / 2, log2(inside) times over, is a transpose.
    """
    current, half = list(rows), inside // 2
    for _ in range(inside.bit_length() - 1):
        current = [
            _interleave(function, current[i], current[i + half], inside, high) for i in range(half) for high in (0, 1)
        ]
    return current


def _interleave(function: Function, a: Value, b: Value, inside: int, high: int) -> Value:
    """The low or high halves of each part of `a` and `b`, element by element in turn."""
    lanes = a.type.lanes
    mask = [
        source + part + high * inside // 2 + element
        for part in range(0, lanes, inside)
        for element in range(inside // 2)
        for source in (0, lanes)
    ]
    return function.shuffle(a, b, mask)


def _fenced(function: Function, x: Value) -> Value:
    """The same value, of which the code generator does not know how it came about. Only floats have such a fence."""
    kind = {32: "float", 64: "double"}.get(x.type.bits)
    if kind is None:
        return x
    floats = function.bitcast(x, x.type.with_element(kind))
    return function.bitcast(function.intrinsic("llvm.arithmetic.fence", floats.type, floats), x.type)


def _parts(function: Function, vectors: Sequence[Value], inside: int) -> list[Value]:
    """Transpose the square matrix whose element (i, j) is 128-bit part j of vector i.

    Collecting the even parts of neighbours, then the odd ones, log2(number of parts) times over, is a transpose.
    """
    current = list(vectors)
    for _ in range(len(vectors).bit_length() - 1):
        pairs = list(zip(current[::2], current[1::2], strict=True))
        current = [_pick(function, a, b, inside, odd) for odd in (0, 1) for a, b in pairs]
    return current


def _pick(function: Function, a: Value, b: Value, inside: int, odd: int) -> Value:
    """The even or odd 128-bit parts of `a`, then those of `b`."""
    parts = range(odd, 2 * a.type.lanes // inside, 2)
    return function.shuffle(a, b, [part * inside + element for part in parts for element in range(inside)])
