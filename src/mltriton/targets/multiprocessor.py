"""What a GPU's multiprocessor has for the programs that run beside each other on it. Level: data, read from ttg on."""

from __future__ import annotations

from mltriton.records import NamedTuple


class Multiprocessor(NamedTuple):
    """What programs that run beside each other share: bytes of shared memory, of which each takes `reserved_bytes`
    besides its own, registers of 4 bytes, of which a lane takes a multiple of `register_unit`, and `lanes`.
    """

    shared_bytes: int
    reserved_bytes: int
    registers: int
    register_unit: int = 8
    lanes: int = 2048

    def programs(self, lanes: int, registers: int, shared_bytes: int) -> int:
        """How many programs of so many lanes, with so many registers each, fit."""
        each = -(-registers // self.register_unit) * self.register_unit
        by_memory = self.shared_bytes // (shared_bytes + self.reserved_bytes)
        return min(by_memory, self.registers // (lanes * each), self.lanes // lanes)
