"""Kernels written in the language, as functions on numpy arrays and torch tensors.

Level: user. `matmul` (with `split_k_matmul`, `stream_k_matmul` and `grouped_gemm`), `flash_attention` (packed
sequences: `flash_attention_varlen`), `paged_attention` (`paged_attention_varlen`), `softmax`, `layer_norm`,
`rms_norm`, `rope` and `cross_entropy` take arrays of one kind and return the same kind on the same device. torch
differentiates them by itself (`gradients.py`); functions `*_backward` give gradients of either kind of arrays. The
kernels themselves (`*_kernel`) can be launched, read, copied and compiled for any target.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mltriton.kernels.attention import flash_attention, flash_attention_with_lse
    from mltriton.kernels.attention_backward import flash_attention_backward
    from mltriton.kernels.attention_paged import paged_attention
    from mltriton.kernels.attention_paged_varlen import paged_attention_varlen
    from mltriton.kernels.attention_varlen import flash_attention_varlen, flash_attention_varlen_with_lse
    from mltriton.kernels.attention_varlen_backward import flash_attention_varlen_backward
    from mltriton.kernels.gemm import matmul
    from mltriton.kernels.gemm_grouped import grouped_gemm
    from mltriton.kernels.losses import cross_entropy, cross_entropy_backward, cross_entropy_with_gradient
    from mltriton.kernels.normalization import layer_norm, rms_norm, softmax
    from mltriton.kernels.normalization_backward import layer_norm_backward, rms_norm_backward, softmax_backward
    from mltriton.kernels.rotary import rope
    from mltriton.kernels.split_k import split_k_matmul
    from mltriton.kernels.stream_k import stream_k_matmul

_HOME = {
    "cross_entropy": "mltriton.kernels.losses",
    "cross_entropy_backward": "mltriton.kernels.losses",
    "cross_entropy_with_gradient": "mltriton.kernels.losses",
    "flash_attention": "mltriton.kernels.attention",
    "flash_attention_backward": "mltriton.kernels.attention_backward",
    "flash_attention_varlen": "mltriton.kernels.attention_varlen",
    "flash_attention_varlen_backward": "mltriton.kernels.attention_varlen_backward",
    "flash_attention_varlen_with_lse": "mltriton.kernels.attention_varlen",
    "flash_attention_with_lse": "mltriton.kernels.attention",
    "grouped_gemm": "mltriton.kernels.gemm_grouped",
    "layer_norm": "mltriton.kernels.normalization",
    "layer_norm_backward": "mltriton.kernels.normalization_backward",
    "matmul": "mltriton.kernels.gemm",
    "paged_attention": "mltriton.kernels.attention_paged",
    "paged_attention_varlen": "mltriton.kernels.attention_paged_varlen",
    "rms_norm": "mltriton.kernels.normalization",
    "rms_norm_backward": "mltriton.kernels.normalization_backward",
    "rope": "mltriton.kernels.rotary",
    "softmax": "mltriton.kernels.normalization",
    "softmax_backward": "mltriton.kernels.normalization_backward",
    "split_k_matmul": "mltriton.kernels.split_k",
    "stream_k_matmul": "mltriton.kernels.stream_k",
}

__all__ = [
    "cross_entropy",
    "cross_entropy_backward",
    "cross_entropy_with_gradient",
    "flash_attention",
    "flash_attention_backward",
    "flash_attention_varlen",
    "flash_attention_varlen_backward",
    "flash_attention_varlen_with_lse",
    "flash_attention_with_lse",
    "grouped_gemm",
    "layer_norm",
    "layer_norm_backward",
    "matmul",
    "paged_attention",
    "paged_attention_varlen",
    "rms_norm",
    "rms_norm_backward",
    "rope",
    "softmax",
    "softmax_backward",
    "split_k_matmul",
    "stream_k_matmul",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module(_HOME[name]), name)
    globals()[name] = function
    return function
