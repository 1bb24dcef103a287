"""What is measured on GPUs: the texts of kernels, here compiled for the CPU, and how contenders are checked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mltriton import kernels
from mltriton.errors import ExecutionError, OptionError
from mltriton.tools import gpu_bench
from mltriton.tools.bench import library_table
from mltriton.tools.side_by_side import OURS, Measurement, Times

torch = pytest.importorskip("torch")
SOURCES = Path(__file__).parents[2] / "benchmarks" / "gpu" / "sources"


@pytest.fixture(scope="module")
def rows() -> ModuleType:
    return gpu_bench.load_both(SOURCES / "memory_bound.py")[OURS]


@pytest.fixture(scope="module")
def products() -> ModuleType:
    return gpu_bench.load_both(SOURCES / "products.py")[OURS]


X = torch.randn(37, 1000, generator=torch.Generator().manual_seed(3))
W, B = torch.randn(2, 1000, generator=torch.Generator().manual_seed(4))


def test_elementwise(rows: ModuleType) -> None:
    assert torch.equal(rows.add(X, X.flip(0), torch.empty_like(X)), X + X.flip(0))
    assert torch.equal(rows.transpose(X, torch.empty(1000, 37)), X.T)
    dropped = rows.dropout(X, torch.empty_like(X), 0.3, 5)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], X[kept] / 0.7)
    assert abs(kept.float().mean().item() - 0.7) < 0.02


def test_norms(rows: ModuleType) -> None:
    out, mean, rstd = torch.empty_like(X), torch.empty(37), torch.empty(37)
    torch.testing.assert_close(rows.softmax(X, out), torch.softmax(X, -1))
    expected = torch.nn.functional.layer_norm(X, (1000,), W, B, 1e-5)
    torch.testing.assert_close(rows.layer_norm(X, W, B, out, mean, rstd, 1e-5), expected)


def test_kernels_of_the_library() -> None:
    """Their texts as modules of their own."""
    losses = gpu_bench.load_both(Path(kernels.__path__[0]) / "losses.py")[OURS]
    labels, loss, gradient = torch.randint(1000, (37,)), torch.empty(37), torch.empty_like(X)
    losses.cross_entropy_launch(X, labels, loss, gradient).run()
    expected = kernels.cross_entropy_with_gradient(X, labels)
    assert torch.equal(loss, expected[0]) and torch.equal(gradient, expected[1])


def test_products(products: ModuleType) -> None:
    a, b = torch.randn(130, 70), torch.randn(70, 140)
    torch.testing.assert_close(products.matmul(a, b, torch.empty(130, 140)), a @ b, atol=1e-4, rtol=1e-4)
    q, k, v = torch.randn(3, 1, 2, 128, 32)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(products.attention(q, k, v, torch.empty_like(q)), expected, atol=1e-4, rtol=1e-4)


def test_a_source_without_triton(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_text("import torch\n")
    with pytest.raises(OptionError, match="does not import triton"):
        gpu_bench.load_both(file)


class Turns:
    """A clock by which the first contender takes 1 ms, the second 2, ..."""

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def estimate(self, run: Any) -> float:
        return 4.0

    def times(self, contenders: Any, rounds: int) -> dict[str, list[float]]:
        self.rounds = rounds
        return {name: [number + 1.0] * rounds for number, name in enumerate(contenders)}


def test_contenders_are_checked_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_bench, "Clock", Turns)
    monkeypatch.setattr(gpu_bench, "copy_of", lambda size: lambda: size)
    contenders = {OURS: lambda: X * 2, "torch": lambda: X + X}
    row = gpu_bench.compared_on_gpu("job", "1", contenders, work=8.0, expected=lambda: X * 2, tolerance=0)
    assert row.times == {OURS: Times(1e-3, 1e-3), "torch": Times(2e-3, 2e-3), "copy": Times(3e-3, 3e-3)}
    assert (row.ratio_to("torch"), row.ratio_to("copy")) == (2, 3)
    with pytest.raises(ExecutionError, match="the result of job 1 of mltriton is wrong"):
        gpu_bench.compared_on_gpu("job", "1", contenders, work=8.0, expected=lambda: X * 3)


def test_table() -> None:
    rows = [Measurement("job", str(n), {OURS: Times(1, 1), "copy": Times(n, n)}, 2e9, "GB/s") for n in (2, 8)]
    rows.append(Measurement("other", "1", {OURS: Times(1, 1)}))
    table = library_table("title", rows)
    assert [str(cell) for cell in table.columns[-1].cells] == ["2.00", "8.00", "-", "4.00", "-"]
