"""How products are shared out on GPUs: the choices of the cost model, and that they fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from combinations import each_value
from mltriton.kernels import grouped_gemm, matmul
from mltriton.kernels.epilogues import Epilogue
from mltriton.kernels.gemm_few_groups import few_groups_launch
from mltriton.kernels.gemm_gpu import (
    GROUP_TILES,
    MULTIPROCESSORS,
    Forms,
    Shares,
    cost,
    forms_of,
    groups_on,
    shares_on,
)
from mltriton.kernels.gemm_grouped import grouped_gemm_launch
from mltriton.kernels.gemm_persistent import persistent_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.kernels.stream_k import stream_k_launches
from mltriton.runtime.grid import even_programs
from mltriton.tools.remarks import kernel_remarks
from ptx_emulator.launch import install

SIZES = [16, 33, 64, 100, 512, 1000, 1024, 2048, 4096, 8192]


def shares(m: int, n: int, k: int, splits: int | None = None, target: str = "cuda:90") -> Shares:
    return shares_on(target, m, n, k, np.empty((1, 1), np.float16), 1, splits)


@pytest.mark.parametrize("size", [2048, 4096, 8192])
def test_large_products_take_the_fastest_block(size: int) -> None:
    found = shares(size, size, size)
    assert found.tile is not None
    assert (found.tile.m, found.tile.n, found.warps, found.stages, found.splits) == (128, 256, 8, 4, 1)


def test_blocks_of_192_columns_fill_rounds_of_persistent_programs() -> None:
    a = np.empty((1, 1), np.float16)
    columns = [
        found.tile and found.tile.n
        for in_turns in (True, False)
        for found in [shares_on("cuda:90", 3072, 3072, 3072, a, 1, None, forms=Forms(in_turns))]
    ]
    assert columns[0] == 192 and columns[1] != 192
    b = np.empty((1, 3072, 3072), np.float16)
    launch = persistent_launch(b, b, b, Tile(128, 192, 64, 8))
    assert launch is not None
    assert (launch.constants["BN"], launch.constants["MORE"]) == (128, 64)


@pytest.mark.parametrize("size", [512, 1024])
def test_small_products_have_a_program_for_each_multiprocessor_and_deep_buffers(size: int) -> None:
    found = shares(size, size, size)
    assert found.tile is not None and found.stages is not None
    programs = (size // found.tile.m) * (size // found.tile.n)
    assert MULTIPROCESSORS / 2 < programs <= MULTIPROCESSORS
    assert found.stages * found.tile.k == 512
    assert found.splits == 1


@pytest.mark.parametrize(("m", "depth"), [(48, 128), (128, 128), (256, 64)])
def test_small_blocks_of_long_sums_take_longer_steps(m: int, depth: int) -> None:
    found = shares(m, 4096, 4096)
    assert found.tile is not None and found.stages is not None
    assert (found.tile.k, found.splits) == (depth, 1)
    assert found.stages > 4


@pytest.mark.parametrize(("m", "n", "k"), [(256, 256, 8192), (64, 64, 16384), (512, 512, 16384), (16, 512, 8192)])
def test_few_blocks_share_the_sum(m: int, n: int, k: int) -> None:
    found = shares(m, n, k)
    assert found.splits > 1
    assert shares(m, n, k, 1).splits == 1
    assert shares(m, n, k, 3).splits == 3


@pytest.mark.parametrize(("m", "n", "k"), [(16, 4096, 4096), (8, 14336, 4096), (1, 4096, 14336)])
def test_few_rows_have_many_programs(m: int, n: int, k: int) -> None:
    found = shares(m, n, k)
    assert found.tile is not None
    assert (found.tile.m, found.splits) == (16, 1)
    assert n // found.tile.n >= 0.9 * MULTIPROCESSORS
    assert found.tile.n * found.tile.k * 2 == 16384


@pytest.mark.parametrize("m", SIZES)
def test_every_choice_fits(m: int) -> None:
    for n in SIZES:
        for k in (16, 1000, 8192):
            found = shares(m, n, k)
            assert found.tile is not None and found.stages is not None
            assert found.stages * (found.tile.m + found.tile.n) * found.tile.k * 2 <= 227 * 1024
            assert found.splits == 1 or k // (found.splits * found.tile.k) >= 2


def test_the_cost_is_that_of_rounds_of_programs() -> None:
    tile = GROUP_TILES[0]
    one, two = (cost(tile, 128 * blocks, 256, 4096, 2, 1, 1) for blocks in (MULTIPROCESSORS, MULTIPROCESSORS + 1))
    assert two == 2 * one
    assert cost(tile, 128, 256, 8192, 2, 1, 1) > cost(tile, 128, 256, 8192, 2, 1, 4)


def test_other_gpus_keep_their_blocks() -> None:
    assert shares(4096, 4096, 4096, target="cuda:80").stages is None
    assert shares(4096, 4096, 4096, 2, target="xe:pvc").splits == 2


@pytest.mark.parametrize(("m", "n", "k"), [(8, 64, 2048), (60, 40, 2048)])
def test_parts_of_the_sum_are_added_up(m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    assert shares(m, n, k).splits > 1
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    bias = numbers.standard_normal(n).astype(np.float16)
    found = matmul(a, b, bias=bias, activation="relu", out_dtype="float32", target="cuda:90")
    wanted = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    assert np.abs(found - wanted).max() < 1e-2


@pytest.mark.parametrize(
    ("orders", "batches", "columns"),
    [
        *(("rrr", 1, 64), ("crr", 1, 96), ("rcr", 2, 96), ("rcr", 1, 80), ("ccc", 2, 80)),
        *(pytest.param(orders, batches, 64, marks=pytest.mark.slow) for orders, batches in (("rcr", 1), ("rrr", 3))),
    ],
)
def test_programs_compute_several_blocks(
    orders: str, batches: int, columns: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal((batches, *shape)).astype(np.float16) for shape in ((144, 80), (80, 112)))
    c = np.full((batches, 144, 112), np.nan, np.float32)
    a, b, c = (
        np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if order == "c" else x
        for x, order in zip((a, b, c), orders, strict=True)
    )
    launch = persistent_launch(a, b, c, Tile(64, columns, 32, 2), 2)
    assert launch is not None
    assert launch.grid == (2,)
    made = launch.on("cuda:90", 4, 3).run()
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - wanted).max() < 1e-2
    assert "wgmma" in made.asm["ptx"] and "cp.async.bulk" in made.asm["ptx"]
    assert columns != 80 or "m64n80k16" in made.asm["ptx"]  # 64 and 16 by one instruction
    c.fill(np.nan)
    made = launch._replace(constants=launch.constants | {"tensor_maps": "none"}).on("cuda:90", 4, 3).run()
    assert np.abs(c - wanted).max() < 1e-2
    assert "cp.async.cg" in made.asm["ptx"]


@pytest.mark.parametrize(("columns", "depth"), [(80, 128), (320, 32)])
def test_blocks_of_deep_and_of_many_columns(
    columns: int, depth: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows of 128 elements of K are two pieces, and not in one block with those of 16 columns more; 320 columns are
    stored in pieces through one buffer of a warp.
    """
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    numbers = np.random.default_rng(0)
    a = numbers.integers(-3, 4, (1, 72, 136)).astype(np.float16)
    b = numbers.integers(-3, 4, (1, columns + 24, 136)).astype(np.float16).swapaxes(1, 2)
    c = np.full((1, 72, columns + 24), np.nan, np.float16)
    launch = persistent_launch(a, b, c, Tile(64, columns, depth, 2), 2)
    assert launch is not None
    made = launch.on("cuda:90", 4, 3).run()
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()
    assert "cp.async.bulk.tensor.2d.global" in made.asm["ptx"]


def test_programs_of_several_blocks_have_room_where_lanes_copy() -> None:
    a = np.empty((1, 4096, 4096), np.float16)
    launch = persistent_launch(a, a, a, Tile(128, 256, 64, 8))
    assert launch is not None
    made = launch._replace(constants=launch.constants | {"tensor_maps": "none"}).on("cuda:90", 8, 4).compiled()
    assert "cp.async.cg" in made.asm["ptx"]


GROUPS = [(72, 64, 64), (24, 72, 40), (1, 8, 16)]


@each_value(("order", ["C", "F"]), ("sizes", [GROUPS, GROUPS * 2, [(33, 63, 65), (20, 72, 40), (3, 0, 5)]]))
def test_groups_are_multiplied_together(
    sizes: list[tuple[int, int, int]], order: Literal["C", "F"], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    numbers = np.random.default_rng(0)
    a = [np.asarray(numbers.standard_normal((m, k)).astype(np.float16), order=order) for m, _, k in sizes]
    b = [numbers.standard_normal((k, n)).astype(np.float16) for _, n, k in sizes]
    found = grouped_gemm(a, b, out_dtype="float32", target="cuda:90")
    for x, y, z in zip(a, b, found, strict=True):
        assert np.abs(z - x.astype(np.float64) @ y.astype(np.float64)).max(initial=0) < 1e-2


def test_groups_of_aligned_matrices_are_copied_by_16_bytes() -> None:
    a, b, c = ([np.empty(shape, np.float16) for _ in range(3)] for shape in ((64, 128), (128, 72), (64, 72)))
    tile = Tile(64, 64, 64, 8)
    memory = tuple(np.empty(1 << 16, np.float16) for _ in range(3))
    for distance, instruction in ((8, "cp.async.cg"), (1, "ld.global.b16")):
        views = [
            [base[i * 16384 + i * distance :][: x.size].reshape(x.shape) for i, x in enumerate(arrays)]
            for base, arrays in zip(memory, (a, b, c), strict=True)
        ]
        launch = grouped_gemm_launch(*views, Epilogue("float16"), None, tile, memory, is_aligned=True)
        assert launch.constants["ALIGNED"] == distance
        assert instruction in launch.on("cuda:90", 4).compiled().asm["ptx"]


def test_few_groups_are_copied_by_the_engine_or_by_lanes() -> None:
    a, b, c = ([np.empty(shape, np.float16) for shape in each] for each in zip(*[[(256, 256)] * 3] * 4, strict=True))
    launch = few_groups_launch(a, b, c, Epilogue("float16"), Tile(128, 256, 64, 8), 8, 2)
    assert launch is not None and launch.grid == (2,)
    for maps, instruction in (("products", "cp.async.bulk.tensor"), ("none", "cp.async.cg")):
        made = launch._replace(constants=launch.constants | {"tensor_maps": maps}).on("cuda:90", 8, 3).compiled()
        assert instruction in made.asm["ptx"]
    assert few_groups_launch(a * 2, b * 2, c * 2, Epilogue("float16"), Tile(128, 256, 64, 8)) is None
    assert (
        few_groups_launch([x[:, ::2] for x in a], [x[:128] for x in b], c, Epilogue("float16"), Tile(64, 64, 64, 8))
        is None
    )


def test_groups_share_the_largest_blocks_where_there_are_rounds_of_them() -> None:
    a = np.empty((1, 1), np.float16)
    many, few = groups_on("cuda:90", [(1024, 2048, 1024)] * 4, a), groups_on("cuda:90", [(64, 512, 1024)] * 8, a)
    assert many.tile is not None and many.tile.m * many.tile.n == 128 * 256
    assert few.tile is not None and few.tile.n < 128
    assert groups_on("cpu", [(64, 512, 1024)] * 8, a).tile is None


def test_a_single_round_takes_a_program_for_each_block() -> None:
    a = np.empty((1, 128, 128), np.float16)
    assert persistent_launch(a, a, a, Tile(64, 64, 32, 2), 4) is None
    assert persistent_launch(a[:, ::2, ::2], a[:, ::2], a[:, ::2], Tile(16, 16, 32, 2), 4) is None


@pytest.mark.parametrize("order", ["C", "F"])
def test_bytes_are_multiplied_in_groups_where_k_lies_along_memory(
    order: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(-8, 8, shape).astype(np.int8) for shape in ((70, 160), (160, 48)))
    b = np.asarray(b, order=order)  # type: ignore[call-overload]
    found = shares_on("cuda:90", 70, 48, 160, a, 1, None, order == "F")
    assert (found.stages is not None) == (order == "F")
    assert (matmul(a, b, out_dtype="int32", target="cuda:90") == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_even_shares_are_copied_by_a_producer_and_added_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Three blocks of five steps by four programs: each block is that of two programs at least."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((1, 128, 320), (1, 320, 136)))
    c, bias = np.zeros((1, 128, 136), np.float32), rng.standard_normal(136).astype(np.float32)
    launches = stream_k_launches(a, b, c, Epilogue("float32", bias), 4, None, Tile(128, 64, 64, 8))
    made = [launch.on("cuda:90", 8, 3).run() for launch in launches]
    assert len(made) == 2
    assert any("producer warp: copies for 8 warps" in remark for remark in kernel_remarks(made[0]))
    assert np.abs(c - (a.astype(np.float64) @ b.astype(np.float64) + bias)).max() < 1e-4


def test_blocks_of_144_and_160_columns_where_they_are_one_round() -> None:
    """Of the transpose where B lies by rows, so that one instruction multiplies all columns."""
    a = np.empty((1, 1), np.float16)
    sizes = ((1536, 1536, 1536), (2048, 1280, 8192), (1792, 1792, 1792), (3072, 3072, 3072))
    for turned in (False, True):
        found = [shares_on("cuda:90", *size, a, 1, None, forms=Forms(True, turned)) for size in sizes]
        assert [share.tile and share.tile.n for share in found] == [144, 160, 256, 192]
        assert [share.turned for share in found] == [turned, turned, False, False]


def test_blocks_of_320_and_of_128_columns_where_they_need_fewer_rounds() -> None:
    """320 columns in steps of half the bytes, but of whole ones in several rounds where K lies along memory in B, and
    not for results of four bytes; 128 of several rounds only, where blocks of 256 would be half empty."""
    a = np.empty((1, 1), np.float16)
    sizes = (5120, 2176, 3712, 3840, 4096, 1280)
    for narrow, wanted in ((True, [320, 320, 128, 192, 256, 128]), (False, [192, 160, 128, 192, 256, 128])):
        for along_k, depths in ((False, [32, 32]), (True, [64, 32])):
            forms = Forms(True, along_k, narrow)
            found = [shares_on("cuda:90", size, size, size, a, 1, None, along_k, forms) for size in sizes]
            assert [share.tile and share.tile.n for share in found] == wanted
            assert [share.warps for share in found] == [8] * 5 + [4]
            assert [share.tile and share.tile.k for share in found] == (depths if narrow else [64, 64]) + [64] * 4
            assert [share.turned for share in found] == [along_k and n == 160 for n in wanted]


def test_two_programs_of_few_steps_share_a_multiprocessor() -> None:
    a = np.empty((1, 1), np.float16)
    found = [shares_on("cuda:90", 256, 256, k, a, 64, None, forms=Forms(True)) for k in (256, 2048)]
    assert [(share.tile and share.tile.n, share.warps, share.stages) for share in found] == [(128, 4, 3), (256, 8, 4)]


def test_small_products_are_copied_by_a_producer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where each program has a multiprocessor to itself."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(-3, 4, (size, 520)).astype(np.float16) for size in (100, 72))
    assert shares(100, 72, 520).produced and not shares(2048, 2048, 520).produced
    launches: list[Any] = []
    run = Launch.run
    monkeypatch.setattr(Launch, "run", lambda launch: launches.append(run(launch)))
    found = matmul(a, b.T, out_dtype="float32", target="cuda:90")
    assert (found == a.astype(np.float64) @ b.T.astype(np.float64)).all()
    assert any("producer warp: copies for 4 warps" in remark for remark in kernel_remarks(launches[0]))


@pytest.mark.parametrize(
    ("orders", "wanted"), [("rr", (True, True)), ("rc", (True, False)), ("cr", (True, False)), ("cc", (True, False))]
)
def test_the_transpose_has_k_along_memory_in_b(orders: str, wanted: tuple[bool, bool]) -> None:
    a, b = (np.empty((1, 16, 16), np.float16, order="C") for _ in orders)
    a, b = (x.swapaxes(1, 2) if order == "c" else x for x, order in zip((a, b), orders, strict=True))
    assert forms_of(a, b, a, in_turns=True) == (*wanted, True)
    assert forms_of(a, b, np.empty((1, 16, 16), np.float32), in_turns=False) == (False, False, False)


def test_batches_of_few_blocks_are_multiplied_in_smaller_ones() -> None:
    """In turn, in as many rounds of half as large blocks; not what is one round, and not small matrices."""
    a = np.empty((1, 1), np.float16)
    sizes = ((8, 1024, 1024), (4, 2048, 1024), (4, 1024, 1024), (32, 512, 512), (1, 2048, 1024))
    for forms, wanted in ((Forms(True), [True, True, False, False, False]), (Forms(), [False] * 5)):
        found = [shares_on("cuda:90", m, n, 1024, a, batch, None, forms=forms) for batch, m, n in sizes]
        assert [share.tile is not None and share.tile.n == 128 and share.warps == 8 for share in found] == wanted


def test_as_few_persistent_programs_as_rounds_need() -> None:
    assert [even_programs(blocks, 132) for blocks in (512, 2048, 384, 120, 132, 133)] == [128, 128, 128, 120, 132, 67]
