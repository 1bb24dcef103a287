"""torch.compile with `torch._inductor.config.cpu_backend = "triton"`, against eager, in a fresh process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .test_import import python

PROGRAMS = str(Path(__file__).with_name("torch_programs.py"))
SOME = ("pointwise", "sums of columns", "layer norm", "product", "index add", "running sum", "integers")


def run(directory: Path, *names: str, **environment: str) -> dict[str, str]:
    """What the programs say, by name."""
    pytest.importorskip("torch")
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"), "MLTRITON_CACHE_DIR": str(directory / "kernels")}
    printed = python("-W", "ignore", PROGRAMS, *names, **folders | environment)
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


def test_some_programs(tmp_path: Path) -> None:
    expected = dict.fromkeys(SOME, "forward, backward") | {"integers": "forward"}
    assert run(tmp_path, *SOME) == expected
    assert list((tmp_path / "kernels").glob("??/*.entry"))


def test_worker_processes_compile(tmp_path: Path) -> None:
    threads = {"COMPILE_THREADS": "2", "TORCHINDUCTOR_WORKER_START": "subprocess"}
    assert run(tmp_path, "softmax", **threads) == {"softmax": "forward, backward"}


def test_torch_that_looked_before_is_a_warning() -> None:
    pytest.importorskip("torch")
    printed = python("-c", "import torch._inductor.runtime.triton_compat\nimport mltriton.as_triton")
    assert "RuntimeWarning: torch's compiler has looked for triton already" in printed


WRITES = """
import mltriton.as_triton, torch
from torch._higher_order_ops.triton_kernel_wrap import identify_accessed_tensors
from kernels import KERNELS
x = torch.ones(64)
for kernel in KERNELS:
    found = identify_accessed_tensors(kernel, {"x": x, "y": x, "out": x, "n": 64, "BLOCK": 64}, {})
    print(kernel.__name__, *sorted(dep.name for dep in found.read_writes.writes))
"""
KERNELS = """
import triton
import triton.language as tl

@triton.jit
def plain(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i))

@triton.jit
def branches(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(x + i)
        if k > 3:
            tl.atomic_add(y, tl.sum(total))
    tl.store(out + i, tl.cumsum(total))

@triton.jit
def nothing(x, y, out, n, BLOCK: tl.constexpr):
    tl.device_assert(tl.max(tl.load(x + tl.arange(0, BLOCK))) < n)

KERNELS = (plain, branches, nothing)
"""


# Inductor writes a kernel's text into a file of its own, and the names that the kernel uses before it.
NAMED = """
import torch
import triton
import triton.language as tl
from triton import cdiv
from triton.language import arange, constexpr, load, maximum, store
from triton.language.extra.libdevice import expm1

FLOOR: tl.constexpr = tl.constexpr(0.5)
KIND: constexpr = tl.constexpr(3)

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    for block in range(cdiv(n, BLOCK)):
        i = block * BLOCK + arange(0, BLOCK)
        values = expm1(load(x + i, i < n))
        if KIND == 3:
            values = maximum(values, FLOOR)
        store(out + i, values, i < n)

@torch.compile(fullgraph=True)
def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out

x = torch.randn(200)
torch.testing.assert_close(run(x), torch.expm1(x).clamp(0.5))
print("right")
"""


def test_torch_looks_into_kernels(tmp_path: Path) -> None:
    """What they write is known; the names that they import or annotate are there. In one process: torch is slow to
    begin.
    """
    pytest.importorskip("torch")
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(WRITES + NAMED)
    folder = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    printed = python("-W", "ignore", "-m", "mltriton.as_triton", str(tmp_path / "program.py"), **folder)
    assert printed.splitlines() == ["plain out", "branches out y", "nothing", "right"]


PACKAGED = """
import mltriton.as_triton, torch
from kernels import plain

class Model(torch.nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        torch.library.wrap_triton(plain)[(1,)](x, y, out, 64, BLOCK=64)
        return out.relu()

x, y = torch.randn(64), torch.randn(64)
package = torch._inductor.aoti_compile_and_package(torch.export.export(Model(), (x, y)), package_path="model.pt2")
torch.testing.assert_close(torch._inductor.aoti_load_package(package)(x, y), (x + y).relu())
print("right")
"""


@pytest.mark.slow
def test_packages_of_aot_inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    if shutil.which("g++") is None:
        pytest.skip("AOTInductor needs a C++ compiler")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PACKAGED)
    assert "right" in python("-W", "ignore", "program.py", seconds=600, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"))


@pytest.mark.slow
def test_all_programs(tmp_path: Path) -> None:
    failed = {name: says for name, says in run(tmp_path).items() if not says.startswith("forward")}
    assert not failed
