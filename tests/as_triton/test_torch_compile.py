"""torch.compile with `torch._inductor.config.cpu_backend = "triton"`, against eager, and torch's own operations.

Torch is slow to begin: `parts` has several programs run by one process, of which each test looks at one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from .test_import import SOURCES, python

HERE = Path(__file__).parent
PROGRAMS, OPERATIONS = (str(HERE / f"{name}.py") for name in ("torch_programs", "operations"))
SOME = ("pointwise", "sums of columns", "layer norm", "product", "index add", "running sum", "integers")
# Of each way in which Inductor writes kernels a few.
SOME_OPERATIONS = (
    *("atan2", "floor_divide", "logit", "pow", "where", "argmin", "logsumexp", "prod", "std"),
    *("cat", "constant_pad_nd", "flip", "gather", "index_add", "scatter_reduce", "cumsum", "cummax"),
    *("nn.functional.layer_norm", "nn.functional.max_pool2d", "nn.functional.cross_entropy"),
)


def run(directory: Path, *arguments: str, seconds: int = 240) -> str:
    """What a program prints whose caches are new."""
    pytest.importorskip("torch")
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"), "MLTRITON_CACHE_DIR": str(directory / "kernels")}
    paths = os.pathsep.join((SOURCES, str(HERE)))
    return python("-W", "ignore", *arguments, seconds=seconds, PYTHONPATH=paths, **folders)


def by_name(printed: str) -> dict[str, str]:
    """What each of `torch_programs.py` says."""
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


RUNNER = """
import runpy
import sys
import traceback
import mltriton.as_triton

for name in sys.argv[1:]:
    print(f"== {name}", flush=True)
    try:
        runpy.run_path(f"{name}.py")
    except Exception:
        traceback.print_exc(file=sys.stdout)
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each part prints, and the kernels that are cached then."""
    pytest.importorskip("torch")
    directory = tmp_path_factory.mktemp("parts")
    (directory / "kernels.py").write_text(KERNELS)
    for name, text in PARTS.items():
        (directory / f"{name}.py").write_text(text)
    (directory / "runner.py").write_text(RUNNER)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        printed = run(directory, "runner.py", *PARTS)
    found = (part.partition("\n") for part in printed.split("== ")[1:])
    return {name: says for name, _, says in found} | {
        "cached": "\n".join(map(str, directory.glob("kernels/??/*.entry")))
    }


def test_some_programs(parts: dict[str, str]) -> None:
    assert by_name(parts["programs"]) == dict.fromkeys(SOME, "forward, backward") | {"integers": "forward"}
    assert parts["cached"]


def test_worker_processes_compile(parts: dict[str, str]) -> None:
    assert by_name(parts["workers"]) == {"softmax": "forward, backward"}


def test_some_operations(parts: dict[str, str]) -> None:
    assert parts["samples"].startswith("100.00 %"), parts["samples"]


def test_as_near_as_eager_torch(parts: dict[str, str]) -> None:
    assert parts["judge"] == "True False\n"


def test_what_kernels_write_is_known(parts: dict[str, str]) -> None:
    assert parts["writes"].splitlines() == ["plain out", "branches out y", "nothing"]


def test_names_that_a_kernel_imports_or_annotates(parts: dict[str, str]) -> None:
    assert parts["named"] == "right\n"


def test_torch_that_looked_before_is_a_warning() -> None:
    pytest.importorskip("torch")
    printed = python("-c", "import torch._inductor.runtime.triton_compat\nimport mltriton.as_triton")
    assert "RuntimeWarning: torch's compiler has looked for triton already" in printed


WRITES = """
import torch
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


JUDGE = """
import torch
from operations import Sample, as_near

sample = Sample([torch.randn(100).half()], lambda tensors: tensors[0].sum())
eager = sample.call(sample.tensors)
print(as_near(sample, eager, eager), as_near(sample, eager + 1, eager))
"""
WORKERS = """
import mltriton.compiler.build
import torch_programs

def built(job, key):
    raise AssertionError(f"{job.name} is compiled here")

kept, mltriton.compiler.build.built = mltriton.compiler.build.built, built
torch_programs.main(["softmax"], processes=2)
mltriton.compiler.build.built = kept
"""
PARTS = {
    "writes": WRITES,
    "named": NAMED,
    "judge": JUDGE,
    "programs": f"import torch_programs\ntorch_programs.main({SOME})",
    "workers": WORKERS,
    "samples": f"""
import operations
operations.main(["--samples", "1", "--types", "float32", "--processes", "0", *{SOME_OPERATIONS}])
""",
}


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
    assert "right" in python(
        "-W", "ignore", "program.py", seconds=1200, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache")
    )


@pytest.mark.slow
def test_all_programs(tmp_path: Path) -> None:
    said = by_name(run(tmp_path, PROGRAMS, seconds=1200))
    assert said
    assert not {name: says for name, says in said.items() if not says.startswith("forward")}


@pytest.mark.slow
def test_all_operations(tmp_path: Path) -> None:
    assert run(tmp_path, OPERATIONS, "--samples", "1", "--types", "float32", seconds=7200)
