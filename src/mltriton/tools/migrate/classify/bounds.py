"""What is known of a kernel's integers: not negative, the same at two places, constant, inside a shape.

Level: source text. Every answer "yes" is a proof from the text of the function; everything else is "no".
"""

from __future__ import annotations

from functools import cached_property

from mltriton.tools.migrate.classify.group import Access, Construct
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import Definition, Env, Flow, parameters_of
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, names_in, walk

# Functions without effects whose results depend on their arguments alone.
PURE = frozenset({"program_id", "num_programs", "cdiv", "minimum", "maximum", "cast", "min", "max", "multiple_of"})
_DEPTH = 8


class Bounds:
    """Questions about one function."""

    def __init__(self, source: Source, pointers: Pointers) -> None:
        self.source = source
        self.flow: Flow = pointers.flow
        self.parameters = {each.name.value: each for each in parameters_of(pointers.function)}
        self.sizes = self._sizes(pointers)
        self._asked: set[int] = set()
        self._indices: set[str] | None = None  # while what is loaded from arrays of indices counts as natural

    def _sizes(self, pointers: Pointers) -> set[str]:
        """Constexpr parameters that are extents of blocks or tensors: they are not negative."""
        found: set[str] = set()
        for group in pointers.groups:
            for construct in group.constructs:
                for part in (*construct.shape, *construct.block_shape):
                    found |= names_in(part)
        for node in walk(pointers.function):
            if self.source.callee(node) in ("arange", "cdiv", "zeros", "full"):
                found |= names_in(node)
        return {name for name in found if self.is_constexpr(name)}

    def is_constexpr(self, name: str) -> bool:
        """Whether a name is a constexpr parameter."""
        parameter = self.parameters.get(name)
        return bool(
            parameter is not None
            and parameter.annotation is not None
            and code_of(parameter.annotation.annotation).strip("\"'").endswith("constexpr")
        )

    # Constants.

    def is_constant(self, node: cst.BaseExpression, env: Env, depth: int = 0) -> bool:
        """Whether an expression is known when the kernel is compiled."""
        if depth > _DEPTH:
            return False
        for each in walk(node):
            if isinstance(each, cst.Call) and self.source.callee(each) not in ("cdiv", "constexpr"):
                return False
        return all(self._is_constant_name(name, env, depth) for name in names_in(node))

    def _is_constant_name(self, name: str, env: Env, depth: int) -> bool:
        reach = env.get(name, frozenset())
        definitions = [self.flow.definitions[index] for index, _ in reach]
        if not definitions or (len(definitions) == 1 and isinstance(definitions[0].statement, cst.Param)):
            return not definitions or self.is_constexpr(name)
        return all(
            each.value is not None
            and each.statement in self.flow.before
            and self.is_constant(each.value, self.flow.before[each.statement], depth + 1)
            for each in definitions
        )

    # The same value at two places.

    def is_stable(self, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether an expression, moved from statement `first` to `second`, has the value that it had there."""
        again = self.flow.dominates(first, second) or not self.flow.in_loop(first)
        return again and self.reads_the_same(node, first, second)

    def reads_the_same(self, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether the same assignments reach an expression at both statements: in one iteration it has one value."""
        one, other = self.flow.before[first], self.flow.before[second]
        return self.is_pure(node) and all(one.get(name) == other.get(name) for name in names_in(node))

    def is_pure(self, node: cst.CSTNode) -> bool:
        """Whether an expression depends on the values of its names alone and does nothing else."""
        for each in walk(node):
            if isinstance(each, cst.Call) and not self.is_pure_call(each):
                return False
            if isinstance(each, cst.NamedExpr | cst.Lambda | cst.Await):
                return False
        return True

    def is_pure_call(self, call: cst.Call) -> bool:
        """Whether a call, apart from its arguments, has no effect and depends on nothing else."""
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "to"
        plain = isinstance(call.func, cst.Name) and call.func.value in ("min", "max", "int")
        return method or plain or self.source.callee(call) in PURE

    # Not negative.

    def is_natural(self, node: cst.BaseExpression, env: Env, depth: int = 0) -> bool:
        """Whether an integer is zero or more, as long as its arithmetic does not wrap."""
        if depth > _DEPTH:
            return False
        value = constant_int(node)
        if value is not None:
            return value >= 0
        if isinstance(node, cst.Name):
            return self._is_natural_name(node.value, env, depth)
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.Add | cst.Multiply | cst.FloorDivide):
                return self.is_natural(node.left, env, depth) and self.is_natural(node.right, env, depth)
            if isinstance(node.operator, cst.Modulo):
                return self.is_natural(node.left, env, depth) and self.is_natural(node.right, env, depth)
            return isinstance(node.operator, cst.Subtract) and self._counts_down(node, env)
        if isinstance(node, cst.IfExp):
            return self.is_natural(node.body, env, depth) and self.is_natural(node.orelse, env, depth)
        return isinstance(node, cst.Call) and self._is_natural_call(node, env, depth)

    def is_index(self, node: cst.BaseExpression, env: Env, arrays: set[str]) -> bool:
        """The same, where what is loaded in pairs from an array of indices is taken for one; adds these to `arrays`."""
        self._indices = found = set[str]()
        natural = self.is_natural(node, env)
        self._indices = None
        if natural:
            arrays |= found
        return natural

    def _counts_down(self, node: cst.BinaryOperation, env: Env) -> bool:
        """Whether an expression is `n - 1 - i` with `i` in `range(n)`."""
        first, one = node.left, node.right
        if not isinstance(first, cst.BinaryOperation) or not isinstance(first.operator, cst.Subtract):
            return False
        parts = [first.right, one]
        count = next((each for each in parts if isinstance(each, cst.Name)), None)
        if count is None or 1 not in map(constant_int, parts):
            return False
        reach = [self.flow.definitions[index] for index, _ in env.get(count.value, ())]
        loop = reach[0].statement if len(reach) == 1 else None
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            return False
        bounds = [arg.value for arg in loop.iter.args]
        same = len(bounds) == 1 and code_of(bounds[0]) == code_of(first.left)
        unchanged = all(env.get(name) == self.flow.before[loop].get(name) for name in names_in(first.left))
        return same and unchanged and self._is_natural_range(loop, 0)

    @cached_property
    def _read_in_pairs(self) -> dict[str, str]:
        """Addresses that are read without a mask together with the next one, each with the array it lies in."""
        read: set[str] = set()
        for node in walk(self.flow.function):
            if isinstance(node, cst.Call) and self.source.callee(node) == "load" and len(node.args) == 1:
                read.add(code_of(node.args[0].value).replace(" ", ""))
        pairs = [text for text in read if f"{text}+1" in read]
        return {each: text.partition("+")[0] for text in pairs for each in (text, f"{text}+1")}

    def _is_natural_call(self, call: cst.Call, env: Env, depth: int) -> bool:
        callee = self.source.callee(call)
        if isinstance(call.func, cst.Name) and call.func.value in ("min", "max"):
            callee = call.func.value
        if callee in ("program_id", "num_programs"):
            return True
        if callee == "load" and self._indices is not None and len(call.args) == 1:
            array = self._read_in_pairs.get(code_of(call.args[0].value).replace(" ", ""))
            self._indices |= {array} if array is not None else set()
            return array is not None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "to":
            return self.is_natural(call.func.value, env, depth)
        values = [self.is_natural(arg.value, env, depth) for arg in call.args]
        if callee in ("max", "maximum"):
            return any(values)
        return callee in ("min", "minimum", "cdiv", "cast") and all(values[: 1 if callee == "cast" else None])

    def _is_natural_name(self, name: str, env: Env, depth: int) -> bool:
        reach = env.get(name, frozenset())
        return bool(reach) and all(self._is_natural_definition(self.flow.definitions[i], depth) for i, _ in reach)

    def _is_natural_definition(self, definition: Definition, depth: int) -> bool:
        if isinstance(definition.statement, cst.Param):
            return definition.name in self.sizes
        if definition.index in self._asked:
            return True  # by induction: what is asked about is what it was before, plus something natural
        at = definition.statement
        self._asked.add(definition.index)
        try:
            if isinstance(at, cst.For):
                return self._is_natural_range(at, depth + 1)
            if definition.augmented is not None:
                own, env = definition.augmented, self.flow.before[at]
                adds = isinstance(own.operator, cst.AddAssign | cst.MultiplyAssign | cst.FloorDivideAssign)
                return (
                    adds
                    and self.is_natural(own.value, env, depth + 1)
                    and self._is_natural_name(definition.name, env, depth + 1)
                )
            if definition.value is None or at not in self.flow.before:
                return False
            return self.is_natural(definition.value, self.flow.before[at], depth + 1)
        finally:
            self._asked.discard(definition.index)

    def _is_natural_range(self, loop: cst.For, depth: int) -> bool:
        call = loop.iter
        if not (isinstance(call, cst.Call) and isinstance(loop.target, cst.Name)):
            return False
        plain = isinstance(call.func, cst.Name) and call.func.value == "range"
        if not plain and self.source.callee(call) not in ("range", "static_range"):
            return False
        bounds = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        env = self.flow.before[loop]
        if len(bounds) == 1:
            return True
        if len(bounds) == 3:
            step = constant_int(bounds[2])
            if step is not None and step < 0:
                stop = constant_int(bounds[1])
                return (stop is not None and stop >= -1) or self.is_natural(bounds[1], env, depth)
            if step is None and not self.is_natural(bounds[2], env, depth):
                return False
        return len(bounds) in (2, 3) and self.is_natural(bounds[0], env, depth)

    # Inside the shape.

    def is_inside(self, construct: Construct, dim: int) -> bool:
        """Whether a block that does not move in `dim` certainly lies inside the shape."""
        offset, size = constant_int(construct.offsets[dim]), construct.block_shape[dim]
        extent = construct.shape[dim]
        if offset == 0 and code_of(size) == code_of(extent):
            env = self.flow.before[construct.statement]
            return self.is_constant(size, env)
        block, whole = constant_int(size), constant_int(extent)
        return None not in (offset, block, whole) and 0 <= (offset or 0) <= (whole or 0) - (block or 0)


def unchecked(construct: Construct, access: Access) -> list[int]:
    """The dimensions that an access does not check."""
    return [dim for dim in range(construct.rank) if dim not in access.checked]


def is_zero(delta: cst.BaseExpression) -> bool:
    """Whether a step of advance is the literal 0."""
    return constant_int(delta) == 0
