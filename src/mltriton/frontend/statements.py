"""What each kind of statement means: a table from syntax to a function that compiles it.

Level: Python syntax tree -> `tt`. A handler gives the `Flow` by which the statement leaves its list, or None for going
on. Control flow stands in `control_flow.py` (branches) and `loops.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mltriton import language
from mltriton.errors import AssertionFailed, SyntaxNotSupportedError, TypeMismatchError
from mltriton.frontend import assignment, calls, control_flow, loops, names
from mltriton.frontend.debugging import import_debugger
from mltriton.frontend.expressions import apply
from mltriton.frontend.flow import Body, Flow, running
from mltriton.frontend.values import describe, is_runtime
from mltriton.language.constants import constexpr, unwrap

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame

_NO_EXCEPTIONS = "A kernel has no exceptions; check the condition beforehand."
_UNSUPPORTED: Mapping[type[ast.stmt], tuple[str, str]] = {
    ast.Try: ("try", _NO_EXCEPTIONS),
    ast.TryStar: ("try", _NO_EXCEPTIONS),
    ast.Raise: ("raise", "tl.static_assert checks what is known when compiling, tl.device_assert the rest."),
    ast.With: ("with", "A kernel has no context managers."),
    ast.FunctionDef: ("a nested function", "Define it outside, decorate it with @triton.jit and call it."),
    ast.ClassDef: ("a class", "Use tuples of values."),
    ast.Global: ("global", "Pass the value as an argument; write results through a pointer."),
    ast.Nonlocal: ("nonlocal", "Pass the value as an argument and return the new one."),
    ast.Import: ("import", "Import at the top of the file."),
    ast.ImportFrom: ("import", "Import at the top of the file."),
    ast.Match: ("match", "Use if and elif."),
    ast.Delete: ("del", "A variable that is not used any more costs nothing."),
}


def unsupported(stmt: ast.stmt) -> SyntaxNotSupportedError:
    """The error for syntax without a meaning in a kernel."""
    what, hint = _UNSUPPORTED.get(type(stmt), (f"a {type(stmt).__name__} statement", None))
    return SyntaxNotSupportedError(
        f"a kernel cannot contain {what}", hint=hint, upstream=f"unsupported AST node type: {type(stmt).__name__}"
    )


def assign(frame: Frame, stmt: ast.Assign) -> None:
    """`a = b = value`, `a, b = value`."""
    value = frame.evaluate(stmt.value)
    for target in stmt.targets:
        assignment.bind(frame, target, value)


def assign_annotated(frame: Frame, stmt: ast.AnnAssign) -> None:
    """`N: tl.constexpr = value` makes a constant, and `N: tl.constexpr` the next value that N gets; other annotations
    say nothing, nor does that of a value that is computed when the kernel runs, as in upstream.
    """
    if stmt.value is None:
        if isinstance(stmt.target, ast.Name) and is_constexpr_annotation(frame, stmt.annotation):
            frame.declared.add(stmt.target.id)
        return
    value = frame.evaluate(stmt.value)
    constant = is_constexpr_annotation(frame, stmt.annotation)
    (assignment.bind_constant if constant else assignment.bind)(frame, stmt.target, value)


def is_constexpr_annotation(frame: Frame, annotation: ast.expr) -> bool:
    """Whether an annotation is `tl.constexpr`, as an expression or as text."""
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and annotation.value.endswith("constexpr")
    name = names.dotted_name(annotation)
    return bool(name) and frame.environment.resolve(name) is constexpr


def assign_augmented(frame: Frame, stmt: ast.AugAssign) -> None:
    """`a += value` is `a = a + value`."""
    current = ast.copy_location(_as_load(stmt.target), stmt.target)
    value = apply(frame, stmt, stmt.op, frame.evaluate(current), frame.evaluate(stmt.value))
    assignment.bind(frame, stmt.target, value)


def _as_load(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())


def expression(frame: Frame, stmt: ast.Expr) -> None:
    """A call for its effect, or a docstring. Functions may be marked as having none (`must_use_result`)."""
    frame.evaluate(stmt.value)
    if isinstance(stmt.value, ast.Call) and names.dotted_name(stmt.value.func):
        callee: Any = unwrap(frame.environment.resolve(names.dotted_name(stmt.value.func)))
        if reason := getattr(callee, "_must_use_result", False):
            message = f"The result of {callee.__name__} is not being used."
            raise frame.error(TypeMismatchError, stmt, message, hint=reason if isinstance(reason, str) else None)


def import_(frame: Frame, stmt: ast.Import) -> None:
    """`import pdb`; nothing else is imported in a kernel."""
    if not import_debugger(frame, stmt):
        raise unsupported(stmt)


def return_(frame: Frame, stmt: ast.Return) -> Flow:
    """`return value`: a constant stays one (where branches return different ones they become tensors)."""
    if Body.LOOP in frame.bodies:
        raise frame.error(
            SyntaxNotSupportedError,
            stmt,
            "return inside a loop that runs in the kernel",
            hint="Let the loop end (break, or a condition of while) and return after it.",
            upstream="Cannot have `return` statements inside `while` or `for` statements in triton.",
        )
    value = constexpr(None) if stmt.value is None else frame.evaluate(stmt.value)
    if frame.call is None and unwrap(value) is not None:
        raise frame.error(
            TypeMismatchError,
            stmt,
            f"the kernel {frame.source.name} returns a value",
            found=describe(value),
            hint="Write results through pointers with tl.store.",
        )
    frame.returned = value
    return Flow.RETURN


def leave_loop(frame: Frame, stmt: ast.Break | ast.Continue) -> Flow:
    """`break`, `continue`: of a loop that runs in the kernel, `break` clears the variable that keeps it going."""
    if isinstance(stmt, ast.Continue):
        return Flow.CONTINUE
    if frame.bodies[-1] is Body.LOOP:
        frame.scope.set(running(frame.bodies[:-1]), constexpr(False), frame.source.in_source(stmt))
    return Flow.BREAK


def assertion(frame: Frame, stmt: ast.Assert) -> None:
    """`assert condition, message`: checked when compiling if it is known then, otherwise as `tl.device_assert`."""
    condition = frame.evaluate(stmt.test)
    message = constexpr("") if stmt.msg is None else frame.evaluate(stmt.msg)
    if is_runtime(condition):
        frame.mark(stmt)
        calls.call_builtin(frame, stmt, language.device_assert, [condition, message], {})
    elif not unwrap(condition):
        raise frame.error(AssertionFailed, stmt, str(unwrap(message)) or f"{ast.unparse(stmt.test)} is false")


def nothing(frame: Frame, stmt: ast.Pass) -> None:
    """`pass`."""


STATEMENTS: Mapping[type[ast.stmt], Callable[[Frame, Any], Flow | None]] = {
    ast.Assign: assign,
    ast.AnnAssign: assign_annotated,
    ast.AugAssign: assign_augmented,
    ast.Expr: expression,
    ast.Return: return_,
    ast.Break: leave_loop,
    ast.Continue: leave_loop,
    ast.If: control_flow.if_,
    ast.For: loops.for_,
    ast.While: loops.while_,
    ast.Assert: assertion,
    ast.Pass: nothing,
    ast.Import: import_,
}
