"""Kernels that memory bounds, against upstream's Triton with the same text, torch, and copies of as many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mltriton.language as tl
from mltriton import kernels
from mltriton.kernels.launch import Launch, target_of
from mltriton.kernels.normalization_backward import choose_backward_rows
from mltriton.tools.gpu_bench import compared_on_gpu, load_both
from mltriton.tools.side_by_side import OURS, Measurement

SOURCE = Path(__file__).parent / "sources" / "memory_bound.py"
LIBRARY = Path(kernels.__path__[0])
SHAPES = ((4096, 4096), (8192, 8192), (16384, 2048), (32768, 1024), (4096, 16384))
DTYPES = ("float32", "bfloat16")
EPS = 1e-5


def measurements(quick: bool) -> Iterator[Measurement]:
    import torch

    torch.manual_seed(0)
    for make in (_add, _dropout, _transpose, _softmax, _layer_norm, _layer_norm_backward, _rms_norm):
        for rows, columns in SHAPES[:1] if quick else SHAPES:
            for dtype in DTYPES[:1] if quick else DTYPES:
                yield make(torch, rows, columns, getattr(torch, dtype))
    for positions, heads, dim in ((8192, 32, 128),) if quick else ((8192, 32, 128), (32768, 32, 64), (16384, 40, 128)):
        yield _rope(torch, positions, heads, dim)
    for rows, columns in ((2048, 32000),) if quick else ((4096, 32000), (2048, 128256)):
        yield _cross_entropy(torch, rows, columns)


def _contenders(call: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    """A call of each compiler's module."""
    return {name: lambda module=module: call(module) for name, module in load_both(SOURCE).items()}


def _of_library(
    module: str, launches: Callable[[Any], Launch | list[Launch]], result: Any
) -> dict[str, Callable[[], Any]]:
    """Launches of each compiler's kernels of a module of the library, which give `result`."""

    def contender(own: Any) -> Callable[[], Any]:
        found = launches(own)
        steps = [
            launch._replace(constants={name: _dtype_of(own, value) for name, value in launch.constants.items()}).run
            for launch in ([found] if isinstance(found, Launch) else found)
        ]

        def run() -> Any:
            for step in steps:
                step()
            return result

        return run

    return {name: contender(own) for name, own in load_both(LIBRARY / f"{module}.py").items()}


def _dtype_of(own: Any, constant: Any) -> Any:
    """A dtype, which tables outside of the module have as ours, as the module's own compiler has it."""
    return own.tl.dtype(constant.name) if isinstance(constant, tl.dtype) else constant


def _random(torch: Any, rows: int, columns: int, dtype: Any) -> tuple[Any, Any, str]:
    x = torch.randn(rows, columns, device="cuda", dtype=dtype)
    return x, torch.empty_like(x), f"{rows}x{columns} {str(dtype).removeprefix('torch.')}"


def _add(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, out, problem = _random(torch, rows, columns, dtype)
    y = torch.randn_like(x)
    contenders = _contenders(lambda m: m.add(x, y, out)) | {"torch": lambda: torch.add(x, y, out=out)}
    return compared_on_gpu("add", problem, contenders, work=3.0 * x.nbytes, expected=lambda: x + y)


def _dropout(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, out, problem = _random(torch, rows, columns, dtype)
    contenders = _contenders(lambda m: m.dropout(x, out, 0.3, 5))
    expected = next(iter(contenders.values()))().clone()  # every compiler's random numbers are the same
    share = (expected == 0).float().mean().item()
    assert abs(share - 0.3) < 0.01, share
    for name, run in contenders.items():
        made = run()
        assert torch.equal(made == 0, expected == 0), name
        torch.testing.assert_close(made, expected, rtol=1e-6 if x.dtype == torch.float32 else 8e-3, atol=0)
    contenders["torch"] = lambda: torch.nn.functional.dropout(x, 0.3)
    return compared_on_gpu("dropout", problem, contenders, work=2.0 * x.nbytes)


def _transpose(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, _, problem = _random(torch, rows, columns, dtype)
    out = torch.empty(columns, rows, device="cuda", dtype=dtype)
    contenders = _contenders(lambda m: m.transpose(x, out)) | {"torch": lambda: out.copy_(x.T)}
    return compared_on_gpu("transpose", problem, contenders, work=2.0 * x.nbytes, expected=lambda: x.T, tolerance=0)


def _softmax(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, out, problem = _random(torch, rows, columns, dtype)
    contenders = _contenders(lambda m: m.softmax(x, out)) | {"torch": lambda: torch.softmax(x, -1)}
    return compared_on_gpu(
        "softmax", problem, contenders, work=2.0 * x.nbytes, expected=lambda: torch.softmax(x.float(), -1)
    )


def _layer_norm(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, out, problem = _random(torch, rows, columns, dtype)
    w, b = torch.randn(2, columns, device="cuda", dtype=dtype)
    mean, rstd = torch.empty(2, rows, device="cuda")
    by_torch = torch.nn.functional.layer_norm
    contenders = _contenders(lambda m: m.layer_norm(x, w, b, out, mean, rstd, EPS))
    contenders["torch"] = lambda: by_torch(x, (columns,), w, b, EPS)
    expected = lambda: by_torch(x.float(), (columns,), w.float(), b.float(), EPS)  # noqa: E731
    return compared_on_gpu("layer norm", problem, contenders, work=2.0 * x.nbytes, expected=expected)


def _layer_norm_backward(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, dx, problem = _random(torch, rows, columns, dtype)
    dy, w = torch.randn_like(x), torch.randn(columns, device="cuda", dtype=dtype)
    blocks = choose_backward_rows(x, target_of(None, x))
    parts = torch.empty(2, blocks.programs, columns, device="cuda")
    sums = torch.empty(2, columns, device="cuda", dtype=dtype)
    wide = x.float()
    mean, rstd = wide.mean(-1), (wide.var(-1, correction=0) + EPS).rsqrt()
    backward = torch.ops.aten.native_layer_norm_backward
    arguments = (x, (columns,), mean[:, None], rstd[:, None], w, w, [True] * 3)
    contenders = _of_library(
        "normalization_backward",
        lambda m: m.norm_backward_launches(dx, dy, sums, parts, x, w, EPS, blocks, mean, rstd),
        dx,
    ) | {"torch": lambda: backward(dy, *arguments)[0]}
    exact = (wide, (columns,), mean[:, None], rstd[:, None], w.float(), w.float(), [True] * 3)
    expected = lambda: backward(dy.float(), *exact)[0]  # noqa: E731
    return compared_on_gpu("layer norm backward", problem, contenders, work=3.0 * x.nbytes, expected=expected)


def _rms_norm(torch: Any, rows: int, columns: int, dtype: Any) -> Measurement:
    x, out, problem = _random(torch, rows, columns, dtype)
    w = torch.randn(columns, device="cuda", dtype=dtype)
    by_torch = torch.nn.functional.rms_norm
    warps = load_both(SOURCE)[OURS].warps_of(columns)
    contenders = _of_library("normalization", lambda m: m.layer_norm_launch(x, w, None, out, EPS).on(None, warps), out)
    contenders["torch"] = lambda: by_torch(x, (columns,), w, EPS)
    expected = lambda: by_torch(x.float(), (columns,), w.float(), EPS)  # noqa: E731
    return compared_on_gpu("rms norm", problem, contenders, work=2.0 * x.nbytes, expected=expected)


def _rope(torch: Any, positions: int, heads: int, dim: int) -> Measurement:
    x = torch.randn(positions, heads, dim, device="cuda", dtype=torch.bfloat16)
    angles = torch.rand(positions, dim // 2, device="cuda") * 6
    cos, sin, out = angles.cos(), angles.sin(), torch.empty_like(x)

    def expected() -> Any:
        first, second = x.float().chunk(2, -1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat([first * c - second * s, second * c + first * s], -1)

    work = 2.0 * x.nbytes + cos.nbytes + sin.nbytes
    contenders = _of_library("rotary", lambda m: m.rope_launch(x, cos, sin, out), out)
    return compared_on_gpu("rope", f"{positions}x{heads}x{dim}", contenders, work=work, expected=expected)


def _cross_entropy(torch: Any, rows: int, columns: int) -> Measurement:
    """Loss and gradient: logits are read once from memory and once more, from the cache where it holds a row."""
    logits = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(columns, (rows,), device="cuda")
    loss, gradient = torch.empty(rows, device="cuda"), torch.empty_like(logits)

    def expected() -> Any:
        return torch.softmax(logits.float(), -1).scatter_add(
            1, labels[:, None], torch.full((rows, 1), -1.0, device="cuda")
        )

    target = target_of(None, logits)
    contenders = _of_library(
        "losses", lambda m: m.cross_entropy_launch(logits, labels, loss, gradient, target=target), gradient
    )
    return compared_on_gpu(
        "cross entropy", f"{rows}x{columns}", contenders, work=2.0 * logits.nbytes, expected=expected
    )
