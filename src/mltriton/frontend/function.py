"""Functions that a kernel can call besides builtins: those written in the language, and Python's run when compiling.

Level: above `tt`. What the front end needs of a function: its text, what it sees outside itself, its parameters.
Imports nothing of the compiler, so that decorating a function stays cheap.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

from mltriton.errors import SourceLocation, SyntaxNotSupportedError, calling_location
from mltriton.frontend.environment import Environment
from mltriton.frontend.source import FunctionSource
from mltriton.language.constants import constexpr, unwrap


class VariadicError(SyntaxNotSupportedError, TypeError):
    """A kernel takes **kwargs, which no launch can fill."""


def is_constexpr_annotation(annotation: Any) -> bool:
    """Whether a parameter's annotation, evaluated or as text, is `tl.constexpr`."""
    return annotation is constexpr or (isinstance(annotation, str) and annotation.split(".")[-1] == "constexpr")


class LanguageFunction:
    """A function written in the language, which calls inline: the base of `JITFunction`.

    `warp_level`: as a kernel, it is written for warps: each of its tensors belongs to one warp. `debug`: as a kernel,
    its assertions are checked.
    """

    warp_level = False
    debug = False

    def __init__(self, fn: Callable[..., Any]) -> None:
        # A kernel is its text: what stands around it (`functools.wraps`) never runs. An autotuner would have to.
        fn = inspect.unwrap(fn, stop=lambda found: not isinstance(found, FunctionType | LanguageFunction))
        code = getattr(fn, "__code__", None)
        if code is None or not hasattr(fn, "__globals__"):
            raise SyntaxNotSupportedError(
                "only a function written with def can be a kernel",
                found=f"{fn!r} of type {type(fn).__name__}",
                location=calling_location(),
                hint="Write @jit below other decorators, next to the function.",
            )
        if code.co_flags & inspect.CO_VARKEYWORDS:
            raise VariadicError(
                f"{fn.__name__} takes **kwargs, which a kernel cannot",
                location=SourceLocation(code.co_filename, code.co_firstlineno, 0),
                hint="name every parameter, with a default where it has one",
                upstream="JIT functions do not support **kwargs",
            )
        self.fn = fn
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        self.source = FunctionSource(fn)
        self.environment = Environment(fn)

    def check(self) -> None:
        """Raise the error of what was asked for when it was decorated and no compilation can do."""

    @cached_property
    def signature(self) -> inspect.Signature:
        """Names, defaults and annotations of the parameters."""
        return inspect.signature(self.fn)

    @cached_property
    def signature_text(self) -> str:
        """The parameters as a user would write them in a call: `(x, n, BLOCK=128)`."""
        parameters = [parameter.replace(annotation=parameter.empty) for parameter in self.signature.parameters.values()]
        return str(inspect.Signature(parameters))

    @cached_property
    def constexpr_names(self) -> tuple[str, ...]:
        """The parameters that must be known when compiling."""
        return tuple(p.name for p in self.signature.parameters.values() if is_constexpr_annotation(p.annotation))


class ConstexprFunction:
    """A Python function that a kernel calls when it is compiled, with constants.

    `on_tensors`, where given, finds the function of the language that stands for it on tensors. Outside a kernel it is
    the plain function. `hash` is for other programs, which keep there what they like.
    """

    hash: str | None = None
    _text: str | None = None

    def __init__(self, fn: Callable[..., Any], on_tensors: Callable[[], Callable[..., Any]] | None = None) -> None:
        self.fn = fn
        self.on_tensors = on_tensors
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

        self.__module__, self.__qualname__ = fn.__module__, fn.__qualname__

    def __reduce__(self) -> str:
        """Pickled, and copied, as Python's functions are: by the name."""
        return self.__qualname__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstexprFunction) and self.fn is other.fn

    def __hash__(self) -> int:
        return hash(self.fn)

    @property
    def src(self) -> str:
        """The text, without its decorators."""
        return self._text or FunctionSource(self.fn).undecorated

    def _unsafe_update_src(self, text: str | None) -> None:
        """Take `text` (None: its own) for its text in keys of the cache.

        What is called stays the function, as upstream. Kernels that call it must be told by the caller (`hash`).
        """
        self._text, self.hash = text, None

    @property
    def cache_key(self) -> str:
        """What identifies its text. What it reads elsewhere is asked for when it runs (`snapshot.py`)."""
        from mltriton.frontend.dependencies import text_of  # Which collects these.
        from mltriton.runtime.cache import digest

        return digest(text_of(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function's value."""
        return self.fn(*[unwrap(arg) for arg in args], **{name: unwrap(value) for name, value in kwargs.items()})


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Let kernels call `fn` with constants when they are compiled; its value is a constant again."""
    return ConstexprFunction(fn)


def as_constexpr_function(value: Any) -> Any:
    """The value of a constant; of `@tl.constexpr` on a Python function, the function that runs when compiling."""
    plain = unwrap(value)
    return ConstexprFunction(plain) if isinstance(value, constexpr) and isinstance(plain, FunctionType) else plain
