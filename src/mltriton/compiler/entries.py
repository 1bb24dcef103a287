"""What is known of a kernel's parameters when it is compiled ahead of time.

Level: user. Takes a signature and the values of constants; gives an entry a parameter. Guarantees: a parameter of which
nothing is known is a `SignatureError`, a `tl.constexpr` without a value a `ConstexprError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mltriton.errors import ConstexprError, SignatureError
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Constant, Entry, of_parameter, of_parameters, parse_signature, with_parts
from mltriton.language.constants import unwrap


def kernel_of(fn: Any) -> LanguageFunction:
    """The kernel inside what `autotune` and `heuristics` may have made of it; `SignatureError` for anything else."""
    inner = fn
    while not isinstance(inner, LanguageFunction):
        if not hasattr(inner, "fn"):
            raise SignatureError(f"{getattr(fn, '__name__', fn)!r} is no kernel", hint="Decorate it with @triton.jit.")
        inner = inner.fn
    return inner


def entries_of(
    fn: LanguageFunction, signature: str | Mapping[str, str], constexprs: Mapping[str, Any]
) -> dict[str, Entry]:
    """What is known of every parameter.

    A parameter without a value takes its default; `SignatureError` if it has none.
    """
    parameters = fn.signature.parameters
    for name in constexprs:
        if name not in parameters:
            raise SignatureError(f"{fn.__name__} has no parameter {name!r}", expected=fn.signature_text)
    found = with_parts(_parsed(fn, signature, constexprs))
    entries: dict[str, Entry] = {}
    for name, parameter in parameters.items():
        if name in constexprs:
            entries[name] = Constant(unwrap(constexprs[name]))
        elif parts := of_parameter(name, found):
            entries |= _fitting(fn, name, parts)
        elif parameter.default is not parameter.empty:
            entries[name] = Constant(unwrap(parameter.default))
        else:
            raise SignatureError(f"the signature says nothing of the parameter {name} of {fn.__name__}")
    return entries


def _parsed(
    fn: LanguageFunction, signature: str | Mapping[str, str], constexprs: Mapping[str, Any]
) -> dict[str, Entry]:
    """A signature's entries; a string lists all parameters, or those that `constexprs` leaves."""
    parameters = list(fn.signature.parameters)
    left = [name for name in parameters if name not in constexprs]
    if isinstance(signature, str) and constexprs:
        try:
            return parse_signature(signature, left)
        except SignatureError:
            pass
    return parse_signature(signature, parameters)


def _fitting(fn: LanguageFunction, name: str, parts: dict[str, Entry]) -> dict[str, Entry]:
    if name in fn.constexpr_names and not isinstance(parts.get(name), Constant):
        found, hint = of_parameters(parts)[name], None if name in parts else "Give a tuple in `constexprs`."
        message = f"the parameter {name} of {fn.__name__} is a tl.constexpr and needs a value"
        raise ConstexprError(message, found=f"the type {found}", hint=hint)
    return parts
