"""A layout as a picture: one square an element, coloured by its warp, shaded by its lane, with lane and register in it.

Level: ttg and warp. Takes a `View` of a tensor of one or two dimensions; gives SVG text. Guarantees: the picture is at
most `MOST` squares high and wide; what is cut off is said in its title.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from mltriton.errors import OptionError
from mltriton.tools.layout_view import View

MOST = 256  # squares along a side
SIDE = 34  # of a square, in pixels
MARGIN = 40
GOLDEN = 137.508  # degrees: neighbours in this sequence of hues are far apart


def draw(views: Sequence[View], path: Path) -> None:
    """Write the picture of the one view that there is. Raises `OptionError` where there are several."""
    if len(views) != 1:
        listed = "; ".join(view.title for view in views)
        raise OptionError("a picture shows one layout", expected="an encoding with -t TENSOR", found=listed)
    path.write_text(svg(views[0]), encoding="utf-8")


def svg(view: View) -> str:
    """The picture of a view. Raises `OptionError` for more than two dimensions."""
    if len(view.shape) > 2:
        raise OptionError("a picture has two dimensions", found=f"a tensor of {len(view.shape)}")
    height, width = (1, 1, *view.shape)[-2:]
    rows, columns = min(height, MOST), min(width, MOST)
    title = view.title + (f" (the first {rows} x {columns})" if (rows, columns) != (height, width) else "")
    squares = list(_squares(view, height, width, rows, columns))
    size = f'width="{columns * SIDE + 2 * MARGIN}" height="{rows * SIDE + 2 * MARGIN}"'
    style = "text { font: 10px monospace; text-anchor: middle; dominant-baseline: middle }"
    head = f'<text x="{MARGIN}" y="{MARGIN // 4}" style="text-anchor: start">{escape(title)}</text>'
    numbers = [*_numbers(columns, horizontal=True), *_numbers(rows, horizontal=False)]
    body = "\n".join([f"<style>{style}</style>", head, *numbers, *squares])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{body}\n</svg>\n'


def _squares(view: View, height: int, width: int, rows: int, columns: int) -> list[str]:
    owners, layout = view.warps().reshape(height, width), view.layout
    places = None if layout is None else layout.inverse().table().reshape(height, width, 3)
    lanes = 1 if layout is None else layout.count("lane")
    result: list[str] = []
    for row, column in np.ndindex(rows, columns):
        warps = int(owners[row, column])
        first = (warps & -warps).bit_length() - 1
        lane, register, shade = 0, 0, 0.0
        if places is not None:
            register, lane, _ = map(int, places[row, column])
            shade = lane / max(1, lanes - 1)
        x, y = MARGIN + column * SIDE, MARGIN + row * SIDE
        colour = f"hsl({first * GOLDEN % 360:.0f} 65% {85 - 35 * shade:.0f}%)"
        text = f"w{first}" if places is None else f"{lane}:{register}"
        tip = f"({row}, {column}) warp {first}" + ("" if places is None else f" lane {lane} register {register}")
        result.append(
            f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="{colour}" stroke="white">'
            f"<title>{tip}</title></rect>"
            f'<text x="{x + SIDE // 2}" y="{y + SIDE // 2}">{text}</text>'
        )
    return result


def _numbers(count: int, *, horizontal: bool) -> list[str]:
    places = ((MARGIN + i * SIDE + SIDE // 2, MARGIN - 10, i) for i in range(count))
    return [f'<text x="{a if horizontal else b}" y="{b if horizontal else a}">{i}</text>' for a, b, i in places]
