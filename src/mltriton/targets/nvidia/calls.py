"""What a lane asks of its warp and its program, by NVVM's intrinsics.

Level: `llvm`. Only words of 32 bits travel between lanes: wider values in two, narrower ones widened, pointers as
integers. Guarantees: all lanes of a warp take part in what exchanges or waits.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.targets.llvm.types import I1, I32, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.nvidia.facts import WARP

EVERY_LANE = -1  # as a mask
MOST_WARPS = 32  # of a program
_AXES = "xyz"


def lane(f: Function) -> Value:
    """The number of this lane in its warp, i32."""
    return f.pure_call("llvm.nvvm.read.ptx.sreg.laneid", I32)


def warp(f: Function) -> Value:
    """The number of this warp in its program, i32: taken from one lane, so that ptxas sees that all have the same and
    computes what follows of it once for a warp, in uniform registers.
    """
    number = f.lshr(f.pure_call("llvm.nvvm.read.ptx.sreg.tid.x", I32), WARP.bit_length() - 1)
    return f.and_(shuffle(f, number, constant(I32, 0)), MOST_WARPS - 1)


def program(f: Function, axis: int) -> Value:
    """A coordinate of this program, i32."""
    return f.pure_call(f"llvm.nvvm.read.ptx.sreg.ctaid.{_AXES[axis]}", I32)


def programs(f: Function, axis: int) -> Value:
    """A size of the grid, i32."""
    return f.pure_call(f"llvm.nvvm.read.ptx.sreg.nctaid.{_AXES[axis]}", I32)


def everywhere(f: Function, condition: Value) -> Value:
    """Whether an i1 holds in all lanes of the warp."""
    return f.declared_call("llvm.nvvm.vote.all.sync", I1, constant(I32, EVERY_LANE), condition)


def shuffle(f: Function, value: Value, source: Value) -> Value:
    """The value that lane `source` (i32) has."""
    return _exchange(f, "idx", value, source)


def shuffle_xor(f: Function, value: Value, mask: int) -> Value:
    """The value that the lane has whose number differs by the bits of `mask`."""
    return _exchange(f, "bfly", value, constant(I32, mask))


def _exchange(f: Function, kind: str, value: Value, which: Value) -> Value:
    def exchanged(word: Value) -> Value:
        name = f"llvm.nvvm.shfl.sync.{kind}.i32"
        return f.declared_call(name, I32, constant(I32, EVERY_LANE), word, which, constant(I32, WARP - 1))

    return _by_words(f, value, exchanged)


def _by_words(f: Function, value: Value, exchanged: Callable[[Value], Value]) -> Value:
    """A value of which each word of 32 bits is exchanged."""
    bits = as_integer(f, value)
    if bits.type.bits <= I32.bits:
        made = f.cast("trunc", exchanged(f.cast("zext", bits, I32)), bits.type)
    else:
        words = f.bitcast(bits, vector("i32", bits.type.bits // I32.bits))
        for number in range(words.type.lanes):
            words = f.insert(words, exchanged(f.extract(words, number)), number)
        made = f.bitcast(words, bits.type)
    return from_integer(f, made, value.type)


def as_integer(f: Function, value: Value) -> Value:
    """The bits of a value as integers of its width."""
    if value.type.element.startswith("ptr"):
        return f.cast("ptrtoint", value, value.type.with_element("i64"))
    return f.bitcast(value, value.type.with_element(f"i{value.type.bits}"))


def from_integer(f: Function, bits: Value, type_: Type) -> Value:
    """The value of a type that has these bits."""
    if type_.element.startswith("ptr"):
        return f.cast("inttoptr", bits, type_)
    return f.bitcast(bits, type_)


def barrier(f: Function, *, of_warp: bool = False) -> None:
    """All warps of the program, or all lanes of the warp, wait here; what they wrote before is seen after it."""
    if of_warp:
        f.declared_call("llvm.nvvm.bar.warp.sync", VOID, constant(I32, EVERY_LANE))
    else:
        f.declared_call("llvm.nvvm.barrier.cta.sync.aligned.all", VOID, constant(I32, 0))


def arrive(f: Function) -> None:
    """All warps of the program learn that this one has come here: `wait` says it, as a barrier of PTX counts warps."""


def wait(f: Function) -> None:
    """Wait until all warps of the program have arrived."""
    barrier(f)
