"""vLLM's kernels that its CPU runner compiles, from its source distribution, each with a loop in plain torch.

Kernels' modules are vLLM's own; what they import besides each other (configuration, platforms, logging) stands in
(`absent`), so that nothing of vLLM's C++ is built. Operations give the tensors that a kernel writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from absent import from_sources
from sources import fetch_sources

PACKAGES = ("vllm==0.33.0",)
_GPU, _WARM = "v1.worker.gpu", "model_executor.warmup"
REAL = (
    *(f"{_GPU}.{name}" for name in ("input_batch", "block_table", "buffer_utils", "structured_outputs")),
    *(f"{_GPU}.sample.{name}" for name in ("min_p", "bad_words", "penalties", "logprob", "logit_bias", "gumbel")),
    *(f"{_GPU}.sample.{name}" for name in ("output", "prompt_logprob")),
    *(f"{_GPU}.metrics.logits", f"{_GPU}.mm.rope", "v1.sample.ops.topk_topp_triton", "v1.sample.rejection_sampler"),
    *("v1.spec_decode.utils", "v1.worker.mamba_utils", "utils.math_utils"),
)
Operation = tuple[Callable[..., Any], Callable[..., Any], Sequence[Any]] | tuple[Any, Any, Sequence[Any], float]


def fetch(folder: Path) -> None:
    """Unpack vLLM's Python from its source distribution, whose version has to be said where it is not built."""
    version = PACKAGES[0].partition("==")[2]
    fetch_sources(folder, PACKAGES[0], "vllm/", {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": version})


def part(name: str) -> Any:
    """One of vLLM's modules."""
    return import_module(f"vllm.{name}")


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    import triton

    folder = next(Path(path) for path in sys.path if Path(path, "vllm", "v1").is_dir())
    from_sources("vllm", folder, REAL)
    kernels: Any = import_module("vllm.triton_utils")
    kernels.triton, kernels.tl = triton, triton.language
    names = ("vllm_batches", "vllm_sampling", "vllm_speculation")
    return {name: row for module in names for name, row in import_module(module).operations().items()}
