"""Calls: of builtins, of functions written in the language, of Python's own functions.

Level: Python syntax tree -> `tt`. A function decorated with `jit` is inlined: its body is compiled at the call, with a
scope of its own. Guarantees: an error inside it has the location inside it and says from where it was called; wrong
arguments are a `TypeMismatchError` at the call.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

from mltriton import language
from mltriton.errors import (
    CompilationError,
    ConstexprError,
    InternalError,
    NameNotFoundError,
    SyntaxNotSupportedError,
    TritonError,
    TypeMismatchError,
    did_you_mean,
)
from mltriton.frontend import control_flow
from mltriton.frontend.debugging import debugger_in, stop
from mltriton.frontend.function import ConstexprFunction, LanguageFunction, as_constexpr_function
from mltriton.frontend.python_functions import PYTHON_FUNCTIONS
from mltriton.frontend.snapshot import record_call
from mltriton.frontend.values import describe, is_aggregate, is_runtime, wrap
from mltriton.ir.location import Location
from mltriton.language.building import binding_mistake, is_builtin, name_of
from mltriton.language.constants import constexpr, unwrap
from mltriton.language.types import dtype
from mltriton.runtime.compile_thread import is_deep

# What does more than compute, or sees what is not the kernel's: it would be done when compiling.
WITH_EFFECTS = tuple(
    getattr(builtins, name)
    for name in ("__import__", "compile", "eval", "exec", "exit", "globals", "input", "locals", "open", "quit", "vars")
    if hasattr(builtins, name)  # exit and quit are the interpreter's that a user starts.
)

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame, Unit

MAX_RECURSION = 24


def call(frame: Frame, node: ast.Call) -> Any:
    """The value of a call."""
    callee = frame.evaluate(node.func)
    if isinstance(node.func, ast.Subscript) and isinstance(frame.evaluate(node.func.value), LanguageFunction):
        raise frame.error(
            SyntaxNotSupportedError,
            node,
            "a kernel cannot launch another one",
            hint="Without a grid, name(...), its text runs in this kernel's programs; launches are of the host.",
        )
    callee = unwrap(callee) if is_builtin(unwrap(callee)) else as_constexpr_function(callee)
    arguments = frame.evaluate_all(node.args)
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.error(SyntaxNotSupportedError, keyword.value, "a kernel cannot pass arguments with **")
        keywords[keyword.arg] = frame.evaluate(keyword.value)
    frame.mark(node)
    try:
        return _invoke(frame, node, callee, arguments, keywords)
    except TritonError as error:
        here = frame.source.in_source(node)
        if error.location not in (None, here):  # The location is inside the called function: say how it was reached.
            error.called_from(here)
        raise


def _invoke(frame: Frame, node: ast.Call, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    method: Any = callee
    if type(method) is partial and isinstance(method.func, LanguageFunction | ConstexprFunction):  # Of an aggregate.
        return _invoke(frame, node, method.func, [*method.args, *arguments], keywords)
    if isinstance(callee, LanguageFunction):
        return inline(frame.unit, callee, arguments, keywords, frame.location(node))
    if isinstance(callee, ConstexprFunction):
        return _call_constexpr_function(frame, node, callee, arguments, keywords)
    if _is_language_function(callee):
        return call_builtin(frame, node, callee, arguments, keywords)
    if debugger := debugger_in(callee):
        return stop(frame, node, debugger)
    replacement = PYTHON_FUNCTIONS.get(callee) if getattr(callee, "__hash__", None) else None
    if replacement is not None:
        return call_builtin(frame, node, replacement, arguments, keywords)
    if isinstance(callee, type):
        return _construct(frame, node, cast("type[Any]", callee), arguments, keywords)
    is_of_python = isinstance(callee, FunctionType | MethodType) or any(callee is other for other in WITH_EFFECTS)
    if not is_of_python or isinstance(getattr(callee, "__self__", None), dtype):
        return _call_python(frame, node, callee, arguments, keywords)
    if isinstance(node.func, ast.Attribute) and is_aggregate(frame.evaluate(node.func.value)):
        return call_builtin(frame, node, callee, arguments, keywords)  # A static or class method.
    error = uncallable(callee)
    frame.placed(error, node)
    raise error


def uncallable(callee: Any) -> NameNotFoundError:
    """The error for a function of Python's that a kernel calls."""
    name = getattr(callee, "__name__", None) or getattr(callee, "name", callee)
    return NameNotFoundError(
        f"{name} is a Python function, which a kernel cannot call",
        hint="Decorate it with @triton.jit, or with @triton.constexpr_function to run it when compiling.",
    )


def _is_language_function(callee: Any) -> bool:
    method_of: Any = getattr(callee, "__self__", None)
    if type(callee) is partial:  # A tensor's method that is a function of the language too.
        return is_builtin(cast(Any, callee).func)
    return is_builtin(callee) or is_runtime(method_of)


def call_builtin(
    frame: Frame, node: ast.AST, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """The value of a function that runs on values when compiling.

    Its own failures that name no mistake of the user's are an `InternalError`.
    """
    try:
        return wrap(function(*arguments, **keywords))
    except RecursionError:
        raise
    except TritonError as error:
        if error.upstream is not None and error.__cause__ is None:  # What programs look at that know Triton's errors.
            error.__cause__ = ValueError(error.upstream)
        raise
    except Exception as error:
        from mltriton.tracebacks import raised_by_signal  # Only a failure needs it.

        if raised_by_signal(error):
            raise
        if message := binding_mistake(function, arguments, keywords):
            raise frame.error(
                TypeMismatchError, node, message, hint=_similar(inspect.signature(function), keywords)
            ) from None
        if isinstance(function, type) and not is_aggregate(function):
            message = f"{name_of(function)} cannot be made of these arguments: {error}"
            raise frame.error(TypeMismatchError, node, message) from None
        message = f"{name_of(function)} failed: {type(error).__name__}: {error}"
        raise frame.error(InternalError, node, message) from error


def _similar(signature: inspect.Signature, keywords: Mapping[str, Any]) -> str | None:
    """A hint for the first keyword that a function does not have."""
    known = [name for name, parameter in signature.parameters.items() if parameter.kind is not parameter.VAR_KEYWORD]
    unknown = next((name for name in keywords if name not in known), None)
    return None if unknown is None else did_you_mean(unknown, known) or f"Its parameters are {', '.join(known)}."


def _call_constexpr_function(
    frame: Frame, node: ast.Call, callee: ConstexprFunction, arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    given = [*arguments, *keywords.values()]
    if any(is_runtime(value) for value in given):
        if is_aggregate(given[0]):
            return call_builtin(frame, node, callee, arguments, keywords)
        if callee.on_tensors is not None:
            return call_builtin(frame, node, callee.on_tensors(), arguments, keywords)
    result = _run(frame, node, callee, arguments, keywords)
    if is_runtime(result):
        message = f"{callee.__name__} runs when compiling and must give a constant"
        raise frame.error(ConstexprError, node, message, found=describe(result))
    return result


def _call_python(
    frame: Frame, node: ast.Call, callee: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    """Call Python's own function on constants."""
    name = getattr(callee, "__name__", None) or repr(callee)
    if not callable(callee):
        raise frame.error(TypeMismatchError, node, f"{describe(wrap(callee))} cannot be called")
    for value in [*arguments, *keywords.values()]:
        if is_runtime(value):
            raise frame.error(
                ConstexprError, node, f"{name} needs constants", found=describe(value), hint=_of_the_language(name)
            )
    return _run(frame, node, callee, arguments, keywords)


def _of_the_language(name: str) -> str:
    """What a kernel may write in place of Python's function `name`."""
    return f"tl.{name} takes tensors." if hasattr(language, name) else "It runs when compiling, on Python's values."


def _run(
    frame: Frame, node: ast.Call, callee: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    """What Python's own function gives, of values of the program, too: it may ask for their types and shapes."""
    name = getattr(callee, "__name__", None) or repr(callee)
    plain, named = [unwrap(value) for value in arguments], {key: unwrap(value) for key, value in keywords.items()}
    try:
        result = callee(*plain, **named)
        record_call(callee, plain, named, result)
        return wrap(result)
    except TritonError:
        raise
    except Exception as error:
        from mltriton.tracebacks import raised_by_signal  # Only a failure needs it.

        if raised_by_signal(error):
            raise
        if isinstance(error, RecursionError) and not is_deep():  # The stack may be too small because of the caller.
            raise
        raise frame.error(
            ConstexprError, node, f"{name} fails when compiling: {type(error).__name__}: {error}"
        ) from error


def _construct(frame: Frame, node: ast.Call, kind: type[Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """Make an object: a constant, a named tuple of values, or a Python object of constants."""
    if kind is constexpr:
        if message := binding_mistake(kind, arguments, keywords):
            raise frame.error(TypeMismatchError, node, message)
        (value,) = (*arguments, *keywords.values()) or [constexpr(None)]
        if is_runtime(value):
            raise frame.error(
                ConstexprError, node, "a tl.constexpr must be known when compiling", found=describe(value)
            )
        return wrap(value)
    is_ours = kind.__module__.partition(".")[0] in ("mltriton", "triton") or is_aggregate(kind)
    if is_ours or hasattr(kind, "_fields"):
        return call_builtin(frame, node, kind, arguments, keywords)
    return _call_python(frame, node, kind, arguments, keywords)


def inline(
    unit: Unit, callee: LanguageFunction, arguments: Sequence[Any], keywords: Mapping[str, Any], location: Location
) -> Any:
    """Compile the body of a function written in the language at the insertion point; gives what it returns."""
    from mltriton.frontend.frame import Frame  # A frame calls what is here.

    if sum(frame.source is callee.source for frame in unit.frames) >= MAX_RECURSION:
        raise CompilationError(
            f"{callee.__name__} calls itself more than {MAX_RECURSION} times",
            hint="Calls are inlined: a recursion must end by a condition known when compiling.",
        )
    frame = Frame(unit, callee.source, callee.environment, location)
    for name, value in _bound(callee, arguments, keywords).items():
        frame.scope.set(name, value)
    unit.frames.append(frame)
    saved = unit.builder.loc
    try:
        frame.execute(callee.source.tree.body)
    finally:
        unit.frames.pop()
        unit.builder.loc = saved
    is_nothing = frame.returned is None or frame.returned is control_flow.NOTHING
    return wrap(None) if is_nothing else frame.returned


def _bound(callee: LanguageFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the parameters of a call.

    As in upstream a constexpr parameter of a function that is called takes a tensor too (the published attention
    kernel passes its ranges so); an operation that needs a constant complains where it meets the tensor.
    """
    try:
        bound = callee.signature.bind(*arguments, **keywords)
    except TypeError as error:
        expected, hint = f"{callee.__name__}{callee.signature_text}", _similar(callee.signature, keywords)
        raise TypeMismatchError(f"{callee.__name__}: {error}", expected=expected, hint=hint) from None
    bound.apply_defaults()
    return {name: wrap(value) for name, value in bound.arguments.items()}
