"""vLLM's kernels that its CPU runner compiles, from its source distribution, each with a loop in plain torch.

Kernels' modules are vLLM's own; what they import besides each other (configuration, platforms, logging) stands in
(`absent`), so that nothing of vLLM's C++ is built. Operations give the tensors that a kernel writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from absent import from_sources

PACKAGES = ("vllm==0.33.0",)
BUILD = ("setuptools==80.9.0", "setuptools-scm", "setuptools-rust", "wheel", "packaging", "jinja2")
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
    """Download the source distribution, whose metadata asks for the tools it would be built with, and unpack it."""
    tools = folder / "tools"
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "--target", str(tools), *BUILD], check=True)
    path = os.pathsep.join([str(tools), os.environ.get("PYTHONPATH", "")])
    version = PACKAGES[0].partition("==")[2]
    environment = {"PYTHONPATH": path, "VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": version}
    command = [*pip, "download", "-q", "--no-deps", "--no-binary", "vllm", "--no-build-isolation", *PACKAGES]
    subprocess.run([*command, "-d", str(folder)], check=True, env=os.environ | environment)
    with tarfile.open(next(folder.glob("vllm-*.tar.gz"))) as archive:
        for member in archive.getmembers():
            _, _, member.name = member.name.partition("/")
            if member.name.startswith("vllm/") and member.name.endswith(".py"):
                archive.extract(member, folder, filter="data")
    folder.joinpath(f"vllm-{version}.dist-info").mkdir(exist_ok=True)


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
