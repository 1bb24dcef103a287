"""FlashAttention forward, 1k to 4k tokens, head dimension 64 and 128, causal and not, against torch's own."""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.tools import jobs
from mltriton.tools.side_by_side import Measurement, compared


def measurements(quick: bool) -> Iterator[Measurement]:
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        for sequence in (256,) if quick else (1024, 2048, 4096):
            for dim in (64, 128):
                for causal in (False, True):
                    job = jobs.attention(1, max(2, 4096 // sequence), sequence, dim, causal, dtype)
                    yield compared(job.name, job.problem, job.contenders, job.work, job.unit)
