"""Linear layouts: where the hardware keeps the elements of a tensor, as a linear map over bits.

Level: ttg to llvm. A `LinearLayout` takes an index in each input dimension ("register", "lane", "warp") to one in each
output dimension ("dim0", "dim1", ...). All sizes are powers of two; the image of an index is the exclusive or of
the images of its bits, the *bases*. Two layouts of one tensor are then compared, composed and inverted by linear
algebra over the field of two elements (Zhou et al., "Linear Layouts", arXiv:2505.23819).

Guarantees: immutable and hashable; dimensions keep their order; the first input dimension and the first output
dimension are the fastest when a layout is flattened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mltriton.records import record

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]


@record(frozen=True)
class LinearLayout:
    """`bases[i]` belongs to input dimension `inputs[i]` and has one vector for each bit of its index: the index in each
    of the `outputs`, whose sizes are `sizes`.
    """

    inputs: tuple[str, ...]
    bases: tuple[tuple[tuple[int, ...], ...], ...]
    outputs: tuple[str, ...]
    sizes: tuple[int, ...]

    # Making

    @staticmethod
    def of(bases: Mapping[str, Sequence[Sequence[int]]], sizes: Sizes) -> LinearLayout:
        """A layout from the bases of each input dimension and the size of each output dimension.

        ValueError for a size that is no power of two or a basis that does not fit.
        """
        for dim, size in sizes.items():
            if size < 1 or size & (size - 1):
                raise ValueError(f"the size of {dim} is no power of two: {size}")
        for dim, vectors in bases.items():
            for vector in vectors:
                if len(vector) != len(sizes) or any(
                    not 0 <= x < size for x, size in zip(vector, sizes.values(), strict=True)
                ):
                    raise ValueError(f"a basis of {dim} does not fit {dict(sizes)}: {tuple(vector)}")
        made = tuple(tuple(tuple(vector) for vector in vectors) for vectors in bases.values())
        return LinearLayout(tuple(bases), made, tuple(sizes), tuple(sizes.values()))

    @staticmethod
    def identity(size: int, input: str, output: str) -> LinearLayout:
        """Index i of `input` is index i of `output`."""
        return LinearLayout.of({input: [(1 << bit,) for bit in range(_bits(size))]}, {output: size})

    @staticmethod
    def zeros(size: int, input: str, output: str) -> LinearLayout:
        """Every index of `input` is index 0 of `output`, which has that one: the same elements `size` times."""
        return LinearLayout.of({input: [(0,)] * _bits(size)}, {output: 1})

    # Asking

    def count(self, input: str) -> int:
        """The size of an input dimension; 1 of one that the layout has not."""
        return 1 << len(self.vectors(input))

    def size(self, output: str) -> int:
        """The size of an output dimension; 1 of one that the layout has not."""
        return self.sizes[self.outputs.index(output)] if output in self.outputs else 1

    def vectors(self, input: str) -> tuple[tuple[int, ...], ...]:
        """The bases of an input dimension; none of one that the layout has not."""
        return self.bases[self.inputs.index(input)] if input in self.inputs else ()

    def at(self, **index: int) -> tuple[int, ...]:
        """Where an index goes; input dimensions that are not named are at 0."""
        result = [0] * len(self.outputs)
        for dim, coordinate in index.items():
            for bit, vector in enumerate(self.vectors(dim)):
                if coordinate >> bit & 1:
                    result = [x ^ y for x, y in zip(result, vector, strict=True)]
        return tuple(result)

    def table(self) -> Array:
        """All of it: an array with one axis for each input dimension, in order, and a last one for the outputs."""
        shape = [1 << len(vectors) for vectors in self.bases]
        result = np.zeros((*shape, len(self.outputs)), np.int64)
        for axis, vectors in enumerate(self.bases):
            coordinate = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))] + [1])
            for bit, vector in enumerate(vectors):
                result ^= (coordinate >> bit & 1) * np.array(vector, np.int64)
        return result

    @property
    def is_surjective(self) -> bool:
        """Whether every element of the tensor is somewhere."""
        return _rank(self._columns) == sum(map(_bits, self.sizes))

    @property
    def is_injective(self) -> bool:
        """Whether no element is in two positions."""
        return _rank(self._columns) == len(self._columns)

    @cached_property
    def _columns(self) -> tuple[int, ...]:
        """The bases of all input dimensions, each as the bits of all outputs, the first output lowest."""
        return tuple(self._flat(vector) for vectors in self.bases for vector in vectors)

    def _flat(self, vector: Sequence[int]) -> int:
        result, shift = 0, 0
        for coordinate, size in zip(vector, self.sizes, strict=True):
            result |= coordinate << shift
            shift += _bits(size)
        return result

    # Combining

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The two side by side: `other` gets the high bits of the dimensions that both have."""
        outputs = tuple(dict.fromkeys((*self.outputs, *other.outputs)))
        inputs = tuple(dict.fromkeys((*self.inputs, *other.inputs)))

        def widened(layout: LinearLayout, dim: str, shifts: Sizes) -> list[tuple[int, ...]]:
            indices = [layout.outputs.index(out) if out in layout.outputs else None for out in outputs]
            return [
                tuple(
                    0 if index is None else vector[index] << shifts[out]
                    for index, out in zip(indices, outputs, strict=True)
                )
                for vector in layout.vectors(dim)
            ]

        low = dict.fromkeys(outputs, 0)
        high = {out: _bits(self.size(out)) for out in outputs}
        bases = {dim: [*widened(self, dim, low), *widened(other, dim, high)] for dim in inputs}
        sizes = {out: self.size(out) * other.size(out) for out in outputs}
        return LinearLayout.of(bases, sizes)

    def then(self, other: LinearLayout) -> LinearLayout:
        """First this, then `other`, whose inputs are this one's outputs. ValueError where they do not fit."""
        if set(self.outputs) != set(other.inputs) or any(self.size(d) > other.count(d) for d in self.outputs):
            raise ValueError(f"{self.outputs} {self.sizes} cannot be followed by a layout of {other.inputs}")
        bases = {
            dim: [other.at(**dict(zip(self.outputs, vector, strict=True))) for vector in vectors]
            for dim, vectors in zip(self.inputs, self.bases, strict=True)
        }
        return LinearLayout.of(bases, dict(zip(other.outputs, other.sizes, strict=True)))

    def inverse(self) -> LinearLayout:
        """From the tensor to the hardware: of several positions of an element the one with the smallest index.

        ValueError where an element is nowhere.
        """
        solve = _Solver(self._columns)
        sizes = {dim: 1 << len(vectors) for dim, vectors in zip(self.inputs, self.bases, strict=True)}
        bases: dict[str, list[tuple[int, ...]]] = {}
        for position, (out, size) in enumerate(zip(self.outputs, self.sizes, strict=True)):
            unit = [0] * len(self.outputs)
            bases[out] = []
            for bit in range(_bits(size)):
                unit[position] = 1 << bit
                found = solve(self._flat(unit))
                if found is None:
                    raise ValueError(f"no index has {out} = {1 << bit} in {self}")
                bases[out].append(_split(found, sizes.values()))
        return LinearLayout.of(bases, sizes)

    def into(self, other: LinearLayout) -> LinearLayout:
        """From a position in `other` to the one in this layout that has the same element: what a conversion from
        this layout to `other` has to fetch.
        """
        return other.then(self.inverse())

    def quotient(self, tile: LinearLayout) -> LinearLayout | None:
        """The layout q with tile * q equal to this one; None where there is none."""
        if not set(tile.inputs) <= set(self.inputs) or set(tile.outputs) != set(self.outputs):
            return None
        shifts = [_bits(tile.size(out)) for out in self.outputs]
        if any(tile.size(out) > self.size(out) for out in self.outputs):
            return None
        bases: dict[str, list[tuple[int, ...]]] = {}
        order = [tile.outputs.index(out) for out in self.outputs]
        for dim, vectors in zip(self.inputs, self.bases, strict=True):
            low = [tuple(vector[dim] for dim in order) for vector in tile.vectors(dim)]
            rest = vectors[len(low) :]
            if list(vectors[: len(low)]) != low:
                return None
            if any(x & ((1 << s) - 1) for vector in rest for x, s in zip(vector, shifts, strict=True)):
                return None
            bases[dim] = [tuple(x >> s for x, s in zip(vector, shifts, strict=True)) for vector in rest]
        return LinearLayout.of(
            bases, {out: size >> s for out, size, s in zip(self.outputs, self.sizes, shifts, strict=True)}
        )

    # Parts

    def only(self, inputs: Iterable[str]) -> LinearLayout:
        """The input dimensions `inputs`, the others at 0."""
        return LinearLayout.of(
            {dim: self.vectors(dim) for dim in inputs}, dict(zip(self.outputs, self.sizes, strict=True))
        )

    def without(self, output: str) -> LinearLayout:
        """The same with an output dimension forgotten."""
        kept = [number for number, out in enumerate(self.outputs) if out != output]
        bases = {
            dim: [tuple(vector[number] for number in kept) for vector in vectors]
            for dim, vectors in zip(self.inputs, self.bases, strict=True)
        }
        return LinearLayout.of(bases, {self.outputs[number]: self.sizes[number] for number in kept})

    def renamed(self, outputs: Mapping[str, str]) -> LinearLayout:
        """The same with other names for outputs."""
        return LinearLayout(self.inputs, self.bases, tuple(outputs.get(out, out) for out in self.outputs), self.sizes)

    def __str__(self) -> str:
        lines = [
            f"{dim} -> {', '.join(map(str, vectors)) or '()'}"
            for dim, vectors in zip(self.inputs, self.bases, strict=True)
        ]
        return "\n".join([*lines, f"of {', '.join(f'{o} {s}' for o, s in zip(self.outputs, self.sizes, strict=True))}"])


class _Solver:
    """Solves columns x = target over two elements: x as an int, bit i for column i; the smallest one that has no bit
    where a lower column would do.
    """

    def __init__(self, columns: Sequence[int]) -> None:
        self.pivots: dict[int, tuple[int, int]] = {}  # highest bit -> (vector, which columns make it)
        for number, column in enumerate(columns):
            vector, made = self._reduced(column, 1 << number)
            if vector:
                self.pivots[vector.bit_length() - 1] = (vector, made)

    def _reduced(self, vector: int, made: int) -> tuple[int, int]:
        while vector and (pivot := self.pivots.get(vector.bit_length() - 1)) is not None:
            vector, made = vector ^ pivot[0], made ^ pivot[1]
        return vector, made

    def __call__(self, target: int) -> int | None:
        left, made = self._reduced(target, 0)
        return None if left else made


def _rank(columns: Sequence[int]) -> int:
    return len(_Solver(columns).pivots)


def _split(number: int, sizes: Iterable[int]) -> tuple[int, ...]:
    """A flattened index as one index for each dimension, the first one lowest."""
    result: list[int] = []
    for size in sizes:
        result.append(number & (size - 1))
        number >>= _bits(size)
    return tuple(result)


def _bits(size: int) -> int:
    return size.bit_length() - 1
