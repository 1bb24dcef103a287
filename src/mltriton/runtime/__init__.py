"""The runtime: specialising, caching, launching and tuning kernels. Names live in its modules.

`mltriton.runtime.driver` and its like are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where each name that upstream has in `triton.runtime` lives.
_HOME = {
    "driver": "",
    "Autotuner": "autotuner",
    "Config": "autotuner",
    "autotune": "autotuner",
    "heuristics": "heuristics",
    "JITFunction": "jit",
    "TensorWrapper": "tensor_wrapper",
    "reinterpret": "tensor_wrapper",
}


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    return getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
