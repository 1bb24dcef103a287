"""Python's own functions that a kernel calls in the executor: `print`, and debuggers.

Level: tt. A debugger stops in a frame that looks like the kernel's: its file, its line, its variables under their
names, blocks as whole numpy arrays. Where it goes on is the next line of the program that Python runs, which is the
executor; `continue` leads to the next stop.
"""

from __future__ import annotations

import ast
import json
import linecache
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import SourceLocation
from mltriton.executor.dialects.arith import unsigned
from mltriton.executor.faults import location_of
from mltriton.executor.values import Array

if TYPE_CHECKING:
    from mltriton.executor.code import Handler
    from mltriton.executor.machine import Warp


def call_python(op: tt.Python) -> Handler:
    """Print, or stop in a debugger."""
    module, _, name = op.function.partition(":")
    said = json.loads(op.values)
    location = location_of(op.loc) or SourceLocation("<kernel>", 1, 1)

    def call(warp: Warp, *operands: Array) -> None:
        values = _value(said, operands)
        with np.printoptions(threshold=sys.maxsize):
            if name == "print":
                stream = warp.options.output or sys.stdout
                print(*values["values"], sep=values["sep"], end=values["end"], file=stream)
            else:
                _stop(getattr(import_module(module), name), location, values["variables"], values["name"])

    return call


_AS: Mapping[str, Callable[[Any], Any]] = {
    "same": lambda values: values,
    "bool": lambda values: values.astype(bool),
    "unsigned": unsigned,
}


def _value(said: Any, operands: tuple[Array, ...]) -> Any:
    if isinstance(said, list):
        return tuple(_value(item, operands) for item in cast("list[Any]", said))
    if "items" in said:
        return {name: _value(item, operands) for name, item in said["items"].items()}
    if "operand" not in said:
        return said.get("constant", said.get("shown"))
    value: Any = operands[said["operand"]]
    is_number = isinstance(value, np.ndarray | np.generic)
    return _AS[said["as"]](np.asarray(cast("Array", value)))[()] if is_number else value


def _stop(debugger: Any, location: SourceLocation, variables: dict[str, Any], name: str) -> None:
    """Call a debugger from a frame at a location; it shows the next line, as it does in Python."""
    tree = ast.parse("__stop__()\npass")
    lines = (location.line, _next_line(location))
    for statement, line in zip(tree.body, lines, strict=True):
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt | ast.expr):
                node.lineno = node.end_lineno = line
    code = compile(tree, location.file, "exec").replace(co_name=name)
    names = {"__name__": "__kernel__", "__file__": location.file, "__stop__": debugger, "np": np}
    exec(code, names, variables)


def _next_line(location: SourceLocation) -> int:
    """The line of the next statement's text, or the same where the file ends."""
    for line in range(location.line + 1, location.line + 50):
        text = linecache.getline(location.file, line).strip()
        if text and not text.startswith("#"):
            return line
    return location.line
