"""`tt.func`, calls and returns. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from typing import cast

from mltriton.errors import SignatureError
from mltriton.ir.attributes import ArrayAttr, DictAttr, SymbolRefAttr
from mltriton.ir.checks import require, require_attributes, require_types, types_of
from mltriton.ir.definition import attribute, region, string, type_attribute, variadic
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import FunctionType

__all__ = ["Call", "Func", "Return", "kernel_of"]


class Func(Operation, name="tt.func", isolated=True):
    """`tt.func public @name(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {...}`. `arg_attrs` is an array of
    dictionaries.
    """

    syntax = "custom<func>"
    region_ends = ("tt.return",)
    sym_name = string()
    function_type: FunctionType = cast(FunctionType, type_attribute())
    sym_visibility = string("public")
    arg_attrs = attribute()
    body = region()

    def verify(self) -> None:
        require_attributes(self, "sym_name", "function_type")
        inputs = self.function_type.inputs
        if self.body.blocks:
            require_types(self, "the parameters", types_of(self.body.block.arguments), inputs)
            require_types(self, "the returned values", types_of(self._returned), self.function_type.results)
        attributes = self.attributes.get("arg_attrs")
        if isinstance(attributes, ArrayAttr):
            count = len(attributes.elements)
            require(self, count == len(inputs), "one dictionary a parameter in arg_attrs", len(inputs), count)

    @property
    def promises(self) -> list[DictAttr]:
        """What callers promise of each parameter."""
        stored = self.attributes.get("arg_attrs")
        if isinstance(stored, ArrayAttr):
            return [cast(DictAttr, each) for each in stored.elements]
        return [DictAttr(())] * len(self.function_type.inputs)

    @property
    def _returned(self) -> list[Value]:
        return self.body.block.terminator.operands


class Return(Operation, name="tt.return", terminator=True):
    """`tt.return`: ends a function."""

    syntax = "attr-dict ($values^ `:` type($values))?"
    values = variadic()


class Call(Operation, name="tt.call", reads=True, writes=True, looks_around=True):
    """`tt.call @callee(%x) : (i32) -> i32`."""

    syntax = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, results)"
    callee = attribute()
    arguments = variadic()

    def verify(self) -> None:
        callee = self.callee.name if isinstance(self.callee, SymbolRefAttr) else None
        require(self, callee is not None, "the callee is no symbol", "@name", self.callee)
        function = self._function(str(callee))
        if function is None:
            reject(self, "the callee is not defined in this module", found=f"@{callee}")
        require_types(self, "the arguments", types_of(self.arguments), function.function_type.inputs)
        require_types(self, "the results", types_of(self.results), function.function_type.results)

    def _function(self, name: str) -> Func | None:
        op: Operation = self
        while op.parent_op is not None:
            op = op.parent_op
        candidates = (inner for block in op.blocks for inner in block.ops)
        return next((inner for inner in candidates if isinstance(inner, Func) and inner.sym_name == name), None)


def kernel_of(module: Module) -> Func:
    """The one public function of a module. Raises `SignatureError` where there is none, or several."""
    public = [op for op in module.body.block.ops if isinstance(op, Func) and op.sym_visibility == "public"]
    if len(public) != 1:
        found = ", ".join(f"@{op.sym_name}" for op in public) or "none"
        raise SignatureError("a program has one public function", found=found)
    return public[0]
