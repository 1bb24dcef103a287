"""Random kernels, level against level and against machine code: a few in every run, 2,000 under `slow`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.generator import STEPS, Writer, generate
from fuzz.run import complaint
from processors import WIDTHS

ONCE_WRONG = (9, 13, 38, 319, 574, 726)  # scans, reshapes, transposes and argmin: their layouts disagreed
BATCH = 50  # kernels a slow test


@pytest.fixture(scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_a_seed_gives_the_same_kernel() -> None:
    assert generate(7) == generate(7)
    assert generate(7).source != generate(8).source


def test_kernels_use_every_step_and_every_frame() -> None:
    text = "\n".join(generate(seed).source for seed in range(200))
    for part in (
        "tl.dot",
        "tl.uint8",
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


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("seed", [*range(8), *ONCE_WRONG])
@pytest.mark.parametrize("target", ["generic", "cpu"])
def test_levels_agree(target: str, seed: int, tmp_path: Path) -> None:
    found = complaint(seed, target, tmp_path)
    assert found is None, f"\n{found}"


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("target", WIDTHS)
def test_instruction_sets(target: str, tmp_path: Path) -> None:
    found = [text for seed in range(3 * BATCH) if (text := complaint(seed, target, tmp_path))]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("first", range(0, 2000, BATCH))
@pytest.mark.parametrize("target", ["generic", "cpu"])
def test_many_kernels(target: str, first: int, tmp_path: Path) -> None:
    found = [text for seed in range(first, first + BATCH) if (text := complaint(seed, target, tmp_path))]
    assert not found, "\n".join(found)


@pytest.mark.usefixtures("own_cache")
def test_prefetches_along_columns(tmp_path: Path) -> None:
    """Of 64 bytes, which the table of limits took for 64 rows."""
    pytest.importorskip("dpctl")
    assert complaint(58, "xe:pvc", tmp_path) is None


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("first", range(0, 200, BATCH))
def test_kernels_on_xe(first: int, tmp_path: Path) -> None:
    pytest.importorskip("dpctl")
    found = [text for seed in range(first, first + BATCH) if (text := complaint(seed, "xe:pvc", tmp_path))]
    assert not found, "\n".join(found)
