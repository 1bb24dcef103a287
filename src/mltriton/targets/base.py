"""What a target must say: sizes, layouts and pipeline, as data.

Level: read from ttg to intrinsic. A pass takes a `TargetSpec` and never asks for a target's name. The numbers of a
real device stand in `targets/<name>/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from mltriton.ir.types import TensorType, Type
from mltriton.records import NamedTuple, record
from mltriton.targets.multiprocessor import Multiprocessor

if TYPE_CHECKING:
    from mltriton.ir.operation import Value
    from mltriton.layouts.base import Cut, Encoding, MatrixEncoding, MessageEncoding, SharedEncoding


class Storage(Enum):
    """Where a warp's blocks live on a target, which decides what match-target-size makes of them."""

    REGISTERS = auto()  # unrolled pieces, with extract and glue
    MEMORY = auto()  # loops over chunks; tiles in scratch memory


class Home(Enum):
    """Where an operand of a dot must be."""

    REGISTERS = auto()
    SHARED = auto()
    EITHER = auto()  # what was loaded in shared memory, what was computed in registers
    MEMORY = auto()


class DotSize(NamedTuple):
    """One dot instruction (or micro-kernel): m x n x k elements, executed by `warps` warps together, operands at home
    in `a` and `b`. It may have `fewer_rows` and `fewer_columns` as well: smaller numbers in place of m (a repeat count)
    and n. Operands that may not be rounded to what the instruction takes are multiplied in so many `parts`.
    `encoding` makes the encoding of results, where lanes matter; it says that of the operands, too. `otherwise`: what
    multiplies where there are not so many rows and warps. `k_major`: which operands, where they are loaded, have K
    along lines of memory. `rounds`: it rounds operands, and multiplies only those that may be.
    """

    m: int
    n: int
    k: int
    warps: int = 1
    a: Home = Home.REGISTERS
    b: Home = Home.REGISTERS
    asynchronous: bool = False
    fewer_rows: tuple[int, ...] = ()
    parts: int = 1
    fewer_columns: tuple[int, ...] = ()
    encoding: Callable[[DotSize, ResultPerWarp], MatrixEncoding] | None = None
    otherwise: DotSize | None = None
    k_major: tuple[int, ...] = ()
    rounds: bool = False

    def precise(self, precision: str) -> DotSize:
        """This one, or the one in its place where operands may not be rounded."""
        size = self
        while size.rounds and precision != "tf32" and size.otherwise is not None:
            size = size.otherwise
        return size

    def acting(self, together: int) -> DotSize:
        """This one or another, of which so many warps act together."""
        size = self
        while size.warps != together and size.otherwise is not None:
            size = size.otherwise
        return size

    def fitting(self, cuts: Sequence[Cut], shape: Sequence[int], k: int) -> DotSize | None:
        """This one or another that can give a result of `shape` that is cut like this, of products of `k` elements;
        None where none can.
        """
        rows, columns = cuts[-2:]
        in_groups = rows.stride == 1 and rows.warps % self.warps == 0 and rows.size in (*self.fewer_rows, self.rows)
        whole = min(columns.size, shape[-1]) >= self.columns and k >= self.k
        if self.warps == 1 or (in_groups and whole and rows.parts(shape[-2]) == rows.warps):
            return self
        return self.otherwise.fitting(cuts, shape, k) if self.otherwise is not None else None

    @property
    def rows(self) -> int:
        """Rows of the result that one warp has."""
        return self.m // self.warps

    @property
    def columns(self) -> int:
        """The fewest columns that one instruction gives."""
        return min((self.n, *self.fewer_columns))

    @property
    def homes(self) -> tuple[Home, Home]:
        """Where the two operands must be."""
        return self.a, self.b


class ResultPerWarp(NamedTuple):
    """The result of a dot: `shape` for each warp, the number of warps along each dimension, the lanes of a warp."""

    shape: tuple[int, ...]
    warps: tuple[int, ...]
    lanes: int


class MicroKernel(NamedTuple):
    """A dot on memory: elements of `operand` type (to which operands are converted when they are packed), products
    summed in `accumulator` type, `group` elements of k next to each other; columns in multiples of `column_multiple`.

    `panel`: columns that are multiplied at a time. A right operand that is packed comes in panels of so many columns.
    `row_major`: the left operand must be so.
    """

    operand: Type
    accumulator: Type
    group: int = 1
    column_multiple: int = 1
    panel: int = 0
    row_major: bool = False

    @property
    def needs_rows(self) -> bool:
        """Whether the left operand cannot be column-major: groups lie along its rows."""
        return self.row_major or self.group > 1


class IndirectDot(NamedTuple):
    """A dot of at most `rows` rows whose right operand is read where it lies, line by line: `left` is the type that the
    left operand has in memory, products are summed in `accumulator`; a line has a multiple of `length` elements.
    """

    rows: int
    left: Type
    accumulator: Type
    length: int


class BlockSize(NamedTuple):
    """A 2D block access as the hardware sees it: `access` is "load", "load with VNNI" (rows packed to 32 bits),
    "transposing load" or "store"; `blocks` of `height` rows and `width` columns lie side by side.
    """

    access: str
    element_bytes: int
    width: int
    height: int
    blocks: int = 1


class Wanted(NamedTuple):
    """An access of blocks: the encoding in which the whole block of `shape` is wanted (or is, for a store), the bytes
    of its elements, and the dimension that is contiguous in memory.
    """

    encoding: Encoding
    shape: tuple[int, ...]
    element_bytes: int
    contiguous: int
    stores: bool


class Choice(NamedTuple):
    """The block that an access takes: its encoding, how many accesses a warp makes, what the change of layout costs,
    and everything (in instructions, about).
    """

    encoding: MessageEncoding
    messages: int
    change: int
    cost: int


class Relation(Enum):
    """What a limit asks of a number."""

    MULTIPLE = "a multiple of"
    AT_LEAST = "at least"
    AT_MOST = "at most"


class Guard(NamedTuple):
    """A condition on a field of a matrix in memory that must be checked; `bound` may be another field."""

    field: str
    relation: Relation
    bound: int | str

    def __str__(self) -> str:
        return f"{self.field} is {self.relation.value} {self.bound}"


class MatrixGuard(NamedTuple):
    """Limits that a running kernel asks of a matrix of elements of `size` bytes, which is `transposed` where columns
    are its rows in memory; `columns` are to be multiples of `step`, so that the column of an access is one.
    """

    base: Value
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    size: int
    transposed: bool
    limits: tuple[Guard, ...]
    columns: tuple[Value, ...] = ()
    step: int = 1

    @property
    def values(self) -> tuple[Value, ...]:
        """All that is asked about."""
        return (self.base, *self.shape, *self.strides, *self.columns)

    def of(self, values: Mapping[Value, Value]) -> MatrixGuard:
        """The same of the values that stand for these."""

        def each(old: tuple[Value, ...]) -> tuple[Value, ...]:
            return tuple(values.get(value, value) for value in old)

        parts = {name: each(getattr(self, name)) for name in ("shape", "strides", "columns")}
        return self._replace(base=values.get(self.base, self.base), **parts)


class RunTimeChecks(NamedTuple):
    """What must be checked of the matrix of an access, in words: when the kernel is launched, and while it runs.
    `broken` is what is wrong with it for certain; `advice` is how arguments meet what the launch asks, `guards` what
    the kernel asks.
    """

    launch: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    broken: str | None = None
    advice: tuple[str, ...] = ()
    guards: tuple[MatrixGuard, ...] = ()


@record(frozen=True)
class BlockIO:
    """Limits of 2D block loads and stores: rows (in a store, `store_rows`), bytes per row of all blocks side by side
    and how many those may be, pitch (distance of rows) and base rules in bytes. Arrays in main memory that start at a
    multiple of `host_alignment` are copied to where the base is allowed. `is_legal` knows what else an access must keep
    to, `caching(stores, modifier, eviction)` what the hints of an access ask of the caches. `run_time_checks(function,
    warps)` gives a function that tells of an access, and whether it is transposed (None: as the strides say), what must
    be checked. `choose(wanted, limits, lanes)` is the cheapest legal block of an access, its change of layout included;
    `lane_cost(wanted, bytes)` what it costs if each lane accesses so many neighbours instead, None where it has fewer;
    `prefetched(block, contiguous, warps, limits, lanes)` how all warps share out a block to be prefetched, None where
    it is too small. `distances`: an instruction adds a constant to the place of its block.
    """

    max_rows: int
    max_row_bytes: int
    max_blocks: int = 1
    pitch_multiple: int = 16
    least_pitch: int = 64
    base_alignment: int = 64
    host_alignment: int = 64
    store_rows: int = 8
    is_legal: Callable[[BlockSize], bool] | None = None
    caching: Callable[[bool, str, str], object | None] | None = None
    run_time_checks: Callable[[Any, int], Callable[[Any, bool | None], RunTimeChecks]] | None = None
    choose: Callable[[Wanted, BlockIO, int], Choice | None] | None = None
    lane_cost: Callable[[Wanted, int], int | None] | None = None
    distances: bool = True
    prefetched: Callable[[TensorType, int, int, BlockIO, int], MessageEncoding | None] | None = None

    def takes(self, size: BlockSize) -> bool:
        """Whether an access may have this size."""
        most_rows = self.store_rows if size.access == "store" else self.max_rows
        fits = size.height <= most_rows and size.blocks <= self.max_blocks
        fits = fits and size.element_bytes * size.width * size.blocks <= self.max_row_bytes
        return fits and (self.is_legal is None or self.is_legal(size))


class TensorCopies(NamedTuple):
    """An engine that copies blocks between tensors in global memory and shared memory: tensors have up to `most_dims`
    dimensions; bases, strides and what is stored of a row are multiples of `alignment` bytes. A block lies there by
    `layout(shape, element_bytes)` (None: as it is; `ValueError`: it cannot be moved). What goes into no dot is copied
    so from `least_bytes` on (`least_ahead` in loops of dots), up to `most_bytes` for all such of a program, where dots
    are beside it or it need not be `beside_products`; all blocks of a program have up to `all_bytes`. `updates`: the
    atomic updates that it does with blocks, as `tt.descriptor_reduce` names them, and of which elements.

    It takes a cycle for a row of at most `row_bytes`; meanwhile matrix units do `products` of elements of a byte. While
    all multiprocessors ask for blocks, these come after `latency` cycles.
    """

    layout: Callable[[tuple[int, ...], int], SharedEncoding | None]
    most_dims: int = 5
    alignment: int = 16
    least_bytes: int = 2048
    least_ahead: int = 128
    most_bytes: int = 96 * 1024
    all_bytes: int = 192 * 1024
    beside_products: bool = True
    row_bytes: int = 128
    products: int = 4096
    latency: int = 1536
    updates: Mapping[str, tuple[Type, ...]] = {}


class RegisterMode(NamedTuple):
    """How many registers a warp has, and how many warps a program may then have at most."""

    registers: int
    max_warps: int


class WarpGroups(NamedTuple):
    """Groups of `warps` that can hand registers to each other, `unit` at a time: of the `registers` that all lanes
    share, those of a group that only starts copies need `producer` each, and no lane may have more than `most`.
    """

    warps: int
    registers: int
    most: int
    producer: int = 24
    unit: int = 8


class WideWarps(NamedTuple):
    """Warps of more lanes, for programs without matrix products and 2D block accesses: at most `max_warps` of them, in
    these forms of machine code.
    """

    lanes: int
    max_warps: int
    codegens: tuple[str, ...]


@record(frozen=True)
class TargetSpec:
    """Everything passes ask about a target.

    `warp_size`: lanes a warp, `wide_warps`: where there are more; `max_warps`: most warps a program may have;
    `workgroup_warps`: the number of warps a workgroup-level kernel really gets (None: what the user asked for; 1 where
    one thread runs a program); `dot` by operand element type, `dot_through` what other operands become; `lanes`:
    elements in a chunk at the intrinsic level of a MEMORY target; `micro_kernels`: its dots by operand element type,
    best first; `indirect_dots` by the right operand's element type and layout ("row" or "column"); `merged_k` by
    operand element type: how long a step along K should be for a dot's loop (shorter ones are merged). `has_lanes`:
    encodings say from level ttg on which lane holds an element, and pieces at the intrinsic level keep theirs.
    `register_modes`: the numbers of registers that a warp may have, fewest first, and `register_bytes` the size of one,
    all lanes together. `overfull`: how many of them loops with products may need, the rest of them in memory (0: any
    number). `copy_bytes`: how many bytes a lane copies from global to shared memory while it goes on with something
    else (none where it cannot): what a dot takes is then loaded by all warps together. `change_cost(source, target,
    per_warp, element_bytes)`: instructions of a warp that changes the layout of its part, where the target has cheaper
    ways than `layouts/conversions.py` knows. `tensor_copies`: the engine that copies whole blocks, where there
    is one. `warp_groups`: groups of warps of which one can copy for the others. `swizzles`: whether what crosses warps
    is swizzled in shared memory, against conflicts of its banks.
    `repeats_loads`: whether what is spread over a block and has fewer elements than a program has lanes is loaded by
    each warp that wants it, instead of by one for all. `multiprocessor`: what programs beside each other share, where
    they share something. `codegens`: the forms of machine code that there are, by name.
    """

    name: str
    storage: Storage
    warp_size: int
    wide_warps: WideWarps | None = None
    max_warps: int = 64
    workgroup_warps: int | None = None
    dot: dict[Type, DotSize] = field(default_factory=dict[Type, DotSize])
    dot_through: dict[Type, Type] = field(default_factory=dict[Type, Type])
    block_load: BlockIO | None = None
    lanes: int = 1
    micro_kernels: dict[Type, tuple[MicroKernel, ...]] = field(default_factory=dict[Type, "tuple[MicroKernel, ...]"])
    indirect_dots: dict[tuple[Type, str], IndirectDot] = field(default_factory=dict[tuple[Type, str], IndirectDot])
    merged_k: dict[Type, int] = field(default_factory=dict[Type, int])
    has_lanes: bool = False
    cheap_masks: bool = True
    codegens: tuple[str, ...] = ()
    register_bytes: int = 0
    register_modes: tuple[RegisterMode, ...] = ()
    overfull: int = 0
    shared_bytes: int = 0
    swizzles: bool = False
    repeats_loads: bool = False
    multiprocessor: Multiprocessor | None = None
    copy_bytes: tuple[int, ...] = ()
    tensor_copies: TensorCopies | None = None
    warp_groups: WarpGroups | None = None
    change_cost: Callable[[Encoding, Encoding, tuple[int, ...], int], int] | None = None
    vector_bytes: int = 2048  # most bytes of one access of a warp that is no 2D block
    pipeline: tuple[str, ...] = ()  # passes at and to tt, ttg, warp, intrinsic: one text in `-p` syntax for each level

    def micro_kernel(self, element: Type, n: int, k: int) -> MicroKernel | None:
        """The best kernel for operands of such elements and sizes; None where there is none."""
        fitting = (
            kernel
            for kernel in self.micro_kernels.get(element, ())
            if k % kernel.group == 0 and n % kernel.column_multiple == 0
        )
        return next(fitting, None)
