"""Softmax and layer norm over rows, against torch."""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.tools import jobs
from mltriton.tools.side_by_side import Measurement, compared

SHAPES = ((512, 512), (4096, 256), (4096, 1024), (4096, 4096), (2048, 16384))


def measurements(quick: bool) -> Iterator[Measurement]:
    for make in (jobs.softmax, jobs.layer_norm):
        for rows, columns in SHAPES[:2] if quick else SHAPES:
            job = make(rows, columns)
            yield compared(job.name, job.problem, job.contenders, job.work, job.unit)
