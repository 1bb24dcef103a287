"""One call of a function that this machine lacks. Level: `llvm`."""

from __future__ import annotations

from collections.abc import Callable

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.devices import Device


class Call(NamedTuple):
    """Name and types; `constants` are the bits of those arguments that are numbers."""

    name: str
    result: Type
    types: tuple[Type, ...]
    constants: tuple[int | None, ...]
    device: Device

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for calls that one function serves."""
        return self.name, self.types, self.constants

    def constant(self, number: int) -> int:
        """A number that must be known."""
        found = self.constants[number]
        assert found is not None, self.name
        return found


Write = Callable[[Function, Call], Value | None]
