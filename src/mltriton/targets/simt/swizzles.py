"""Addresses in shared memory whose elements are exchanged (`#ttg.swizzled_shared`, `#ttg.nvmma_shared`).

Level: intrinsic -> llvm. Where an element lies is a linear map of the bits of its coordinates. What a lane, a register
and a window contribute is found apart wherever they set different bits of the coordinates, so that registers differ
from a common number by an exclusive or with a constant, and by a distance as far as no other part sets those bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mltriton.errors import BackendError
from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.shared import furthest
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, Type, Value, constant
from mltriton.targets.simt.constant_offsets import HIGHEST
from mltriton.targets.simt.context import Emitter, coordinates
from mltriton.targets.simt.lanes import Swizzle
from mltriton.targets.simt.moves import linear


def swizzle_of(encoding: SharedEncoding, shape: Sequence[int]) -> Swizzle:
    """The swizzle of a whole block, whose last dimensions an encoding is about. Raises `BackendError` for one that is
    not a power of two along others than the one that may be any (`furthest`): elements would lie behind the block.
    """
    back = encoding.linear_layout(tuple(shape)).inverse()
    images = tuple(tuple(vector[0] for vector in back.vectors(name)) for name in back.inputs)
    odd = [dim for dim, size in enumerate(shape[-len(images) :], -len(images)) if size & (size - 1)]
    if odd and odd != [furthest(encoding, shape)]:
        found = f"{'x'.join(map(str, shape))} in {encoding}"
        raise BackendError("a block in shared memory that its layout does not fill", found=found)
    return Swizzle(images, (constant(I32, 0),) * len(images))


class _Window(NamedTuple):
    """Where a window begins along a dimension: a number and a constant, and the bits that the number may set."""

    root: Value | None
    constant: int
    bits: int


def addresses(e: Emitter, pointer: Value, swizzle: Swizzle, layout: LinearLayout, element: Type) -> list[Value]:
    """The address of each register's element."""
    windows = [_window(e, start, size) for start, size in zip(swizzle.offsets, layout.sizes, strict=True)]
    if None in windows:
        return _one_by_one(e, pointer, swizzle, layout, element)
    f, found = e.function, [window for window in windows if window is not None]
    by_lane = tuple(_image(swizzle, vector) for vector in layout.vectors("lane"))
    parts = [e.by_lane(by_lane)] if any(by_lane) else []
    parts += [linear(f, w.root, of) for w, of in zip(found, swizzle.images, strict=True) if w.root is not None]
    variable = _union(by_lane) | _union(_images(swizzle, [window.bits for window in found]))
    base = reduce(f.xor, parts, constant(I32, 0))
    made: list[Value] = []
    for register in range(layout.count("register")):
        coordinate = [at + w.constant for at, w in zip(layout.at(register=register), found, strict=True)]
        image = _image(swizzle, coordinate)
        index = f.xor(base, image & variable)
        e.affine.promise(index, variable & -variable)
        moved = e.affine.address(pointer, index, element)
        made.append(e.affine.displaced(moved, (image & ~variable) * element.bytes))
    return made


def _window(e: Emitter, start: Value, size: int) -> _Window | None:
    """A window of so many elements; None where coordinates inside share bits with its beginning."""
    term = e.affine.term(start)
    power = HIGHEST if term.root is None else e.affine.divisor(term.root)
    if term.constant < 0 or term.constant % size or term.constant + size > power:
        return None
    return _Window(term.root, term.constant, 0 if term.root is None else -power)


def _one_by_one(e: Emitter, pointer: Value, swizzle: Swizzle, layout: LinearLayout, element: Type) -> list[Value]:
    """The same of windows anywhere."""
    f = e.function
    along = [
        [e.affine.add(start, coordinate) for coordinate in coordinates(e, layout, dim)]
        for dim, start in enumerate(swizzle.offsets)
    ]
    sums = [[linear(f, at, of) for at, of in zip(row, swizzle.images, strict=True)] for row in zip(*along, strict=True)]
    return [e.affine.address(pointer, reduce(f.xor, parts), element) for parts in sums]


def _images(swizzle: Swizzle, coordinate: Sequence[int]) -> list[int]:
    """The numbers of the elements at the bits that are set in coordinates."""
    bits = zip(coordinate, swizzle.images, strict=True)
    return [image for at, of in bits for bit, image in enumerate(of) if at >> bit & 1]


def _image(swizzle: Swizzle, coordinate: Sequence[int]) -> int:
    """The number of the element at coordinates."""
    number = 0
    for image in _images(swizzle, coordinate):
        number ^= image
    return number


def _union(numbers: Sequence[int]) -> int:
    """The bits that are set in any number."""
    bits = 0
    for number in numbers:
        bits |= number
    return bits
