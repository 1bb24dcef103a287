"""The values of a program with their layouts, by name and source line, and the conversions between them.

Level: ttg and warp. Takes the text of a module or a kernel's compiled level; gives a line for each value that has a
layout: where it is computed, what it is called in the text, its type, its layout by a short name; for a conversion also
what it does and costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mltriton.dialects import ttg
from mltriton.errors import OptionError, SourceLocation
from mltriton.ir.attribute_text import TextTables
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import Names
from mltriton.ir.types import MemDescType, PointerType, TensorType
from mltriton.layouts.base import Encoding, LayoutAttr
from mltriton.runtime.compile_thread import unlimited
from mltriton.targets.registry import spec_of
from mltriton.tools.layout_changes import Change
from mltriton.tools.layout_view import View

NAMED = 16  # in a message


@dataclass(frozen=True)
class LayoutValue:
    """A value of a program: its name in the text, where it comes from (`location` is the user's line, `operation` what
    computes it), its view; `change` of the result of a conversion.
    """

    name: str
    location: SourceLocation | None
    operation: str
    view: View
    alias: str
    change: Change | None = None

    @property
    def line(self) -> str:
        """`file.py:12  %x  tt.load  64x32xf16  #block`."""
        where = f"{self.location.file.rpartition('/')[2]}:{self.location.line}" if self.location is not None else "-"
        block = f"{'x'.join(map(str, self.view.shape))}x{self.view.element}"
        how = f"  ({self.change.summary()})" if self.change is not None else ""
        return f"{where}  {self.name}  {self.operation}  {block}  {self.alias}{how}"


def values_of_kernel(kernel: str, signature: str, *, target: str, num_warps: int, level: str) -> list[LayoutValue]:
    """The values of a kernel, `FILE.py:KERNEL`, compiled for a target, at level ttg or warp. Raises `OptionError`."""
    from mltriton.tools.aot import compile_kernel  # Needed seldom.

    if level not in ("ttg", "warp"):
        raise OptionError(f"tensors have no encodings at level {level!r}", expected="ttg or warp", found=level)
    compiled = compile_kernel(kernel, signature, target=target, num_warps=num_warps)
    return values_of(compiled.job.module(level), f"{kernel} ({level})")


def values_in(text: str, filename: str = "<text>") -> list[LayoutValue]:
    """The same of a module's text; lines are those that it states, or its own. Raises `OptionError`."""
    return values_of(unlimited(partial(parse_module, text, filename)), filename)


def values_of(module: Module, filename: str) -> list[LayoutValue]:
    """Every value of a module that has a layout, in the order of the program. Raises `OptionError`."""
    found = list(_values(module))
    if not found:
        raise OptionError(f"no value in {filename} has a layout", hint="Layouts exist at level ttg and warp.")
    return found


def definitions(values: Sequence[LayoutValue]) -> list[str]:
    """What the short names stand for: `#dpas = #ttig.dpas<{...}>`."""
    tables = TextTables(aliases=True)
    for value in values:
        tables.attribute(value.view.encoding)
    return [line.rstrip() for line in tables.definitions]


def _values(module: Module) -> Iterator[LayoutValue]:
    spec, tables = spec_of(module), TextTables(aliases=True)
    names = Names()
    for op in module.walk():
        arguments = [argument for block in op.blocks for argument in block.arguments]
        for value in (*op.results, *arguments):
            view = _view(value)
            if view is None:
                continue
            change = Change.between(_of(op.source), view, spec) if isinstance(op, ttg.ConvertLayout) else None
            what = op.name if value in op.results else f"{op.name} argument"
            yield LayoutValue(names[value], op.loc.in_source, what, view, tables.attribute(view.encoding), change)


def _of(value: Value) -> View:
    view = _view(value)
    assert view is not None
    return view


def _view(value: Value) -> View | None:
    type = value.type.pointee if isinstance(value.type, PointerType) else value.type
    if not isinstance(type, TensorType | MemDescType) or not isinstance(type.encoding, LayoutAttr):
        return None
    return View(type.encoding, type.shape, type.element)


def chosen(values: Sequence[LayoutValue], name: str) -> LayoutValue:
    """The value of that name (`%x` or `x`). Raises `OptionError`."""
    wanted = name if name.startswith("%") else f"%{name}"
    for value in values:
        if value.name == wanted:
            return value
    raise OptionError(f"no value with a layout is called {wanted}", expected=names_of(values), found=wanted)


def names_of(values: Sequence[LayoutValue]) -> str:
    """The names that the program itself gives, where there are such."""
    names = list(dict.fromkeys(value.name for value in values))
    given = [name for name in names if not name[1:].isdigit()] or names
    return ", ".join(given[:NAMED]) + (", ..." if len(given) > NAMED else "")


def conversions_of(module: Module) -> list[tuple[Operation, Change]]:
    """The conversions of a program, and what each takes."""
    spec = spec_of(module)
    found = [op for op in module.walk() if isinstance(op, ttg.ConvertLayout)]
    known = [(op, _of(op.source), _of(op.result)) for op in found if _is_encoded(op)]
    return [(op, Change.between(source, target, spec)) for op, source, target in known]


def _is_encoded(op: ttg.ConvertLayout) -> bool:
    types = (op.source.type, op.result.type)
    return all(isinstance(type, TensorType) and isinstance(type.encoding, Encoding) for type in types)
