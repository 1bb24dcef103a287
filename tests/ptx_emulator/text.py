"""PTX text as instructions: what LLVM writes and inline assembly adds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple


class Operand(NamedTuple):
    """A register, a symbol or a number (`name`, `number`); an address has a `base` of these and an offset; a vector has
    `parts`.
    """

    kind: str  # "register", "number", "name", "address", "vector"
    name: str = ""
    number: int = 0
    width: int = 0  # of a float constant
    parts: tuple[Operand, ...] = ()


class Instruction(NamedTuple):
    """`opcode` cut at its dots, operands, the guard's predicate and whether it is negated."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: str
    negated: bool
    text: str


WIDTHS = {"pred": 0, "b16": 2, "b32": 4, "b64": 8, "f32": 4, "f64": 8, "s16": 2, "s32": 4, "s64": 8, "u16": 2}  # bytes


@dataclass(eq=False)
class Function:
    """Instructions; the numbers of those behind labels; registers' widths by prefix; parameters' names; local bytes."""

    name: str
    parameters: list[str] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    _widths: dict[str, int] = field(default_factory=dict)

    def width(self, register: str) -> int:
        """The bytes of a register; 0 of a predicate."""
        if register not in self._widths:
            prefix = next(p for p in self.registers if _is_of(register, p))
            self._widths[register] = WIDTHS[self.registers[prefix]]
        return self._widths[register]


def _is_of(name: str, prefix: str) -> bool:
    return name == prefix or (name.startswith(prefix) and name[len(prefix) :].isdigit())


@dataclass
class Module:
    """Functions by name, the kernel among them, constants, and names of shared memory."""

    kernel: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, bytes] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)


_HEADER = re.compile(r"\.(entry|func)\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*\(([^)]*)\)", re.DOTALL)
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)U?$")


def parse(ptx: str) -> Module:
    """A whole module."""
    text = re.sub(r"//[^\n]*", "", ptx)
    module = Module()
    for name, size, data in re.findall(r"\.global [^=;]*\.b8 ([\w$]+)\[(\d+)\] = \{([^}]*)\};", text):
        module.constants[name] = bytes(int(byte) for byte in data.split(",")).ljust(int(size), b"\0")
    module.shared = re.findall(r"\.extern \.shared [^;]*\.b8 ([\w$]+)\[\]", text)
    place = 0
    while (header := _HEADER.search(text, place)) is not None:
        start = header.end()
        opening, semicolon = text.find("{", start), text.find(";", start)
        if opening < 0 or 0 <= semicolon < opening:  # a declaration
            place = start
            continue
        end = _closing(text, opening)
        function = Function(header[3], re.findall(r"([\w$]+)(?:\[\d+\])?\s*(?:,|$)", header[4]))
        _read_body(function, _with_own_names(text[opening + 1 : end]))
        module.functions[function.name] = function
        if header[1] == "entry":
            module.kernel = function.name
        place = end
    return module


_SCOPE = re.compile(r"\{\s*(?=\.reg)")


def _with_own_names(body: str) -> str:
    """A body in which what assembly in braces declares, registers and labels, has names that nothing else has."""
    number = 0
    while (found := _SCOPE.search(body)) is not None:
        end = _closing(body, found.start())
        inner = body[found.end() : end]
        names = {name: f"%own{number}_{name}" for name in re.findall(r"\.reg \.\w+ (\w+);", inner)}
        names |= {name: f"own{number}_{name}" for name in re.findall(r"(?<!:)\b(\w+):(?!:)", inner)}
        for name, own in names.items():
            inner = re.sub(rf"(?<![\w.%:]){name}\b(?!::)", own, inner)
        body = f"{body[: found.start()]}{inner}{body[end + 1 :]}"
        number += 1
    return body


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    raise ValueError("a body without an end")


def _read_body(function: Function, body: str) -> None:
    for statement in re.split(r";|\n(?=\s*[$\w]+:)|(?<=:)\s*\n", body):
        line = " ".join(statement.split())
        line = re.sub(r"^[{}]\s*", "", re.sub(r"^[{}]\s*", "", line)).strip() if line[:1] in "{}" else line
        while (label := re.match(r"([$\w]+):\s*", line)) is not None:
            function.labels[label[1]] = len(function.instructions)
            line = line[label.end() :]
        line = re.sub(r"^[{}]\s+(?=[.@\w])", "", line)
        if not line or line in "{}":
            continue
        if line.startswith("."):
            _declare(function, line)
        else:
            function.instructions.append(_instruction(line))


def _declare(function: Function, line: str) -> None:
    if (found := re.match(r"\.reg \.(\w+) (.*)", line)) is not None:
        function.registers.update(dict.fromkeys(re.findall(r"%?[a-zA-Z_]\w*", found[2]), found[1]))
    elif (found := re.match(r"\.local .*\.b8 ([\w$]+)\[(\d+)\]", line)) is not None:
        function.local[found[1]] = int(found[2])


def _instruction(line: str) -> Instruction:
    guard, negated, text = "", False, line
    if line[0] == "@":
        guard, line = line[1:].split(None, 1)
        negated, guard = guard[0] == "!", guard.lstrip("!")
    opcode, _, rest = line.partition(" ")
    return Instruction(tuple(opcode.split(".")), tuple(_operands(rest)), guard, negated, text)


def _operands(text: str) -> list[Operand]:
    parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s|]+", text)
    return [_operand(part) for part in parts]


def _operand(text: str) -> Operand:
    if text[0] in "{(":
        return Operand("vector", parts=tuple(_operands(text[1:-1])))
    if text[0] == "[":
        base, _, offset = text[1:-1].replace(" ", "").partition("+")
        if "," in base:  # of a tensor map: the map, and the coordinates
            return Operand("address", parts=tuple(_operands(base.replace("{", "").replace("}", ""))))
        return Operand("address", number=int(offset or 0), parts=(_operand(base),))
    if text[0] == "%":
        return Operand("register", text)
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return Operand("number", number=int(text[2:], 16), width=32)
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return Operand("number", number=int(text[2:], 16), width=64)
    return Operand("number", number=int(text.rstrip("U"), 0)) if _NUMBER.match(text) else Operand("name", text)
