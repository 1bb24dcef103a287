"""Moves of regions in a lane's program: which values a call takes, its name, its assembly, and what it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xe_modules as modules
from mltriton.errors import BackendError
from mltriton.runtime.native.params import ParamSpec
from mltriton.targets.llvm.types import GLOBAL_PTR, I8, I16, I32, I64, Type, poison
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.emulation import image_of
from mltriton.targets.xe.launch import XeKernel
from mltriton.targets.xe.layouts.region_moves import RegionMoves, Stage, fewest_moves
from mltriton.targets.xe.llvm import calls
from mltriton.targets.xe.llvm.region_calls import Sizes, calls_of, moved, symbol
from mltriton.targets.xe.spirv.assembly import CAPABILITY, EXTENSION, text_of_moves
from mltriton.targets.xe.spirv.emission import emit
from mltriton.targets.xe.spirv.words import Op, read, text_of
from spirv_validation import validate

ROWS_OF_HALVES = RegionMoves((Stage(2, 32, 2, 0, (128, 2, 256)),))
ROWS_OF_BYTES = RegionMoves((Stage(1, 32, 4, 0, (1, 2, 128, 256)),))
LANES_OF_HALVES = RegionMoves((Stage(2, 16, 1, 32, (64, 128)),))  # every second register
ACROSS_LANES = RegionMoves((Stage(1, 16, 2, 1, (32, 64)),))  # odd bytes of halves next to each other

TRANSPOSED_HALVES = fewest_moves((1, 32, 64, 128, 256, 2, 4, 8, 16), 0)  # lanes and registers change places
assert TRANSPOSED_HALVES is not None and len(TRANSPOSED_HALVES.stages) == 4


def kernel_of(moves: RegionMoves, source: Type, result: Type) -> Function:
    """Each lane reads its part of the source, a vector, and writes its part of the result."""
    _, f = modules.kernel("kernel", [("from", GLOBAL_PTR), ("to", GLOBAL_PTR)])
    from_, to = f.parameters
    lane = f.cast("zext", calls.lane(f), I64)
    held = poison(source)
    for word in range(source.lanes):
        place = f.gep(from_, f.add(lane, 16 * word), source.scalar)
        held = f.insert(held, f.load(source.scalar, place), word)
    [made] = moved(f, [held], moves, result, 1)
    for word in range(result.lanes):
        f.store(f.extract(made, word), f.gep(to, f.add(lane, 16 * word), result.scalar))
    f.ret()
    return f


HELD: dict[str, tuple[RegionMoves, Type, Type]] = {
    "rows of halves": (ROWS_OF_HALVES, I32.with_lanes(8), I16.with_lanes(16)),
    "rows of bytes": (ROWS_OF_BYTES, I32.with_lanes(8), I16.with_lanes(16)),
    "lanes of halves": (LANES_OF_HALVES, I16.with_lanes(8), I16.with_lanes(4)),
    "transposed halves": (TRANSPOSED_HALVES, I16.with_lanes(16), I16.with_lanes(16)),
    "across lanes": (ACROSS_LANES, I16.with_lanes(4), I8.with_lanes(4)),
}


@pytest.mark.parametrize(("moves", "source", "result"), HELD.values(), ids=HELD)
def test_emulated_moves_bring_each_byte(queue: Queue, moves: RegionMoves, source: Type, result: Type) -> None:
    kernel = kernel_of(moves, source, result)
    image = image_of(kernel, device("pvc")) if queue.emulated else emit(kernel.module.text, kernel.module.meanings)
    there = np.random.default_rng(5).integers(0, 256, 16 * source.bytes).astype(np.uint8)
    made = np.zeros(16 * result.bytes, np.uint8)
    specs: list[Any] = [ParamSpec.tensor(array.dtype) for array in (there, made)]
    assert XeKernel(queue, lambda *_: image, "kernel", 16).launcher(specs)(1, 1, 1, there, made) is None
    np.testing.assert_array_equal(made, there[[moves.source_of(byte) for byte in range(made.size)]])


@pytest.mark.parametrize(("moves", "source", "result"), HELD.values(), ids=HELD)
def test_a_module_says_what_its_calls_mean(moves: RegionMoves, source: Type, result: Type) -> None:
    kernel = kernel_of(moves, source, result)
    assert kernel.module.meanings[symbol(moves, source, result)] == moves
    with pytest.raises(BackendError, match="undefined function region_moves"):
        emit(kernel.module.text)


def test_assembly() -> None:
    """Register and element of each region, from the addresses."""
    lines = text_of_moves(ROWS_OF_HALVES).splitlines()
    assert lines[0] == "{"
    assert lines[1:3] == [
        ".decl TO v_type=G type=UW num_elts=256 alias=<$0,0>",
        ".decl FROM v_type=G type=UW num_elts=256 alias=<$1,0>",
    ]
    assert lines[3:6] == [
        "mov (M1_NM, 32) TO(0,0)<1> FROM(0,0)<2;1,0>",
        "mov (M1_NM, 32) TO(1,0)<1> FROM(2,0)<2;1,0>",
        "mov (M1_NM, 32) TO(2,0)<1> FROM(0,1)<2;1,0>",
    ]
    assert lines[-1] == "}"
    assert len(lines) == 4 + ROWS_OF_HALVES.moves
    assert "mov (M1_NM, 32) TO(0,32)<1> FROM(0,1)<4;1,0>" in text_of_moves(ROWS_OF_BYTES)


def test_assembly_of_stages() -> None:
    """Each stage reads what the one before has written."""
    lines = text_of_moves(TRANSPOSED_HALVES).splitlines()
    assert ".decl STAGE3 v_type=G type=UW num_elts=256" in lines
    targets = [line.split()[3].partition("(")[0] for line in lines if line.startswith("mov")]
    assert targets == [name for name in ("STAGE1", "STAGE2", "STAGE3", "TO") for _ in range(8)]


def test_a_module_with_assembly() -> None:
    """In the place of the import; the extension is named, so that a driver without it can be told of."""
    kernel = kernel_of(*HELD["rows of halves"])
    image = emit(kernel.module.text, kernel.module.meanings)
    module = read(image)
    assert module.imports == []
    assert CAPABILITY in module.capabilities
    assert EXTENSION in module.extensions
    [target], [assembly], [call] = (list(module.of(op)) for op in (Op.ASM_TARGET, Op.ASM, Op.ASM_CALL))
    assert text_of(target[1:]).startswith("spirv64")
    assert assembly[3] == target[0]
    assert text_of(assembly[4:]) == text_of_moves(ROWS_OF_HALVES)
    assert call[2] == assembly[1]
    assert max(assembly[1], target[0]) < module.header[3]
    assert all(operands[1] != assembly[1] for operands in module.of(Op.FUNCTION))
    other = read(emit(modules.vadd().module.text))
    assert EXTENSION not in other.extensions
    assert not list(other.of(Op.ASM_TARGET))


@pytest.mark.usefixtures("needs_validator")
def test_the_validator_takes_assembly() -> None:
    for held in HELD.values():
        module = kernel_of(*held).module
        assert validate(emit(module.text, module.meanings))


@given(st.permutations(range(10)), st.sampled_from([32, 64, 256, 512]), st.sampled_from([32, 64, 256, 512]))
def test_calls_do_all_moves(order: list[int], source: int, target: int) -> None:
    """Whichever values have the bytes: together the calls bring the right ones, within what a call may have."""
    moves = RegionMoves((Stage(1, 16, 1, 0, tuple(1 << 4 + bit for bit in order if bit < 9)),))
    most = max(1, 512 // source), max(1, 512 // target)
    found = calls_of(moves, Sizes(source, most[0]), Sizes(target, most[1]))
    if found is None:
        return
    seen: list[int] = []
    for call in found:
        assert len(call.inputs) <= most[0]
        assert len(call.outputs) <= most[1]
        assert call.moves.result_bytes == target * len(call.outputs)
        for number, output in enumerate(call.outputs):
            seen.append(output)
            for byte in range(0, target, 16):
                place = call.moves.source_of(number * target + byte)
                assert call.inputs[place // source] * source + place % source == moves.source_of(output * target + byte)
    assert sorted(seen) == list(range(moves.result_bytes // target))
