"""Operations, values, blocks and regions: the SSA core.

Level: all. A `Value` is defined once, by an operation or as a block's argument, and counts its users; an `Operation`
has operands, results, attributes, regions and the source location it came from. Operation classes live in `dialects/`
and declare their parts with the descriptors of `ir/definition.py`. Structure is checked by `ir/verifier.py`, never
while it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mltriton.ir.attributes import Attribute
from mltriton.ir.location import UNKNOWN, Location
from mltriton.ir.types import Type
from mltriton.records import NamedTuple

Coordinates = tuple[Any, ...]
Elements = Sequence[tuple["Value", Coordinates]]


class Value:
    """Something an operation can use: `type`, the users (operation -> number of uses), and a `hint` for its printed
    name. `met` is for analyses that order values in the way they met them.
    """

    __slots__ = ("hint", "met", "type", "users")

    met: int

    def __init__(self, type: Type, hint: str | None = None) -> None:
        self.type = type
        self.hint = hint
        self.users: dict[Operation, int] = {}

    @property
    def uses(self) -> int:
        """Number of operands that are this value."""
        return sum(self.users.values())

    def replace_by(self, other: Value) -> None:
        """Let every user use `other` instead."""
        for user in list(self.users):
            for index, operand in enumerate(user.operands):
                if operand is self:
                    user.set_operand(index, other)

    @property
    def owner(self) -> Operation | Block:
        """The operation that defines the value, or the block whose argument it is."""
        raise NotImplementedError

    @property
    def defining_op(self) -> Operation | None:
        """The operation that defines the value; None for a block argument."""
        return None

    @property
    def defining_block(self) -> Block:
        """The block in which the value comes to be: as an argument, or as a result of one of its operations."""
        owner = self.owner
        block = owner.block if isinstance(owner, Operation) else owner
        assert block is not None
        return block


class OpResult(Value):
    """The `index`-th result of `op`."""

    __slots__ = ("index", "op")

    def __init__(self, type: Type, op: Operation, index: int) -> None:
        super().__init__(type)
        self.op = op
        self.index = index

    @property
    def owner(self) -> Operation:
        return self.op

    @property
    def defining_op(self) -> Operation:
        return self.op


class BlockArgument(Value):
    """The `index`-th argument of `block`."""

    __slots__ = ("block", "index")

    def __init__(self, type: Type, block: Block, index: int) -> None:
        super().__init__(type)
        self.block = block
        self.index = index

    @property
    def owner(self) -> Block:
        return self.block


class Encodings(NamedTuple):
    """Which encodings the blocks of an operation have: where it is `whole`, those with which every warp has all of a
    block; otherwise operands and results have the same, but operands whose numbers are `free` have any.
    """

    whole: bool = False
    free: tuple[int, ...] = ()


ALIKE, WHOLE = Encodings(), Encodings(whole=True)


class Operation:
    """Base of all operations. Class variables describe the kind, instances the use of it.

    `segments` is None, or the number of operands in each declared group of a class with optional or variadic ones.
    """

    __slots__ = ("attributes", "block", "loc", "operands", "regions", "results", "segments")

    name: ClassVar[str] = "unregistered"
    pure: ClassVar[bool] = False  # no effect but its results: may be removed, duplicated, hoisted
    reads: ClassVar[bool] = False  # reads memory
    writes: ClassVar[bool] = False  # writes memory
    commutative: ClassVar[bool] = False
    terminator: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False  # element i depends on operands' elements i; shapes and encodings agree
    encodings: ClassVar[Encodings | None] = None  # of its blocks, where a few words say it
    looks_around: ClassVar[bool] = False  # `verify` asks more than its own types and attributes; terminators may
    rearranges: ClassVar[bool] = False  # elements of results are elements of operands: `source_elements` says which
    isolated: ClassVar[bool] = False  # regions use no value defined outside
    syntax: ClassVar[str] = ""  # the custom text, a format of `ir/syntax.py`; "" has generic text only
    old_syntax: ClassVar[tuple[str, ...]] = ()  # formats that are read as well
    old_names: ClassVar[tuple[str, ...]] = ()  # names that are read as well
    region_ends: ClassVar[tuple[str, ...]] = ()  # the terminator that each region ends with
    checks: ClassVar[tuple[Callable[[Any], None], ...]] = ()  # rules of `ir/checks.py` that `verify` runs

    def __init_subclass__(cls, **declared: Any) -> None:
        """Class variables as a class's keywords: `class AddI(IntegerBinary, name="arith.addi", commutative=True)`."""
        super().__init_subclass__()
        for name, value in declared.items():
            setattr(cls, name, value)
        cls.rearranges = cls.source_elements is not Operation.source_elements
        if cls.elementwise:
            cls.encodings = ALIKE

    def __init__(
        self,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        loc: Location = UNKNOWN,
        segments: tuple[int, ...] | None = None,
    ) -> None:
        self.operands: list[Value] = list(operands)
        for operand in self.operands:
            operand.users[self] = operand.users.get(self, 0) + 1
        self.results: list[OpResult] = [OpResult(type, self, i) for i, type in enumerate(result_types)]
        self.attributes: dict[str, Attribute] = dict(attributes) if attributes else {}
        self.regions: list[Region] = list(regions)
        for region in self.regions:
            region.parent = self
        self.block: Block | None = None
        self.loc = loc
        self.segments = segments

    @property
    def result(self) -> OpResult:
        """The only result."""
        (result,) = self.results
        return result

    def set_operand(self, index: int, value: Value) -> None:
        """Replace one operand, keeping the user counts right."""
        self._release(self.operands[index])
        self.operands[index] = value
        value.users[self] = value.users.get(self, 0) + 1

    def set_operands(self, values: Sequence[Value], segments: tuple[int, ...] | None = None) -> None:
        """Replace all operands (and, for grouped operands, the group sizes)."""
        for old in self.operands:
            self._release(old)
        self.operands = list(values)
        for value in self.operands:
            value.users[self] = value.users.get(self, 0) + 1
        self.segments = segments if segments is not None else self.segments

    def _release(self, value: Value) -> None:
        left = value.users[self] - 1
        if left:
            value.users[self] = left
        else:
            del value.users[self]

    @property
    def parent_op(self) -> Operation | None:
        """The operation in whose region this one stands."""
        return self.block.region.parent if self.block is not None and self.block.region is not None else None

    def ancestor(self, *kinds: type[Operation]) -> Operation | None:
        """The nearest operation of these classes around this one."""
        found = self.parent_op
        while found is not None and not isinstance(found, kinds):
            found = found.parent_op
        return found

    def ancestor_in(self, block: Block) -> Operation | None:
        """The operation of `block` that is this one or holds it; None where this one is elsewhere."""
        found: Operation | None = self
        while found is not None and found.block is not block:
            found = found.parent_op
        return found

    @property
    def blocks(self) -> list[Block]:
        """The blocks of its regions, in order."""
        return [block for region in self.regions for block in region.blocks] if self.regions else []

    def walk(self) -> Iterator[Operation]:
        """This operation, then everything in its regions, in order. The current operation may be erased meanwhile."""
        pending: list[Iterator[Operation]] = [iter((self,))]
        while pending:
            op = next(pending[-1], None)
            if op is None:
                pending.pop()
                continue
            yield op
            if op.regions:
                pending.append(inner for block in op.blocks for inner in list(block.ops))

    def detach(self) -> None:
        """Take the operation out of its block; it keeps its operands."""
        if self.block is not None:
            del self.block.ops[self.block.position(self)]
            self.block = None

    def erase(self) -> None:
        """Remove the operation, whose results nobody uses any more, and everything in its regions."""
        self.detach()
        self.drop_operands()

    def drop_operands(self) -> None:
        """Stop using any value, here and in the regions."""
        for operand in self.operands:
            self._release(operand)
        self.operands = []
        for block in self.blocks:
            for op in block.ops:
                op.drop_operands()

    def replace_by(self, values: Sequence[Value]) -> None:
        """Let `values` stand for the results, and erase the operation."""
        for result, value in zip(self.results, values, strict=True):
            result.replace_by(value)
        self.erase()

    def is_before(self, other: Operation) -> bool:
        """Whether this operation comes before `other` in the same block."""
        assert self.block is not None and self.block is other.block
        return self.block.position(self) < self.block.position(other)

    def clone(self, values: dict[Value, Value]) -> Operation:
        """A copy whose operands are looked up in `values` (missing ones stay); results and block arguments are added
        to `values`.
        """
        copy = type(self)(
            operands=[values.get(operand, operand) for operand in self.operands],
            result_types=[result.type for result in self.results],
            attributes=self.attributes,
            regions=[Region([]) for _ in self.regions],
            loc=self.loc,
            segments=self.segments,
        )
        for old, new in zip(self.results, copy.results, strict=True):
            new.hint = old.hint
            values[old] = new
        for old_region, new_region in zip(self.regions, copy.regions, strict=True):
            old_region.clone_into(new_region, values)
        return copy

    def verify(self) -> None:
        """Check what is particular to the operation; raises `VerificationError`. `ir/verifier.py` checks the rest."""
        for check in self.checks:
            check(self)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        """The operands, each with the coordinates that are read of it for the element of a result that is `at` some
        coordinates: `first` is that of a dimension's only element, `other` one that `at` does not say.
        """
        raise NotImplementedError(self.name)

    def fold(self) -> Value | Attribute | None:
        """The value or constant that the single result equals, when it is known; operands may be changed in place."""
        return None

    def default_name(self) -> str | None:
        """The printed name of a result that has no hint; None prints a number."""
        return None

    def __str__(self) -> str:
        from mltriton.ir.printer import print_op  # Writing needs every operation.

        return print_op(self)

    def __repr__(self) -> str:
        return f"<{self.name} at {self.loc}>"


class Block:
    """A straight line of operations with arguments; the last operation is the terminator."""

    __slots__ = ("_near", "arguments", "ops", "region")

    def __init__(self, argument_types: Sequence[Type] = ()) -> None:
        self.arguments: list[BlockArgument] = [BlockArgument(type, self, i) for i, type in enumerate(argument_types)]
        self.ops: list[Operation] = []
        self.region: Region | None = None
        self._near = 0

    def add_argument(self, type: Type, hint: str | None = None) -> BlockArgument:
        """Append an argument."""
        argument = BlockArgument(type, self, len(self.arguments))
        argument.hint = hint
        self.arguments.append(argument)
        return argument

    def append(self, op: Operation) -> None:
        """Put `op` at the end."""
        op.block = self
        self.ops.append(op)

    def position(self, op: Operation) -> int:
        """The index of `op`. ValueError where it is not in the block."""
        # Changes come in the order of the program, more or less: the next place is near the last one.
        reach = 16
        while True:
            first, end = max(0, self._near - reach), self._near + reach
            around = self.ops[first:end]
            if op in around:  # Where it is not, the error of `index` would write it down each time.
                self._near = first + around.index(op)
                return self._near
            if first == 0 and end >= len(self.ops):
                raise ValueError("the operation is not in the block")
            reach *= 8

    def insert_before(self, anchor: Operation, op: Operation) -> None:
        """Put `op` right before `anchor`."""
        op.block = self
        self.ops.insert(self.position(anchor), op)

    def insert_after(self, anchor: Operation, op: Operation) -> None:
        """Put `op` right after `anchor`."""
        op.block = self
        self.ops.insert(self.position(anchor) + 1, op)

    @property
    def terminator(self) -> Operation:
        """The last operation."""
        return self.ops[-1]

    @property
    def parent_op(self) -> Operation | None:
        """The operation in whose region the block stands."""
        return self.region.parent if self.region is not None else None


class Region:
    """A list of blocks; structured control flow has one."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Sequence[Block] | None = None) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks if blocks is not None else [Block()]:
            self.add(block)

    def add(self, block: Block) -> Block:
        """Append a block."""
        block.region = self
        self.blocks.append(block)
        return block

    @property
    def block(self) -> Block:
        """The first (in structured control flow: the only) block."""
        return self.blocks[0]

    def clone_into(self, target: Region, values: dict[Value, Value]) -> None:
        """Copy the blocks to the end of `target`, mapping values through `values`."""
        for block in self.blocks:
            copy = target.add(Block([argument.type for argument in block.arguments]))
            for old, new in zip(block.arguments, copy.arguments, strict=True):
                new.hint = old.hint
                values[old] = new
            for op in block.ops:
                copy.append(op.clone(values))
