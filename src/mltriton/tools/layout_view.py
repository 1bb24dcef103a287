"""`mltriton layout`: which warp, lane and register hold which element of a tensor, as text.

Level: ttg and warp. Takes encodings as text, from an `.mlir` file or from a kernel's compiled level; gives `View`s: an
encoding and a shape. Two directions: from elements to places (the default) and from places to elements
(`hardware`). Encodings that only say which warp owns what show warps. `layout_picture.py` draws one view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mltriton.errors import OptionError
from mltriton.ir.operation import Operation
from mltriton.ir.parser import Parser, parse_attribute, parse_module
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import Encoding, Shape
from mltriton.layouts.hardware import NoLanesError, linear_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.text import encoding_text
from mltriton.runtime.compile_thread import unlimited
from mltriton.tools.aot import compile_kernel

Array = np.ndarray[Any, Any]
MORE = "..."


@dataclass(frozen=True)
class View:
    """One encoding of a tensor of `shape`."""

    encoding: Encoding
    shape: Shape

    @property
    def title(self) -> str:
        """What is shown."""
        return f"{encoding_text(self.encoding)} of {'x'.join(map(str, self.shape))}"

    @property
    def layout(self) -> LinearLayout | None:
        """The places of all elements; None where the encoding does not state lanes."""
        try:
            return linear_layout(self.encoding, self.shape)
        except NoLanesError:
            return None

    def warps(self) -> Array:
        """For each element the warps that hold it, as a set of bits."""
        cuts = self.encoding.cut(self.shape)
        total = np.ones(self.shape, object)
        count = self.encoding.warps
        for element in np.ndindex(*self.shape):
            bits = 0
            for warp in range(count):
                parts = zip(cuts, element, self.shape, strict=True)
                if all((warp // c.stride % c.warps - e // min(c.size, n)) % _parts(c, n) == 0 for c, e, n in parts):
                    bits |= 1 << warp
            total[element] = bits
        return total


def _parts(cut: Any, extent: int) -> int:
    return cut.warps if cut.warps * cut.size <= extent else cut.parts(extent)


# Where views come from


def views_of(what: str, tensor: str | None = None) -> list[View]:
    """The views of an encoding's text with the type of a tensor, or of all encodings in an `.mlir` file.

    Raises `OptionError` and `IRSyntaxError`.
    """
    if what.lstrip().startswith("#"):
        if tensor is None:
            raise OptionError("an encoding alone has no shape", expected='a tensor, such as -t "tensor<256x32xf16>"')
        return [View(_encoding(what), _tensor(tensor).shape)]
    path = Path(what)
    if not path.is_file():
        raise OptionError(
            f"{what} is no encoding and no file",
            expected="#name<{...}>, FILE.mlir or FILE.py:KERNEL",
            hint="A kernel needs its --signature." if ":" in what else None,
        )
    return views_in(path.read_text(encoding="utf-8"), what)


def views_of_kernel(kernel: str, signature: str, *, target: str, num_warps: int, level: str) -> list[View]:
    """The layouts of a kernel, `FILE.py:KERNEL`, compiled for a target, at level ttg or warp."""
    if level not in ("ttg", "warp"):
        raise OptionError(f"tensors have no encodings at level {level!r}", expected="ttg or warp", found=level)
    compiled = compile_kernel(kernel, signature, target=target, num_warps=num_warps)
    return views_in(compiled.asm[level], f"{kernel} ({level})")


def views_in(text: str, filename: str = "<text>") -> list[View]:
    """Every encoded tensor type of a module, once, in the order in which they come."""
    found: dict[View, None] = {}
    for type in _types(unlimited(partial(parse_module, text, filename))):
        if isinstance(type.encoding, Encoding):
            found[View(type.encoding, type.shape)] = None
    if not found:
        raise OptionError(f"no tensor in {filename} has an encoding", hint="Encodings exist at level ttg and warp.")
    return list(found)


def _types(module: Operation) -> Iterator[TensorType]:
    for op in module.walk():
        for value in (*op.operands, *op.results):
            if isinstance(value.type, TensorType):
                yield value.type


def _encoding(text: str) -> Encoding:
    found = parse_attribute(text, "<encoding>")
    if not isinstance(found, Encoding):
        raise OptionError(f"{text} is no layout encoding", found=str(found))
    return found


def _tensor(text: str) -> TensorType:
    found = Parser(text, "<tensor>").type()
    if not isinstance(found, TensorType):
        raise OptionError(f"{text} is no tensor", expected="such as tensor<256x32xf16>", found=str(found))
    return found


# What they look like


def text_of(view: View, hardware: bool = False, rows: int = 16, columns: int = 16) -> str:
    """The view as text: which warps hold which part, and the lane and register of at most `rows` x `columns` elements,
    or with `hardware` the elements of so many lanes and registers.
    """
    layout = view.layout
    body = [view.title, *_matrices(view.warps(), "warps by the first row and column of their part", _warp_grid)]
    if layout is None:
        return "\n".join([*body, "the encoding does not say which lane holds an element"])
    if hardware:
        return "\n".join([*body, *_places(layout, rows, columns)])
    cells, title = _place_cells(layout, view.shape), "lane:register of each element"
    title += "" if layout.is_injective else " (the first of several places)"
    return "\n".join([*body, *_matrices(cells, title, lambda part: _grid(part, rows, columns))])


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
    cells = [[_warps_text(owners[row, column]) for column in columns] for row in rows]
    yield from _table(cells, [str(row) for row in rows], [str(column) for column in columns])


def _changes(owners: Array) -> list[int]:
    return [0, *(row for row in range(1, len(owners)) if (owners[row] != owners[row - 1]).any())]


def _warps_text(bits: int) -> str:
    """The warps in a set, neighbours as ranges: `0-3,8`."""
    warps = [warp for warp in range(bits.bit_length()) if bits >> warp & 1]
    ranges: list[list[int]] = []
    for warp in warps:
        if ranges and ranges[-1][-1] == warp - 1:
            ranges[-1] = [ranges[-1][0], warp]
        else:
            ranges.append([warp])
    return ",".join("-".join(map(str, ends)) for ends in ranges)


def _place_cells(layout: LinearLayout, shape: Shape) -> Array:
    """Lane and register of each element, the first ones where it has several."""
    cells = np.empty(shape, object)
    places = layout.inverse().table()
    for element in np.ndindex(*shape):
        register, lane, _ = places[element]
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
