"""Random kernels, level against level and against machine code: a few in every run, 2,000 under `slow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.generator import STEPS, Writer, generate
from fuzz.run import complaint

ONCE_WRONG = (9, 13, 38, 319, 574, 726)  # scans, reshapes, transposes and argmin: their layouts disagreed
BATCH = 50  # kernels a slow test


def test_a_seed_gives_the_same_kernel() -> None:
    assert generate(7) == generate(7)
    assert generate(7).source != generate(8).source


def test_kernels_use_every_step_and_every_frame() -> None:
    text = "\n".join(generate(seed).source for seed in range(200))
    for part in (
        "tl.dot",
        "tl.sum",
        "tl.argmax",
        "tl.cumsum",
        "tl.where",
        "for i in range",
        "if n >",
        "make_block_ptr",
        "tl.trans",
        "bfloat16",
    ):
        assert part in text, part
    assert all(callable(step) for step in STEPS)


def test_the_part_of_one_output_stores_only_that() -> None:
    kernel = generate(3)
    for output in kernel.outputs:
        part = kernel.only(output)
        assert part.outputs == [output]
        assert len(part.source) <= len(kernel.source)


def test_values_are_bounded() -> None:
    for seed in range(50):
        writer = Writer(seed)
        writer.write()
        assert all(var.bound <= 1e6 for var in writer.vars if var.is_float)


@pytest.mark.parametrize("seed", [*range(8), *ONCE_WRONG])
@pytest.mark.parametrize("target", ["generic"])
def test_levels_agree(target: str, seed: int, tmp_path: Path) -> None:
    found = complaint(seed, target, tmp_path)
    assert found is None, f"\n{found}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, BATCH))
@pytest.mark.parametrize("target", ["generic"])
def test_many_kernels(target: str, first: int, tmp_path: Path) -> None:
    found = [text for seed in range(first, first + BATCH) if (text := complaint(seed, target, tmp_path))]
    assert not found, "\n".join(found)
