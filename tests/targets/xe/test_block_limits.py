"""2D block accesses outside of the hardware's limits: each is rejected with its reason, or guarded at run time."""

from __future__ import annotations

import re
from itertools import product

import pytest

from mltriton.errors import BackendError, TargetError
from mltriton.targets.llvm.types import VOID
from mltriton.targets.llvm.writer import Module
from mltriton.targets.registry import spec
from mltriton.targets.xe.block_limits import (
    Access,
    Block,
    Guard,
    Number,
    Relation,
    Surface,
    broken_limits,
    check_surface,
    surface_limits,
)
from mltriton.targets.xe.devices import DEVICES, device
from mltriton.targets.xe.ocloc import compile_native
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.emission import emit

LOAD, VNNI, TRANSPOSE, STORE, PREFETCH = Access
PVC, BMG = device("pvc"), device("bmg")

# (access, bytes of an element, columns, rows, blocks) that the hardware takes.
FITTING = [
    (LOAD, 1, 32, 32, 2),
    (LOAD, 1, 4, 1, 1),
    (LOAD, 2, 16, 32, 2),
    (LOAD, 2, 8, 4, 4),
    (LOAD, 2, 2, 16, 1),
    (LOAD, 4, 16, 32, 1),
    (LOAD, 4, 8, 8, 2),
    (LOAD, 8, 8, 2, 1),
    (VNNI, 1, 16, 32, 4),
    (VNNI, 2, 16, 32, 2),
    (VNNI, 2, 8, 4, 4),
    (TRANSPOSE, 4, 8, 32, 1),
    (TRANSPOSE, 4, 1, 16, 1),
    (TRANSPOSE, 8, 4, 8, 1),
    (STORE, 1, 64, 8, 1),
    (STORE, 2, 16, 8, 1),
    (STORE, 4, 16, 1, 1),
    (STORE, 8, 8, 8, 1),
    (PREFETCH, 1, 32, 32, 2),
    (PREFETCH, 2, 32, 32, 1),
    (PREFETCH, 4, 8, 1, 2),
]

# The same, with one number outside, and what the reason says: what is measured, what is expected.
OUTSIDE = [
    ((LOAD, 3, 16, 8, 1), "bytes of an element in a load", "1 or 2 or 4 or 8"),
    ((LOAD, 16, 4, 8, 1), "bytes of an element in a load", "1 or 2 or 4 or 8"),
    ((LOAD, 0, 16, 8, 1), "bytes of an element in a load", "1 or 2 or 4 or 8"),
    ((VNNI, 4, 16, 8, 1), "bytes of an element in a load with VNNI", "1 or 2"),
    ((VNNI, 8, 8, 8, 1), "bytes of an element in a load with VNNI", "1 or 2"),
    ((TRANSPOSE, 1, 16, 8, 1), "bytes of an element in a transposing load", "4 or 8"),
    ((TRANSPOSE, 2, 16, 16, 1), "bytes of an element in a transposing load", "4 or 8"),
    ((STORE, 3, 16, 8, 1), "bytes of an element in a store", "1 or 2 or 4 or 8"),
    ((STORE, 16, 4, 8, 1), "bytes of an element in a store", "1 or 2 or 4 or 8"),
    ((PREFETCH, 16, 4, 8, 1), "bytes of an element in a prefetch", "1 or 2 or 4 or 8"),
    ((LOAD, 1, 2, 8, 1), "columns of 8 bits in a load", "from 4 to 64"),
    ((LOAD, 1, 128, 8, 1), "columns of 8 bits in a load", "from 4 to 64"),
    ((LOAD, 1, 24, 8, 1), "columns of 8 bits in a load", "a power of two"),
    ((LOAD, 2, 1, 8, 1), "columns of 16 bits in a load", "from 2 to 32"),
    ((LOAD, 2, 64, 8, 1), "columns of 16 bits in a load", "from 2 to 32"),
    ((LOAD, 2, 12, 8, 1), "columns of 16 bits in a load", "a power of two"),
    ((LOAD, 4, 32, 8, 1), "columns of 32 bits in a load", "from 1 to 16"),
    ((LOAD, 4, 0, 8, 1), "columns of 32 bits in a load", "from 1 to 16"),
    ((LOAD, 8, 16, 8, 1), "columns of 64 bits in a load", "from 1 to 8"),
    ((VNNI, 1, 2, 32, 1), "columns of 8 bits in a load with VNNI", "from 4 to 16"),
    ((VNNI, 1, 32, 32, 1), "columns of 8 bits in a load with VNNI", "from 4 to 16"),
    ((VNNI, 2, 1, 16, 1), "columns of 16 bits in a load with VNNI", "from 2 to 16"),
    ((VNNI, 2, 32, 16, 1), "columns of 16 bits in a load with VNNI", "from 2 to 16"),
    ((TRANSPOSE, 4, 16, 8, 1), "columns of 32 bits in a transposing load", "from 1 to 8"),
    ((TRANSPOSE, 4, 3, 8, 1), "columns of 32 bits in a transposing load", "a power of two"),
    ((TRANSPOSE, 8, 8, 8, 1), "columns of 64 bits in a transposing load", "from 2 to 4"),
    ((TRANSPOSE, 8, 1, 8, 1), "columns of 64 bits in a transposing load", "from 2 to 4"),
    ((STORE, 1, 2, 8, 1), "columns of 8 bits in a store", "from 4 to 64"),
    ((STORE, 1, 128, 8, 1), "columns of 8 bits in a store", "from 4 to 64"),
    ((STORE, 2, 64, 8, 1), "columns of 16 bits in a store", "from 2 to 32"),
    ((STORE, 2, 1, 8, 1), "columns of 16 bits in a store", "from 2 to 32"),
    ((STORE, 4, 32, 8, 1), "columns of 32 bits in a store", "from 1 to 16"),
    ((STORE, 8, 16, 8, 1), "columns of 64 bits in a store", "from 1 to 8"),
    ((PREFETCH, 2, 1, 8, 1), "columns of 16 bits in a prefetch", "from 2 to 32"),
    ((PREFETCH, 2, 64, 8, 1), "columns of 16 bits in a prefetch", "from 2 to 32"),
    ((LOAD, 2, 16, 0, 1), "rows of 16 bits in a load", "from 1 to 32"),
    ((LOAD, 2, 16, 64, 1), "rows of 16 bits in a load", "from 1 to 32"),
    ((LOAD, 2, 16, 12, 1), "rows of 16 bits in a load", "a power of two"),
    ((VNNI, 1, 16, 2, 1), "rows of 8 bits in a load with VNNI", "from 4 to 32"),
    ((VNNI, 2, 16, 1, 1), "rows of 16 bits in a load with VNNI", "from 2 to 32"),
    ((VNNI, 2, 16, 64, 1), "rows of 16 bits in a load with VNNI", "from 2 to 32"),
    ((TRANSPOSE, 4, 8, 64, 1), "rows of 32 bits in a transposing load", "from 1 to 32"),
    ((TRANSPOSE, 8, 4, 16, 1), "rows of 64 bits in a transposing load", "8"),
    ((TRANSPOSE, 8, 4, 4, 1), "rows of 64 bits in a transposing load", "8"),
    ((STORE, 2, 16, 16, 1), "rows of 16 bits in a store", "from 1 to 8"),
    ((STORE, 4, 16, 6, 1), "rows of 32 bits in a store", "a power of two"),
    ((PREFETCH, 2, 16, 64, 1), "rows of 16 bits in a prefetch", "from 1 to 32"),
    ((LOAD, 1, 4, 32, 8), "blocks of 8 bits in a load", "from 1 to 4"),
    ((LOAD, 2, 8, 8, 3), "blocks of 16 bits in a load", "a power of two"),
    ((LOAD, 4, 4, 8, 4), "blocks of 32 bits in a load", "from 1 to 2"),
    ((LOAD, 8, 4, 8, 2), "blocks of 64 bits in a load", "1"),
    ((VNNI, 1, 4, 32, 8), "blocks of 8 bits in a load with VNNI", "from 1 to 4"),
    ((TRANSPOSE, 4, 8, 16, 2), "blocks of 32 bits in a transposing load", "1"),
    ((TRANSPOSE, 8, 4, 8, 2), "blocks of 64 bits in a transposing load", "1"),
    ((STORE, 1, 16, 8, 2), "blocks of 8 bits in a store", "1"),
    ((STORE, 4, 8, 8, 2), "blocks of 32 bits in a store", "1"),
    ((PREFETCH, 4, 4, 8, 4), "blocks of 32 bits in a prefetch", "from 1 to 2"),
    ((PREFETCH, 8, 2, 8, 2), "blocks of 64 bits in a prefetch", "1"),
    ((LOAD, 1, 32, 8, 4), "bytes of a row of all blocks", "at most 64"),
    ((LOAD, 2, 16, 8, 4), "bytes of a row of all blocks", "at most 64"),
    ((LOAD, 4, 16, 8, 2), "bytes of a row of all blocks", "at most 64"),
    ((VNNI, 2, 16, 32, 4), "bytes of a row of all blocks", "at most 64"),
    ((PREFETCH, 1, 64, 8, 2), "bytes of a row of all blocks", "at most 64"),
    ((LOAD, 2, 8, 2, 2), "bytes of each of several blocks", "at least 64"),
    ((VNNI, 1, 4, 8, 4), "bytes of each of several blocks", "at least 64"),
    ((LOAD, 8, 2, 4, 1), "elements of 64 bits in a load", "at least one for each of 16 lanes"),
]


@pytest.mark.parametrize("block", FITTING, ids=str)
def test_fitting_blocks(block: tuple[Access, int, int, int, int]) -> None:
    assert broken_limits(PVC, Block(*block)) == []
    assert broken_limits(BMG, Block(*block)) == []


@pytest.mark.parametrize(("block", "what", "expected"), OUTSIDE, ids=str)
def test_blocks_outside_are_rejected(block: tuple[Access, int, int, int, int], what: str, expected: str) -> None:
    (broken,) = broken_limits(PVC, Block(*block))
    assert broken.what == what
    assert expected in broken.expected


def test_all_numbers_outside_are_named() -> None:
    broken = broken_limits(PVC, Block(LOAD, 2, 64, 64, 8))
    assert [each.what.split()[0] for each in broken] == ["columns", "rows", "blocks"]


def test_xe2_loads_wider_blocks_with_vnni() -> None:
    assert broken_limits(BMG, Block(VNNI, 2, 32, 16)) == []
    assert broken_limits(PVC, Block(VNNI, 2, 32, 16)) != []


# Surfaces.

HALF_BLOCK = Block(LOAD, 2, 16, 8)
FINE = Surface(Number(4096), Number(128), Number(64), Number(128), Number(16))

WRONG_SURFACES = [
    ({"base": 4096 + 16}, "base", "a multiple of 64"),
    ({"base": 4096 + 2}, "base", "a multiple of 64"),
    ({"width": 32}, "width", "at least 64"),
    ({"width": 2**24 + 64, "pitch": 2**24}, "width", "at most 16777216"),
    ({"width": 126}, "width", "a multiple of 4"),
    ({"height": 0}, "height", "at least 1"),
    ({"height": 2**24 + 1}, "height", "at most 16777216"),
    ({"pitch": 52, "width": 64}, "pitch", "at least 64"),
    ({"pitch": 2**24 + 16}, "pitch", "at most 16777216"),
    ({"pitch": 136}, "pitch", "a multiple of 16"),
    ({"pitch": 112}, "pitch", "at least width 128"),
    ({"x": 1}, "x", "a multiple of 2"),
]


@pytest.mark.parametrize(("change", "field", "expected"), WRONG_SURFACES, ids=str)
def test_surfaces_outside_are_rejected(change: dict[str, int], field: str, expected: str) -> None:
    surface = FINE._replace(**{name: Number(value) for name, value in change.items()})
    broken, guards = check_surface(PVC, HALF_BLOCK, surface)
    assert guards == []
    assert (field, expected) in [(each.what.split()[0], each.expected) for each in broken]
    assert str(change[field]) in [each.found for each in broken]


@pytest.mark.parametrize(("change", "field", "expected"), WRONG_SURFACES, ids=str)
def test_what_is_not_known_is_guarded(change: dict[str, int], field: str, expected: str) -> None:
    surface = FINE._replace(**dict.fromkeys(change, Number()))
    broken, guards = check_surface(PVC, HALF_BLOCK, surface)
    assert broken == []
    named = expected.replace("width 128", "width")
    assert f"{field} is {named}" in map(str, guards)


def test_nothing_known_guards_everything() -> None:
    report = check_surface(PVC, HALF_BLOCK, Surface())
    assert report.broken == []
    assert report.guards == surface_limits(PVC, HALF_BLOCK)


def test_bounds_and_divisors_are_proofs() -> None:
    bounded = Number(divisor=64, least=64, most=2**20)
    base, height, x = Number(divisor=128), Number(least=1, most=4096), Number(divisor=16)
    surface = Surface(base, bounded, height, bounded, x, covered=True)
    assert check_surface(PVC, HALF_BLOCK, surface) == ([], [])
    apart = surface._replace(covered=False)
    assert check_surface(PVC, HALF_BLOCK, apart).guards == [Guard("pitch", Relation.AT_LEAST, "width")]
    assert check_surface(PVC, HALF_BLOCK, apart._replace(pitch=Number(divisor=64, least=2**20, most=2**20))) == ([], [])


def test_bounds_can_prove_the_opposite() -> None:
    narrow = Surface(Number(64), Number(divisor=4, most=60), Number(8), Number(128), Number(0))
    (broken,) = check_surface(PVC, HALF_BLOCK, narrow).broken
    assert str(broken) == "width of the surface (bytes of a row): expected at least 64, found at most 60"


def test_the_column_counts_bytes() -> None:
    surface = FINE._replace(x=Number(2))
    assert check_surface(PVC, HALF_BLOCK, surface).broken == []
    assert check_surface(PVC, Block(LOAD, 1, 32, 8), surface).broken != []
    assert check_surface(PVC, Block(LOAD, 4, 16, 8), surface._replace(x=Number(1))).broken == []


# What Intel's compiler says.

BUILTINS = dict(zip(Access, xe.BLOCK_ACCESSES, strict=True))
EVERY = list(product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32), (1, 2, 4)))


def taken_by_compiler(name: str, access: Access) -> set[Block]:
    """Every block that Intel's compiler takes, from one module with a function for each."""
    module = Module()
    blocks = [Block(access, *numbers) for numbers in EVERY]
    for number, block in enumerate(blocks):
        builtin = BUILTINS[access]
        parameters = [(f"a{i}", type_) for i, type_ in enumerate(builtin.parameter_types)]
        function = module.function(f"block_{number}_", VOID, parameters, linkage="")
        builtin.call(function, *block[1:], *function.parameters[4:])
        function.ret()
    with pytest.raises(BackendError, match="Intel's compiler rejects the module") as caught:
        compile_native(emit(module.text), device(name))
    log = caught.value.found or ""
    refused = {int(number) for number in re.findall(r"in function 'block_(\d+)_", log)}
    return {block for number, block in enumerate(blocks) if number not in refused}


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("name", ["pvc", "bmg"])
def test_intels_compiler_takes_the_same_blocks(name: str, access: Access) -> None:
    compiler = taken_by_compiler(name, access)
    ours = {Block(access, *numbers) for numbers in EVERY if not broken_limits(device(name), Block(access, *numbers))}
    assert ours <= compiler
    # It pads blocks of less than a register, which no layout here describes.
    assert {block for block in compiler - ours if block.blocks == 1 or block.bytes >= 64} == set()


# Devices.


def test_specs() -> None:
    for name in DEVICES:
        target = spec(f"xe:{name}")
        assert target.warp_size == 16
        assert target.block_load is not None
        blocks = target.block_load
        assert (blocks.max_rows, blocks.max_row_bytes, blocks.max_blocks, blocks.store_rows) == (32, 64, 4, 8)
        assert {(str(element), size.m, size.n, size.k) for element, size in target.dot.items()} == {
            ("f16", 8, 16, 16),
            ("bf16", 8, 16, 16),
            ("f32", 8, 16, 8),
            ("i8", 8, 16, 32),
        }


def test_an_unknown_device_is_an_error_that_lists_those_that_are_known() -> None:
    with pytest.raises(TargetError, match="unknown Xe device 'pvx'") as caught:
        device("pvx")
    assert caught.value.expected is not None
    assert caught.value.expected.startswith("pvc (Data Center GPU Max 1100")
    assert caught.value.hint == "Did you mean pvc?"
    with pytest.raises(TargetError, match="unknown target 'xe:dg2'"):
        spec("xe:dg2")


def test_warps_and_registers() -> None:
    PVC.check_warps(64, 128)
    PVC.check_warps(32, 256)
    with pytest.raises(TargetError, match="too many warps for 256 registers each on pvc"):
        PVC.check_warps(64, 256)
    with pytest.raises(TargetError, match="pvc has no such GRF mode"):
        PVC.grf_mode(512)
