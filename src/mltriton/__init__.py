"""mltriton: a Triton compiler in pure Python.

Takes nothing; offers the public names. Every one of them is imported when it is first used (PEP 562), so that
`import mltriton` costs a few milliseconds and a cached launch never loads the compiler.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # what type checkers take as true; importing it from typing would double the cost of this module
if TYPE_CHECKING:
    from typing import Any

    from . import compiler as compiler
    from . import kernels as kernels
    from . import knobs as knobs
    from . import language as language
    from . import runtime as runtime
    from . import testing as testing
    from . import tools as tools
    from .errors import CompilationError as CompilationError
    from .errors import PerformanceWarning as PerformanceWarning
    from .errors import TritonError as TritonError

__version__ = "0.1.0"

# Where each public name lives. "" means that the name is itself a submodule.
_HOME: dict[str, str] = {
    "kernels": "",
    "language": "",
    "testing": "",
    "runtime": "",
    "tools": "",
    "compiler": "",
    "knobs": "",
    "errors": "",
    "CompilationError": "errors",
    "PerformanceWarning": "errors",
    "TritonError": "errors",
    "JITFunction": "runtime.jit",
    "jit": "runtime.jit",
    "constexpr_function": "runtime.jit",
    "aggregate": "language.aggregates",
    "aggregate_replace": "language.aggregates",
    "Config": "runtime.autotuner",
    "autotune": "runtime.autotuner",
    "heuristics": "runtime.heuristics",
    "compile": "compiler",
    "TensorWrapper": "runtime.tensor_wrapper",
    "reinterpret": "runtime.tensor_wrapper",
    "set_allocator": "runtime.allocation",
    "cdiv": "runtime.arithmetic",
    "next_power_of_2": "runtime.arithmetic",
}

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name and keep the name here for the next use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *_HOME})
