"""How many registers of a warp a program needs: what is alive at its fullest point.

Level: intrinsic, targets whose blocks live in registers. Takes a function and the target; changes nothing. A block
takes the registers of its layout (its elements where lanes do not matter), scalars share registers, and what only names
parts of another value, or lets lanes read it again, takes none. What the target multiplies in several parts takes the
registers of each: the parts of what a loop never changes are made before it. A result takes over the registers of an
operand that dies with it: an accumulator, or any operand of element-wise operations. It is an estimate: the compiler
behind this one orders operations again, and keeps some registers for itself (`RESERVED`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import cast

from mltriton.dialects import arith, scf, tt, ttg, ttig
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.types import (
    I1,
    MemDescType,
    PointerType,
    TensorDescType,
    TensorType,
    TokenType,
    Type,
    byte_width,
    element_type,
)
from mltriton.layouts.conversions import Means, conversion
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.targets.base import RegisterMode, TargetSpec

# Registers for the thread's header, arguments, and the descriptions of messages on their way: of the 237 that IGC takes
# for a product whose blocks need 224, those that no value of the program explains.
RESERVED = 12

# Results that are operands under another name, or are read from them by every lane that needs them.
_NAMES = (ttig.Extract, ttig.Glue, tt.Splat, tt.Broadcast, tt.ExpandDims, tt.Unsplat)

_LOADS = (tt.Load, tt.DescriptorLoad)

# What takes no registers: a descriptor's parts are values of their own, a buffer's address is known.
_ELSEWHERE = (TensorDescType, MemDescType, TokenType)

# Blocks of indices and addresses made of scalars are not kept: an access adds the scalars and the lane's offset.
_INDICES = (tt.MakeRange, tt.AddPtr, arith.AddI, arith.SubI, arith.MulI, arith.ExtSI)

Storages = frozenset[Value]
_NOTHING: Storages = frozenset()


@dataclass(frozen=True)
class Peak:
    """The fullest point: `registers` in all, `op` the operation there, `values` what is alive with its registers."""

    registers: int
    op: Operation | None = None
    values: tuple[tuple[Value, int], ...] = ()


@dataclass
class RegisterEstimate:
    """The registers of one function of a program for a target. What loads bring counts only if it is `loaded`: a
    compiler may bring it late and piece by piece.
    """

    function: Operation
    spec: TargetSpec
    loaded: bool = True
    _storages: dict[Value, Storages] = field(default_factory=dict[Value, Storages])
    _sizes: dict[Value, int] = field(default_factory=dict[Value, int])
    _full: tuple[int, Operation | None, Storages] = (0, None, _NOTHING)
    _blocks: dict[Block, int] = field(default_factory=dict[Block, int])

    @cached_property
    def peak(self) -> Peak:
        """What the function needs at its fullest point."""
        for block in self.function.blocks:
            self._block(block, _NOTHING)
        bytes, op, alive = self._full
        values = sorted(((value, self._registers(self._size(value))) for value in alive), key=lambda pair: -pair[1])
        return Peak(self._registers(bytes) + RESERVED, op, tuple(values))

    def within(self, loop: Operation) -> int:
        """What a loop of the function needs at its fullest point."""
        if self.peak.op is None:
            return RESERVED
        blocks = (block for op in loop.walk() for block in op.blocks)
        return self._registers(max(self._blocks.get(block, 0) for block in blocks)) + RESERVED

    def storages_of(self, values: Iterable[Value]) -> Storages:
        """The values whose registers hold `values`."""
        return _NOTHING.union(*map(self._storage, values))

    # Walking backwards

    def _block(self, block: Block, after: Storages) -> Storages:
        """What is alive before a block, given what is alive after it; notes the fullest point."""
        alive = set(after)
        total = self._total(alive)
        for op in reversed(block.ops):
            inner = self._regions(op, frozenset(alive)) if op.regions else _NOTHING
            used = self.storages_of(op.operands) | inner
            dying = used - alive
            results = self.storages_of(op.results) - used
            more = self._total(dying) + self._total(results - alive)
            kept = self._taken_over(op, dying, results)
            there = alive | used | results if kept < self._total(results) else (alive - results) | used
            self._note(total + more - kept, op, there)
            born = results & alive
            total += self._total(dying) - self._total(born)
            alive = (alive | dying) - born
        return frozenset(alive - self.storages_of(block.arguments))

    def _regions(self, op: Operation, after: Storages) -> Storages:
        """What the regions of an operation need from outside, all the while that a loop runs."""
        if isinstance(op, tt.Reduce | tt.Scan | ttg.CrossWarpReduce | ttg.CrossWarpScan):
            return _NOTHING  # They combine elements, not blocks.
        blocks = op.blocks
        captured = self.storages_of(_captured(op))
        through = (after - self.storages_of(op.results)) | (
            captured if isinstance(op, scf.For | scf.While) else _NOTHING
        )
        for block in blocks:
            self._block(block, through)
        return captured

    def _note(self, bytes: int, op: Operation, alive: Iterable[Value]) -> None:
        assert op.block is not None
        self._blocks[op.block] = max(self._blocks.get(op.block, 0), bytes)
        if bytes > self._full[0]:
            self._full = (bytes, op, frozenset(alive))

    def _taken_over(self, op: Operation, dying: Storages, results: Storages) -> int:
        """Bytes of results in the registers of operands that are not needed any more."""
        if isinstance(op, tt.Dot):
            dying &= self._storage(op.c)
        elif not (op.elementwise or isinstance(op, scf.For | scf.While | scf.Yield | ttg.ConvertLayout | tt.Reduce)):
            return 0
        return min(self._total(dying), self._total(results))

    # Sizes

    def _storage(self, value: Value) -> Storages:
        if value not in self._storages:
            self._storages[value] = self._find_storage(value)
        return self._storages[value]

    def _find_storage(self, value: Value) -> Storages:
        op = value.op if isinstance(value, OpResult) else None
        if isinstance(op, arith.Constant) or (isinstance(op, _LOADS) and not self.loaded):
            return _NOTHING
        if isinstance(op, _NAMES) or (isinstance(op, ttg.ConvertLayout) and _moves_nothing(op)):
            return self.storages_of(op.operands)
        if isinstance(op, _INDICES):
            parts = self.storages_of(op.operands)
            if not any(isinstance(part.type, TensorType) for part in parts):
                return parts
        return _NOTHING if isinstance(value.type, _ELSEWHERE) else frozenset((value,))

    def _size(self, value: Value) -> int:
        if value not in self._sizes:
            self._sizes[value] = self._bytes(value.type) * self._parts.get(value, 1)
        return self._sizes[value]

    @cached_property
    def _parts(self) -> dict[Value, int]:
        """What is multiplied in several parts, and in how many."""
        found: dict[Value, int] = {}
        for op in self.function.walk():
            if isinstance(op, tt.Dot) and (parts := self._parts_of(op)) > 1:
                found |= dict.fromkeys(self.storages_of((op.a, op.b)), parts)
        return found

    def _parts_of(self, dot: tt.Dot) -> int:
        size = self.spec.dot.get(element_type(dot.a.type))
        return 1 if size is None or dot.precision == "tf32" else size.parts

    def _bytes(self, type: Type) -> int:
        if isinstance(type, PointerType) and isinstance(type.pointee, TensorType):
            return 4 * type.pointee.rank  # Where it stands; the rest is known at its origin.
        if not isinstance(type, TensorType):
            return 1 if type is I1 else byte_width(type)
        elements = type.size
        if isinstance(type.encoding, Encoding):
            elements = warp_layout(type.encoding, type.shape).count("register") * self.spec.warp_size
        bits = elements * (1 if type.element is I1 else 8 * byte_width(type.element))
        return self._registers(-(-bits // 8)) * self.spec.register_bytes

    def _total(self, storages: Iterable[Value]) -> int:
        return sum(map(self._size, storages))

    def _registers(self, bytes: int) -> int:
        return -(-bytes // self.spec.register_bytes)


def _captured(op: Operation) -> Iterable[Value]:
    """Values from outside that the regions of an operation use."""
    inside: set[Value] = set()
    for inner in op.walk():
        if inner is op:
            continue
        yield from (value for value in inner.operands if value not in inside and not is_defined_inside(value, op))
        inside.update(inner.results)


def _moves_nothing(op: ttg.ConvertLayout) -> bool:
    """Whether registers only get other names."""
    return _is_renaming(cast(TensorType, op.source.type), cast(TensorType, op.result.type))


@cache
def _is_renaming(source: TensorType, target: TensorType) -> bool:
    if not isinstance(source.encoding, Encoding) or not isinstance(target.encoding, Encoding):
        return True
    layouts = (warp_layout(encoding, source.shape) for encoding in (source.encoding, target.encoding))
    return conversion(*layouts).means <= Means.RENAMING


def choose_mode(spec: TargetSpec, registers: int, num_warps: int) -> RegisterMode | None:
    """The mode with the fewest registers that are enough; the one with most for so many warps where none is. None where
    the target has no modes.
    """
    possible = [mode for mode in spec.register_modes if mode.max_warps >= num_warps]
    return next((mode for mode in possible if mode.registers >= registers), possible[-1] if possible else None)
