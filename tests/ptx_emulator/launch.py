"""Kernels of the `cuda` targets on the emulator, in place of a GPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mltriton.runtime.grid import Grid
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.slots import Slot, launcher_of
from mltriton.targets.assertions import Record, check
from mltriton.targets.host_memory import held
from mltriton.targets.nvidia import ptxas
from mltriton.targets.nvidia.facts import WARP, NvidiaFacts
from mltriton.targets.nvidia.launch import shared_out
from mltriton.targets.nvidia.target import NvidiaTarget
from mltriton.targets.nvidia.tensor_maps import MAP_BYTES
from mltriton.targets.target import Binary, LoadedKernel

from .memory import Memory
from .races import Races
from .tensor_copies import Engine
from .text import parse
from .threads import Threads

MULTIPROCESSORS = 2
REST = 0xA5  # in shared memory, before anything is written there
ALIGNMENT = 1 << 18  # of shared memory, so that addresses in it, which descriptors cut off, begin with 0


class EmulatedKernel:
    """The kernel of a PTX module."""

    def __init__(self, ptx: str, facts: NvidiaFacts) -> None:
        self.module = parse(ptx)
        self.facts = facts
        self.otherwise: Callable[[], LoadedKernel] | None = None
        self.in_one_round: Callable[[], LoadedKernel] | None = None

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """As every target's."""
        return launcher_of(self.run, specs)

    def run(self, grid: Grid, slots: Sequence[Slot], /) -> None:
        """All programs of a launch."""
        if math.prod(grid) == 0:
            return
        record = np.zeros(3, np.int64)
        given = [slot.bits for slot in slots]
        maps = [map_.evaluated(given) for map_ in self.facts.maps]
        if None in maps:
            assert self.otherwise is not None
            self.otherwise().run(grid, slots)
            return
        places = np.zeros((len(maps), MAP_BYTES), np.uint8)
        starts = [row.ctypes.data for row in places]
        words = [*given, *starts, grid[0] if self.facts.takes_turns else record.ctypes.data]
        if self.facts.takes_turns:
            grid = shared_out(grid, MULTIPROCESSORS)
        regions = [record.view(np.uint8), *_arrays(slots)]
        kernel = self.module.functions[self.module.kernel]
        constants = {name: np.frombuffer(data, np.uint8).copy() for name, data in self.module.constants.items()}
        for z, y, x in np.ndindex(grid[::-1]):
            shared = np.full(self.facts.shared + ALIGNMENT, REST, np.uint8)
            shared = shared[-shared.ctypes.data % ALIGNMENT :][: self.facts.shared]
            memory = Memory([*regions, *constants.values(), shared])
            symbols = {name: data.ctypes.data for name, data in constants.items()}
            symbols |= dict.fromkeys(self.module.shared, shared.ctypes.data)
            symbols |= dict(zip(kernel.parameters[len(given) :], starts, strict=False))
            engine = Engine({start: map_ for start, map_ in zip(starts, maps, strict=True) if map_ is not None})
            threads = WARP * self.facts.num_warps
            place, races = (x, y, z), Races(shared)
            Threads(self.module, memory, symbols, threads, place, grid, engine=engine, races=races).run(words)
        if self.facts.assertions:
            found = Record(*map(int, record))
            check(self.facts.assertions, found, grid)


def _arrays(slots: Sequence[Slot]) -> list[np.ndarray[Any, Any]]:
    """The bytes of all arrays, each once."""
    spans = sorted({held(slot.array, slot.bits, slot.writes).whole for slot in slots if slot.kind == "tensor"})
    found = [(span.start, span.stop - span.start) for span in spans if span.stop > span.start]
    return [np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start)) for start, size in found]


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on kernels of the `cuda` targets are PTX, and run here."""

    def load(self: NvidiaTarget, binary: Binary, name: str) -> EmulatedKernel:
        return EmulatedKernel(binary.object.decode(), NvidiaFacts.of(binary.metadata["facts"]))

    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    monkeypatch.setattr(NvidiaTarget, "load", load)
