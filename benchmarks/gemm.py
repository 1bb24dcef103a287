"""Squares of 512 to 4096 in float32 and bfloat16, against numpy (OpenBLAS) and torch (MKL, oneDNN)."""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.tools import jobs
from mltriton.tools.side_by_side import Measurement, compared


def measurements(quick: bool) -> Iterator[Measurement]:
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        for size in (256, 512) if quick else (512, 1024, 2048, 4096):
            job = jobs.gemm(size, size, size, dtype)
            yield compared(job.name, job.problem, job.contenders, job.work, job.unit)
