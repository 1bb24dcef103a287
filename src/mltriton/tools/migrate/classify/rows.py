"""Whether a row of a descriptor's block certainly has the 16 bytes that every descriptor needs.

Level: source text. 16 elements suffice in every type. A number that is written out is known; a constant is large enough
where every launch says so, or where `tl.dot` asks for it: no hardware multiplies fewer than 16 bytes of a row.
"""

from __future__ import annotations

from functools import cached_property
from itertools import zip_longest

from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.sizes import Sizes
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, elements, walk

ENOUGH = 16  # elements: each has a byte or more
_DEPTH = 12
_KEEPING = (
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs", "sigmoid", "where", "cast", "maximum", "minimum"),
    *("multiple_of", "max_contiguous", "max_constancy"),
)

Shape = tuple[str, ...]


class Rows:
    """Questions about the sizes of one function's blocks."""

    def __init__(self, source: Source, pointers: Pointers, sizes: Sizes) -> None:
        self.source = source
        self.pointers = pointers
        self.sizes = sizes
        self._multiplied = set(self._dot_sizes())

    def is_wide(self, size: cst.BaseExpression) -> bool:
        """Whether a row of so many elements certainly has 16 bytes."""
        value = constant_int(size)
        if value is not None:
            return value >= ENOUGH
        if _text(size) in self._multiplied:
            return True
        least = self.sizes.least(self.source.path, self.pointers.function.name.value, code_of(size))
        return least is not None and least >= ENOUGH

    @cached_property
    def is_launched(self) -> bool:
        """Whether the given files show what the function is launched with."""
        return self.sizes.is_launched(self.pointers.function.name.value)

    def _dot_sizes(self) -> list[str]:
        """The sizes along which dots sum, and those of the rows of their right operands and results."""
        found: list[str] = []
        for statement in self.pointers.flow.before:
            if isinstance(statement, cst.BaseCompoundStatement):
                continue
            for node in walk(statement):
                if isinstance(node, cst.Call) and self.source.callee(node) == "dot" and len(node.args) >= 2:
                    left, right = (self._shape(arg.value, statement, 0) for arg in node.args[:2])
                    found += [left[-1]] if left else []
                    found += right[-2:]
        return found

    def _shape(self, node: cst.BaseExpression, at: cst.CSTNode, depth: int) -> Shape:
        """The sizes of a block that a statement computes; empty where the text does not show them."""
        if depth > _DEPTH:
            return ()
        if isinstance(node, cst.Name):
            shapes = {
                self._shape(each.value, each.statement, depth + 1)
                for each in self.pointers.flow.reaching(node.value, at)
                if each.value is not None and each.statement in self.pointers.flow.before
            }
            return shapes.pop() if len(shapes) == 1 else ()
        if isinstance(node, cst.BinaryOperation):
            return _broadcast(self._shape(node.left, at, depth + 1), self._shape(node.right, at, depth + 1))
        if isinstance(node, cst.Subscript):
            inner, place = self._shape(node.value, at, depth + 1), _SPREAD.get(_slices(node))
            return (*inner, "1")[::place] if len(inner) == 1 and place else ()
        if isinstance(node, cst.Attribute) and node.attr.value == "T":
            return self._shape(node.value, at, depth + 1)[::-1]
        return self._called(node, at, depth) if isinstance(node, cst.Call) else ()

    def _called(self, call: cst.Call, at: cst.CSTNode, depth: int) -> Shape:
        callee = self.source.callee(call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "to":
            return self._shape(call.func.value, at, depth + 1)
        name = callee or (call.func.value if isinstance(call.func, cst.Name) else "")
        values = [arg.value for arg in call.args]
        if callee == "load" and values:
            return self._loaded(call, at, depth)
        if callee == "arange" and len(values) == 2 and constant_int(values[0]) == 0:
            return (_text(values[1]),)
        if callee in ("zeros", "full") and values:
            return tuple(map(_text, elements(values[0]) or ()))
        if callee == "trans" and len(values) == 1:
            return self._shape(values[0], at, depth + 1)[::-1]
        if callee == "dot" and len(values) >= 2:
            left, right = (self._shape(each, at, depth + 1) for each in values[:2])
            return (*left[:-1], *right[-1:]) if left and right else ()
        shapes = (self._shape(each, at, depth + 1) for each in values) if name in _KEEPING else ()
        return next((shape for shape in shapes if shape), ())

    def _loaded(self, call: cst.Call, at: cst.CSTNode, depth: int) -> Shape:
        for group in self.pointers.groups:
            if any(access.call is call for access in group.accesses):
                shapes = {tuple(map(_text, construct.block_shape)) for construct in group.constructs}
                return shapes.pop() if len(shapes) == 1 else ()
        return self._shape((self.source.arguments(call) or {})["pointer"].value, at, depth + 1)


_SPREAD = {":,None": 1, "None,:": -1}  # where `[:, None]` puts the dimension of one element: behind or in front


def _slices(node: cst.Subscript) -> str:
    return ",".join(code_of(each.slice).replace(" ", "") for each in node.slice)


def _broadcast(left: Shape, right: Shape) -> Shape:
    columns = zip_longest(reversed(left), reversed(right), fillvalue="1")
    return tuple(one if other == "1" else other for one, other in columns)[::-1]


def _text(node: cst.BaseExpression) -> str:
    return code_of(node).replace(" ", "")
