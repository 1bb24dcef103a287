"""How tests of the front end look at kernels: as IR text, as errors, and by running them in the reference executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mltriton.errors import TritonError
from mltriton.executor import run
from mltriton.frontend.code_generator import generate
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Constant, Entry, parse_entry
from mltriton.ir.module import Module
from mltriton.ir.verifier import verify
from mltriton.passes.levels import verify_level
from mltriton.runtime.jit import JITFunction, jit


def module_of(kernel: Callable[..., Any] | JITFunction, *, debug: bool = False, **parameters: Any) -> Module:
    """The verified tt module; a parameter is a signature entry (`x="*fp32"`) or, for other values, a constant."""
    fn = kernel if isinstance(kernel, LanguageFunction) else jit(kernel)
    entries = {name: _entry(parameters.get(name, fn.signature.parameters[name].default)) for name in fn.arg_names}
    module = generate(fn, entries, debug=debug)
    verify(module)
    verify_level(module)
    return module


def _entry(value: Any) -> Entry:
    return parse_entry(value) if isinstance(value, str) else Constant(value)


def text_of(kernel: Callable[..., Any] | JITFunction, **parameters: Any) -> str:
    """The IR as text."""
    return str(module_of(kernel, **parameters))


def scalar(kernel: Callable[..., Any] | JITFunction, *arguments: int, dtype: str = "i32", **constants: Any) -> Any:
    """Run a kernel `(out, *arguments, **constants)` in one program; gives what it stored to `out[0]`."""
    return values(kernel, *arguments, dtype=dtype, **constants)[0]


def values(
    kernel: Callable[..., Any] | JITFunction, *arguments: int, dtype: str = "i32", size: int = 8, **constants: Any
) -> np.ndarray:
    """Run a kernel `(out, *arguments, **constants)` in one program; gives the array `out`, which is -1 before."""
    fn = kernel if isinstance(kernel, LanguageFunction) else jit(kernel)
    names = [name for name in fn.arg_names if name not in constants]
    entries: dict[str, Entry] = {name: Constant(value) for name, value in constants.items()}
    entries |= {names[0]: Argument(dtype, is_pointer=True)} | {name: Argument("i32") for name in names[1:]}
    module = generate(fn, {name: entries[name] for name in fn.arg_names})
    verify(module)
    out = np.full(size, -1, {"i32": np.int32, "fp32": np.float32}[dtype])
    run(module, [out, *arguments], (1,))
    return out


def error_of(kernel: Callable[..., Any] | JITFunction, **parameters: Any) -> TritonError:
    """The error that compiling a kernel raises."""
    try:
        module_of(kernel, **parameters)
    except TritonError as error:
        return error
    raise AssertionError("the kernel compiles")


def marked(error: TritonError) -> str:
    """The text that the caret points at, to the end of the line without its comment."""
    location = error.location
    assert location is not None, f"no location: {error}"
    lines = error.render().splitlines()
    assert str(location) in lines[0], lines[0]
    source, caret = lines[1], lines[2]
    return source[caret.index("^") :].split("  #")[0].rstrip()
