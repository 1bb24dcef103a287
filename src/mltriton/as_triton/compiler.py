"""`triton.compiler`: compiling a kernel from what is known of its arguments, by upstream's classes.

Level: user. `compile(ASTSource(fn, signature, constexprs, attrs), target, options)` is `mltriton.compile` with the
arguments said in upstream's way; an `IRSource` is a program in a file. Guarantees: the kernel is that of a launch with
such arguments, from the same cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import mltriton.compiler
from mltriton.as_triton.backends import GPUTarget, make_backend
from mltriton.as_triton.nativert import WithLibraries
from mltriton.as_triton.program_view import ModuleView
from mltriton.compiler import CompiledKernel, Job, compile_job, options_of
from mltriton.errors import AssemblyError as PTXASError
from mltriton.errors import AssertionFailed as CompileTimeAssertionFailure
from mltriton.errors import AutotuneError as AutotunerError
from mltriton.errors import CompilationError, OutOfResources, SignatureError
from mltriton.errors import SyntaxNotSupportedError as UnsupportedLanguageConstruct
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Constant, Entry, parse_entry, with_parts
from mltriton.language.constants import unwrap
from mltriton.runtime.cache import digest
from mltriton.runtime.fingerprint import compiler_fingerprint
from mltriton.runtime.launching import launching
from mltriton.runtime.parameters import IGNORED_OPTIONS
from mltriton.runtime.specialization import specialize
from mltriton.targets.target import find_target

__all__ = [
    "ASTSource",
    "AutotunerError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "OutOfResources",
    "PTXASError",
    "UnsupportedLanguageConstruct",
    "compile",
    "make_backend",
    "mangle_type",
    "native_specialize_impl",
    "triton_key",
]

__path__: list[str] = []  # Programs import modules of the same content below it.


def __getattr__(name: str) -> Any:
    """Modules below this one, which `import triton` gives by itself."""
    if name not in ("code_generator", "compiler", "errors"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"triton.compiler.{name}")


_ALIGNED = ["tt.divisibility", 16]


@dataclass
class ASTSource:
    """A kernel, the type of each parameter by name (`"constexpr"`, or none: see `constants`), values, and what is
    promised. A key of `constexprs` is a name or a path of positions among the kernel's parameters, of `attrs` a path.
    """

    fn: LanguageFunction
    signature: Mapping[str, Any]
    constexprs: Mapping[Any, Any] | None = None
    attrs: Mapping[Any, Any] | None = None
    ext: str = field(default="ttir", init=False)

    def __post_init__(self) -> None:
        self.name = self.fn.__name__
        names = list(self.fn.signature.parameters)
        for name in self.signature:
            if name not in names:
                raise SignatureError(f"{self.name} has no parameter {name!r}", expected=self.fn.signature_text)
        given = {(names.index(key),) if isinstance(key, str) else key: v for key, v in (self.constexprs or {}).items()}
        self.constants: dict[tuple[int, ...], Any] = given
        self.attrs = dict(self.attrs or {})

    def entries(self) -> dict[str, Entry]:
        """What is known of every parameter, tuples and descriptors taken apart."""
        found: dict[str, Entry] = {}
        for position, name in enumerate(self.fn.signature.parameters):
            found.update(self._parts(name, (position,), self.signature.get(name, "constexpr")))
        return with_parts(found)

    def _parts(self, name: str, path: tuple[int, ...], kind: Any) -> Iterator[tuple[str, Entry]]:
        if path in self.constants:
            yield name, Constant(unwrap(self.constants[path]))
        elif isinstance(kind, tuple | list):
            for position, part in enumerate(cast("tuple[Any, ...]", kind)):
                yield from self._parts(f"{name}.{position}", (*path, position), part)
        elif kind == "constexpr":
            raise SignatureError(f"the constexpr {name} of {self.name} has no value", hint="Give it in constexprs.")
        else:
            yield name, self._argument(path, parse_entry(str(kind)))

    def _argument(self, path: tuple[int, ...], entry: Entry) -> Entry:
        promises = [list(promise) for promise in (self.attrs or {}).get(path, ())]
        if isinstance(entry, Argument) and _ALIGNED in promises:
            return Argument(entry.scalar, entry.is_pointer, entry.is_const, 16, entry.block)
        return entry

    def job(self, options: Mapping[str, Any] | None = None, target: str = "cpu") -> Job:
        """The compilation."""
        known = {name: value for name, value in (options or {}).items() if name not in IGNORED_OPTIONS}
        return Job(self.fn, self.entries(), find_target(target), options_of(**known))

    def hash(self) -> str:
        """What identifies the program."""
        return digest(cast(Any, self.fn).cache_key, [(name, str(entry)) for name, entry in self.entries().items()])

    def make_ir(self, *_how: Any) -> ModuleView:
        """The program as the front end makes it."""
        return ModuleView(self.job().source_module())


class IRSource:
    """A program in a file, by upstream's text or ours."""

    def __init__(self, path: str | Path, context: Any = None, backend: Any = None) -> None:
        self.path = Path(path)
        self.ext = self.path.suffix[1:]
        self.src = self.path.read_text(encoding="utf-8")


def compile(
    src: ASTSource | IRSource | LanguageFunction | str | Path,
    target: GPUTarget | str | None = None,
    options: Mapping[str, Any] | None = None,
    **ours: Any,
) -> CompiledKernel:
    """Compile a source for a target (the CPU where None).

    Takes a kernel with `mltriton.compile`'s arguments, too. Raises `TargetError` for a target of no backend, and the
    error of the kernel's own mistake.
    """
    with launching:
        return _compiled(src, target, options, ours)


def _compiled(src: Any, target: GPUTarget | str | None, options: Any, ours: Mapping[str, Any]) -> CompiledKernel:
    if isinstance(src, LanguageFunction):
        return mltriton.compiler.compile(src, target=cast(str, target or "cpu"), **ours)
    name = make_backend(target).target_name if isinstance(target, GPUTarget) else target or "cpu"
    if not isinstance(src, ASTSource):
        from mltriton.compiler.text import compile_text  # Few programs need it.

        return compile_text((src if isinstance(src, IRSource) else IRSource(src)).src, options or {})
    kernel = compile_job(src.job(options, name))
    # Counting registers takes another run of LLVM, for programs that ask it of every kernel (Inductor).
    kernel.__dict__.update(n_regs=None, n_spills=None, asm=WithLibraries(kernel))
    return kernel


def triton_key() -> str:
    """What identifies the compiler."""
    return compiler_fingerprint()


def native_specialize_impl(
    backend: Any, value: Any, is_const: bool = False, specialize_value: bool = True, align: bool = True
) -> tuple[Any, Any]:
    """The type of an argument as signatures write it, and what is promised of it ("D": divisible by 16)."""
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        parts = [native_specialize_impl(backend, item, is_const, specialize_value, align) for item in items]
        return tuple(part[0] for part in parts), tuple(part[1] for part in parts)
    entry = specialize("", value, annotation=None, by_value=specialize_value, by_alignment=align)
    if isinstance(entry, Constant):
        return "constexpr", entry.value
    kind = str(Argument(entry.scalar, entry.is_pointer, entry.is_const or (is_const and entry.is_pointer)))
    return kind, "D" if entry.divisibility > 1 else ""


def mangle_type(value: Any, specialize: bool = False) -> Any:
    """The type of an argument as signatures write it."""
    return native_specialize_impl(None, value, specialize_value=specialize, align=False)[0]
