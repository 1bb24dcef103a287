"""The kernels that `mltriton bench -t cuda` times, at sizes that neither blocks nor copies divide, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mltriton.tools.gpu_bench import load_both
from mltriton.tools.side_by_side import OURS

torch = pytest.importorskip("torch")
SOURCE = Path(__file__).parents[2] / "benchmarks" / "gpu" / "sources" / "memory_bound.py"
SHAPES = [(100, 72), (64, 1000), (257, 4096), (130, 5000)]


@pytest.fixture(scope="module")
def timed() -> Any:
    return load_both(SOURCE)[OURS]


def random(*shape: int, dtype: str = "float32") -> Any:
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
def test_transpose(timed: Any, shape: tuple[int, int], dtype: str) -> None:
    x = (100 * random(*shape)).to(getattr(torch, dtype))
    assert torch.equal(timed.transpose(x, torch.empty(*shape[::-1], device="cuda", dtype=x.dtype)), x.T)


@pytest.mark.parametrize("shape", [*SHAPES, (37, 20_000), (5, 70_000), (3, 128_256)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("in_place", [False, True])
def test_cross_entropy(timed: Any, shape: tuple[int, int], dtype: str, in_place: bool) -> None:
    """Loops that load ahead, also what they overwrite."""
    logits, labels = random(*shape, dtype=dtype), torch.randint(shape[1], shape[:1], device="cuda")
    wide = logits.double()
    out, loss = logits if in_place else torch.empty_like(logits), torch.empty(shape[0], device="cuda")
    made = timed.cross_entropy(logits, labels, loss, out)
    hot = torch.nn.functional.one_hot(labels, shape[1])
    rounding = 1e-5 if dtype == "float32" else 8e-3
    torch.testing.assert_close(made.double(), torch.softmax(wide, -1) - hot, rtol=rounding, atol=rounding)
    expected = torch.nn.functional.cross_entropy(wide, labels, reduction="none")
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [*SHAPES, (300, 16_384)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("in_place", [False, True])
def test_layer_norm_backward(timed: Any, shape: tuple[int, int], dtype: str, in_place: bool) -> None:
    """Rows in turn, each loaded while the one before is worked on; dx may take the place of dy."""
    x, dy, w = random(*shape, dtype=dtype), random(*shape, dtype=dtype), random(shape[1], dtype=dtype)
    wide = x.double()
    mean, rstd = wide.mean(-1), (wide.var(-1, correction=0) + 1e-5).rsqrt()
    parts, sums = torch.empty(2, 9, shape[1], device="cuda"), torch.empty(2, shape[1], device="cuda")
    exact = torch.ops.aten.native_layer_norm_backward(
        dy.double(), wide, (shape[1],), mean[:, None], rstd[:, None], w.double(), w.double(), [True] * 3
    )
    dx = dy if in_place else torch.empty_like(dy)
    timed.layer_norm_backward(dx, dy, *sums, *parts, x, w, mean.float(), rstd.float())
    rounding = 1e-4 if dtype == "float32" else 4e-2
    for found, wanted in zip((dx, *sums), exact, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(("positions", "heads", "dim"), [(5, 3, 16), (33, 20, 64), (7, 40, 128)])
def test_rope(timed: Any, positions: int, heads: int, dim: int) -> None:
    x, angles = random(positions, heads, dim, dtype="bfloat16"), random(positions, dim // 2)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.float().chunk(2, -1)
    turned = [first * cos[:, None] - second * sin[:, None], second * cos[:, None] + first * sin[:, None]]
    found = timed.rope(x, cos, sin, torch.empty_like(x))
    torch.testing.assert_close(found.float(), torch.cat(turned, -1), rtol=8e-3, atol=8e-3)
