"""`mltriton layout`: which warp, lane and register hold which element of a tensor, as text.

Level: ttg and warp. Takes encodings as text or from an `.mlir` file; gives `View`s: an encoding and a shape. Two
directions: from elements to positions (the default) and from positions to elements (`hardware`). Encodings that only
say which warp owns what show warps, those of shared memory offsets. `layout_values.py` finds the values of a program
and `layout_changes.py` says what a conversion does; `layout_picture.py` draws all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mltriton.errors import OptionError
from mltriton.ir.parser import Parser, parse_attribute
from mltriton.ir.types import TensorType, Type, byte_width
from mltriton.layouts.base import Cut, Encoding, LayoutAttr, SharedEncoding
from mltriton.layouts.fields import Shape, is_power
from mltriton.layouts.hardware import NoLanesError, linear_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.shared import LINE_BYTES
from mltriton.layouts.text import encoding_text

Array = np.ndarray[Any, Any]
MORE = "..."


@dataclass(frozen=True)
class View:
    """One layout of a tensor of `shape`, or of a block in shared memory; `element` is what it is of, where known."""

    encoding: LayoutAttr
    shape: Shape
    element: Type | None = None

    @property
    def title(self) -> str:
        """What is shown."""
        return f"{encoding_text(self.encoding)} of {'x'.join(map(str, self.shape))}"

    @cached_property
    def layout(self) -> LinearLayout | None:
        """The positions of all elements; None where the encoding does not state lanes."""
        try:
            return linear_layout(self.encoding, self.shape)
        except NoLanesError:
            return None

    @property
    def is_shared(self) -> bool:
        """Whether it is one of shared memory: elements have an offset there, and no warp or lane."""
        return isinstance(self.encoding, SharedEncoding)

    def warps(self) -> Array:
        """For each element the warps that hold it, as a set of bits."""
        owners = np.zeros(self.shape, np.uint64)
        if self.layout is not None:
            table = self.layout.table().reshape(-1, self.layout.count("warp"), len(self.shape))
            for warp in range(table.shape[1]):
                owners[tuple(np.moveaxis(table[:, warp], -1, 0))] |= np.uint64(1 << warp)
            return owners
        assert isinstance(self.encoding, Encoding)
        cuts = self.encoding.cut(self.shape)
        for warp in range(self.encoding.warps):
            held = [_held(cut, extent, warp) for cut, extent in zip(cuts, self.shape, strict=True)]
            owners[np.ix_(*held)] |= np.uint64(1 << warp)
        return owners

    def word(self) -> tuple[int, ...]:
        """The elements along each dimension that lie in one word of a lane, as a right operand's pairs of rows do."""
        size = [1] * len(self.shape)
        if self.layout is not None and isinstance(self.encoding, Encoding) and self.element is not None:
            width = byte_width(self.element)
            count = self.encoding.word_bytes(width) // width
            for vector in self.layout.vectors("register")[: count.bit_length() - 1]:
                size = [max(s, 2 * step) for s, step in zip(size, vector, strict=True)]
        return tuple(size)

    def tile(self) -> tuple[int, ...]:
        """What one instruction or message takes of it, along each dimension; all of it where nothing says so."""
        try:
            found = self.encoding.lane_tile(len(self.shape)) if isinstance(self.encoding, Encoding) else self.shape
        except NoLanesError:
            return self.shape
        return tuple(min(size, extent) for size, extent in zip(found, self.shape, strict=True))


def _held(cut: Cut, extent: int, warp: int) -> Array:
    """Which indices along a dimension a warp has; parts that do not fill it are repeated."""
    parts = cut.warps if cut.warps * cut.size <= extent else cut.parts(extent)
    part = np.arange(extent) // min(cut.size, extent)
    return (warp // cut.stride % cut.warps - part) % parts == 0


def get_view(encoding: str | LayoutAttr, tensor: str | Shape, *, hardware: bool = False) -> str:
    """A layout of a tensor (`tensor<16x16xf16>`, or a shape) as text, all of it: the lane and register of each element,
    or with `hardware` the elements of each lane and register. Raises `OptionError` and `IRSyntaxError`.
    """
    shape, element = (tensor, None) if isinstance(tensor, tuple) else _tensor(tensor)
    view = checked(View(layout_of(encoding) if isinstance(encoding, str) else encoding, shape, element))
    return text_of(view, hardware, 1 << 30, 1 << 30)


# Where views come from


def view_of(what: str, tensor: str | None = None) -> View:
    """The view of an encoding's text with the type of a tensor, or of a type's that has an encoding. Raises
    `OptionError` and `IRSyntaxError`.
    """
    if what.lstrip().startswith("tensor<"):
        found = _tensor_type(what)
        if not isinstance(found.encoding, LayoutAttr):
            raise OptionError(f"{what} has no encoding", expected="tensor<256x32xf16, #name<{...}>>")
        return checked(View(found.encoding, found.shape, found.element))
    if tensor is None:
        raise OptionError("an encoding alone has no shape", expected='--tensor "tensor<256x32xf16>"')
    return checked(View(layout_of(what), *_tensor(tensor)))


def read_program(what: str) -> tuple[str, str]:
    """The text of an `.mlir` file, and its name. Raises `OptionError`."""
    path = Path(what)
    is_kernel = Path(what.rpartition(":")[0]).is_file()
    if not path.is_file():
        raise OptionError(
            f"{what} needs its --signature" if is_kernel else f"{what} is no encoding and no file",
            expected="one entry a parameter"
            if is_kernel
            else "#name<{...}>, tensor<..., #name<{...}>>, FILE.mlir or FILE.py:KERNEL",
        )
    return path.read_text(encoding="utf-8"), what


def layout_of(text: str) -> LayoutAttr:
    """The layout of that text. Raises `OptionError` and `IRSyntaxError`."""
    found = parse_attribute(text, "<encoding>")
    if not isinstance(found, LayoutAttr):
        raise OptionError(f"{text} is no layout encoding", found=str(found))
    return found


def _tensor(text: str) -> tuple[Shape, Type]:
    found = _tensor_type(text)
    return found.shape, found.element


def _tensor_type(text: str) -> TensorType:
    found = Parser(text, "<tensor>").type()
    if not isinstance(found, TensorType):
        raise OptionError(f"{text} is no tensor", expected="such as tensor<256x32xf16>", found=str(found))
    return found


def checked(view: View) -> View:
    """The view, where there is such a tensor. Raises `OptionError`."""
    if any(not is_power(size) for size in view.shape):
        found = "x".join(map(str, view.shape))
        raise OptionError("layouts are of tensors whose sizes are powers of two", found=found)
    try:
        fits = view.layout.is_surjective if view.layout is not None else view.warps().size > 0
        problem = "" if fits else ": some elements are nowhere"
    except LookupError:
        fits, problem = False, ": it is of another rank"
    except ValueError as error:
        fits, problem = False, f": {error}"
    if not fits:
        raise OptionError(f"a tensor has no such layout{problem}", found=view.title)
    return view


# What they look like


def text_of(view: View, hardware: bool = False, rows: int = 16, columns: int = 16) -> str:
    """The view as text: which warps hold which part, and the lane and register of at most `rows` x `columns` elements,
    or with `hardware` the elements of so many lanes and registers.
    """
    layout = view.layout
    if view.is_shared:
        assert layout is not None
        return "\n".join([view.title, *_offsets(view, layout, hardware, rows, columns)])
    body = [view.title, *_matrices(view.warps(), "warps by the first row and column of their part", _warp_grid)]
    if layout is None:
        return "\n".join([*body, "the encoding does not say which lane holds an element"])
    if hardware:
        return "\n".join([*body, *_places(layout, rows, columns)])
    cells, title = _register_cells(layout, view.shape), "lane:register of each element"
    title += "" if layout.is_injective else " (the first of several positions)"
    return "\n".join([*body, *_matrices(cells, title, lambda part: _grid(part, rows, columns))])


def _offsets(view: View, layout: LinearLayout, hardware: bool, rows: int, columns: int) -> Iterator[str]:
    """Of shared memory: the offset of each element, or the element at each offset, in lines of all banks."""
    if not hardware:
        cells = layout.inverse().table()[..., 0].astype(str).astype(object)
        yield from _matrices(cells, "offset of each element", lambda part: _grid(part, rows, columns))
        return
    width = byte_width(view.element) if view.element is not None else 4
    line = min(LINE_BYTES // width, layout.count("offset"))
    yield f"the element at each offset, {line * width} bytes a line"
    positions = layout.table().reshape(-1, line, len(layout.outputs))
    cells = np.empty(positions.shape[:2], object)
    for index in np.ndindex(*cells.shape):
        cells[index] = f"({','.join(map(str, positions[index]))})"
    yield from _grid(cells, rows, columns)


def _matrices(cells: Array, title: str, lines: Callable[[Array], Iterator[str]]) -> Iterator[str]:
    """The last two dimensions as a table, for each index of the others."""
    yield title
    cells = cells.reshape((1,) * (2 - cells.ndim) + cells.shape)
    for index in np.ndindex(*cells.shape[:-2]):
        if index:
            yield f"[{', '.join(map(str, index))}]"
        yield from lines(cells[index])


def _warp_grid(owners: Array) -> Iterator[str]:
    """One cell for each part that the same warps hold."""
    rows, columns = _changes(owners), _changes(owners.T)
    cells = [[warps_text(int(owners[row, column])) for column in columns] for row in rows]
    yield from _table(cells, [str(row) for row in rows], [str(column) for column in columns])


def _changes(owners: Array) -> list[int]:
    return [0, *(row for row in range(1, len(owners)) if (owners[row] != owners[row - 1]).any())]


def warps_text(bits: int) -> str:
    """The warps in a set, neighbours as ranges: `0-3,8`."""
    warps = [warp for warp in range(bits.bit_length()) if bits >> warp & 1]
    ranges: list[list[int]] = []
    for warp in warps:
        if ranges and ranges[-1][-1] == warp - 1:
            ranges[-1] = [ranges[-1][0], warp]
        else:
            ranges.append([warp])
    return ",".join("-".join(map(str, ends)) for ends in ranges)


def _register_cells(layout: LinearLayout, shape: Shape) -> Array:
    """Lane and register of each element, the first ones where it has several."""
    cells = np.empty(shape, object)
    positions = layout.inverse().table()
    for element in np.ndindex(*shape):
        register, lane, _ = positions[element]
        cells[element] = f"{lane}:{register}"
    return cells


def _places(layout: LinearLayout, lanes: int, registers: int) -> Iterator[str]:
    """For each warp a table with a row for each lane and a column for each register."""
    table = layout.table()
    for warp in range(table.shape[2]):
        yield f"warp {warp}: rows are lanes, columns registers"
        cells = np.empty(table.shape[1::-1], object)
        for lane, register in np.ndindex(*cells.shape):
            cells[lane, register] = "(" + ",".join(map(str, table[register, lane, warp])) + ")"
        yield from _grid(cells, lanes, registers)


def _grid(cells: Array, rows: int, columns: int) -> Iterator[str]:
    """The first rows and columns of a table, numbered; dots stand for more."""
    shown = [[*row, *[MORE] * (cells.shape[1] > columns)] for row in cells[:rows, :columns]]
    heads = [*map(str, range(min(columns, cells.shape[1]))), *[MORE] * (cells.shape[1] > columns)]
    yield from _table(shown, [str(row) for row in range(len(shown))], heads)
    if len(cells) > rows:
        yield MORE


def _table(cells: Sequence[Sequence[str]], rows: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    lines = [["", *columns], *([head, *row] for head, row in zip(rows, cells, strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  " + " ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)).rstrip()
