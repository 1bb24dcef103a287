"""`triton._C.libtriton.ir`, as far as torch looks at programs: it finds out what a kernel writes by walking over it.

Level: user. Takes a module at the level tt; guarantees the order of upstream's walk (what is inside of an operation
before it) and its names of operations. Values, blocks and regions have numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import tt
from mltriton.ir.attributes import IntegerAttr, StringAttr, SymbolRefAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.verifier import verify
from mltriton.records import NamedTuple

# Names of ours that upstream has not, and what is nearest.
_NAMES: dict[type[Operation], str] = dict.fromkeys((tt.InlineAsm, tt.VolatileAsm), "tt.elementwise_inline_asm")


class context:  # noqa: N801 - upstream's name
    """What programs are made in; here nothing."""


def load_dialects(_context: context) -> None:
    """Nothing: dialects are there."""


class Numbered(NamedTuple):
    """A value: its number."""

    value: Value

    def id(self) -> int:
        """A number that no other value has."""
        return id(self.value)


class RegionView(NamedTuple):
    """A region."""

    region: Region

    def id(self) -> int:
        """A number that no other region has."""
        return id(self.region)


class BlockView(NamedTuple):
    """A block: its arguments, and the region that it is in."""

    block: Block

    def id(self) -> int:
        """A number that no other block has."""
        return id(self.block)

    def get_num_arguments(self) -> int:
        """How many arguments it has."""
        return len(self.block.arguments)

    def get_argument(self, index: int) -> Numbered:
        """One of its arguments."""
        return Numbered(self.block.arguments[index])

    def get_parent(self) -> RegionView | None:
        """The region that it is in."""
        return None if self.block.region is None else RegionView(self.block.region)


class OperationView(NamedTuple):
    """An operation: its name, operands, results, regions and some attributes."""

    op: Operation

    def get_name(self) -> str:
        """Upstream's name."""
        return _NAMES.get(type(self.op), self.op.name)

    def get_num_operands(self) -> int:
        """How many operands it has."""
        return len(self.op.operands)

    def get_operand(self, index: int) -> Numbered:
        """One of its operands."""
        return Numbered(self.op.operands[index])

    def get_num_results(self) -> int:
        """How many results it has."""
        return len(self.op.results)

    def get_result(self, index: int) -> Numbered:
        """One of its results."""
        return Numbered(self.op.results[index])

    def get_num_regions(self) -> int:
        """How many regions it has."""
        return len(self.op.regions)

    def get_region(self, index: int) -> RegionView:
        """One of its regions."""
        return RegionView(self.op.regions[index])

    def get_block(self) -> BlockView | None:
        """The block that it is in."""
        return None if self.op.block is None else BlockView(self.op.block)

    def get_str_attr(self, name: str) -> str | None:
        """An attribute that is a text."""
        found = self.op.attributes.get(name)
        return found.value if isinstance(found, StringAttr) else None

    def get_flat_symbol_ref_attr(self, name: str) -> str | None:
        """An attribute that names a function."""
        found = self.op.attributes.get(name)
        return found.name if isinstance(found, SymbolRefAttr) else None

    def get_bool_attr(self, name: str) -> bool | None:
        """An attribute that is true or false; assembly is pure here."""
        found = self.op.attributes.get(name)
        return bool(found.value) if isinstance(found, IntegerAttr) else (name == "pure" and self.op.pure) or None


class ModuleView(NamedTuple):
    """A program."""

    module: Module

    def verify(self) -> bool:
        """Whether the program is well formed; raises an error otherwise."""
        verify(self.module)
        return True

    def walk(self, visit: Callable[[OperationView], None]) -> None:
        """Visit every operation, those inside of one before it, and the module last."""
        _walk(self.module, visit)

    def __str__(self) -> str:
        """The program's text."""
        return str(self.module)


def _walk(op: Operation, visit: Callable[[OperationView], None]) -> None:
    for block in op.blocks:
        for inner in block.ops:
            _walk(inner, visit)
    visit(OperationView(op))
