"""Residency: how many programs of a loop share a multiprocessor, and whether blocks that it multiplies come in time.

Level: tt and ttg. Takes a loop and the bytes of blocks that an iteration copies; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.analysis.workload import only_adds_up, products_of
from mltriton.dialects import scf
from mltriton.ir.operation import Value
from mltriton.ir.types import TensorType
from mltriton.targets.base import TargetSpec

_OTHER_REGISTERS = 32  # of a lane, besides the blocks that a loop carries


def programs_at_once(kept: Sequence[Value], shared_bytes: int, warps: int, spec: TargetSpec) -> int | None:
    """How many programs that keep such blocks in registers, and have so much shared memory, run beside each other; None
    where the target does not say.
    """
    lanes, blocks = spec.warp_size * warps, [value.type for value in kept if isinstance(value.type, TensorType)]
    registers = _OTHER_REGISTERS + sum(block.bytes for block in blocks) // (4 * lanes)
    return spec.multiprocessor.programs(lanes, registers, shared_bytes) if spec.multiprocessor is not None else None


def comes_late(loop: scf.For, copied_bytes: int, spec: TargetSpec, warps: int, stages: int) -> bool:
    """Whether the products of a loop that only adds up are done before blocks come that all warps copy `stages - 1`
    iterations ahead, but not where a producer does, which goes on once a slot is free: in a program that has a
    multiprocessor to itself (GEMM of 8192 in f16, us by all warps and with a producer: 128 x 128 x 64 in 3 stages, 512
    cycles each, 1991 and 1723; 64 x 256 x 64 in 3 2155 and 1775; but 128 x 128 x 64 in 4 1745 and 1814, and 128 x 64 x
    64 in 4, 256 cycles each, 2840 and 2863).
    """
    copies = spec.tensor_copies
    if copies is None or not only_adds_up(loop):
        return False
    stages, cycles = loop.num_stages or stages, products_of(loop) / copies.products
    is_alone = programs_at_once(loop.carried, (stages + 1) * copied_bytes, warps, spec) == 1
    return is_alone and (stages - 1) * cycles < copies.latency <= stages * cycles
