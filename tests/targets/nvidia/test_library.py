"""The library with the blocks, warps and stages that it chooses for NVIDIA GPUs: kernels fit, on each of them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from mltriton import kernels
from mltriton.kernels.attention_blocks import blocks_on
from mltriton.runtime.jit import JITFunction
from mltriton.targets.nvidia import ptxas
from mltriton.targets.registry import spec


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[Any]:
    """What launches would run, which are compiled to PTX and not made."""
    found: list[Any] = []

    def launch(self: JITFunction, grid: Any, shape: Any, everything: Any, kwargs: Any) -> Any:
        options = {name: kwargs[name] for name in shape.option_names}
        found.append(self.compiled_for(shape.pick(everything), options))
        return found[-1]

    for module in [module for name, module in sys.modules.items() if name.startswith(f"{kernels.__name__}.")]:
        for kernel in [value for value in vars(module).values() if isinstance(value, JITFunction)]:
            kernel.shapes.clear()  # Other tests have launched it: launches of the same kind would not come by.
    monkeypatch.setattr(JITFunction, "launch", launch)
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    return found


FEW = [("cuda:89", 128, "float16"), ("cuda:90", 64, "float32"), ("cuda:90", 128, "float16")]
ALL = [(f"cuda:{of}", dim, dtype) for of in (80, 89, 90) for dim in (64, 128, 256) for dtype in ("float16", "float32")]


@pytest.mark.parametrize(
    ("target", "dim", "dtype"),
    [*FEW, *(pytest.param(*case, marks=pytest.mark.slow) for case in ALL if case not in FEW)],
)
def test_attention(compiled: list[Any], target: str, dim: int, dtype: str) -> None:
    q, k, v, o, do = (np.ones((1, 2, 200, dim), dtype) for _ in range(5))
    kernels.flash_attention(q, k, v, causal=True, target=target)
    kernels.flash_attention_backward(do, q, k, v, o, np.ones((1, 2, 200), np.float32), causal=True, target=target)
    assert all(0 <= kernel.metadata.shared <= spec(target).shared_bytes for kernel in compiled)
    stages = {kernel.name: kernel.metadata.num_stages for kernel in compiled}
    if (target, dim, dtype) == ("cuda:90", 64, "float32"):
        assert stages["attention_kernel"] == 3
    if target == "cuda:90" and dtype == "float16" and dim <= 128:
        names = "attention_kernel", "attention_backward_queries_kernel", "attention_backward_keys_kernel"
        assert tuple(stages) == names
    else:
        assert 1 <= stages["attention_backward_kernel"] <= 3


@pytest.mark.parametrize("form", ["descriptor", "block_pointer"])
def test_products_are_copied_ahead(compiled: list[Any], form: Any) -> None:
    """Through descriptors and block pointers, too: by 16 bytes a lane, or by the engine where there is one."""
    a = np.ones((512, 512), "float16")
    kernels.matmul(a, a, form, target="cuda:80")
    ptx = compiled[-1].asm["ptx"]
    assert "cp.async.cg.shared.global" in ptx and "cp.async.ca" not in ptx and "ld.global" not in ptx
    kernels.matmul(a, a, form, target="cuda:90")
    ptx = compiled[-1].asm["ptx"]
    assert "cp.async.bulk.tensor.3d.shared" in ptx and "cp.async.bulk.tensor.3d.global" in ptx  # with the batch
    assert not any(access in ptx for access in ("cp.async.ca", "cp.async.cg", "ld.global", "st.global"))


def test_keys_and_values_are_copied_ahead(compiled: list[Any]) -> None:
    q = np.ones((1, 2, 256, 64), "float16")
    kernels.flash_attention(q, q, q, causal=True, target="cuda:80")
    ptx = compiled[-1].asm["ptx"]
    assert "cp.async.cg.shared.global" in ptx and "cp.async.ca" not in ptx
    assert "ld.global.b16" not in ptx
    kernels.flash_attention(q, q, q, causal=True, target="cuda:90")
    ptx = compiled[-1].asm["ptx"]
    assert "cp.async.bulk.tensor.4d.shared" in ptx
    assert not any(access in ptx for access in ("cp.async.ca", "cp.async.cg", "ld.global"))


def test_the_gpu_at_hand_takes_the_blocks_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mltriton.targets.nvidia.spec.variant_here", lambda: "90")
    q = np.zeros((1, 1, 256, 128), np.float16)
    assert blocks_on("cuda", q) == blocks_on("cuda:90", q) != blocks_on("cuda:80", q)


def in_loops(text: str) -> list[str]:
    """The lines of a program inside of its outermost loops."""
    found, outside = list[str](), None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        outside = None if outside is not None and indent <= outside else outside
        if outside is not None:
            found.append(line)
        elif " scf.for " in line:
            outside = indent
    return found


def test_blocks_of_either_order_are_copied_ahead(compiled: list[Any]) -> None:
    """What loops of attention and its gradients multiply arrives before it is taken: no loop makes barriers."""
    q, k, v, o, do = (np.ones((1, 2, 256, 128), "float16") for _ in range(5))
    kernels.flash_attention(q, k, v, target="cuda:90")
    kernels.flash_attention_backward(do, q, k, v, o, np.ones((1, 2, 256), np.float32), target="cuda:90")
    for kernel in compiled:
        assert "ttng.init_barrier" not in "\n".join(in_loops(kernel.asm["ttg"])), kernel.name
    assert sum("ttg.warp_specialize" in kernel.asm["ttg"] for kernel in compiled) == 3
