"""Running kernels for Xe on Intel's OpenCL runtime for CPUs: what that runtime lacks, written as plain LLVM IR.

Level: `llvm` -> `llvm`. `emulate` takes the IR text of a kernel and gives one in which every call of a 2D block access,
a matrix product, a split barrier, an address payload, a predicated access, moves of regions or conversions of small
floats calls a function of the text itself. Lanes stay in step where they access memory (`lockstep.py`).
Guarantees: blocks outside of the device's limits raise `BackendError`; surfaces outside of them give what no kernel
wants (every bit set, stores dropped), so that a missing guard shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import Type, vector
from mltriton.targets.llvm.writer import Module
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
from mltriton.targets.xe.llvm.region_calls import named
from mltriton.targets.xe.llvm.small_floats import named as widening_named
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

_CALL = re.compile(r"call (?:spir_func )?(?:<[^>]*>|[\w.]+) @([\w.]+)\((.*)\)(?= |$|,)", re.MULTILINE)
_HINT = re.compile(r", !spirv\.Decorations !\d+")  # of caches
_CONSTANT = re.compile(r"i32 (-?\d+)$")


def emulate(text: str, device: Device) -> str:
    """The kernel in `text` without anything that only Xe has."""
    library = Module()
    known = {builtin.symbol: builtin for builtin in every_builtin() if builtin.name in _WRITERS}
    written: dict[tuple[str, tuple[int, ...]], str] = {}

    def function(builtin: Builtin, constants: tuple[int, ...]) -> str:
        key = (builtin.symbol, constants)
        if key not in written:
            written[key] = _WRITERS[builtin.name][1](library, builtin, constants, device)
        return written[key]

    def assembled(symbol: str, call: re.Match[str]) -> str:
        if (symbol, ()) not in written:
            source, result = (_type(text) for text in (call[2], call[0].removeprefix("call ")))
            if (moves := named(symbol)) is not None:
                written[symbol, ()] = region_shuffles.write(library, symbol, moves, source, result)
            elif (widening := widening_named(symbol)) is not None:
                written[symbol, ()] = small_floats.write(library, symbol, widening[0], source, result)
        return written[symbol, ()]

    def rename(call: re.Match[str]) -> str:
        symbol, arguments = call[1], call[2]
        if symbol.startswith("llvm.genx."):
            raise BackendError(f"{symbol} cannot be emulated")
        if _is_assembled(symbol):
            return call[0].replace(f"@{symbol}(", f"@{assembled(symbol, call)}(", 1)
        builtin = known.get(symbol)
        if builtin is None:
            return call[0]
        name = function(builtin, _constants(builtin, arguments, _WRITERS[builtin.name][0]))
        return call[0].replace(f"@{symbol}(", f"@{name}(", 1)

    text = payloads.rewrite(_HINT.sub("", text), library, function)
    kernel = _CALL.sub(rename, phis.rewrite(lockstep.rewrite(text)))
    return _joined(kernel, library.text, known)


def image_of(text: str, device: Device) -> bytes:
    """The SPIR-V module of the kernel in `text` without anything that only Xe has.

    The runtime is not to optimise the kernel: it would make vectors of all lanes, and LLVM would take minutes for what
    passes them to functions. Unoptimised, lanes run one after the other.
    """
    from mltriton.targets.xe.spirv.emission import emit  # A launch from the cache needs none of it.
    from mltriton.targets.xe.spirv.patches import leave_kernels_alone
    from mltriton.targets.xe.spirv.words import read

    return leave_kernels_alone(read(emit(emulate(text, device)))).image


def _constants(builtin: Builtin, arguments: str, positions: tuple[int, ...]) -> tuple[int, ...]:
    split = re.split(r", (?![^<(]*[>)])", arguments)
    found = [_CONSTANT.match(split[position]) for position in positions]
    if not all(found):
        message = f"the shape of a {unmangled(builtin.symbol)} is not known when compiling"
        raise BackendError(message, found=arguments)
    return tuple(int(match[1]) for match in found if match)


def _type(text: str) -> Type:
    """The type at the start of a text."""
    match = re.match(r"(?:<(\d+) x )?(\w+)", text)
    assert match is not None
    return vector(match[2], int(match[1] or 1))


def _joined(kernel: str, library: str, emulated: dict[str, Builtin]) -> str:
    """The library's functions and the kernel's text, each declaration once."""
    declared: set[str] = set()
    lines: list[str] = []
    functions: list[str] = []
    for line in kernel.splitlines():
        symbol = _declared(line)
        if symbol is not None:
            declared.add(symbol)
        if symbol not in emulated and (symbol is None or not _is_assembled(symbol)):
            lines.append(line)
    for line in library.partition("attributes #0")[0].splitlines():
        if _declared(line) not in declared:
            functions.append(line.replace(" #0 {", " nounwind {"))
    return "\n".join((*functions, *lines, ""))


def _is_assembled(symbol: str) -> bool:
    """Whether a function of that name is assembly on Xe."""
    return named(symbol) is not None or widening_named(symbol) is not None


def _declared(line: str) -> str | None:
    match = re.match(r"declare .*?@([\w.]+)\(", line)
    return match[1] if match else None
