"""What a program instance knows of itself, ranges, and what it says to the outside: prints, assertions, assumptions.
Part of the `tt` dialect (see the package).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute, IntegerAttr
from mltriton.ir.checks import require, require_attributes, require_type, tensor
from mltriton.ir.constants import make_constant
from mltriton.ir.definition import boolean, enum, integer, operand, optional, string, variadic
from mltriton.ir.operation import ALIKE, WHOLE, Operation, Value
from mltriton.ir.types import I1, I32, TensorType, Type, element_type

__all__ = ["Assert", "Assume", "GetNumPrograms", "GetProgramId", "MakeRange", "Print", "Python", "index_width"]


class _Coordinate(Operation, pure=True):
    """Base: reads one coordinate of the launch grid."""

    syntax = "$axis attr-dict `:` type(result)"
    old_syntax = ("attr-dict `:` type(result)",)
    axis = enum("axis")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [I32]

    def verify(self) -> None:
        require_attributes(self, "axis")
        require_type(self, "the result", self.result.type, I32)


class GetProgramId(_Coordinate, name="tt.get_program_id"):
    """`tt.get_program_id x : i32`."""


class GetNumPrograms(_Coordinate, name="tt.get_num_programs"):
    """`tt.get_num_programs x : i32`."""


class MakeRange(Operation, name="tt.make_range", pure=True):
    """`tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>`: start, start + 1, ..., end - 1."""

    syntax = "attr-dict `:` type(result)"
    start = integer()
    end = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        start, end = (cast(IntegerAttr, attributes[name]).value for name in ("start", "end"))
        return [TensorType((end - start,), I32)]

    def verify(self) -> None:
        require_attributes(self, "start", "end")
        type = tensor(self, "the result", self.result)
        require_type(self, "an element", type.element, I32)
        require(self, self.end > self.start, "the range is empty", f"more than {self.start}", self.end)
        shape = (self.end - self.start,)
        require(self, type.shape == shape, "the result has another size", type.with_shape(shape), type)

    def fold(self) -> Value | Attribute | None:
        return make_constant(self.result.type, (self.start,)) if self.end - self.start == 1 else None


def index_width(size: int) -> int:
    """The characters that a printed index along a dimension takes at least: all indices of a block are aligned."""
    return len(str(size - 1)) if size > 1 else 0


class Print(Operation, name="tt.print", reads=True, writes=True, encodings=WHOLE):
    """`tt.print "prefix" {hex} : %x`: prints from the program, one line for each element, with the program's
    coordinates: `pid (0, 0, 0) idx ( 3, 12)`, the prefix and the element, as upstream does.
    """

    syntax = "$prefix attr-dict (`:` $arguments^ `:` type($arguments))?"
    prefix = string("")
    hex = boolean()
    arguments = variadic()


class Python(Operation, name="tt.python", reads=True, writes=True):
    """`tt.python "builtins:print", "{...}" : %x`: a call of Python's `print`, or of a debugger, where the executor runs
    the kernel (`frontend/debugging.py`). `values` is JSON: what is printed, or variables by name; operands by number.
    """

    syntax = "$function `,` $values attr-dict (`:` $arguments^ `:` type($arguments))?"
    function = string("")
    values = string("")
    arguments = variadic()


class Assert(Operation, name="tt.assert", reads=True, writes=True, encodings=ALIKE):
    """`tt.assert %c, "message"`: stops the launch with the message where an element of the i1 condition is false;
    `of_access` if it says that an access stays in bounds. `at %first`: the condition's first element has that number.
    """

    syntax = "$condition (`at` $first^)? `,` $message attr-dict `:` type($condition)"
    condition = operand()
    first = optional()
    message = string("")
    of_access = boolean()

    def verify(self) -> None:
        require_type(self, "an element of the condition", element_type(self.condition.type), I1)
        if self.first is not None:
            require_type(self, "the first element's number", self.first.type, I32)


class Assume(Operation, name="llvm.intr.assume", reads=True, writes=True):
    """`llvm.intr.assume %c : i1`: the condition holds; a hint."""

    syntax = "$condition attr-dict `:` type($condition)"
    condition = operand()

    def verify(self) -> None:
        require_type(self, "the condition", self.condition.type, I1)
