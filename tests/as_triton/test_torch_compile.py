"""torch.compile with `torch._inductor.config.cpu_backend = "triton"`, against eager, in a fresh process."""

from __future__ import annotations

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


@pytest.mark.slow
def test_all_programs(tmp_path: Path) -> None:
    failed = {name: says for name, says in run(tmp_path).items() if not says.startswith("forward")}
    assert not failed
