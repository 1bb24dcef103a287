"""Assignments: how names get values.

Level: Python syntax tree -> `tt`. Guarantees upstream's rule: a number that is assigned becomes a scalar tensor (int32,
int64, fp32, ...), and only an annotation `tl.constexpr` keeps a constant. IR values get the name of their first
variable.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mltriton.errors import ConstexprError, SourceLocation, SyntaxNotSupportedError, TypeMismatchError
from mltriton.frontend.values import describe, is_number, is_runtime, is_tuple, rebuilt, wrap
from mltriton.language.semantic import to_tensor
from mltriton.language.tensor import tensor

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame


def bind(frame: Frame, target: ast.expr, value: Any) -> None:
    """Assign to a target.

    Numbers become tensors, as in upstream: only an annotation `tl.constexpr` keeps a constant.
    """
    frame.mark(target)
    _assign(frame, target, value, stored)


def bind_constant(frame: Frame, target: ast.expr, value: Any) -> None:
    """Assign to a target and let constants stay constants."""
    _assign(frame, target, value, wrap)


def check_constant(frame: Frame, node: ast.expr, value: Any) -> None:
    """Raise `ConstexprError` for a value that what is annotated `tl.constexpr` cannot have."""
    if is_runtime(value):
        raise frame.error(
            ConstexprError,
            node,
            "a tl.constexpr must be known when compiling",
            found=describe(value),
            hint="Leave out the annotation to keep a value that is computed when the kernel runs.",
        )


def _assign(frame: Frame, target: ast.expr, value: Any, convert: Callable[[Any], Any]) -> None:
    match target:
        case ast.Name():
            if target.id in frame.declared:
                frame.declared.discard(target.id)
                check_constant(frame, target, value)
                convert = wrap
            kept = value if is_tuple(value) else convert(value)
            set_hinted(frame, target.id, kept, frame.source.in_source(target))
        case ast.Tuple() | ast.List():
            _unpack(frame, target, value, convert)
        case ast.Subscript():
            raise frame.error(
                SyntaxNotSupportedError,
                target,
                f"a kernel cannot assign to {ast.unparse(target)}: __setitem__ is not supported in triton",
                hint="tl.store writes to memory, tl.where chooses between elements; a tuple is made anew.",
            )
        case _:
            raise frame.error(
                SyntaxNotSupportedError,
                target,
                f"a kernel cannot assign to {ast.unparse(target)}",
            )


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any, convert: Callable[[Any], Any]) -> None:
    if not is_tuple(value):
        raise frame.error(
            TypeMismatchError,
            target,
            "only a tuple can be unpacked",
            found=describe(value),
            upstream="cannot unpack non-iterable value",
        )
    items = list(value)
    stars = [i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
    count = len(target.elts)
    if len(items) < count - len(stars):
        raise frame.error(
            TypeMismatchError,
            target,
            "the number of values does not fit",
            expected=f"at least {count - len(stars)}",
            found=str(len(items)),
            upstream=f"not enough values to unpack (expected {count}, got {len(items)})",
        )
    if stars:
        start, stop = stars[0], len(items) - (count - stars[0] - 1)
        items[start:stop] = [tuple(items[start:stop])]
    for element, item in zip(target.elts, items, strict=False):  # More values are left out, as upstream does.
        _assign(frame, element.value if isinstance(element, ast.Starred) else element, item, convert)


def stored(value: Any) -> Any:
    """A value as a variable holds it or a function returns it: numbers become scalar tensors."""
    if is_tuple(value):
        return rebuilt(value, [stored(item) for item in value])
    if is_number(value):
        return to_tensor(value)
    return value


def set_hinted(frame: Frame, name: str, value: Any, location: SourceLocation | None = None) -> None:
    """Give a variable a value, and the IR value the variable's name if it has none yet."""
    if isinstance(value, tensor) and value.handle.hint is None:
        value.handle.hint = name
    frame.scope.set(name, value, location)
