"""FlashAttention forward and backward, 1k to 4k tokens, head dimension 64 and 128, causal and not, against torch's own;
both through torch's automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mltriton.errors import OptionError
from mltriton.kernels import flash_attention
from mltriton.tools import jobs
from mltriton.tools.side_by_side import OURS, Measurement, compared


def measurements(quick: bool) -> Iterator[Measurement]:
    if not jobs.has_torch():
        raise OptionError("attention_backward compares with torch, which is not installed", hint="pip install torch")
    for dtype in ("float32", "bfloat16"):
        for sequence in (256,) if quick else (1024, 2048, 4096):
            for dim in (64, 128):
                for causal in (False, True):
                    yield _both_passes((1, max(2, 4096 // sequence), sequence, dim), causal, dtype)


def _both_passes(shape: tuple[int, int, int, int], causal: bool, dtype: str) -> Measurement:
    """Ours and torch's, on the same random inputs; causal attention counts as half the work."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    *inputs, do = (jobs.random(shape, dtype, seed) for seed in range(4))
    q, k, v = (x.requires_grad_() for x in inputs)

    def both(attend: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(attend(), (q, k, v), do)

    contenders = {
        OURS: both(lambda: flash_attention(q, k, v, causal=causal)),
        "torch": both(lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)),
    }
    batch, heads, sequence, dim = shape
    work = (4.0 + 10.0) * batch * heads * sequence * sequence * dim * (0.5 if causal else 1.0)
    name = f"{'causal ' if causal else ''}attention and gradients {dtype}"
    return compared(name, "x".join(map(str, shape)), contenders, work)
