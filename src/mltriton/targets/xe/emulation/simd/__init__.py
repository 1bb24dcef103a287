"""Running kernels for Xe that are in SIMD form on this machine's CPU.

Level: `llvm` -> `llvm`. `emulate_warps` takes such a kernel and gives the IR text of a function for this CPU,
`void run(ptr slots, ptr place)`, in which every intrinsic of Intel's vector compiler is a function of the text itself.
Each argument has a slot of 8 bytes; `place` says which warp of which program runs. Guarantees: blocks and matrices
outside of the device's limits are treated as by `emulation/blocks.py`.
"""

from __future__ import annotations

from mltriton.errors import BackendError
from mltriton.targets.cpu.features import host
from mltriton.targets.cpu.llvm.emit.kernel import function_attributes
from mltriton.targets.llvm.instruction import Instruction, Operands
from mltriton.targets.llvm.types import CONSTANT_PTR, I32, PTR, VOID, Value, bits_of, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.emulation.simd import (
    functions,
    products,
    rectangles,
    scattered_accesses,
    vector_regions,
    warp_position,
)
from mltriton.targets.xe.emulation.simd.call import Call, Write
from mltriton.targets.xe.spirv.emission import PRINTF

ENTRY = "run"
_SLOT_BYTES = 8

# How the name of a function begins -> what writes one with the same parameters, and the place after them.
_WRITERS: dict[str, Write] = {
    **vector_regions.WRITERS,
    **warp_position.WRITERS,
    **scattered_accesses.WRITERS,
    **rectangles.WRITERS,
    **products.WRITERS,
    **functions.WRITERS,
}


def emulate_warps(kernel: Function, device: Device) -> str:
    """A kernel for this machine."""
    library = Module(function_attributes(host()))
    for name, data in kernel.module.texts.items():
        library.bytes_constant(name, data, CONSTANT_PTR)
    parameters = [(value.text[1:], value.type) for value in kernel.parameters]
    warp = library.function(f"{kernel.name}.warp", VOID, [*parameters, ("place", PTR)])
    written: dict[tuple[object, ...], str] = {}
    warp.lines += (
        _renamed(library, written, made, device) if made.op == "call" else made for made in kernel.instructions
    )
    _entry(library, warp)
    return library.text


def _renamed(library: Module, written: dict[tuple[object, ...], str], made: Instruction, device: Device) -> Instruction:
    """A call of a function that this machine has, which may be written just now."""
    name, types = made.names[0], tuple(value.type for value in made.operands)
    if name == PRINTF:
        library.declare("printf", I32, [CONSTANT_PTR], variadic=True)
        return _calling(made, f"({CONSTANT_PTR}, ...) @printf", made.operands)
    write = next((write for prefix, write in _WRITERS.items() if name.startswith(prefix)), None)
    if write is None:
        if name.startswith("llvm.") and not name.startswith("llvm.genx."):
            library.declare(name, made.type, types)
            return made
        raise BackendError(f"{name} cannot be emulated", found=made.text)
    constants = tuple(None if v.literal is None else bits_of(v.type, v.literal) for v in made.operands)
    call = Call(name, made.type, types, constants, device)
    if call.key not in written:
        written[call.key] = f"emulated{len(written)}"
        parameters = [*((f"a{n}", type_) for n, type_ in enumerate(types)), ("place", PTR)]
        function = library.function(written[call.key], call.result, parameters, extra="noinline ")
        function.ret(write(function, call))
    return _calling(made, f"@{written[call.key]}", (*made.operands, Value(PTR, "%place")))


def _calling(made: Instruction, function: str, operands: Operands) -> Instruction:
    """The same call of another function."""
    return Instruction(f"call {made.type} {function}({', '.join(map(str, operands))})", name=made.name)


def _entry(library: Module, warp: Function) -> None:
    """The function that reads the arguments."""
    f = library.function(ENTRY, VOID, [("slots", PTR), ("place", PTR)], linkage="")
    slots, place = f.parameters
    types = [value.type for value in warp.parameters[:-1]]
    slot = (f.gep(slots, number * _SLOT_BYTES, vector("i8", 1)) for number in range(len(types)))
    f.call(warp.name, VOID, *(f.load(type_, at) for type_, at in zip(types, slot, strict=True)), place)
    f.ret()
