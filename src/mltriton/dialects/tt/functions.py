"""`tt.func`, calls and returns. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from typing import cast

from mltriton.ir.definition import attribute, region, string, type_attribute, variadic
from mltriton.ir.operation import Operation
from mltriton.ir.types import FunctionType


class Func(Operation):
    """`tt.func public @name(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {...}`. `arg_attrs` is an array of
    dictionaries.
    """

    name = "tt.func"
    syntax = "custom<func>"
    region_ends = ("tt.return",)
    isolated = True
    sym_name = string()
    function_type: FunctionType = cast(FunctionType, type_attribute())
    sym_visibility = string("public")
    arg_attrs = attribute()
    body = region()


class Return(Operation):
    """`tt.return`: ends a function."""

    name = "tt.return"
    syntax = "attr-dict ($values^ `:` type($values))?"
    terminator = True
    values = variadic()


class Call(Operation):
    """`tt.call @callee(%x) : (i32) -> i32`."""

    name = "tt.call"
    syntax = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, results)"
    reads = True
    writes = True
    callee = attribute()
    arguments = variadic()
