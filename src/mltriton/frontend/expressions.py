"""What each kind of expression means: a table from syntax to a function that gives its value.

Level: Python syntax tree -> `tt`. Operands are evaluated left to right; on constants Python computes, on tensors the
operators of `language/tensor.py` emit operations. `and`, `or`, comparisons and the ternary do not evaluate what a
constant decides.
"""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from mltriton.errors import ConstexprError, NameNotFoundError, SyntaxNotSupportedError, TypeMismatchError, did_you_mean
from mltriton.frontend import assignment, calls, control_flow
from mltriton.frontend.environment import attribute_of_module
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.snapshot import attribute_of
from mltriton.frontend.values import CONSTANTS, describe, is_aggregate, is_runtime, is_tuple, known_truth, type_of, wrap
from mltriton.language.constants import constexpr, unwrap
from mltriton.language.tensor import METHODS, tensor
from mltriton.language.types import dtype

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame

Binary = Callable[[Any, Any], Any]


def _python(name: str) -> Binary:
    return getattr(operator, name)


def _power(x: Any, y: Any) -> Any:
    if is_runtime(x) or is_runtime(y):
        raise TypeMismatchError(
            "a tensor has no operator **",
            expected="constants",
            found=f"{describe(x)} ** {describe(y)}",
            hint="Write x * x for a square, libdevice.pow(x, y) for floats, and 1 << y for powers of two.",
        )
    return _python("pow")(x, y)


OPERATORS: Mapping[type[ast.AST], tuple[str, Binary]] = {
    ast.Add: ("+", _python("add")),
    ast.Sub: ("-", _python("sub")),
    ast.Mult: ("*", _python("mul")),
    ast.Div: ("/", _python("truediv")),
    ast.FloorDiv: ("//", _python("floordiv")),
    ast.Mod: ("%", _python("mod")),
    ast.Pow: ("**", _power),
    ast.LShift: ("<<", _python("lshift")),
    ast.RShift: (">>", _python("rshift")),
    ast.BitAnd: ("&", _python("and_")),
    ast.BitOr: ("|", _python("or_")),
    ast.BitXor: ("^", _python("xor")),
    ast.Eq: ("==", _python("eq")),
    ast.NotEq: ("!=", _python("ne")),
    ast.Lt: ("<", _python("lt")),
    ast.LtE: ("<=", _python("le")),
    ast.Gt: (">", _python("gt")),
    ast.GtE: (">=", _python("ge")),
}

_CONVERSIONS: Mapping[int, Callable[[object], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}

_UNARY: Mapping[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
}

_UNSUPPORTED: Mapping[type[ast.expr], tuple[str, str]] = {
    ast.Lambda: ("lambda", "Write a function decorated with @triton.jit."),
    ast.Dict: ("a dictionary", "Use separate variables or a tuple."),
    ast.DictComp: ("a dictionary", "Use separate variables or a tuple."),
    ast.Set: ("a set", "Use a tuple."),
    ast.SetComp: ("a set", "Use a tuple."),
    ast.Await: ("await", "A kernel is not asynchronous."),
    ast.Yield: ("yield", "A function in a kernel returns its values at once, as a tuple."),
    ast.YieldFrom: ("yield", "A function in a kernel returns its values at once, as a tuple."),
    ast.Starred: ("a starred expression", "It may stand in a call or in a tuple."),
}


def unsupported(node: ast.expr) -> SyntaxNotSupportedError:
    """The error for syntax without a meaning in a kernel."""
    what, hint = _UNSUPPORTED.get(type(node), (f"a {type(node).__name__} expression", None))
    return SyntaxNotSupportedError(
        f"a kernel cannot contain {what}", hint=hint, upstream=f"unsupported AST node type: {type(node).__name__}"
    )


def constant(frame: Frame, node: ast.Constant) -> Any:
    """A literal."""
    if isinstance(node.value, bytes | complex):
        raise frame.error(SyntaxNotSupportedError, node, f"a kernel has no {type(node.value).__name__} values")
    return constexpr(node.value)


def name(frame: Frame, node: ast.Name) -> Any:
    """A variable, or what the kernel sees outside itself."""
    if node.id in frame.scope:
        return frame.scope[node.id]
    if why := frame.scope.lost.get(node.id):
        why, _, words = why.partition("\n")
        hint = f"Give {node.id} {'one type in both' if words else 'a value in front of it'}."
        raise frame.error(NameNotFoundError, node, f"{node.id} {why}", upstream=words or None, hint=hint)
    return frame.environment.value(node.id)


def sequence(frame: Frame, node: ast.Tuple | ast.List) -> Any:
    """A tuple; a list is one too."""
    return tuple(frame.evaluate_all(node.elts))


def binary(frame: Frame, node: ast.BinOp) -> Any:
    """`a + b` and the like."""
    return apply(frame, node, node.op, frame.evaluate(node.left), frame.evaluate(node.right))


def apply(frame: Frame, node: ast.expr | ast.stmt, kind: ast.AST, left: Any, right: Any) -> Any:
    """The value of a binary operator or comparison."""
    if type(kind) not in OPERATORS:
        hint = "Use tl.dot(a, b)." if isinstance(kind, ast.MatMult) else None
        raise frame.error(SyntaxNotSupportedError, node, f"a kernel has no operator {type(kind).__name__}", hint=hint)
    symbol, function = OPERATORS[type(kind)]
    if is_tuple(left) or is_tuple(right):  # A constant would take over: `(a, b) * 2` is Python's.
        left, right = _plain_scalar(left), _plain_scalar(right)
    frame.mark(node)
    try:
        return wrap(function(left, right))
    except TypeError:
        sides = f"{describe(wrap(left))} and {describe(wrap(right))}"
        raise frame.error(
            TypeMismatchError, node, f"the operator {symbol} does not take these operands", found=sides
        ) from None


def _plain_scalar(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def unary(frame: Frame, node: ast.UnaryOp) -> Any:
    """`-a`, `+a`, `~a`, `not a`."""
    value = frame.evaluate(node.operand)
    frame.mark(node)
    if isinstance(node.op, ast.Not):
        known = known_truth(value)
        return _logical(frame, node, "not", value) if known is None else constexpr(not known)
    symbol, function = _UNARY[type(node.op)]
    try:
        return wrap(function(value))
    except TypeError:
        message = f"the operator {symbol} does not take this operand"
        raise frame.error(TypeMismatchError, node, message, found=describe(value)) from None


def boolean(frame: Frame, node: ast.BoolOp) -> Any:
    """`a and b`, `a or b`: a constant may decide before the rest is looked at; on tensors element by element."""
    is_and = isinstance(node.op, ast.And)
    value = frame.evaluate(node.values[0])
    for other in node.values[1:]:
        if (known := known_truth(value)) is not None:
            if known != is_and:
                return value
            value = frame.evaluate(other)
        else:
            right = frame.evaluate(other)
            frame.mark(node)
            value = _logical(frame, node, "and" if is_and else "or", value, right)
    return value


def _logical(frame: Frame, node: ast.expr, word: str, *values: Any) -> Any:
    """`not a`, `a and b`, `a or b` of tensors."""
    wrong = next(
        (value for value in values if is_tuple(value) or not isinstance(wrap(value), tensor | constexpr)), None
    )
    if wrong is not None:
        raise frame.error(TypeMismatchError, node, f"`{word}` does not take this operand", found=describe(wrong))
    return getattr(values[0], f"logical_{word}")(*values[1:])


def comparison(frame: Frame, node: ast.Compare) -> Any:
    """`a < b`, and `a < b < c`, which is `a < b and b < c` with b evaluated once."""
    left = frame.evaluate(node.left)
    result: Any = None
    for kind, right_node in zip(node.ops, node.comparators, strict=True):
        right = frame.evaluate(right_node)
        holds = _compare(frame, node, kind, left, right)
        if result is None:
            result = holds
        else:
            frame.mark(node)
            result = result.logical_and(holds)
        if isinstance(result, constexpr) and not result.value:
            return result
        left = right
    return result


def _compare(frame: Frame, node: ast.Compare, kind: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(kind, ast.Is | ast.IsNot):
        return constexpr((unwrap(left) is unwrap(right)) == isinstance(kind, ast.Is))
    if isinstance(kind, ast.In | ast.NotIn):
        if is_runtime(left) or is_runtime(right):
            raise frame.error(
                ConstexprError, node, "`in` needs values known when compiling", found=describe((left, right))
            )
        try:
            return constexpr((unwrap(left) in unwrap(right)) == isinstance(kind, ast.In))
        except TypeError:
            raise frame.error(
                TypeMismatchError, node, "`in` needs a tuple or a string", found=describe(right)
            ) from None
    return apply(frame, node, kind, left, right)


def attribute(frame: Frame, node: ast.Attribute) -> Any:
    """`x.shape`, `tl.load`, `x.dtype.element_ty`: of a module, a tensor, or a Python object."""
    owner = frame.evaluate(node.value)
    frame.mark(node)
    if isinstance(owner, ModuleType):
        return attribute_of_module(owner, node.attr)
    if isinstance(owner, constexpr):
        if node.attr == "value":
            return owner
        owner = owner.value
    try:
        return wrap(attribute_of(owner, node.attr) if isinstance(owner, type) else getattr(owner, node.attr))
    except AttributeError:
        if node.attr == "value" and isinstance(owner, dtype):  # A dtype handed to a function, which upstream wraps.
            return owner
        if node.attr == "type" and isinstance(owner, CONSTANTS):
            return type_of(owner)
        hint = _tensors_only(node) if _is_number(owner) else did_you_mean(node.attr, known_attributes(owner))
        if isinstance(owner, tuple) and hasattr(list, node.attr):
            hint = "lists are tuples in a kernel: make a new one, `items = (*items, item)`"
        raise frame.error(
            NameNotFoundError, node, f"{describe(wrap(owner))} has no attribute {node.attr}", hint=hint
        ) from None


def _is_number(owner: Any) -> bool:
    return isinstance(owner, int | float) and not isinstance(owner, enum.Enum)


def _tensors_only(node: ast.Attribute) -> str | None:
    """What to write in place of a tensor's attribute where the value is a number, as arguments that are 1 are."""
    if node.attr not in METHODS and not hasattr(tensor, node.attr):
        return None
    instead = "tl.cast(x, dtype) takes numbers, too. " if node.attr == "to" else ""
    names = f" (do_not_specialize=[{node.value.id!r}])" if isinstance(node.value, ast.Name) else ""
    return f"{instead}An argument that is 1 is compiled in as a number, unless the kernel is told not to{names}."


def known_attributes(owner: Any) -> list[str]:
    """What may be read from an object."""
    found = [item for item in dir(owner) if not item.startswith("_")]
    if is_runtime(owner):
        found.extend(METHODS)
    return found


def subscript(frame: Frame, node: ast.Subscript) -> Any:
    """`x[:, None]` of a tensor, `t[0]` of a tuple."""
    owner, index = frame.evaluate(node.value), frame.evaluate(node.slice)
    frame.mark(node)
    method = getattr(cast("type[Any]", type(owner)), "__getitem__", None) if is_aggregate(owner) else None
    if isinstance(method, LanguageFunction):
        return calls.inline(frame.unit, method, [owner, index], {}, frame.location(node))
    if is_tuple(owner) and is_runtime(index):
        raise frame.error(
            ConstexprError, node, "the index of a tuple must be known when compiling", found=describe(index)
        )
    try:
        return wrap(owner[unwrap(index)])
    except IndexError:
        size = len(owner)
        hint = None if size else "A pointer and a scalar have no sizes: pass an array's as arguments."
        raise frame.error(
            TypeMismatchError, node, f"index {unwrap(index)} of a tuple with {size} elements", hint=hint
        ) from None
    except (TypeError, KeyError):
        raise frame.error(
            TypeMismatchError, node, f"{describe(owner)} cannot be indexed with {describe(index)}"
        ) from None


def slice_(frame: Frame, node: ast.Slice) -> Any:
    """`a:b:c` inside an index."""
    parts = [None if part is None else unwrap(frame.evaluate(part)) for part in (node.lower, node.upper, node.step)]
    return slice(*parts)


def formatted(frame: Frame, node: ast.JoinedStr) -> Any:
    """An f-string of constants."""
    return constexpr("".join(_format(frame, part) for part in node.values))


def _format(frame: Frame, node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return str(unwrap(frame.evaluate(node)))
    value = frame.evaluate(node.value)
    if is_runtime(value):
        raise frame.error(
            ConstexprError,
            node.value,
            "an f-string in a kernel can show only what is known when compiling",
            found=describe(value),
            hint="tl.device_print(prefix, x) prints values when the kernel runs.",
        )
    plain = unwrap(value)
    convert = _CONVERSIONS.get(node.conversion)
    specification = unwrap(frame.evaluate(node.format_spec)) if node.format_spec else ""
    return format(plain if convert is None else convert(plain), specification)


def walrus(frame: Frame, node: ast.NamedExpr) -> Any:
    """`(x := value)`."""
    assignment.bind(frame, node.target, frame.evaluate(node.value))
    return frame.scope[node.target.id]


def comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Any:
    """A tuple built when compiling; its variables are its own."""
    outer = frame.scope
    frame.scope = outer.copy()
    try:
        return tuple(_comprehend(frame, node.elt, node.generators))
    finally:
        frame.scope = outer


def _comprehend(frame: Frame, element: ast.expr, generators: list[ast.comprehension]) -> list[Any]:
    if not generators:
        return [frame.evaluate(element)]
    first, *rest = generators
    values: list[Any] = []
    for item in control_flow.static_items(frame, first.iter):
        assignment.bind_constant(frame, first.target, item)
        if all(control_flow.static_truth(frame, condition) for condition in first.ifs):
            values.extend(_comprehend(frame, element, rest))
    return values


EXPRESSIONS: Mapping[type[ast.expr], Callable[[Frame, Any], Any]] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Tuple: sequence,
    ast.List: sequence,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.BoolOp: boolean,
    ast.Compare: comparison,
    ast.IfExp: control_flow.ternary,
    ast.Call: calls.call,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Slice: slice_,
    ast.JoinedStr: formatted,
    ast.NamedExpr: walrus,
    ast.ListComp: comprehension,
    ast.GeneratorExp: comprehension,
}
