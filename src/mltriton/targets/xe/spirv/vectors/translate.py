"""A SIMD kernel, the program of a whole warp, as SPIR-V for Intel's vector compiler.

Level: `llvm` -> binary. Takes the function that its LLVM IR text is written from, whose vectors may have any width and
whose memory accesses are Intel's intrinsics (`llvm.genx.*`). Guarantees: an instruction that has no counterpart raises
`BackendError` with its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mltriton.errors import BackendError
from mltriton.targets.llvm.instruction import LABEL
from mltriton.targets.llvm.instruction import Instruction as Source
from mltriton.targets.llvm.types import CONSTANT_PTR, I32, VOID, Type, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.spirv.vectors import opcodes
from mltriton.targets.xe.spirv.vectors.sections import Import, Sections
from mltriton.targets.xe.spirv.words import Instruction

_FUNCTION = 7  # where variables of a function are


def emit(function: Function, warps: int, shared: int) -> bytes:
    """The SPIR-V module of a kernel, whose warps share so many bytes."""
    kernel = _Kernel(function)
    for source in (Source("entry", LABEL), *function.instructions):
        kernel.append(source)
    return kernel.sections.finished(function.name, kernel.id, kernel.finished(), warps, shared).image


class _Kernel:
    """The kernel's body, instruction by instruction."""

    def __init__(self, function: Function) -> None:
        self.sections = Sections()
        self._ids = {f"@{name}": self.sections.text(data) for name, data in function.module.texts.items()}
        self._body: list[Instruction] = []
        self._parameters = [(parameter.type, self._id(parameter.text)) for parameter in function.parameters]
        self.id = self.sections.fresh()

    def finished(self) -> list[Instruction]:
        """The function's instructions."""
        sections = self.sections
        whole = sections.function_type(VOID, [type_ for type_, _ in self._parameters])
        head = [Instruction(54, (sections.type(VOID), self.id, 0, whole))]
        head += [Instruction(55, (sections.type(type_), id_)) for type_, id_ in self._parameters]
        return [*head, *self._body, Instruction(56, ())]

    def append(self, source: Source) -> None:
        """Append what an instruction means."""
        if source.op in opcodes.BINARY:
            table = opcodes.LOGICAL if source.type.bits == 1 else opcodes.BINARY
            self._add(table[source.op], source, *self._values(source.operands))
        elif source.op in opcodes.CASTS:
            self._cast(source)
        elif source.op in _RULES:
            _RULES[source.op](self, source)
        elif source.op in _PLAIN:
            self._add(_PLAIN[source.op], source, *self._values(source.operands))
        else:
            raise _error(source, "an instruction of a SIMD kernel")

    # Values

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = self.sections.fresh()
        return self._ids[name]

    def _values(self, values: Sequence[Value]) -> list[int]:
        return [self._id(value.text) if value.text[0] in "%@" else self.sections.constant(value) for value in values]

    def _label(self, name: str) -> int:
        return self._id(f"%{name}")

    def _add(self, opcode: int, source: Source, *operands: int) -> None:
        self._result(opcode, source.type, source.name or f"%{len(self._body)}.nothing", *operands)

    def _result(self, opcode: int, type_: Type, name: str, *operands: int) -> int:
        self._body.append(Instruction(opcode, (self.sections.type(type_), self._id(name), *operands)))
        return self._id(name)

    # Instructions

    def compare(self, source: Source) -> None:
        operands, (predicate,), type_ = self._values(source.operands), source.names, source.operands[0].type
        if type_.is_float and predicate in ("uno", "ord"):
            self._unordered(source, operands, predicate)
            return
        integers = opcodes.LOGICAL_COMPARISONS if type_.bits == 1 else opcodes.INTEGER_COMPARISONS
        table = opcodes.FLOAT_COMPARISONS if type_.is_float else integers
        if predicate not in table:
            raise _error(source, f"one of {', '.join(table)}")
        self._add(table[predicate], source, *operands)

    def _unordered(self, source: Source, operands: Sequence[int], predicate: str) -> None:
        """Whether one of two floats is NaN, which equals nothing, not even itself."""
        opcode, type_, name = 180 if predicate == "ord" else 183, source.type, source.name
        parts = [self._result(opcode, type_, f"{name}.nan{n}", each, each) for n, each in enumerate(operands)]
        self._add(opcodes.LOGICAL["and" if predicate == "ord" else "or"], source, *parts)

    def _cast(self, source: Source) -> None:
        [of], [value], to = source.operands, self._values(source.operands), source.type
        if of.type.bits == 1 and (one := _OF_A_BIT.get(source.op)) is not None:
            self._add(169, source, value, *self._values([constant(to, one), constant(to, 0)]))
        elif to.bits == 1 and source.op == "trunc":
            one = self.sections.constant(constant(of.type, 1))
            low = self._result(opcodes.BINARY["and"], of.type, f"{source.name}.low", value, one)
            self._add(171, source, low, self.sections.constant(constant(of.type, 0)))
        else:
            self._add(opcodes.CASTS[source.op], source, value)

    def element(self, source: Source) -> None:
        """Append reading or replacing an element of a vector, whose number is known or computed."""
        known, computed = _ELEMENTS[source.op]
        *operands, index = source.operands
        whole, *scalar = self._values(operands)
        if index.literal is not None:
            self._add(known, source, *scalar, whole, int(index.literal))
        else:
            self._add(computed, source, whole, *scalar, *self._values([index]))

    def shuffle(self, source: Source) -> None:
        *operands, mask = source.operands
        lanes = mask.elements or (0,) * mask.type.lanes
        self._add(79, source, *self._values(operands), *map(int, lanes))

    def phi(self, source: Source) -> None:
        incoming: list[int] = []
        for value, label in zip(source.operands, source.names, strict=True):
            incoming += (*self._values([value]), self._label(label))
        self._add(245, source, *incoming)

    def branch(self, source: Source) -> None:
        opcode = 250 if source.operands else 249
        self._body.append(Instruction(opcode, (*self._values(source.operands), *map(self._label, source.names))))

    def block(self, source: Source) -> None:
        self._body.append(Instruction(248, (self._label(source.text),)))

    def leave(self, source: Source) -> None:
        self._body.append(Instruction(253, ()))

    def variable(self, source: Source) -> None:
        """Append a variable of the kernel: Intel's compiler keeps it in registers."""
        pointer = self.sections.pointer(source.type)
        self._body.append(Instruction(59, (pointer, self._id(source.name), _FUNCTION)))

    def store(self, source: Source) -> None:
        """Append writing a variable."""
        value, pointer = self._values(source.operands)
        self._body.append(Instruction(62, (pointer, value)))

    def call(self, source: Source) -> None:
        name, arguments = source.names[0], [self._argument(value) for value in source.operands]
        if name.startswith("llvm.genx."):
            types = tuple(value.type for value in source.operands)
            self._add(57, source, self.sections.function(Import(name, source.type, types)), *arguments)
        elif (number := _extended(name)) is not None:
            # LLVM's abs says besides whether the least number may be given.
            self._add(12, source, self.sections.library, number, *arguments[: 1 if "llvm.abs" in name else None])
        else:
            raise _error(source, "a function of OpenCL's or of the vector compiler's")

    def _argument(self, value: Value) -> int:
        """An argument of a call; a text's address as that of its first byte."""
        [held] = self._values([value])
        if value.type != CONSTANT_PTR:
            return held
        zero = self.sections.constant(constant(I32, 0))
        return self._result(70, value.type, f"%{len(self._body)}.text", held, zero, zero)


def _error(source: Source, expected: str) -> BackendError:
    return BackendError("an instruction of LLVM that SPIR-V has not", expected=expected, found=str(source).strip())


def _extended(name: str) -> int | None:
    """The number of OpenCL's function that is called by this name."""
    if name.startswith("llvm."):
        return opcodes.EXTENDED.get(opcodes.INTRINSICS.get(name.split(".")[1], ""))
    mangled = re.match(r"_Z(\d+)__spirv_ocl_", name)
    if mangled is None:
        return None
    start = name.index("__spirv")
    return opcodes.EXTENDED.get(name[start : start + int(mangled[1])].removeprefix("__spirv_ocl_"))


# What has its operands in LLVM's order.
_PLAIN = {"fneg": 127, "select": 169, "load": 61}
_OF_A_BIT = {"zext": 1, "uitofp": 1, "sext": -1, "sitofp": -1}  # what casts make of an i1 that is set
_ELEMENTS = {"insertelement": (82, 78), "extractelement": (81, 77)}
_RULES: dict[str, Callable[[_Kernel, Source], None]] = {
    **dict.fromkeys(("icmp", "fcmp"), _Kernel.compare),
    **dict.fromkeys(_ELEMENTS, _Kernel.element),
    "shufflevector": _Kernel.shuffle,
    "phi": _Kernel.phi,
    "br": _Kernel.branch,
    LABEL: _Kernel.block,
    "ret": _Kernel.leave,
    "call": _Kernel.call,
    "alloca": _Kernel.variable,
    "store": _Kernel.store,
}
