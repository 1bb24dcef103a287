"""What `mltriton layout` prints and draws: one encoding, a conversion, or the values of a program.

Takes what was asked on the command line; everything is read and drawn before anything is printed, so that a mistake
leaves no half of an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mltriton.errors import OptionError
from mltriton.records import NamedTuple
from mltriton.targets.registry import spec
from mltriton.tools.layout_changes import Change, text_of_change
from mltriton.tools.layout_picture import draw, svg, svg_of_change
from mltriton.tools.layout_values import LayoutValue, chosen, definitions, names_of, values_in, values_of_kernel
from mltriton.tools.layout_view import View, checked, layout_of, read_program, text_of, view_of


class Asked(NamedTuple):
    """The options of the command; `kernel` has the signature, the number of warps and the level."""

    what: str
    tensor: str | None = None
    to: str | None = None
    value: str | None = None
    target: str = "generic"
    kernel: tuple[str, int, str] | None = None
    hardware: bool = False
    svg: Path | None = None
    rows: int = 16
    columns: int = 16


def show(asked: Asked) -> str:
    """The text to print; pictures are written. Raises `OptionError` and `IRSyntaxError`."""
    if asked.what.lstrip().startswith(("#", "tensor<")):
        return _one(asked, view_of(asked.what, asked.tensor))
    if asked.tensor is not None or asked.to is not None:
        raise OptionError("a program has tensors and conversions of its own", hint="Choose one by --value.")
    if asked.kernel is not None:
        signature, num_warps, level = asked.kernel
        values = values_of_kernel(asked.what, signature, target=asked.target, num_warps=num_warps, level=level)
    else:
        values = values_in(*read_program(asked.what))
    return _program(asked, values) if asked.value is None else _value(asked, chosen(values, asked.value))


def _one(asked: Asked, view: View) -> str:
    if asked.to is None:
        return _shown(asked, view)
    target = checked(View(layout_of(asked.to), view.shape, view.element))
    return _changed(asked, Change.between(view, target, spec(asked.target)))


def _shown(asked: Asked, view: View) -> str:
    if asked.svg is not None:
        draw({"layout": svg(view, asked.hardware)}, asked.svg)
    return text_of(view, asked.hardware, asked.rows, asked.columns)


def _changed(asked: Asked, change: Change) -> str:
    if asked.svg is not None:
        draw({"conversion": svg_of_change(change)}, asked.svg)
    return text_of_change(change)


def _value(asked: Asked, value: LayoutValue) -> str:
    """The value's line, and its conversion where it is one, else its layout."""
    shown = _changed(asked, value.change) if value.change is not None else _shown(asked, value.view)
    return f"{value.line}\n{shown}"


def _program(asked: Asked, values: Sequence[LayoutValue]) -> str:
    """A line for each value, and what the short names stand for."""
    if asked.svg is not None:
        if asked.svg.suffix and len({(value.view.encoding, value.view.shape) for value in values}) != 1:
            expected = "a directory, or the --value that it is to show"
            raise OptionError("a picture shows one layout", expected=expected, found=names_of(values))
        draw(_pictures(asked, values), asked.svg)
    return "\n".join([*(value.line for value in values), "", *definitions(values)])


def _pictures(asked: Asked, values: Sequence[LayoutValue]) -> dict[str, str]:
    """Each layout under the name of the first value that has it, and each conversion under its result's."""
    drawn = set[object]()
    pictures: dict[str, str] = {}
    for value in values:
        name = value.name.lstrip("%")
        if value.change is not None:
            pictures[f"{name}-conversion"] = svg_of_change(value.change)
        look = value.view.encoding, value.view.shape, value.view.word()
        if look not in drawn and len(value.view.shape) <= 2:
            drawn.add(look)
            pictures[name] = svg(value.view, asked.hardware)
    return pictures
