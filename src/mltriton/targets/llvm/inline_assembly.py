"""Fragments of assembly or of LLVM's language (`tt.inline_asm`, `tt.volatile_asm`), run on one element after the other.

Level: intrinsic -> llvm. Packed elements of less than 32 bits share a register, the first in the lowest bits; floats of
16 and 8 bits are integers to assembly, `half` and `bfloat` to LLVM's language. Guarantees: on x86 every fragment counts
as changing the flags; `check` raises `AssemblyError` where the machine's assembler or LLVM rejects a fragment, which is
found out in a process of its own, since LLVM ends the process there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from mltriton.dialects import tt
from mltriton.errors import AssemblyError, BackendError
from mltriton.ir.attributes import ArrayAttr, TypeAttr
from mltriton.ir.types import BF16, F16, FloatType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.records import NamedTuple
from mltriton.runtime.digests import digest_of
from mltriton.targets.llvm.emit.context import element_name
from mltriton.targets.llvm.isolation import compile_isolated
from mltriton.targets.llvm.toolchain import Machine
from mltriton.targets.llvm.types import I64, PTR, VOID, Type, Value, vector
from mltriton.targets.llvm.writer import Function, Module

REGISTER = 32  # bits that packed elements share
SECONDS = 60.0  # that a fragment may take
_FLAGS = ("~{dirflag}", "~{fpsr}", "~{flags}")
_FLOATS = {F16: "half", BF16: "bfloat"}


class Fragment(NamedTuple):
    """What a `tt.inline_asm` or, `is_volatile`, a `tt.volatile_asm` says; `takes` are the types of its operands,
    `gives` those of its results.
    """

    text: str
    constraints: str
    takes: tuple[IRType, ...]
    gives: tuple[IRType, ...]
    packed: int
    is_llvm: bool
    is_volatile: bool = False

    def emit(self, module: Module, function: Function, values: Sequence[Value], *, is_x86: bool) -> list[Value]:
        """The elements of each result, of scalars."""
        if self.is_llvm:
            return self._call(module, function, values)
        registers = [
            _joined(function, part)
            for argument in _groups(values, self.packed)
            for part in _groups(argument, _together(argument[0].type, self.packed))
        ]
        shapes = [vector(element_name(kind), 1) for kind in self.gives]
        results = [
            vector(f"i{count * shape.bits}", 1) if count > 1 else shape
            for shape in shapes
            for count in (_together(shape, self.packed),)
            for _ in range(self.packed // count)
        ]
        rules = ",".join([*filter(None, [self.constraints.replace(" ", "")]), *(_FLAGS if is_x86 else ())])
        made = iter(function.assembly(_escaped(self.text), rules, results, *registers, pure=not self.is_volatile))
        found: list[Value] = []
        for shape in shapes:
            count = _together(shape, self.packed)
            for _ in range(self.packed // count):
                found += _apart(function, next(made), shape, count)
        return found

    def _call(self, module: Module, function: Function, values: Sequence[Value]) -> list[Value]:
        """Call a function whose body the text is."""
        takes, gives = ([_named(kind) for kind in kinds] for kinds in (self.takes, self.gives))
        every = [kind for kind in gives for _ in range(self.packed)]
        result = every[0].text if len(every) == 1 else f"{{ {', '.join(map(str, every))} }}"
        name = f"fragment_{digest_of(repr(self).encode())[:16]}"
        listed = ", ".join(f"{kind} %{number}" for number, kind in enumerate(takes))
        module.define(name, f"define internal {result} @{name}({listed}) alwaysinline #0 {{\nentry:\n{self.text}\n}}")
        arguments = [function.bitcast(value, kind) for value, kind in zip(values, takes, strict=True)]
        call = f"call {result} @{name}({', '.join(map(str, arguments))})"
        make = function.emit if self.is_volatile else function.pure
        if len(every) == 1:
            found = [make(call, every[0])]
        else:
            whole = make(call, VOID).text
            found = [function.pure(f"extractvalue {result} {whole}, {i}", kind) for i, kind in enumerate(every)]
        plain = [vector(element_name(kind), 1) for kind in self.gives for _ in range(self.packed)]
        return [function.bitcast(value, kind) for value, kind in zip(found, plain, strict=True)]


def fragment_of(op: tt.InlineAsm | tt.VolatileAsm) -> Fragment:
    """The fragment of an operation."""
    gives = tuple(cast(TypeAttr, kind).type for kind in cast(ArrayAttr, op.gives).elements)
    takes = tuple(element_type(source.type) for source in op.sources)
    return Fragment(op.assembly, op.constraints, takes, gives, op.packed, op.is_llvm, isinstance(op, tt.VolatileAsm))


@cache
def complaint(fragment: Fragment, machine: Machine) -> str | None:
    """What the machine's assembler or LLVM says against a fragment; None where it is accepted."""
    try:
        compile_isolated(alone(fragment, is_x86=_is_x86(machine)), machine, SECONDS)
    except BackendError as error:
        return error.found or str(error)
    return None


def alone(fragment: Fragment, *, is_x86: bool) -> str:
    """A module with nothing but a fragment."""
    module = Module()
    parameters = [(f"x{i}", vector(element_name(kind), 1)) for i, kind in enumerate(fragment.takes)]
    function = module.function("check", VOID, [*parameters, ("to", PTR)], linkage="")
    *values, to = function.parameters
    for value in fragment.emit(module, function, values, is_x86=is_x86):
        function.store(value, to)
    function.ret()
    return module.text


def over_arrays(fragment: Fragment, numbers: Sequence[int], machine: Machine) -> str:
    """A module with `void apply(ptr table, i64 n)`: the results of these numbers for the elements of arrays, whose
    addresses (those of the arguments, then those of the results) are in the table.
    """
    module = Module()
    function = module.function("apply", VOID, [("table", PTR), ("n", I64)], linkage="")
    table, count = function.parameters
    takes = [vector(element_name(kind), 1) for kind in fragment.takes]
    arrays = [function.load(PTR, function.gep(table, i, PTR)) for i in range(len(takes) + len(numbers))]
    with function.loop(0, count) as loop:
        given = [
            function.load(kind, function.gep(array, loop.index, kind))
            for kind, array in zip(takes, arrays, strict=False)
        ]
        made = fragment.emit(module, function, given, is_x86=_is_x86(machine))
        for number, array in zip(numbers, arrays[len(takes) :], strict=True):
            function.store(made[number], function.gep(array, loop.index, made[number].type))
        loop.yield_()
    function.ret()
    return module.text


def _is_x86(machine: Machine) -> bool:
    return machine.triple.startswith("x86_64")


def check(fragment: Fragment, machine: Machine) -> None:
    """Raise `AssemblyError` unless the machine's assembler and LLVM take a fragment."""
    said = complaint(fragment, machine)
    if said is not None:
        raise AssemblyError(
            "LLVM does not take this text" if fragment.is_llvm else "this is no assembly of the machine",
            expected="a function's body in LLVM's language" if fragment.is_llvm else f"assembly of {machine.triple}",
            found=said.strip(),
            hint="Assembly belongs to one machine: write it with the functions of tl and tl.math for all.",
        )


def _named(kind: IRType) -> Type:
    """A type as LLVM's language has it."""
    return vector(_FLOATS.get(cast(FloatType, kind), element_name(kind)), 1)


def _together(kind: Type, packed: int) -> int:
    """How many packed elements share a register."""
    return min(packed, REGISTER // kind.bits) if kind.element != "ptr" and kind.bits < REGISTER else 1


def _groups(values: Sequence[Value], size: int) -> list[tuple[Value, ...]]:
    return [tuple(values[at : at + size]) for at in range(0, len(values), size)]


def _joined(f: Function, values: Sequence[Value]) -> Value:
    """Elements in one register."""
    if len(values) == 1:
        return values[0]
    bits = values[0].type.bits
    wide = vector(f"i{bits * len(values)}", 1)
    found = f.cast("zext", values[0], wide)
    for number, value in enumerate(values[1:], 1):
        found = f.or_(found, f.shl(f.cast("zext", value, wide), number * bits))
    return found


def _apart(f: Function, register: Value, kind: Type, count: int) -> list[Value]:
    """The elements in a register."""
    if count == 1:
        return [register]
    return [f.cast("trunc", f.lshr(register, number * kind.bits), kind) for number in range(count)]


def _escaped(text: str) -> str:
    """The text as LLVM's strings are written."""
    plain = frozenset(range(32, 127)) - frozenset(b'"\\')
    return "".join(chr(byte) if byte in plain else f"\\{byte:02X}" for byte in text.encode())
