"""Layouts and conversions as pictures: a cell an element, coloured by its warp, lighter or darker by its lane.

Level: ttg and warp. Takes a `View` of a tensor of one or two dimensions, or a `Change` between two; gives SVG text.
Elements of one word of a lane (a right operand's pairs of rows) have no line between them; dark lines go around what
one instruction or message takes. Guarantees: a picture has at most `TABLES` tables of at most `MOST` cells along a side
and says what is left out; rows that look the same are stored once; at most `LABELLED` cells have labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from mltriton.errors import OptionError
from mltriton.ir.types import byte_width
from mltriton.layouts.shared import GROUP_BYTES, LINE_BYTES
from mltriton.tools.layout_changes import WAYS, Change
from mltriton.tools.layout_view import View

Array = np.ndarray[Any, Any]
MOST = 256  # cells along a side
TABLES = 6  # of one picture: before, after and four warps
LABELLED = 4096  # cells
HEIGHT, LETTER, SMALL = 20, 6, 5  # of a labelled cell, of a letter of its label, of a cell without labels
MARGIN = 36
LINE = 14  # of text
GOLDEN = 137.508  # degrees: neighbours in this sequence of hues are far apart
# How an element of a conversion comes to its register, from `WAYS`.
COLOURS = ("#f2f2f2", "#d8f0d8", "#b6dcf2", "#ffe2b0", "#f6c0c0")


@dataclass
class Panel:
    """A table of cells: a colour and a label each; every so many rows and columns a line, and a dark one."""

    title: str
    colours: Array
    labels: Array
    fine: tuple[int, int] = (1, 1)
    coarse: tuple[int, int] = (1 << 30, 1 << 30)

    @property
    def shown(self) -> tuple[int, int]:
        """Rows and columns that are drawn."""
        rows, columns = self.colours.shape
        return min(rows, MOST), min(columns, MOST)

    @property
    def is_labelled(self) -> bool:
        """Whether there is room for labels."""
        return self.shown[0] * self.shown[1] <= LABELLED

    @property
    def cell(self) -> tuple[int, int]:
        """Width and height of a cell."""
        if not self.is_labelled:
            return SMALL, SMALL
        longest = max(len(str(label)) for label in self.labels[: self.shown[0], : self.shown[1]].flat)
        return LETTER * longest + 8, HEIGHT

    @property
    def heading(self) -> str:
        """The title, with what is left out."""
        rows, columns = self.shown
        whole = (rows, columns) == self.colours.shape
        return self.title + ("" if whole else f" (the first {rows} x {columns})")


def svg(view: View, hardware: bool = False) -> str:
    """The picture of a view: of elements, or with `hardware` of lanes and registers. Raises `OptionError` for more than
    two dimensions.
    """
    if view.is_shared:
        panels = [_offsets(view, hardware)]
    elif hardware and view.layout is not None:
        panels = _places(view)
    else:
        panels = [_elements(view), *_legend(view)]
    return _picture(view.title, panels)


def svg_of_change(change: Change) -> str:
    """A conversion: the tensor before and after, and where each position of the result gets its element from."""
    before, after = (View(encoding, change.shape, change.element) for encoding in (change.source, change.target))
    panels = [_elements(before, "before"), *_legend(before), _elements(after, "after"), *_legend(after)]
    title = f"{change.names}: {change.summary()}"
    return _picture(title, [*panels, *_fetches(change)] if change.how is not None else panels)


def draw(pictures: dict[str, str], path: Path) -> None:
    """Write the one picture to a file, or each under its name into a directory (a path without suffix). Raises
    `OptionError` where there are several for one file.
    """
    if not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
        for name, text in pictures.items():
            (path / f"{name}.svg").write_text(text, encoding="utf-8")
        return
    [text] = pictures.values()
    path.write_text(text, encoding="utf-8")


# What the cells are.


def _colour(warp: int, lane: int, lanes: int) -> str:
    """Light enough for dark letters; as numbers that every program that draws understands."""
    parts = hls_to_rgb(warp * GOLDEN / 360 % 1, 0.92 - 0.22 * lane / max(1, lanes - 1), 0.65)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _matrix(view: View) -> tuple[int, int]:
    if len(view.shape) > 2:
        raise OptionError("a picture has two dimensions", found=f"a tensor of {len(view.shape)}")
    return _last_two(view.shape)


def _elements(view: View, title: str = "lane:register of each element") -> Panel:
    """Where each element is, the first position of several."""
    shape = _matrix(view)
    colours, labels = np.empty(shape, object), np.empty(shape, object)
    owners, layout = view.warps().reshape(shape), view.layout
    positions = None if layout is None else layout.inverse().table().reshape(*shape, 3)
    lanes = 1 if layout is None else layout.count("lane")
    for at in np.ndindex(*shape):
        warps = int(owners[at])
        register, lane, _ = (0, 0, 0) if positions is None else map(int, positions[at])
        warp = _first(warps)
        colours[at] = _colour(warp, lane, lanes)
        labels[at] = f"w{warp}" if positions is None else f"{lane}:{register}"
    title = title if positions is not None else "the warp of each element"
    return Panel(title, colours, labels, _last_two(view.word()), _last_two(view.tile()))


def _legend(view: View) -> Iterator[Panel]:
    """The colour of each warp that a picture of elements shows, where there are several."""
    warps = sorted({_first(int(owners)) for owners in view.warps().flat})
    if view.layout is not None and len(warps) > 1:
        colours = np.array([[_colour(warp, 0, 1) for warp in warps]], object)
        yield Panel("warps", colours, np.array([list(map(str, warps))], object))


def _first(warps: int) -> int:
    """The first of a set of warps, given as bits."""
    return (warps & -warps).bit_length() - 1


def _last_two(size: tuple[int, ...]) -> tuple[int, int]:
    rows, columns = (1, 1, *size)[-2:]
    return rows, columns


def _places(view: View) -> list[Panel]:
    """The elements of each lane (a row) and register (a column), warp by warp."""
    layout = view.layout
    assert layout is not None
    table, lanes = layout.table(), layout.count("lane")
    panels: list[Panel] = []
    for warp in range(table.shape[2]):
        shape = (lanes, table.shape[0])
        colours, labels = np.empty(shape, object), np.empty(shape, object)
        for lane, register in np.ndindex(*shape):
            colours[lane, register] = _colour(warp, lane, lanes)
            labels[lane, register] = ",".join(map(str, table[register, lane, warp]))
        word = int(np.prod(view.word()))
        panels.append(Panel(f"warp {warp}: the elements of lanes (rows) and registers", colours, labels, (1, word)))
    return panels


def _offsets(view: View, hardware: bool) -> Panel:
    """Shared memory: the offset of each element, coloured by banks, or the elements of each line of all banks, coloured
    by columns: in groups of 16 bytes.
    """
    layout = view.layout
    assert layout is not None
    width = byte_width(view.element) if view.element is not None else GROUP_BYTES
    line, group = min(LINE_BYTES // width, layout.count("offset")), max(1, GROUP_BYTES // width)
    if not hardware:
        table = layout.inverse().table()[..., 0].reshape(_last_two(layout.sizes))
        colours = np.empty(table.shape, object)
        for at in np.ndindex(*table.shape):
            colours[at] = _colour(int(table[at]) % line // group, 0, 1)
        return Panel("the offset of each element", colours, table.astype(str).astype(object))
    positions = layout.table().reshape(-1, line, len(layout.outputs))
    colours, labels = np.empty(positions.shape[:2], object), np.empty(positions.shape[:2], object)
    for at in np.ndindex(*labels.shape):
        labels[at] = ",".join(map(str, positions[at]))
        colours[at] = _colour(int(positions[at][-1]) // group % (line // group), 0, 1)
    return Panel(f"the element at each offset, {line * width} bytes a row", colours, labels)


def _fetches(change: Change) -> Iterator[Panel]:
    """Where each position of the result gets its element, coloured by the way that it takes; warps that do alike share
    a picture.
    """
    assert change.how is not None
    panels: dict[tuple[str, ...], Panel] = {}
    alike: dict[tuple[str, ...], list[str]] = {}
    fetch, ways = change.how.fetch.table(), change.ways()
    for warp in range(fetch.shape[2]):
        shape = (fetch.shape[1], fetch.shape[0])
        colours, labels = np.empty(shape, object), np.empty(shape, object)
        for lane, register in np.ndindex(*shape):
            from_register, from_lane, from_warp = fetch[register, lane, warp]
            foreign = f"w{from_warp} " if from_warp != warp else ""
            labels[lane, register] = f"{foreign}{from_lane}:{from_register}"
            colours[lane, register] = COLOURS[ways[register, lane, warp]]
        look = (*labels.flat, *colours.flat)
        panels.setdefault(look, Panel("", colours, labels))
        alike.setdefault(look, []).append(str(warp))
    legend = ", ".join(f"{colour} {way}" for colour, way in zip(_NAMES, WAYS, strict=True))
    for look, panel in panels.items():
        warps = f"warp{'s' * (len(alike[look]) > 1)} {', '.join(alike[look])}"
        yield replace(panel, title=f"{warps}: where lanes (rows) and registers get their elements ({legend})")


_NAMES = ("grey", "green", "blue", "yellow", "red")

# How they are drawn.


def _picture(title: str, panels: Sequence[Panel]) -> str:
    """Panels below each other, under a title that is broken into lines."""
    if len(panels) > TABLES:
        title, panels = f"{title} (the first {TABLES} of {len(panels)} tables)", panels[:TABLES]
    width = max(2 * MARGIN + panel.shown[1] * panel.cell[0] for panel in panels)
    letters = max(80, width // LETTER)
    lines = wrap(title, letters, break_on_hyphens=False)
    body: list[str] = []
    top = LINE * (len(lines) + 1)
    for number, panel in enumerate(panels):
        headings = wrap(panel.heading, letters)
        body += [_text(MARGIN, top + LINE * line, text) for line, text in enumerate(headings)]
        top += LINE * len(headings) + LINE // 2
        body += _drawn(panel, number, MARGIN, top + LINE)
        top += LINE * 3 + panel.shown[0] * panel.cell[1]
    width = max(width, LETTER * max(map(len, lines)) + 2 * MARGIN)
    style = "text{font:10px monospace;text-anchor:middle;dominant-baseline:middle}.t{text-anchor:start}"
    head = [_text(MARGIN, LINE * (line + 1), text) for line, text in enumerate(lines)]
    size = f'width="{width}" height="{top + LINE}"'
    content = "\n".join([f"<style>{style}</style>", *head, *body])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="background:#fff">\n{content}\n</svg>\n'


def _text(x: int, y: int, text: str) -> str:
    return f'<text class="t" x="{x}" y="{y}">{escape(text)}</text>'


def _drawn(panel: Panel, number: int, left: int, top: int) -> Iterator[str]:
    rows, columns = panel.shown
    wide, high = panel.cell
    yield f'<g transform="translate({left} {top})">'
    known: dict[tuple[str, ...], str] = {}
    for row in range(rows):
        look = tuple(panel.colours[row, :columns])
        if look not in known:
            known[look] = f"p{number}r{row}"
            yield f'<g id="{known[look]}" transform="translate(0 {row * high})">{_runs(look, wide, high)}</g>'
        else:
            first = int(known[look].rpartition("r")[2])
            yield f'<use href="#{known[look]}" y="{(row - first) * high}"/>'
    yield _lines(panel, panel.fine, 'stroke="#ffffff"')
    yield _lines(panel, panel.coarse, 'stroke="#333333" stroke-width="1.5"')
    if panel.is_labelled:
        for row in range(rows):
            labels = (f'<tspan x="{column * wide + wide // 2}">' for column in range(columns))
            cells = "".join(f"{span}{panel.labels[row, i]}</tspan>" for i, span in enumerate(labels))
            yield f'<text y="{row * high + high // 2}">{cells}</text>'
    yield from _numbers(panel)
    yield "</g>"


def _runs(look: Sequence[str], wide: int, high: int) -> str:
    """One row of coloured cells, neighbours of one colour together."""
    drawn: list[str] = []
    column = 0
    for colour, cells in groupby(look):
        count = len(list(cells))
        drawn.append(f'<path fill="{colour}" d="M{column * wide} 0h{count * wide}v{high}h-{count * wide}z"/>')
        column += count
    return "".join(drawn)


def _lines(panel: Panel, every: tuple[int, int], style: str) -> str:
    """Lines around every so many rows and columns, and around everything."""
    (rows, columns), (wide, high) = panel.shown, panel.cell
    across = [*range(0, rows, min(every[0], rows)), rows]
    down = [*range(0, columns, min(every[1], columns)), columns]
    path = [f"M0 {row * high}h{columns * wide}" for row in across]
    path += [f"M{column * wide} 0v{rows * high}" for column in down]
    return f'<path {style} fill="none" d="{"".join(path)}"/>'


def _numbers(panel: Panel) -> Iterator[str]:
    """Rows and columns, as many as there is room for."""
    (rows, columns), (wide, high) = panel.shown, panel.cell
    step = 1 if panel.is_labelled else 16
    spans = "".join(f'<tspan x="{i * wide + wide // 2}">{i}</tspan>' for i in range(0, columns, step))
    yield f'<text y="-8">{spans}</text>'
    for row in range(0, rows, step):
        yield f'<text x="-14" y="{row * high + high // 2}">{row}</text>'
