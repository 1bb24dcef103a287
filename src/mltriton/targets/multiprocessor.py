"""What a GPU's multiprocessor has for the programs that run beside each other on it. Level: data, read from ttg on."""

from __future__ import annotations

from mltriton.records import NamedTuple


class Multiprocessor(NamedTuple):
    """What programs that run beside each other share: bytes of shared memory, of which each takes `reserved_bytes`
    besides its own, registers of 4 bytes, of which a lane takes a multiple of `register_unit`, and `lanes`. Usual GPUs
    have `number` of them, if that is known.
    """

    shared_bytes: int
    reserved_bytes: int
    registers: int
    register_unit: int = 8
    lanes: int = 2048
    number: int | None = None

    def programs(self, lanes: int, registers: int, shared_bytes: int) -> int:
        """How many programs of so many lanes, with so many registers each, fit."""
        each = -(-registers // self.register_unit) * self.register_unit
        by_memory = self.shared_bytes // (shared_bytes + self.reserved_bytes)
        return min(by_memory, self.registers // (lanes * each), self.lanes // lanes)

    def waves(self, programs: int, beside: int) -> tuple[int, float] | None:
        """In how many rounds so many programs run, of which `beside` share one, and which part of the places is taken
        (wave efficiency); None where it is not known how many there are.
        """
        if self.number is None:
            return None
        rounds = -(-programs // (self.number * beside))
        return rounds, programs / (rounds * self.number * beside)
