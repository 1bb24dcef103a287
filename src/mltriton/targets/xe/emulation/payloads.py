"""Address payloads in private memory: where a 2D block access of a loop is, and the access from there.

Level: `llvm`. `rewrite` replaces the intrinsics of Intel's compiler: a payload becomes a variable of the kernel with
the base (i64), bytes of a row, rows, pitch (each less one), x and y (i32); an access reads it and calls the function
that stands for the block access. Guarantees: a payload made for another block than is accessed is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import GLOBAL_PTR, I1, I8, I32, I64, PTR, VOID, Value, constant, poison
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.llvm.payloads import CREATE, PREFETCH, PREFIX, READ, SET, Field
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin

Writer = Callable[[Builtin, tuple[int, ...]], str]  # the function that stands for a block access of that shape

BYTES = 28
_FIRST_FIELD, _FIELDS_START = 2, 8  # the number of the first i32, and where it lies
_SIZES = ("width", "height", "pitch")


def rewrite(f: Function, writer: Writer) -> None:
    """Give a kernel payloads in memory."""
    variables: dict[str, Value] = {}
    shapes: dict[str, Sequence[Value]] = {}
    read: dict[str, Sequence[Value]] = {}

    def access(operands: Sequence[Value], memory: Value | None) -> None:
        payload, _, _, bits, *shape, turned, packed, _ = operands
        if shapes[payload.text] != shape:
            raise BackendError("a payload is of another block than the access", found=", ".join(map(str, operands)))
        builtin = xe.BLOCK_LOAD_TRANSPOSE if turned.literal else xe.BLOCK_LOAD
        builtin = xe.BLOCK_LOAD_VNNI if packed.literal else builtin if memory is not None else xe.BLOCK_PREFETCH
        numbers = [int(number.literal or 0) for number in (bits, *shape)]
        name = _write_access(f.module, builtin, (numbers[0] // 8, *numbers[1:]), writer)
        f.call(name, VOID, variables[payload.text], memory or Value(PTR, "null"))

    for made in f.taken():
        name = made.names[0] if made.op == "call" else ""
        if name.startswith(PREFIX):
            f.module.undeclare(name)
        if name == CREATE:
            variables[made.name], shapes[made.name] = f.alloca(I8, BYTES, align=8), list(made.operands[-3:])
            f.call(_write_create(f.module), VOID, variables[made.name], *made.operands[:-3])
        elif name == SET:
            f.call(_write_move(f.module), VOID, variables[made.operands[0].text], *made.operands[1:])
        elif name.startswith(READ):
            read[made.name] = made.operands
        elif made.op == "store" and made.operands[0].text in read:
            access(read[made.operands[0].text], made.operands[1])
        elif name == PREFETCH:
            access(made.operands, None)
        else:
            f.lines.append(made)


def _field(f: Function, payload: Value, number: int) -> Value:
    return f.gep(payload, _FIELDS_START + 4 * (number - _FIRST_FIELD), I8)


def _write_create(library: Module) -> str:
    if library.defines(name := "emulated_create_payload"):
        return name
    names = ("base", *_SIZES, "x", "y")
    parameters = [("payload", PTR), *((name, I32 if number else I64) for number, name in enumerate(names))]
    f = library.function(name, VOID, parameters)
    payload, base, *fields = f.parameters
    f.store(base, payload)
    for number, value in enumerate(fields, _FIRST_FIELD):
        f.store(value, _field(f, payload, number))
    f.ret()
    return name


def _write_move(library: Module) -> str:
    if library.defines(name := "emulated_move_payload"):
        return name
    f = library.function(name, VOID, [("payload", PTR), ("number", I32), ("value", I32), ("adds", I1)])
    payload, number, value, _ = f.parameters
    for field in Field:
        with f.when(f.icmp("eq", number, field)):
            f.store(value, _field(f, payload, field))
    f.ret()
    return name


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
    arguments = [constant(I32, number) for number in shape]
    f.call(block, VOID, *arguments, base, *sizes, coordinates, *([] if builtin is xe.BLOCK_PREFETCH else [held]))
    f.ret()
    return name
