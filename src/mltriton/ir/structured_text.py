"""Text of functions and regions whose blocks jump to each other, with nested `scf.if` in place of the jumps.

Level: text, before it is parsed. Upstream's front end writes blocks and jumps (`cf.br`, `cf.cond_br`) where a function
returns early, also one of scalars that a region of an operation holds (of `tl.map_elementwise`, of a reduction); here
control flow is structured. Takes text as upstream prints it: an operation a line, labels as deep as what holds the
blocks. Guarantees: text without jumps is left as it is; a jump backwards is an `IRSyntaxError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mltriton.errors import IRSyntaxError, SourceLocation

_NAME = r"%[\w.$-]+(?:#\d+)?"
_HOLDER = re.compile(r"(\s*)(?:tt\.func\b.*\{|\S.*\(\{)\s*(?:loc\(.*\))?\s*$")
_LABEL = re.compile(r"\s*\^(\w+)(?:\((.*)\))?:\s*(?://.*)?$")
_RETURN = re.compile(r"\s*(tt\.(?:\w+\.)?return)\b\s*(.*)$")
_JUMP = re.compile(r"\s*cf\.br \^(\w+)(?:\((.*)\))?\s*$")
_CHOICE = re.compile(
    rf"\s*cf\.cond_br ({_NAME})(?: weights\([^)]*\))?, \^(\w+)(?:\((.*?)\))?, \^(\w+)(?:\((.*?)\))?\s*$"
)

Values = list[str]
Target = tuple[str, Values]  # a label, and what its arguments become


@dataclass
class _Block:
    """A block: names and types of its arguments, its lines, how it ends."""

    arguments: list[tuple[str, str]]
    line: int
    lines: list[str] = field(default_factory=list[str])
    condition: str | None = None
    targets: list[Target] = field(default_factory=list[Target])  # none where it returns
    returned: tuple[Values, list[str]] = field(default_factory=lambda: ([], []))


def without_jumps(text: str) -> str:
    """The text with structured control flow."""
    if "cf.br" not in text and "cf.cond_br" not in text:
        return text
    return "\n".join(_structured(text.split("\n"), 1))


def _structured(lines: Sequence[str], first: int) -> list[str]:
    """Lines, of which the first has this number, without jumps, from the inside out."""
    made: list[str] = []
    position = 0
    while position < len(lines):
        made.append(lines[position])
        match = _HOLDER.match(lines[position])
        position += 1
        if match is not None:
            end = next(i for i in range(position, len(lines)) if lines[i].startswith(f"{match[1]}}}"))
            body = _structured(lines[position:end], first + position)
            made += [body.pop(0)] if body and _LABEL.match(body[0]) else []  # A region's first block has a label.
            holder = _Holder(body, first + position, len(match[1]))
            made += holder.text() if len(holder.blocks) > 1 else body
            position = end
    return made


class _Holder:
    """The blocks of one function or region, whose labels are `depth` deep; the first has no label."""

    def __init__(self, body: Sequence[str], first: int, depth: int) -> None:
        self.depth = depth
        self.end = "tt.return"
        self.blocks = {"": _Block([], first)}
        self.after: dict[str, frozenset[str | None]] = {}
        self.names: dict[str, str] = {}
        block = self.blocks[""]
        for number, line in enumerate(body, first):
            label = _LABEL.match(line)
            if label is not None and _depth(line) == depth:
                block = self.blocks[label[1]] = _Block(list(_arguments(label[2] or "")), number)
            elif not self._is_end(block, _without_location(line)):
                block.lines.append(line)

    def _is_end(self, block: _Block, line: str) -> bool:
        """Whether a line ends its block; if so, note how."""
        if _depth(line) > self.depth + 2:  # of a region inside
            return False
        if found := _RETURN.match(line):
            self.end = found[1]
            names, _, types = found[2].partition(" : ")
            block.returned = _listed(names), _listed(types)
        elif found := _JUMP.match(line):
            block.targets = [(found[1], _passed(found[2]))]
        elif found := _CHOICE.match(line):
            block.condition = found[1]
            block.targets = [(found[2], _passed(found[3])), (found[4], _passed(found[5]))]
        else:
            return False
        return True

    def text(self) -> list[str]:
        """The body as one block."""
        lines, values = self._from("", None)
        types = self._types(None)
        end = f"{' ' * (self.depth + 2)}{self.end}"
        lines.append(f"{end} {', '.join(values)} : {', '.join(types)}" if values else end)
        return [re.sub(_NAME, lambda match: self._name(match[0]), line) for line in lines]

    def _name(self, name: str) -> str:
        while name in self.names:
            name = self.names[name]
        return name

    def _types(self, label: str | None) -> list[str]:
        """The types that are handed to a block; for None those that the function returns."""
        if label is not None:
            return [kind for _, kind in self.blocks[label].arguments]
        return next(block.returned[1] for block in self.blocks.values() if not block.targets)

    def _from(self, label: str, stop: str | None) -> tuple[list[str], Values]:
        """What runs from a block on until `stop` (None: the return), and what is handed to that."""
        block = self.blocks[label]
        lines = list(block.lines)
        if not block.targets:
            return lines, block.returned[0]
        if block.condition is None:
            more, values = self._to(block.targets[0], stop)
            return lines + more, values
        join = self._join(*(target for target, _ in block.targets))
        arms = [self._to(target, join) for target in block.targets]
        types = self._types(join)
        result = f"%{label or 'entry'}_chosen"
        values = [result] if len(types) == 1 else [f"{result}#{i}" for i in range(len(types))]
        lines += _choice(block.condition, arms, types, result)
        if join is None or join == stop:
            return lines, values
        more, values = self._to((join, values), stop)
        return lines + more, values

    def _to(self, target: Target, stop: str | None) -> tuple[list[str], Values]:
        """What runs from a jump on."""
        label, values = target
        if label == stop:
            return [], values
        for (name, _), value in zip(self.blocks[label].arguments, values, strict=True):
            if self.names.setdefault(name, value) != value:
                raise self._error(
                    label, "a block is reached with different values in branches that do not meet before it"
                )
        return self._from(label, stop)

    def _join(self, first: str, second: str) -> str | None:
        """The nearest block that everything after both passes through."""
        common = self._passed_after(first, ()) & self._passed_after(second, ())
        return max(common, key=lambda label: len(self.after.get(label or "", ())) if label is not None else 0)

    def _passed_after(self, label: str, before: tuple[str, ...]) -> frozenset[str | None]:
        """The blocks that are passed on every way from a block to the return, that block and None included."""
        if label in before:
            raise self._error(label, "a block jumps back: loops are structured")
        if label not in self.after:
            ways = [self._passed_after(target, (*before, label)) for target, _ in self.blocks[label].targets]
            common: set[str | None] = set(ways[0]) if ways else {None}
            self.after[label] = frozenset({label, *common.intersection(*ways)})
        return self.after[label]

    def _error(self, label: str, message: str) -> IRSyntaxError:
        return IRSyntaxError(message, location=SourceLocation("<text>", self.blocks[label].line, 0), found=f"^{label}")


def _choice(
    condition: str, arms: Sequence[tuple[list[str], Values]], types: Sequence[str], result: str
) -> Iterator[str]:
    """The lines of an `scf.if`."""
    count = f":{len(types)}" if len(types) > 1 else ""
    begin, arrow = (f"{result}{count} = ", f" -> ({', '.join(types)})") if types else ("", "")
    yield f"    {begin}scf.if {condition}{arrow} {{"
    for between, (lines, values) in zip(("    } else {", "    }"), arms, strict=True):
        yield from lines
        if types:
            yield f"      scf.yield {', '.join(values)} : {', '.join(types)}"
        yield between


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_location(line: str) -> str:
    return re.sub(r"\s+loc\((?:[^()]|\([^()]*\))*\)\s*$", "", line)


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    """Names and types of `%8: tensor<4xf32> loc(...), %9: i32`."""
    plain = re.sub(r"\s+loc\((?:[^()]|\([^()]*\))*\)", "", text)
    for item in _listed(plain):
        name, _, kind = item.partition(":")
        yield name.strip(), kind.strip()


def _passed(text: str | None) -> Values:
    """The values of `%6, %7 : f32, i32`."""
    return _listed((text or "").partition(" : ")[0])


def _listed(text: str) -> list[str]:
    """What commas separate, those in brackets aside."""
    parts = re.findall(r"(?:<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|[^,<])+", text)
    return [part.strip() for part in parts if part.strip()]
