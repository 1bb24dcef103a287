"""Where a warp is in the grid, and barriers.

Level: `llvm`. `place` points to words: the warp, the program's coordinates, the grid's sizes; then the addresses of the
memory that warps share and of the C library's barrier (0 where a warp runs alone).
"""

from __future__ import annotations

from mltriton.targets.llvm.types import I32, I64, PTR, Value, constant, poison
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.emulation.simd.call import Call, Write

WARP, GROUP, GRID, WORDS = 0, 1, 4, 8  # numbers of words
SHARED, BARRIER = 4 * WORDS, 4 * WORDS + 8  # bytes


def place(f: Function) -> Value:
    """The pointer to the place."""
    return f.parameters[-1]


def _word(f: Function, number: int) -> Value:
    return f.load(I32, f.gep(place(f), number, I32))


def shared_memory(f: Function) -> Value:
    """The address of the memory that warps share, i64."""
    return f.load(I64, f.gep(place(f), SHARED, I32.with_element("i8")))


def _group(f: Function, call: Call) -> Value:
    return _word(f, GROUP + "xyz".index(call.name[-1]))


def _grid(f: Function, call: Call) -> Value:
    made = poison(call.result)
    for axis in range(3):
        made = f.insert(made, _word(f, GRID + axis), axis)
    return made


def _local(f: Function, call: Call) -> Value:
    return f.insert(constant(call.result, 0), _word(f, WARP), 0)


def _nothing(f: Function, call: Call) -> None:
    """What orders nothing on this machine, or what the barrier does itself."""


def _barrier(f: Function, call: Call) -> None:
    barrier = f.load(PTR, f.gep(place(f), BARRIER, I32.with_element("i8")))
    with f.when(f.icmp("ne", f.cast("ptrtoint", barrier, I64), 0)):
        f.declared_call("pthread_barrier_wait", I32, barrier)


def _half(f: Function, call: Call) -> None:
    """All that wait have arrived: waiting for each other is enough."""
    if call.constant(0) == 0:
        _barrier(f, call)


WRITERS: dict[str, Write] = {
    "llvm.genx.group.id.": _group,
    "llvm.genx.group.count.": _grid,
    "llvm.genx.local.id.": _local,
    "llvm.genx.fence": _nothing,
    "llvm.genx.barrier": _barrier,
    "llvm.genx.sbarrier": _half,
}
