"""Compiling a program that is given as text at level `tt`: of ours, or what upstream's front end writes.

Level: tt to binary. Takes the text of a module with one public function; gives a `CompiledKernel` whose parameters are
that function's. Guarantees: the same passes and the same cache as for a kernel in Python; text that cannot be read is
an `IRSyntaxError` at its location in the text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from mltriton.compiler.compilation import compile_job
from mltriton.compiler.job import Job
from mltriton.compiler.kernel import CompiledKernel
from mltriton.compiler.options import options_of
from mltriton.dialects import tt
from mltriton.errors import SignatureError, SourceLocation
from mltriton.frontend.dependencies import Dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument
from mltriton.frontend.upstream_operations import with_pointers_for_descriptors, without_upstream_operations
from mltriton.ir.attributes import StringAttr, integer_in
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.structured_text import without_jumps
from mltriton.ir.types import FloatType, IntegerType, PointerType, Type
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.runtime.alignment import ALIGNMENT
from mltriton.runtime.cache import digest
from mltriton.runtime.parameters import IGNORED_OPTIONS
from mltriton.targets.target import find_target

if TYPE_CHECKING:
    from mltriton.frontend.source import FunctionSource

_FLOATS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}


class _Text:
    """Where a function is that has no Python text."""

    tree = None

    def __init__(self, name: str) -> None:
        self.name = name

    def in_source(self, _node: object) -> SourceLocation:
        """The text's beginning."""
        return SourceLocation(f"<{self.name}>", 1, 0)


class TextFunction(LanguageFunction):
    """A kernel known by its text alone."""

    def __init__(self, name: str, parameters: list[str]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "__text__"
        self.source = cast("FunctionSource", _Text(name))
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.signature = inspect.Signature([inspect.Parameter(parameter, kind) for parameter in parameters])
        self.constexpr_names = ()


@dataclass(frozen=True)
class TextJob(Job):
    """The compilation of a text."""

    text: str = ""

    def source_module(self) -> Module:
        """The program, read anew."""
        module = with_pointers_for_descriptors(parse_module(self.text, f"<{self.fn.__name__}>"))
        module = without_upstream_operations(PassManager(parse_pipeline("inline"), verify_each=False).run(module))
        module.attributes["mltriton.level"] = StringAttr("tt")
        self._annotate(module)
        return module

    @property
    def _may_loop(self) -> bool:
        return "scf.for" in self.text or "scf.while" in self.text

    def key(self, depends: Dependencies) -> str:
        """The text, and how it is compiled."""
        return digest("text", *self._how, self.text)


def compile_text(text: str, options: Mapping[str, Any] | None = None, target: str = "cpu") -> CompiledKernel:
    """Compile the text's public function.

    Raises `IRSyntaxError` for text that cannot be read, `SignatureError` where it has no public function or a parameter
    that no launch can give.
    """
    text = without_jumps(text)
    function = tt.kernel_of(with_pointers_for_descriptors(parse_module(text)))
    hints = [value.hint or "arg" for value in function.body.block.arguments]
    # Parts of tuples are called t.0 in the text: a parameter's name is a word of its own.
    names = [
        hint if hint.isidentifier() and hints.count(hint) == 1 else f"{re.sub(r'[^0-9A-Za-z_]', '_', hint)}_{position}"
        for position, hint in enumerate(hints)
    ]
    fn = TextFunction(str(function.sym_name), names)
    entries = dict(zip(names, _entries(function), strict=True))
    known = {name: value for name, value in (options or {}).items() if name not in IGNORED_OPTIONS}
    return compile_job(TextJob(fn, entries, find_target(target), options_of(**known), text), Dependencies())


def _entries(function: tt.Func) -> Iterator[Argument]:
    """What is known of each parameter: its type, and whether it is divisible by 16."""
    for known, value in zip(function.promises, function.body.block.arguments, strict=True):
        pointee = value.type.pointee if isinstance(value.type, PointerType) else None
        yield Argument(
            _scalar(pointee or value.type, value.hint),
            is_pointer=pointee is not None,
            divisibility=1 if integer_in(dict(known.entries), "tt.divisibility", 1) % ALIGNMENT else ALIGNMENT,
        )


def _scalar(kind: Type, name: str | None) -> str:
    if isinstance(kind, IntegerType):
        return f"i{kind.width}"
    if isinstance(kind, FloatType) and kind.name in _FLOATS:
        return _FLOATS[kind.name]
    raise SignatureError(
        f"no launch gives the parameter {name} a value", expected="a pointer or a number", found=str(kind)
    )
