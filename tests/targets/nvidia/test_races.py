"""What the PTX emulator says of warps that access the same byte of shared memory between two barriers."""

from __future__ import annotations

import numpy as np
import pytest

from ptx_emulator.memory import EmulationError
from ptx_emulator.races import Races


def races() -> tuple[Races, np.ndarray]:
    shared = np.zeros(64, np.uint8)
    return Races(shared), np.uint64(shared.ctypes.data) + np.arange(0, 64, 4, dtype=np.uint64)


def warps(*numbers: int) -> np.ndarray:
    return np.array(numbers)


def test_what_another_one_wrote_is_not_read() -> None:
    found, at = races()
    found.write(at[:2], 4, warps(0, 1), np.array([1, 2], np.uint32))
    found.read(at[:2], 4, warps(0, 1))
    with pytest.raises(EmulationError, match="warp 3 reads what another one wrote"):
        found.read(at[1:2], 4, warps(3))
    found.meet()
    found.read(at[1:2], 4, warps(3))


def test_what_another_one_reads_is_not_changed() -> None:
    found, at = races()
    found.read(at[:1], 4, warps(2))
    found.write(at[:1], 4, warps(5), np.array([0], np.uint32))  # as it is
    with pytest.raises(EmulationError, match="warp 5 writes what another one accesses"):
        found.write(at[:1], 4, warps(5), np.array([7], np.uint32))
    with pytest.raises(EmulationError, match="warp 5 writes what another one accesses"):
        found.write(at[:1], 4, warps(5))  # a copy that comes later


def test_equal_bytes_may_be_written_by_several() -> None:
    found, at = races()
    found.write(at[[0, 0]], 4, warps(0, 1), np.array([7, 7], np.uint32))
    with pytest.raises(EmulationError, match="writes what another one writes"):
        found.write(at[[1, 1]], 4, warps(0, 1), np.array([7, 8], np.uint32))


def test_memory_elsewhere_is_not_looked_at() -> None:
    found, at = races()
    far = at[:1] + np.uint64(1 << 20)
    found.write(far, 4, warps(0), np.array([1], np.uint32))
    found.read(far, 4, warps(1))
