"""Instructions and blocks of one function of machine code.

Level: runtime. Every block ends once: what would follow its end until the next label cannot be reached.
"""

from __future__ import annotations

from .names import Names, Type, Value


class Instructions:
    """The text of a function's body; `rooms` is memory on the stack, made at its start."""

    def __init__(self, names: Names, result: Type, intrinsics: dict[str, str]) -> None:
        self.names, self.result, self.intrinsics = names, result, intrinsics
        self.slots: dict[str, Type] = {}
        self.rooms: list[str] = []
        self.lines: list[str] = []
        self.is_open = True
        self._count = 0

    def fresh(self) -> str:
        """A name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        """A name for a block."""
        self._count += 1
        return f"b{self._count}"

    def emit(self, type: Type, text: str) -> Value:
        """An instruction that gives a value."""
        made = Value(type, self.fresh())
        self.lines.append(f"  {made.text} = {text}")
        return made

    def end(self, text: str) -> None:
        """The last instruction of a block; what follows until the next label cannot be reached."""
        if self.is_open:
            self.lines.append(f"  {text}")
        self.is_open = False

    def start(self, label: str) -> None:
        """The next block."""
        self.end(f"br label %{label}")
        self.open(label)

    def room(self, memory: str, align: str = "") -> str:
        """Memory on the stack."""
        name = self.fresh()
        self.rooms.append(f"  {name} = alloca {memory}{align}")
        return name

    def set(self, name: str, value: Value) -> None:
        """Give a local variable a value."""
        if name not in self.slots:
            self.slots[name] = value.type
            self.rooms.append(f"  %{name}.at = alloca {value.type.text}")
        self.lines.append(f"  store {value}, ptr %{name}.at")

    def open(self, label: str) -> None:
        """The next block, which others jump to."""
        self.lines.append(f"{label}:")
        self.is_open = True
