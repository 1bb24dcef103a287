"""Random programs against an evaluator of their own: some in every run, thousands under `slow`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.blocks import Block
from fuzz.check import complaint, shrunk
from fuzz.evaluator import encoded, evaluate
from fuzz.programs import STYLES, program
from fuzz.scratch import scratch_bytes, scratch_of_nan
from ptx_emulator.launch import install

# Programs of each style on the CPU; half as many on other targets.
COUNTS = {"control": 10, "shapes": 12, "rows": 4, "dots": 4, "memory": 12, "chains": 2, "products": 4}
TARGETS = ["generic", "cpu", "xe:pvc/levels"]
SHOWN, LARGE = (1029, 1098, 1198, 7103), (179, 215)
SHOWN_ON_CPU = (153,)
BATCH = 50  # programs a slow test


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def _complaints(style: str, target: str, seeds: Iterable[int], directory: Path) -> str:
    return "\n".join(text for seed in seeds if (text := complaint(seed, style, target, directory, shrink=False)))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("target", TARGETS)
def test_levels_agree_with_the_evaluator(target: str, style: str, tmp_path: Path) -> None:
    if style == "memory" and target != "cpu":
        pytest.skip("one thread runs these")
    assert not _complaints(style, target, range(COUNTS[style] // (1 if target == "cpu" else 2)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, BATCH))
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("target", TARGETS)
def test_many_programs(target: str, style: str, first: int, tmp_path: Path) -> None:
    if style == "memory" and target != "cpu":
        pytest.skip("one thread runs these")
    assert not _complaints(style, target, range(first, first + BATCH), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 10))
@pytest.mark.parametrize("style", STYLES)
def test_programs_on_xe(style: str, first: int, tmp_path: Path) -> None:
    pytest.importorskip("dpctl")
    if style == "memory":
        pytest.skip("one thread runs these")
    assert not _complaints(style, "xe:pvc", range(first, first + 10), tmp_path)


def test_chains_on_a_cpu(tmp_path: Path) -> None:
    """A block that a dot takes transposed and a sum takes as it is: what it is made of has to stay."""
    assert not _complaints("chains", "cpu", SHOWN_ON_CPU, tmp_path)


def test_chains_on_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs of which each has shown a mistake: layouts, a race, and how a block lies in shared memory."""
    install(monkeypatch)
    assert not _complaints("chains", "cuda:90", SHOWN, tmp_path)


@pytest.mark.slow
def test_large_chains_on_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch)
    assert not _complaints("chains", "cuda:90", LARGE, tmp_path)


@pytest.mark.parametrize(("style", "seed"), [("dots", 466), ("shapes", 398), ("products", 1022)])
def test_programs_on_an_emulated_gpu(style: str, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Masks of left operands; warps that gather blocks of different sizes; sums that wrap."""
    install(monkeypatch)
    assert not _complaints(style, "cuda:90", [seed], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 10))
@pytest.mark.parametrize("style", ["control", "dots", "products", "rows", "shapes"])
def test_many_programs_on_an_emulated_gpu(
    style: str, first: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch)
    assert not _complaints(style, "cuda:90", range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 10))
def test_many_chains_on_an_emulated_gpu(first: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch)
    assert not _complaints("chains", "cuda:90", range(first, first + 10), tmp_path)


def test_a_seed_gives_the_same_program() -> None:
    assert program(7, "control").source == program(7, "control").source
    assert program(7, "control").source != program(8, "control").source


def test_programs_are_made_of_everything() -> None:
    text = "\n".join(program(seed, style).source for style in STYLES for seed in range(80))
    functions = "reshape permute trans expand_dims broadcast_to flip sort topk join split interleave cat gather dot"
    combines = "sum max min xor_sum reduce_or argmax argmin reduce associative_scan cumsum cumprod"
    for name in f"{functions} {combines}".split():
        assert f"tl.{name}(" in text, name
    for part in ("while ", "for ", "break", "return", "else:", "& (flag > 0)", "<=", ".to(tl.uint32)", "tl.bfloat16"):
        assert part in text, part


def _run(text: str, dtypes: dict[str, str] | None = None, **args: Any) -> None:
    evaluate(f"def kernel({', '.join(args)}):\n    {text}\n", (1,), args, dtypes or {})


def test_the_evaluator_computes_as_the_language_says() -> None:
    x, y = Block([-7, 7, -128], "int8"), Block([200, 3, 255], "uint8")
    assert (x // Block(2, "int8")).data.tolist() == [-3, 3, -64]  # to zero, unlike Python
    assert (x % Block(4, "int8")).data.tolist() == [-3, 3, 0]
    assert (x + y).data.tolist() == [193, 10, 127]  # of equal widths the unsigned type
    assert (x < y).data.tolist() == [False, False, True]  # as unsigned: 249, 7, 128
    assert (x + Block(1000, "int16")).data.tolist() == [993, 1007, 872]
    assert Block([3e9], "float32").to("uint32").data.tolist() == [3_000_000_000]
    assert Block([1.00390625], "bfloat16").data.tolist() == [1.0]  # a tie goes to the even neighbour
    out = np.zeros(4, "i4")
    _run("tl.store(o + tl.arange(0, 4), tl.max(tl.full((4, 2), -5, tl.int8), 1))", {"o": "int32"}, o=out)
    assert out.tolist() == [-5] * 4
    with pytest.raises(IndexError):
        _run("tl.store(o + 4, 1)", {"o": "int32"}, o=out)


def test_the_evaluator_masks_and_leaves_early() -> None:
    text = (
        "i = tl.arange(0, 4)\n    tl.store(o + i, 9, mask=i < n)\n    if n > 1:\n        return\n    tl.store(o + 3, 1)"
    )
    for n, right in ((2, [9, 9, 0, 0]), (1, [9, 0, 0, 1])):
        out = np.zeros(4, "i4")
        _run(text, {"o": "int32", "n": "int32"}, o=out, n=n)
        assert out.tolist() == right


def test_a_program_is_made_smaller() -> None:
    p = program(5, "control")
    small = shrunk(p, lambda smaller: "tl.load(" in smaller.body)
    assert small.body.count("\n") <= 4 < p.body.count("\n")
    assert small.args is p.args


def test_scratch_memory_is_full_of_nan() -> None:
    with scratch_of_nan():
        held = scratch_bytes(256)
    assert np.isnan(np.frombuffer(held, "f4")).all()
    assert np.isnan(np.frombuffer(held, "f8")).all()


def test_numbers_lie_in_memory_as_their_types_say() -> None:
    rng = random.Random(0)
    numbers = np.array([rng.uniform(-9, 9) for _ in range(100)], "f4")
    bits = encoded(numbers, Block(0, "bfloat16").dtype)
    back = (bits.astype("u4") << 16).view("f4")
    assert np.abs(back - numbers).max() <= 2.0**-5
