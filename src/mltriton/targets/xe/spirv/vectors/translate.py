"""LLVM IR text of a SIMD kernel, the program of a whole warp, to SPIR-V for Intel's vector compiler.

Level: `llvm` -> binary. Takes the text of one kernel as `targets/llvm/writer.py` writes it, whose vectors may have any
width and whose memory accesses are Intel's intrinsics (`llvm.genx.*`). Guarantees: an instruction that has no
counterpart raises `BackendError` with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mltriton.targets.llvm.types import CONSTANT_PTR, I1, I32, VOID, Type
from mltriton.targets.xe.spirv.vectors import opcodes
from mltriton.targets.xe.spirv.vectors.sections import Import, Sections
from mltriton.targets.xe.spirv.vectors.syntax import Name, Number, Numbers, Operand, Reader
from mltriton.targets.xe.spirv.words import Instruction

_DEFINITION = re.compile(r"^define spir_kernel void @([\w.$]+)\((.*)\) ", re.MULTILINE)
_TEXT = re.compile(
    r'^(@[\w.]+) = private unnamed_addr addrspace\(2\) constant \[\d+ x i8\] c"(.*)", align', re.MULTILINE
)
_FUNCTION = 7  # where variables of a function are
_FLAGS = frozenset({"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "nuw", "nsw", "exact"})


def emit(text: str, warps: int, shared: int) -> bytes:
    """The SPIR-V module of the kernel in `text`, whose warps share so many bytes."""
    found = _DEFINITION.search(text)
    assert found is not None, "the text of a kernel"
    body = text[found.end() : text.index("\n}", found.end())].partition("{\n")[2]
    kernel = _Kernel(found[2], {name: _bytes(escaped) for name, escaped in _TEXT.findall(text)})
    for line in body.splitlines():
        kernel.line(line)
    instructions = kernel.finished()
    return kernel.sections.finished(found[1], kernel.id, instructions, warps, shared).image


def _bytes(escaped: str) -> bytes:
    """What LLVM writes as a text."""
    return re.sub(r"\\([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), escaped).encode("latin-1")


class _Kernel:
    """The kernel's body, line by line; `texts` are what printf is given, by name."""

    def __init__(self, parameters: str, texts: Mapping[str, bytes]) -> None:
        self.sections = Sections()
        self._ids = {name: self.sections.text(data) for name, data in texts.items()}
        self._body: list[Instruction] = []
        self._parameters: list[tuple[Type, int]] = []
        reader = Reader(parameters)
        while reader.next:
            type_ = reader.type()
            self._parameters.append((type_, self._id(reader.take())))
            reader.skip(",")
        self.id = self.sections.fresh()

    def finished(self) -> list[Instruction]:
        """The function's instructions."""
        sections = self.sections
        whole = sections.function_type(VOID, [type_ for type_, _ in self._parameters])
        head = [Instruction(54, (sections.type(VOID), self.id, 0, whole))]
        head += [Instruction(55, (sections.type(type_), id_)) for type_, id_ in self._parameters]
        return [*head, *self._body, Instruction(56, ())]

    def line(self, line: str) -> None:
        """Append what a line means."""
        if not line.strip() or line.lstrip().startswith(";"):
            return
        if line.endswith(":"):
            self._body.append(Instruction(248, (self._id(f"%{line[:-1]}"),)))
            return
        reader = Reader(line)
        result = reader.take() if reader.next.startswith("%") else ""
        if result:
            reader.expect("=")
        name = reader.take()
        while reader.next in _FLAGS:
            reader.take()
        if name in opcodes.BINARY:
            self._binary(reader, result, name)
        elif name in opcodes.CASTS:
            self._cast(reader, result, name)
        elif name in _RULES:
            _RULES[name](self, reader, result)
        else:
            raise reader.error("an instruction of a SIMD kernel")

    # Values

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = self.sections.fresh()
        return self._ids[name]

    def _value(self, type_: Type, operand: Operand) -> int:
        return self._id(operand.text) if isinstance(operand, Name) else self.sections.constant(type_, operand)

    def _typed(self, reader: Reader) -> tuple[Type, int]:
        type_, operand = reader.typed()
        return type_, self._value(type_, operand)

    def _add(self, opcode: int, type_: Type, result: str, *operands: int) -> None:
        self._body.append(Instruction(opcode, (self.sections.type(type_), self._id(result), *operands)))

    # Instructions

    def _binary(self, reader: Reader, result: str, name: str) -> None:
        type_, left = self._typed(reader)
        reader.expect(",")
        right = self._value(type_, reader.operand(type_))
        table = opcodes.LOGICAL if type_.bits == 1 else opcodes.BINARY
        self._add(table[name], type_, result, left, right)

    def negation(self, reader: Reader, result: str) -> None:
        type_, value = self._typed(reader)
        self._add(127, type_, result, value)

    def compare(self, reader: Reader, result: str) -> None:
        predicate = reader.take()
        type_, left = self._typed(reader)
        reader.expect(",")
        right = self._value(type_, reader.operand(type_))
        made = type_.with_element("i1")
        if type_.is_float and predicate in ("uno", "ord"):
            self._unordered(made, result, left, right, predicate)
            return
        table = (
            opcodes.FLOAT_COMPARISONS
            if type_.is_float
            else opcodes.LOGICAL_COMPARISONS
            if type_.bits == 1
            else opcodes.INTEGER_COMPARISONS
        )
        if predicate not in table:
            raise reader.error(f"one of {', '.join(table)}")
        self._add(table[predicate], made, result, left, right)

    def _unordered(self, made: Type, result: str, left: int, right: int, predicate: str) -> None:
        """Whether one of two floats is NaN, which equals nothing, not even itself."""
        parts = [f"{result}.nan{number}" for number in range(2)]
        for part, value in zip(parts, (left, right), strict=True):
            self._add(180 if predicate == "ord" else 183, made, part, value, value)
        self._add(opcodes.LOGICAL["and" if predicate == "ord" else "or"], made, result, *map(self._id, parts))

    def select(self, reader: Reader, result: str) -> None:
        _, condition = self._typed(reader)
        reader.expect(",")
        type_, left = self._typed(reader)
        reader.expect(",")
        _, right = self._typed(reader)
        self._add(169, type_, result, condition, left, right)

    def _cast(self, reader: Reader, result: str, name: str) -> None:
        from_, value = self._typed(reader)
        reader.expect("to")
        to = reader.type()
        if from_.bits == 1 and name in ("zext", "sext", "uitofp"):
            one = {"zext": 1, "sext": (1 << to.bits) - 1, "uitofp": 0x3FF0 << 48 if to.bits == 64 else 0x3F800000}
            chosen = (self.sections.constant(to, Number(bits)) for bits in (one[name], 0))
            self._add(169, to, result, value, *chosen)
        elif to.bits == 1 and name == "trunc":
            low = f"{result}.low"
            self._add(opcodes.BINARY["and"], from_, low, value, self.sections.constant(from_, Number(1)))
            self._add(171, to, result, self._id(low), self.sections.constant(from_, Number(0)))
        else:
            self._add(opcodes.CASTS[name], to, result, value)

    def insert(self, reader: Reader, result: str) -> None:
        type_, whole = self._typed(reader)
        reader.expect(",")
        _, scalar = self._typed(reader)
        reader.expect(",")
        index_type, index = reader.typed()
        if isinstance(index, Number):
            self._add(82, type_, result, scalar, whole, index.bits)
        else:
            self._add(78, type_, result, whole, scalar, self._value(index_type, index))

    def extract(self, reader: Reader, result: str) -> None:
        type_, whole = self._typed(reader)
        reader.expect(",")
        index_type, index = reader.typed()
        if isinstance(index, Number):
            self._add(81, type_.scalar, result, whole, index.bits)
        else:
            self._add(77, type_.scalar, result, whole, self._value(index_type, index))

    def shuffle(self, reader: Reader, result: str) -> None:
        type_, left = self._typed(reader)
        reader.expect(",")
        _, right = self._typed(reader)
        reader.expect(",")
        mask_type, mask = reader.typed()
        lanes = mask.bits if isinstance(mask, Numbers) else (0,) * mask_type.lanes
        self._add(79, type_.with_lanes(mask_type.lanes), result, left, right, *lanes)

    def phi(self, reader: Reader, result: str) -> None:
        type_ = reader.type()
        incoming: list[int] = []
        while reader.skip("["):
            incoming.append(self._value(type_, reader.operand(type_)))
            reader.expect(",")
            incoming.append(self._id(reader.take()))
            reader.expect("]")
            reader.skip(",")
        self._add(245, type_, result, *incoming)

    def branch(self, reader: Reader, result: str) -> None:
        if reader.skip("label"):
            self._body.append(Instruction(249, (self._id(reader.take()),)))
            return
        reader.expect("i1")
        targets = [self._value(I1, reader.operand(I1))]
        while reader.skip(","):
            reader.expect("label")
            targets.append(self._id(reader.take()))
        self._body.append(Instruction(250, tuple(targets)))

    def leave(self, reader: Reader, result: str) -> None:
        self._body.append(Instruction(253, ()))

    def variable(self, reader: Reader, result: str) -> None:
        """Append a variable of the kernel: Intel's compiler keeps it in registers."""
        pointer = self.sections.pointer(reader.type())
        self._body.append(Instruction(59, (pointer, self._id(result), _FUNCTION)))

    def load(self, reader: Reader, result: str) -> None:
        """Append reading a variable."""
        type_ = reader.type()
        reader.expect(",")
        reader.expect("ptr")
        self._add(61, type_, result, self._id(reader.take()))

    def store(self, reader: Reader, result: str) -> None:
        """Append writing a variable."""
        _, value = self._typed(reader)
        reader.expect(",")
        reader.expect("ptr")
        self._body.append(Instruction(62, (self._id(reader.take()), value)))

    def call(self, reader: Reader, result: str) -> None:
        reader.skip("spir_func")
        type_ = reader.type()
        if reader.skip("("):  # the parameters of a function that takes any number of arguments
            while not reader.skip(")"):
                reader.type()
                reader.skip(",")
        name = reader.take()[1:]
        reader.expect("(")
        arguments: list[tuple[Type, int]] = []
        while not reader.skip(")"):
            arguments.append(self._argument(reader))
            reader.skip(",")
        number = _extended(name)
        result = result or f"%{len(self._body)}.nothing"
        if number is not None:
            values = [value for _, value in arguments]
            # LLVM's abs says besides whether the least number may be given.
            self._add(12, type_, result, self.sections.library, number, *values[: 1 if "llvm.abs" in name else None])
            return
        if not name.startswith("llvm.genx."):
            raise reader.error("a function of OpenCL's or of the vector compiler's")
        function = self.sections.function(Import(name, type_, tuple(kind for kind, _ in arguments)))
        self._add(57, type_, result, function, *(value for _, value in arguments))

    def _argument(self, reader: Reader) -> tuple[Type, int]:
        """An argument of a call; a text's address as that of its first byte."""
        type_, value = self._typed(reader)
        if type_ == CONSTANT_PTR:
            first = f"%{len(self._body)}.text"
            zero = self.sections.constant(I32, Number(0))
            self._add(70, type_, first, value, zero, zero)
            value = self._id(first)
        return type_, value


def _extended(name: str) -> int | None:
    """The number of OpenCL's function that is called by this name."""
    if name.startswith("llvm.genx."):
        return None
    if name.startswith("llvm."):
        return opcodes.EXTENDED.get(opcodes.INTRINSICS.get(name.split(".")[1], ""))
    mangled = re.match(r"_Z(\d+)__spirv_ocl_", name)
    if mangled is None:
        return None
    start = name.index("__spirv")
    return opcodes.EXTENDED.get(name[start : start + int(mangled[1])].removeprefix("__spirv_ocl_"))


_RULES: dict[str, Callable[[_Kernel, Reader, str], None]] = {
    "fneg": _Kernel.negation,
    "icmp": _Kernel.compare,
    "fcmp": _Kernel.compare,
    "select": _Kernel.select,
    "insertelement": _Kernel.insert,
    "extractelement": _Kernel.extract,
    "shufflevector": _Kernel.shuffle,
    "phi": _Kernel.phi,
    "br": _Kernel.branch,
    "ret": _Kernel.leave,
    "call": _Kernel.call,
    "alloca": _Kernel.variable,
    "load": _Kernel.load,
    "store": _Kernel.store,
}
