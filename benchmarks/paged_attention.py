"""Decoding over a paged cache: 8 sequences of about 4k tokens, 32 heads on 8, dimension 128, in both forms.

Against torch (pages gathered, then `scaled_dot_product_attention` for each sequence), against each other (how many
times as fast the form of warps is), and against reading as many bytes from memory: the share of the read bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.tools import jobs
from mltriton.tools.side_by_side import OURS, Measurement, Times, measure

LENS = (4096, 4001, 3900, 3801, 4090, 3500, 4033, 3777)
BLOCK = 65536  # numbers that a program reads


@triton.jit
def read_kernel(x_ptr, sums_ptr, BLOCK: tl.constexpr):
    """The sum of a block, which takes as long as reading it."""
    i = tl.program_id(0)
    tl.store(sums_ptr + i, tl.sum(tl.load(x_ptr + i.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)), 0))


def measurements(quick: bool) -> Iterator[Measurement]:
    lens = (500, 300) if quick else LENS
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        warps, workgroups = (jobs.paged_attention(lens, 32, 8, 128, form, dtype) for form in (True, False))
        programs = max(1, round(warps.work / (4 * BLOCK)))
        x, sums = np.ones(programs * BLOCK, np.float32), np.empty(programs, np.float32)

        def read(x: Any = x, sums: Any = sums, programs: int = programs) -> None:
            read_kernel[(programs,)](x, sums, BLOCK=BLOCK)

        times = measure(
            {"warps": warps.contenders[OURS], "workgroups": workgroups.contenders[OURS], "reading": read}
            | {name: run for name, run in warps.contenders.items() if name != OURS},
            budget=20.0,
        )
        reading, scale = times["reading"], warps.work / x.nbytes
        times["reading"] = Times(reading.minimum * scale, reading.median * scale)
        for name in ("warps", "workgroups"):
            for other in ("torch", "reading"):
                if other in times:
                    both = {OURS: times[name], other: times[other]}
                    yield Measurement(f"{name} {dtype}, against {other}", warps.problem, both, warps.work, "GB/s")
        both = {OURS: times["warps"], "workgroups": times["workgroups"]}
        yield Measurement(f"warps {dtype}, against workgroups", warps.problem, both, warps.work, "GB/s")
