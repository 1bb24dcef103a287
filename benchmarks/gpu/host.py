"""What the host pays: a launch with four tensors and four numbers, and compiling, against upstream's Triton."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mltriton import kernels
from mltriton.tools.gpu_bench import compile_times, host_times, load_both
from mltriton.tools.side_by_side import Measurement

SOURCES = Path(__file__).parent / "sources"


def measurements(quick: bool) -> Iterator[Measurement]:
    os.environ["MLTRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="mltriton-bench-")
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-bench-")
    import torch

    tensors = [torch.zeros(64, device="cuda", dtype=torch.float16) for _ in range(4)]
    rows = load_both(SOURCES / "memory_bound.py")
    pairs = tuple(tensors[:2]), tuple(tensors[2:])
    calls = {
        "4 tensors, 4 numbers": lambda module: module.nothing(*tensors),
        "the same in tuples": lambda module: module.nothing_of_tuples(*pairs),
    }
    for problem, call in calls.items():
        launches = {name: lambda of=of, call=call: call(of) for name, of in rows.items()}
        yield host_times("launch", problem, launches, rounds=10 if quick else 40)
    yield from _compilations(torch, rows, load_both(SOURCES / "products.py"))


def _compilations(torch: Any, rows: Any, products: Any) -> Iterator[Measurement]:
    """The first launch before was of a kernel of its own, so that nothing is loaded here for the first time."""
    x = torch.randn(256, 1000, device="cuda")
    out, w = torch.empty_like(x), torch.randn(1000, device="cuda")
    norms = load_both(Path(kernels.__path__[0]) / "normalization.py")
    a = torch.randn(256, 256, device="cuda", dtype=torch.float16)
    q = torch.randn(1, 2, 256, 64, device="cuda", dtype=torch.float16)
    calls = {
        "softmax": (rows, lambda m: m.softmax(x, out)),
        "rms norm": (norms, lambda m: m.layer_norm_launch(x, w, None, out, 1e-5).run()),
        "dropout": (rows, lambda m: m.dropout(x, out, 0.3, 5)),
        "matmul": (products, lambda m: m.matmul(a, a, torch.empty_like(a))),
        "attention": (products, lambda m: m.attention(q, q, q, torch.empty_like(q))),
    }
    for job, (modules, call) in calls.items():
        yield compile_times(
            f"compile {job}", "CPU time", {name: lambda of=of, call=call: call(of) for name, of in modules.items()}
        )
