"""The threads of a program: registers, control flow, and which threads an instruction is for.

Of the threads that can go on those that are furthest behind do; where a warp meets, lanes wait for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import operations, warp_groups, warps
from .memory import Array, EmulationError, Memory
from .races import Races
from .tensor_copies import Engine
from .text import Function, Instruction, Module, Operand
from .values import DTYPES, UNSIGNED, resized

WARP = 32
_NEVER_WRITTEN = 0xA5A5A5A5A5A5A5A5
Rule = Callable[["Threads", Instruction], None]


class Step(NamedTuple):
    """An instruction, how it runs, its registers, of how many threads all must be there (0: of none), and whether the
    threads at hand just go on to the next one.
    """

    instruction: Instruction
    rule: Rule | None
    names: tuple[str, ...]
    meets: int
    is_plain: bool


class Threads:
    """One program; in a call the threads that make it."""

    def __init__(
        self,
        module: Module,
        memory: Memory,
        symbols: dict[str, int],
        count: int,
        place: Sequence[int],
        grid: Sequence[int],
        numbers: Array | None = None,
        engine: Engine | None = None,
        races: Races | None = None,
    ) -> None:
        self.module = module
        self.memory = memory
        self.symbols = symbols
        self.place = place
        self.grid = grid
        self.numbers = np.arange(count) if numbers is None else numbers
        self.count = len(self.numbers)
        self.parameters: dict[str, Array] = {}  # of the function and of calls, bytes of each thread
        self.registers: dict[str, Array] = {}
        self.copies: list[list[tuple[Array, Array]]] = [[]]  # groups under way, the last one open
        self.products: dict[int, warp_groups.Products] = {}  # of groups of warps
        self.engine = engine or Engine({})
        self.races = races or Races(np.zeros(0, np.uint8))
        self.mask: Array | None = None  # the threads at hand; None for all
        self._all = np.ones(self.count, bool)
        self._numbers: dict[tuple[int, int, str], Array] = {}
        self.pc = np.zeros(self.count, np.int64)
        self.waiting = np.zeros(self.count, bool)  # at a barrier
        self.gates = np.zeros(self.count, np.int64)  # the number of the barrier, where only some threads meet
        self.parked = np.zeros(self.count, bool)  # where their warp meets
        self.asleep = np.zeros(self.count, bool)  # until something happens to a barrier in shared memory

    def run(self, words: Sequence[int]) -> None:
        """The kernel, with a word for each parameter."""
        kernel = self.module.functions[self.module.kernel]
        for name, word in zip(kernel.parameters, words, strict=False):
            bits = np.array([word & (1 << 64) - 1], np.uint64).view(np.uint8)
            self.parameters[name] = np.broadcast_to(bits, (self.count, 8))
            self.symbols.setdefault(name, self.memory.add(bits))  # a program may choose between two places
        self.function(kernel)
        if any(self.copies):
            raise EmulationError("the program ends before its copies have arrived")
        if any(products.sums for products in self.products.values()):
            raise EmulationError("the program ends before its products are done")
        self.engine.end()

    def function(self, function: Function) -> None:
        """Run a function to its end."""
        self.current = function
        self._prepare(function)
        steps = _steps(function)
        end = len(steps)
        with np.errstate(all="ignore"):
            while True:
                pcs = self.pc[~(self.waiting | self.parked | self.asleep)]
                if not pcs.size or pcs.min() >= end:
                    if self.asleep.any():
                        raise EmulationError("threads wait for a phase of a barrier that never ends")
                    if self.parked.any():
                        raise EmulationError("lanes of a warp are missing where it meets")
                    if (self.gates > 0).any():
                        raise EmulationError("threads wait at a barrier to which others do not come")
                    if not self.waiting.any():
                        return
                    self.waiting[:] = False  # All that are left have come to the barrier.
                    self.races.meet()
                    continue
                at = int(pcs.min())
                here = (self.pc == at) & ~(self.waiting | self.asleep)
                if steps[at].meets:
                    here = self._complete(here, end, steps[at].meets)
                if not here.any():
                    continue
                mask = None if here.all() else here
                if steps[at].is_plain:
                    further = pcs[pcs > at]
                    others = int(further.min()) if further.size else end
                    while at < others and steps[at].is_plain:
                        self.mask = mask
                        self._step(steps[at])
                        at += 1
                    self.pc[here] = at
                else:
                    self.mask = mask
                    self.pc[here] = at + 1
                    self._step(steps[at])

    def _complete(self, here: Array, end: int, size: int) -> Array:
        """The threads of warps, or groups, of which all that are left are here; those of others are parked."""
        first = self.numbers // size
        missing = np.unique(first[~here & (self.pc < end)])
        complete = here & ~np.isin(first, missing)
        self.parked |= here
        self.parked &= ~complete
        return complete

    def _prepare(self, function: Function) -> None:
        for name, size in function.local.items():
            memory = np.zeros(self.count * size + 64, np.uint8)
            memory = memory[-memory.ctypes.data % 64 :][: self.count * size]
            start = self.memory.add(memory)
            self.registers[name] = np.uint64(start) + np.arange(self.count, dtype=np.uint64) * np.uint64(size)

    def _step(self, step: Step) -> None:
        instruction = step.instruction
        if instruction.guard:
            kept = self.mask
            guard = self.registers[instruction.guard] ^ instruction.negated
            allowed = guard if kept is None else guard & kept
            if not allowed.any():
                return
            self.mask = None if allowed.all() else allowed
        if step.rule is None:
            raise EmulationError(f"the emulator does not know {instruction.text}")
        try:
            is_checked = self.products and instruction.opcode[0] != "wgmma"
            held = warp_groups.check(self, instruction, step.names) if is_checked else None
            before = self.registers.get(held) if held else None
            step.rule(self, instruction)
            if held and not np.array_equal(before, self.registers[held]):
                raise EmulationError(f"{held} is set while a product reads it")
        except EmulationError as error:
            raise EmulationError(f"{error}\n  {instruction.text}") from None

    @property
    def active(self) -> Array:
        """The threads at hand."""
        return self._all if self.mask is None else self.mask

    # Operands

    def read(self, operand: Operand, kind: str) -> Array:
        """The value of an operand in all threads."""
        dtype = DTYPES[kind]
        if operand.kind == "number":
            known = self._numbers.get((operand.number, operand.width, kind))
            if known is None:
                known = np.broadcast_to(self._constant(operand, dtype), (self.count,))
                self._numbers[operand.number, operand.width, kind] = known
            return known
        if operand.kind == "name":
            if operand.name in self.symbols:
                return np.full(self.count, self.symbols[operand.name], np.uint64)
            if operand.name in self.current.local:
                return self.registers[operand.name]
        if operand.kind == "vector":
            bits = 8 * dtype.itemsize // len(operand.parts)
            parts = [self.read_any(part, f"b{bits}") for part in operand.parts]
            return np.ascontiguousarray(np.stack(parts, 1)).view(dtype)[:, 0]
        held = self._register(operand.name)
        if "b" in (dtype.kind, held.dtype.kind):
            return held
        return resized(held, dtype.itemsize, signed=kind[0] == "s").view(dtype)

    def read_any(self, operand: Operand, kind: str = "u32") -> Array:
        """A part of a word, to which nothing may have been written: something else takes its place later."""
        if operand.kind == "register" and operand.name not in self.registers:
            return np.full(self.count, _NEVER_WRITTEN, np.uint64).astype(UNSIGNED[DTYPES[kind].itemsize])
        return self.read(operand, kind)

    def _constant(self, operand: Operand, dtype: np.dtype[Any]) -> Any:
        number = operand.number
        if operand.width:
            value = np.array([number], UNSIGNED[operand.width // 8])
            return value.view(dtype)[0] if dtype.itemsize == value.itemsize else value.view(f"f{value.itemsize}")[0]
        if dtype.kind == "f":
            return np.array([number], np.uint64).astype(UNSIGNED[dtype.itemsize]).view(dtype)[0]
        if dtype.kind == "b":
            return bool(number)
        return np.array([number & (1 << 64) - 1], np.uint64).astype(UNSIGNED[dtype.itemsize]).view(dtype)[0]

    def _register(self, name: str) -> Array:
        found = self.registers.get(name)
        if found is None:
            found = self._special(name)
        return found

    def _special(self, name: str) -> Array:
        axis = "xyz".find(name[-1])
        known = {
            "%laneid": self.numbers % WARP,
            "%tid": self.numbers if axis == 0 else 0,
            "%ctaid": self.place[axis],
            "%nctaid": self.grid[axis],
        }
        key = name if name == "%laneid" else name.partition(".")[0]
        if key not in known:
            raise EmulationError(f"the register {name} is read before it is written")
        return np.broadcast_to(np.asarray(known[key]), (self.count,)).astype(np.uint32)

    def write(self, operand: Operand, value: Array, kind: str) -> None:
        """Set a register of the threads at hand."""
        if operand.kind == "vector":
            parts = np.ascontiguousarray(value)[:, None].view(UNSIGNED[value.dtype.itemsize // len(operand.parts)])
            for number, part in enumerate(operand.parts):
                self.write(part, parts[:, number], f"b{8 * parts.dtype.itemsize}")
            return
        if operand.name == "_":
            return
        size = self.current.width(operand.name)
        value = np.ascontiguousarray(value)
        if size == 0:
            made = value.astype(bool)
        else:
            made = resized(value.view(UNSIGNED[value.dtype.itemsize]), size, signed=kind[0] == "s")
        old = self.registers.get(operand.name)
        if self.mask is not None:
            made = np.where(self.mask, made, np.zeros_like(made) if old is None else old)
        self.registers[operand.name] = made

    def address(self, operand: Operand) -> Array:
        """An address in all threads."""
        [base] = operand.parts
        start = self.read(base, "u64") if base.kind != "number" else np.full(self.count, base.number, np.uint64)
        return start + np.uint64(operand.number & (1 << 64) - 1)


@lru_cache(64)
def _steps(function: Function) -> list[Step]:
    """The instructions of a function, each with what is known of it before it runs."""
    return [_step_of(instruction) for instruction in function.instructions]


def _step_of(i: Instruction) -> Step:
    name = i.opcode[0]
    rule = CONTROL.get(name) or warps.RULES.get(name) or operations.RULES.get(name) or warp_groups.RULES.get(name)
    size = warp_groups.GROUP if name == "wgmma" else WARP
    meets = size if name in warps.RULES or name in warp_groups.RULES or i.opcode[:3] == ("bar", "warp", "sync") else 0
    wakes = name == "mbarrier" or (name == "cp" and "bulk" in i.opcode)
    return Step(i, rule, tuple(warp_groups.names_in(i.operands)), meets, not (meets or wakes or name in CONTROL))


# Control flow


def _branch(t: Threads, i: Instruction) -> None:
    t.pc[t.active] = t.current.labels[i.operands[-1].name]


def _end(t: Threads, i: Instruction) -> None:
    t.pc[t.active] = len(t.current.instructions)


def _barrier(t: Threads, i: Instruction) -> None:
    if i.opcode[:3] == ("bar", "warp", "sync"):
        return
    t.waiting |= t.active
    if len(i.operands) > 1:  # so many threads meet
        number, count = (operand.number for operand in i.operands)
        t.races.off |= count != t.count
        t.gates[t.active] = number
        come = t.gates == number
        if come.sum() == count:
            t.waiting[come], t.gates[come] = False, 0
            t.races.meet()


def _call(t: Threads, i: Instruction) -> None:
    """A function of the module, or vprintf, by the threads at hand."""
    result = i.operands[0].parts[0].name if i.operands[0].kind == "vector" else ""
    name = next(o.name for o in i.operands if o.kind == "name")
    given = [part.name for part in i.operands[-1].parts] if i.operands[-1].kind == "vector" else []
    if name == "vprintf":
        operations.print_lines(t, *(t.parameters[parameter] for parameter in given))
        t.parameters[result] = np.zeros((t.count, 8), np.uint8)
        return
    function, active = t.module.functions[name], t.active
    inner = Threads(t.module, t.memory, t.symbols, t.count, t.place, t.grid, t.numbers[active], races=t.races)
    for parameter, argument in zip(function.parameters, given, strict=True):
        inner.parameters[parameter] = t.parameters[argument][active]
    inner.function(function)
    made = np.zeros((t.count, 8), np.uint8)
    made[active] = inner.parameters["func_retval0"]
    t.parameters[result] = made


CONTROL = {"bra": _branch, "ret": _end, "exit": _end, "bar": _barrier, "call": _call}
CONTROL |= dict.fromkeys(("setmaxnreg", "griddepcontrol"), lambda threads, instruction: None)
