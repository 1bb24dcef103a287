"""Small libraries of Triton kernels: attention, recurrences, losses, transport, quantisation; each in plain torch.

What is not there: `hilbertsfc` asks for Python 3.12; `torchao` has its kernels that quantise to mxfp8 only where there
is a GPU of compute capability 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

PACKAGES = (
    *("conch-triton-kernels==1.3", "cut-cross-entropy==25.1.1", "sageattention==1.0.6", "adasplash==0.2.2"),
    *("mlstm-kernels==2.0.6", "jvp-flash-attention==0.14.0", "late-interaction-kernels==0.4.5"),
    *("mingru-scans==0.2.0", "flash-sinkhorn==0.4.1", "torchao==0.18.0", "einops==0.8.2"),
)
AS_CUDA = (
    *("sageattention", "sageattention, causal", "adasplash: attention, first version"),
    *("late_interaction: maxsim", "late_interaction: maxsim, lowmem", "late_interaction: maxsim, masked"),
    *("flash_sinkhorn: cost", "flash_sinkhorn: c_transform", "torchao: bsr_dense_addmm"),
)
Operation = tuple[Callable[..., Any], Callable[..., Any], Sequence[Any]] | tuple[Any, Any, Sequence[Any], float]


def constant(*inputs: Any) -> tuple[Any, ...]:
    """Inputs whose gradients nobody asks for."""
    for x in inputs:
        x.no_gradient = True
    return inputs


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    names = ("others_attention", "others_recurrent", "others_conch", "others_quantised")
    return {name: row for module in names for name, row in import_module(module).operations().items()}
