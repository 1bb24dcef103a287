"""Kernels written in the language, as functions on numpy arrays and torch tensors.

Level: user. `matmul`, `flash_attention`, `softmax` and `layer_norm` take arrays of one kind and return the same kind
on the same device. The kernels themselves (`*_kernel`) can be launched, read, copied and compiled for any target.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mltriton.kernels.attention import flash_attention
    from mltriton.kernels.gemm import matmul
    from mltriton.kernels.normalization import layer_norm, softmax

_HOME = {
    "flash_attention": "mltriton.kernels.attention",
    "layer_norm": "mltriton.kernels.normalization",
    "matmul": "mltriton.kernels.gemm",
    "softmax": "mltriton.kernels.normalization",
}

__all__ = ["flash_attention", "layer_norm", "matmul", "softmax"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module(_HOME[name]), name)
    globals()[name] = function
    return function
