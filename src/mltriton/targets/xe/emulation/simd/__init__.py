"""Running kernels for Xe that are in SIMD form on this machine's CPU.

Level: `llvm` -> `llvm`. `emulate_warps` takes the IR text of such a kernel and gives that of a function for this CPU,
`void run(ptr slots, ptr place)`, in which every intrinsic of Intel's vector compiler is a function of the text itself.
Each argument has a slot of 8 bytes; `place` says which warp of which program runs. Guarantees: blocks and matrices
outside of the device's limits are treated as by `emulation/blocks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mltriton.errors import BackendError
from mltriton.targets.cpu.features import host
from mltriton.targets.cpu.llvm.emit.kernel import function_attributes
from mltriton.targets.llvm.types import CONSTANT_PTR, PTR, VOID, Type, Value, vector
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
from mltriton.targets.xe.spirv.vectors.syntax import Number, Reader

ENTRY = "run"
_SLOT_BYTES = 8
_CALL = re.compile(r"call (<[^>]*>|[\w.]+) @([\w.]+)\((.*)\)$", re.MULTILINE)
_HEADER = re.compile(r"^define spir_kernel void @([\w.$]+)\((.*)\) .*\{$", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^attributes #0 = .*$", re.MULTILINE)
_PRINTF = f"call spir_func i32 ({CONSTANT_PTR}, ...) @{PRINTF}("
_PRINTED = f"call i32 ({CONSTANT_PTR}, ...) @printf("
_DECLARED = f"declare i32 @printf({CONSTANT_PTR}, ...)"

# How the name of a function begins -> what writes one with the same parameters, and the place after them.
_WRITERS: dict[str, Write] = {
    **vector_regions.WRITERS,
    **warp_position.WRITERS,
    **scattered_accesses.WRITERS,
    **rectangles.WRITERS,
    **products.WRITERS,
    **functions.WRITERS,
}


def emulate_warps(text: str, device: Device) -> str:
    """The kernel in `text` for this machine."""
    library = Module(function_attributes(host()))
    written: dict[tuple[object, ...], str] = {}

    def rename(found: re.Match[str]) -> str:
        call = _read(found, device)
        write = next((write for prefix, write in _WRITERS.items() if call.name.startswith(prefix)), None)
        if write is None:
            if call.name.startswith("llvm.") and not call.name.startswith("llvm.genx."):
                return found[0]
            raise BackendError(f"{call.name} cannot be emulated", found=found[0])
        if call.key not in written:
            written[call.key] = name = f"emulated{len(written)}"
            parameters = [*((f"a{n}", type_) for n, type_ in enumerate(call.types)), ("place", PTR)]
            function = library.function(name, call.result, parameters, extra="noinline ")
            made = write(function, call)
            function.ret(made)
        arguments = f"{found[3]}, ptr %place" if found[3] else "ptr %place"
        return f"call {found[1]} @{written[call.key]}({arguments})"

    header = _HEADER.search(text)
    assert header is not None, "the text of a kernel"
    kernel = _CALL.sub(rename, text).replace(_PRINTF, _PRINTED)
    _entry(library, header[1], header[2])
    kernel = _HEADER.sub(rf"define internal void @{header[1]}.warp(\2, ptr %place) #0 {{", kernel)
    kept = [line for line in kernel.splitlines() if not line.startswith(("declare", "attributes #0", "!"))]
    declared = [line for line in text.splitlines() if line.startswith("declare") and _is_kept(line)]
    declared += [_DECLARED] if _PRINTED in kernel else []
    return "\n".join((*_without_doubles(declared, library.text), *kept, library.text))


def _is_kept(declaration: str) -> bool:
    return "@llvm." in declaration and "@llvm.genx." not in declaration


def _without_doubles(declared: Sequence[str], library: str) -> list[str]:
    return [line for line in declared if line not in library]


def _read(found: re.Match[str], device: Device) -> Call:
    reader = Reader(found[3])
    types: list[Type] = []
    constants: list[int | None] = []
    while reader.next:
        type_, value = reader.typed()
        types.append(type_)
        constants.append(value.bits if isinstance(value, Number) else None)
        reader.skip(",")
    return Call(found[2], Reader(found[1]).type(), tuple(types), tuple(constants), device)


def _entry(library: Module, name: str, parameters: str) -> None:
    """The function that reads the arguments."""
    f = library.function(ENTRY, VOID, [("slots", PTR), ("place", PTR)], linkage="")
    slots, place = f.parameters
    reader, arguments = Reader(parameters), list[Value]()
    while reader.next:
        type_ = reader.type()
        reader.take()
        reader.skip(",")
        arguments.append(_argument(f, slots, len(arguments), type_))
    f.call(f"{name}.warp", VOID, *arguments, place)
    f.ret()


def _argument(f: Function, slots: Value, number: int, type_: Type) -> Value:
    return f.load(type_, f.gep(slots, number * _SLOT_BYTES, vector("i8", 1)))
