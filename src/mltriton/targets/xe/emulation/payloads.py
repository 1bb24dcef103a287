"""Address payloads in private memory: where a 2D block access of a loop is, and the access from there.

Level: `llvm` text. `rewrite` replaces the intrinsics of Intel's compiler: a payload becomes a variable of the kernel
with the base (i64), bytes of a row, rows, pitch (each less one), x and y (i32); an access reads it and calls the
function that stands for the block access. Guarantees: a payload made for another block than is accessed is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import GLOBAL_PTR, I1, I8, I32, I64, PTR, VOID, Value, poison
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.llvm.payloads import CREATE, PREFETCH, PREFIX, READ, SET, Field
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin

Writer = Callable[[Builtin, tuple[int, ...]], str]  # the function that stands for a block access of that shape

BYTES = 28
_FIRST_FIELD, _FIELDS_START = 2, 8  # the number of the first i32, and where it lies
_SIZES = ("width", "height", "pitch")

_CREATED = re.compile(rf"^  (%\w+) = call ptr @{re.escape(CREATE)}\((.*)\)$", re.MULTILINE)
_READ = re.compile(
    rf"^  (%\w+) = call <\d+ x \w+> @{re.escape(READ)}[\w.]*\((.*)\)\n  store <[^>]*> \1, (ptr %\w+), align \d+$",
    re.MULTILINE,
)
_PREFETCHED = re.compile(rf"^  call void @{re.escape(PREFETCH)}\((.*)\)$", re.MULTILINE)
_DECLARED = re.compile(rf"^declare .*@{re.escape(PREFIX)}\w*Payload.*\n", re.MULTILINE)
_ENTRY = re.compile(r"^(define spir_kernel .*\nentry:)$", re.MULTILINE)


def rewrite(text: str, library: Module, writer: Writer) -> str:
    """The kernel in `text` with payloads in memory."""
    if CREATE not in text:
        return text
    shapes: dict[str, list[str]] = {}
    create, move = _write_create(library), _write_move(library)

    def made(call: re.Match[str]) -> str:
        arguments = call[2].split(", ")
        shapes[call[1]] = arguments[-3:]
        return f"  call void @{create}(ptr {call[1]}, {', '.join(arguments[:-3])})"

    def access(arguments: str, held: str) -> str:
        payload, _, _, bits, width, height, blocks, turned, packed, _ = arguments.split(", ")
        if shapes[payload.removeprefix("ptr ")] != [width, height, blocks]:
            raise BackendError("a payload is of another block than the access", found=arguments)
        builtin = xe.BLOCK_LOAD_TRANSPOSE if turned.endswith("true") else xe.BLOCK_LOAD
        builtin = xe.BLOCK_LOAD_VNNI if packed.endswith("true") else builtin if held else xe.BLOCK_PREFETCH
        numbers = [int(number.removeprefix("i32 ")) for number in (bits, width, height, blocks)]
        name = _write_access(library, builtin, (numbers[0] // 8, *numbers[1:]), writer)
        return f"  call void @{name}({payload}, {held or 'ptr null'})"

    text = _CREATED.sub(made, _DECLARED.sub("", text))
    text = _READ.sub(lambda call: access(call[2], call[3]), text)
    text = _PREFETCHED.sub(lambda call: access(call[1], ""), text)
    variables = "".join(f"\n  {name} = alloca [{BYTES} x i8], align 8" for name in shapes)
    return _ENTRY.sub(rf"\1{variables}", text.replace(f"@{SET}(", f"@{move}("))


def _field(f: Function, payload: Value, number: int) -> Value:
    return f.gep(payload, _FIELDS_START + 4 * (number - _FIRST_FIELD), I8)


def _write_create(library: Module) -> str:
    names = ("base", *_SIZES, "x", "y")
    parameters = [("payload", PTR), *((name, I32 if number else I64) for number, name in enumerate(names))]
    f = library.function("emulated_create_payload", VOID, parameters)
    payload, base, *fields = f.parameters
    f.store(base, payload)
    for number, value in enumerate(fields, _FIRST_FIELD):
        f.store(value, _field(f, payload, number))
    f.ret()
    return f.name


def _write_move(library: Module) -> str:
    parameters = [("payload", PTR), ("number", I32), ("value", I32), ("adds", I1)]
    f = library.function("emulated_move_payload", VOID, parameters)
    payload, number, value, _ = f.parameters
    for field in Field:
        with f.when(f.icmp("eq", number, field)):
            f.store(value, _field(f, payload, field))
    f.ret()
    return f.name


def _write_access(library: Module, builtin: Builtin, shape: tuple[int, ...], writer: Writer) -> str:
    block = writer(builtin, shape)
    name = f"{block}_by_payload"
    if library.defines(name):
        return name
    f = library.function(name, VOID, [("payload", PTR), ("held", PTR)])
    payload, held = f.parameters
    base = f.cast("inttoptr", f.load(I64, payload), GLOBAL_PTR)
    fields = [f.load(I32, _field(f, payload, number)) for number in range(_FIRST_FIELD, Field.Y + 1)]
    sizes, (x, y) = [f.add(size, 1) for size in fields[: len(_SIZES)]], fields[len(_SIZES) :]
    coordinates = f.insert(f.insert(poison(I32.with_lanes(2)), x, 0), y, 1)
    arguments = [Value(I32, str(number)) for number in shape]
    f.call(block, VOID, *arguments, base, *sizes, coordinates, *([] if builtin is xe.BLOCK_PREFETCH else [held]))
    f.ret()
    return name
