"""Running kernels for Xe on Intel's OpenCL runtime for CPUs: what that runtime lacks, written as plain LLVM IR.

Level: `llvm` -> `llvm`. `emulate` takes the instructions of a kernel and gives a module in which every call of a 2D
block access, a matrix product, a split barrier, an address payload, a predicated access, moves of regions or
conversions of small floats calls a function of the module itself. Lanes stay in step where they access memory
(`lockstep.py`).
Guarantees: blocks outside of the device's limits raise `BackendError`; surfaces outside of them give what no kernel
wants (every bit set, stores dropped), so that a missing guard shows.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.errors import BackendError
from mltriton.targets.llvm.instruction import Instruction, Operands
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.emulation import (
    blocks,
    lanes,
    lockstep,
    payloads,
    phis,
    products,
    region_shuffles,
    small_floats,
)
from mltriton.targets.xe.layouts.region_moves import RegionMoves
from mltriton.targets.xe.llvm.caching import DECORATED
from mltriton.targets.xe.llvm.small_floats import Widening
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin, every_builtin
from mltriton.targets.xe.spirv.mangling import unmangled

# Writes the function that stands for a call with these constants, and gives its name.
Writer = Callable[[Module, Builtin, tuple[int, ...], Device], str]

# Name of a built-in function -> the positions of arguments that must be constants, and what writes its body.
_WRITERS: dict[str, tuple[tuple[int, ...], Writer]] = {
    **{access.name: ((0, 1, 2, 3), blocks.write) for access in xe.BLOCK_ACCESSES},
    xe.DPAS: ((0, 4), products.write),
    xe.BARRIER_ARRIVE.name: ((), lanes.write_arrive),
    xe.BARRIER_WAIT.name: ((), lanes.write_wait),
    xe.ROUND_TO_TF32.name: ((), lanes.write_tf32),
    xe.FLOATS_TO_BF16[1].name: ((), lanes.write_to_bf16),
    xe.BF16_TO_FLOAT.name: ((), lanes.write_from_bf16),
    xe.PREDICATED_LOAD.name: ((), lanes.write_load),
    xe.PREDICATED_STORE.name: ((), lanes.write_store),
}


def emulate(kernel: Function, device: Device) -> str:
    """The module of a kernel without anything that only Xe has. The kernel is used up: its instructions change."""
    calls = _Calls(kernel.module, device)
    payloads.rewrite(kernel, calls.standing_for)
    lockstep.rewrite(kernel)
    phis.rewrite(kernel)
    for made in kernel.taken():
        kernel.lines.append(calls.replaced(made) if made.op == "call" else _without_hint(made))
    calls.undeclare()
    kernel.module.put_last(kernel)
    return kernel.module.text


class _Calls:
    """The calls of one module's kernel, and the functions that were written for them."""

    def __init__(self, module: Module, device: Device) -> None:
        self._module, self._device = module, device
        self._known = {builtin.symbol: builtin for builtin in every_builtin() if builtin.name in _WRITERS}
        self._written: dict[tuple[str, tuple[int, ...]], str] = {}

    def standing_for(self, builtin: Builtin, constants: tuple[int, ...]) -> str:
        """The name of the function that stands for a built-in one with these constants."""
        key = (builtin.symbol, constants)
        if key not in self._written:
            self._written[key] = _WRITERS[builtin.name][1](self._module, builtin, constants, self._device)
        return self._written[key]

    def replaced(self, made: Instruction) -> Instruction:
        """The call, of another function where this is one that only Xe has."""
        symbol = made.names[0]
        if symbol.startswith("llvm.genx."):
            raise BackendError(f"{symbol} cannot be emulated")
        if (builtin := self._known.get(symbol)) is not None:
            return _calling(made, self.standing_for(builtin, _constants(builtin, made.operands)))
        if (symbol, ()) not in self._written:
            meaning = self._module.meanings.get(symbol)
            if isinstance(meaning, RegionMoves):
                name = region_shuffles.write(self._module, symbol, meaning, made.operands[0].type, made.type)
            elif isinstance(meaning, Widening):
                name = small_floats.write(self._module, symbol, meaning, made.type)
            else:
                return made
            self._written[symbol, ()] = name
        return _calling(made, self._written[symbol, ()])

    def undeclare(self) -> None:
        """Forget the functions that nothing calls any more."""
        for symbol in (*self._known, *(symbol for symbol, _ in self._written)):
            self._module.undeclare(symbol)


def image_of(kernel: Function, device: Device) -> bytes:
    """The SPIR-V module of a kernel without anything that only Xe has, which is used up.

    The runtime is not to optimise the kernel: it would make vectors of all lanes, and LLVM would take minutes for what
    passes them to functions. Unoptimised, lanes run one after the other.
    """
    from mltriton.targets.xe.spirv.emission import emit  # A launch from the cache needs none of it.
    from mltriton.targets.xe.spirv.patches import leave_kernels_alone
    from mltriton.targets.xe.spirv.words import read

    return leave_kernels_alone(read(emit(emulate(kernel, device)))).image


def _constants(builtin: Builtin, operands: Operands) -> tuple[int, ...]:
    found = [operands[position] for position in _WRITERS[builtin.name][0]]
    if any(value.literal is None for value in found):
        message = f"the shape of a {unmangled(builtin.symbol)} is not known when compiling"
        raise BackendError(message, found=", ".join(map(str, operands)))
    return tuple(int(value.literal) for value in found if value.literal is not None)


def _calling(made: Instruction, name: str) -> Instruction:
    """The same call of another function."""
    text = f"call {made.type} @{name}({', '.join(map(str, made.operands))})"
    return made._replace(text=text, names=(name,))


def _without_hint(made: Instruction) -> Instruction:
    """An address that says nothing of the caches."""
    return made._replace(text=f"inttoptr {made.operands[0]} to {made.type}") if made.op == DECORATED else made
