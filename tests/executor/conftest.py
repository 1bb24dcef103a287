"""Small programs for the executor's tests, written as MLIR text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mltriton.executor import run
from mltriton.executor.values import decode, encode, memory_dtype
from mltriton.ir.attribute_parser import AttributeParser
from mltriton.ir.parser import parse_module
from mltriton.ir.types import Type

Run = Callable[..., None]
Apply = Callable[..., Any]


def type_named(text: str) -> Type:
    """The type that MLIR text names."""
    return AttributeParser(text, "<type>").type()


def run_text(text: str, args: Sequence[Any], grid: Sequence[int] = (1,), **keywords: Any) -> None:
    """Run the only function of the text."""
    run(parse_module(text, "program.mlir"), args, grid, **keywords)


def program(operation: str, inputs: Sequence[str], result: str, size: int) -> str:
    """A function that loads blocks %0, %1, ..., computes %r by `operation`, and stores it."""
    parameters = ", ".join(f"%p{i}: !tt.ptr<{type}>" for i, type in enumerate(inputs))
    lines = [f"%i = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"]
    for i, type in enumerate([*inputs, result]):
        pointers = f"tensor<{size}x!tt.ptr<{type}>>"
        lines.append(f"%s{i} = tt.splat %p{i} : !tt.ptr<{type}> -> {pointers}")
        lines.append(f"%a{i} = tt.addptr %s{i}, %i : {pointers}, tensor<{size}xi32>")
        if i < len(inputs):
            lines.append(f"%x{i} = tt.load %a{i} : {pointers}")
    lines.append(operation)
    lines.append(f"tt.store %a{len(inputs)}, %r : tensor<{size}x!tt.ptr<{result}>>")
    body = "\n    ".join(lines)
    return f"tt.func @f({parameters}, %p{len(inputs)}: !tt.ptr<{result}>) {{\n    {body}\n    tt.return\n}}"


def apply_text(operation: str, inputs: Sequence[tuple[str, Any]], result: str) -> np.ndarray[Any, Any]:
    """The values that `%r = operation` gives on blocks %x0, %x1, ... of numbers; `N` in the text is their length."""
    types = [type_named(type) for type, _ in inputs]
    size = len(inputs[0][1])
    arrays = [encode(np.asarray(values), type) for type, (_, values) in zip(types, inputs, strict=True)]
    out_type = type_named(result)
    out = np.zeros(size, memory_dtype(out_type))
    text = program(operation.replace("<N", f"<{size}"), [type for type, _ in inputs], result, size)
    run_text(text, [*arrays, out])
    return decode(out, out_type)


@pytest.fixture
def execute() -> Run:
    """Run the only function of a text."""
    return run_text


@pytest.fixture
def apply() -> Apply:
    """Compute one operation on blocks."""
    return apply_text
