"""Which accesses of blocks can be copies by an engine, from tensors that the launch describes, or why not.

Level: tt. Takes a function whose block pointers are made right before their use; changes nothing. Base, sizes and
strides must be computed of the kernel's parameters by sums and products, but for what the base is moved by from program
to program: each number that varies becomes an index of a dimension of its own, with what it is multiplied by for a
stride. Copies write and read memory in an order of their own: nothing else of the program may access the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, cast

from mltriton.analysis.access_order import other_arrays, stores_beside
from mltriton.analysis.affine.formulas import Formulas
from mltriton.analysis.affine.inequalities import holds
from mltriton.analysis.affine.polynomials import ONE, ZERO, Polynomial
from mltriton.analysis.aliasing import GLOBAL_READS, GLOBAL_WRITES
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.rectangles import NotRegular, Reason
from mltriton.analysis.workload import goes_along, is_multiplied
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import I1, IntegerType, PointerType, TensorType, block_of, byte_width
from mltriton.targets.base import TensorCopies

Access = tt.Load | tt.Store | tt.DescriptorLoad | tt.DescriptorStore
UNBOUNDED = 1 << 31  # the size of a dimension of which nothing is known, and nothing left out


@dataclass(frozen=True)
class Tensor:
    """A tensor that the launch can describe: `base` is a parameter, moved by `shift` elements; sizes, and strides in
    elements, the last one 1; blocks of type `block`. It is this tensor where the numbers `positive` are, and it may be
    copied where the parameters `apart` are other arrays.
    """

    base: Value
    shift: Polynomial
    sizes: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    block: TensorType
    positive: tuple[Polynomial, ...] = ()
    apart: tuple[Value, ...] = ()


@dataclass(frozen=True)
class TensorAccess:
    """An access of a block of a tensor at `indices`; `turned`: its rows are columns of memory."""

    tensor: Tensor
    indices: tuple[Polynomial, ...]
    turned: bool


class TensorMaps:
    """The accesses of a function, each described in a tensor or with a reason. `added`: accesses that stand beside
    others for the time being, which they may replace.
    """

    def __init__(self, function: tt.Func, limits: TensorCopies, added: Mapping[Any, Access] | None = None) -> None:
        self.function = function
        self.limits = limits
        self.axes = AxisInfoAnalysis(function)
        self.added = added or {}
        self.staged_bytes = 0
        self.loaded_bytes: dict[Operation | None, int] = {}  # by loop
        self._judged: dict[Access, TensorAccess | Reason] = {}

    @cached_property
    def formulas(self) -> Formulas:
        """The formulas of the function's values."""
        return Formulas(self.function)

    @cached_property
    def _accesses(self) -> list[Operation]:
        accesses = (op for op in self.function.walk() if isinstance(op, (*GLOBAL_READS, *GLOBAL_WRITES)))
        return [op for op in accesses if op not in self.added]

    @cached_property
    def _multiplies(self) -> bool:
        return any(isinstance(op, tt.Dot) for op in self.function.walk())

    def of(self, op: Access) -> TensorAccess | Reason:
        """The judgement of an access. Lanes store all of an array of which they must store some: between them and the
        engine nothing says who is first.
        """
        judged = self._of_itself(op)
        if isinstance(judged, Reason) or not isinstance(op, tt.Store | tt.DescriptorStore):
            return judged
        instead = {original: made for made, original in self.added.items()}
        beside = stores_beside(self._accesses, self.added.get(op, op))
        by_lanes = any(isinstance(self._of_itself(instead.get(other, other)), Reason) for other in beside)
        return Reason("lanes store to the same array", "Store all of it by descriptors.") if by_lanes else judged

    def _of_itself(self, op: Access) -> TensorAccess | Reason:
        if op not in self._judged:
            try:
                self._judged[op] = self._described_access(op)
            except NotRegular as found:
                self._judged[op] = found.reason
        return self._judged[op]

    def _described_access(self, op: Access) -> TensorAccess:
        access = _described(op) if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore) else self._pointed(op)
        block = access.tensor.block
        if access.tensor.strides[-1] != ONE:
            raise NotRegular("no stride is known to be 1", "Pass a stride of 1 as it is, or as a tl.constexpr.")
        if block.element is I1 or isinstance(block.element, PointerType):
            raise NotRegular(f"elements of type {block.element} are not moved by tensor copies")
        try:
            self.limits.layout(block.shape, byte_width(block.element))
        except ValueError as error:
            raise NotRegular(str(error)) from None
        access = self._with_uniform_base(access)
        self._check_numbers(access.tensor)
        self._check_alignment(access)
        if isinstance(op, tt.Store | tt.DescriptorStore):
            self._check_row_end(access.tensor)
        if isinstance(op, tt.DescriptorReduce) and block.element not in self.limits.updates.get(op.kind, ()):
            raise NotRegular(f"the engine has no update {op.kind} of {block.element}")
        original = self.added.get(op, op)
        apart = other_arrays(self.function, self._accesses, original)
        self._check_size(original, block)
        return replace(access, tensor=replace(access.tensor, apart=apart))

    def _pointed(self, op: tt.Load | tt.Store) -> TensorAccess:
        """An access through a block pointer."""
        maker = op.ptr.defining_op
        if not is_block_pointer(op.ptr.type) or not isinstance(maker, tt.MakeTensorPtr):
            raise NotRegular("it is no access through a block pointer or a descriptor")
        if isinstance(op, tt.Load) and (op.volatile or op.padding == "pad_nan"):
            raise NotRegular("the access is volatile" if op.volatile else "elements outside of the tensor are NaN")
        block = cast(TensorType, block_of(op.ptr.type))
        sizes, strides = list(map(Polynomial.of, maker.shape)), list(map(Polynomial.of, maker.strides))
        indices = list(map(Polynomial.of, maker.offsets))
        unchecked, positive = set(range(block.rank)) - set(op.boundary_check), dict[Polynomial, None]()
        for dim in unchecked:
            needed = self._natural_where(indices[dim])
            if needed is None:
                raise NotRegular("an offset that is not checked may be negative", "Check the boundary.")
            sizes[dim] = Polynomial.constant(UNBOUNDED)
            positive.update(dict.fromkeys(needed))
        turned = block.rank == 2 and strides[0] == ONE and strides[1] != ONE
        order = (1, 0) if turned else tuple(range(block.rank))
        turn = tuple[Polynomial, ...]
        parts = (turn(part[dim] for dim in order) for part in (sizes, strides, indices))
        base, shift = _based(maker.base)
        sizes_, strides_, indices_ = parts
        block = block.with_shape(tuple(block.shape[dim] for dim in order))
        return TensorAccess(Tensor(base, shift, sizes_, strides_, block, tuple(positive)), indices_, turned)

    def _with_uniform_base(self, access: TensorAccess) -> TensorAccess:
        """The base as all programs have it; what moves it becomes dimensions before the others."""
        kept, moved = ZERO, dict[Polynomial, Polynomial]()
        for monomial, factor in access.tensor.shift.terms.items():
            fixed = tuple(value for value in monomial if _is_parameter(value))
            varying = tuple(value for value in monomial if not _is_parameter(value))
            if not varying:
                kept += Polynomial({monomial: factor})
                continue
            stride = Polynomial({fixed: factor})
            moved[stride] = moved.get(stride, ZERO) + Polynomial({varying: 1})
        positive = dict.fromkeys(access.tensor.positive)
        for index in moved.values():
            if not all(map(_is_narrow, index.values)):
                raise NotRegular("the base is moved by a number of 64 bits", "Compute it with 32 bits.")
            needed = self._natural_where(index)
            if needed is None:
                raise NotRegular("the base may be moved backwards", "Let it begin at the parameter.")
            positive.update(dict.fromkeys(needed))
        tensor, count = access.tensor, len(moved)
        block = TensorType((1,) * count + tensor.block.shape, tensor.block.element)
        sizes = (Polynomial.constant(UNBOUNDED),) * count + tensor.sizes
        made = Tensor(tensor.base, kept, sizes, (*moved, *tensor.strides), block, tuple(positive))
        return TensorAccess(made, (*moved.values(), *access.indices), access.turned)

    def _natural_where(self, index: Polynomial) -> list[Polynomial] | None:
        """Parameters that must be positive so that an index is not negative: what it is divided by; None where that is
        not enough.
        """
        needed = [Polynomial({(value,): 1}) for value in _divisors(index.values)]
        facts = [number - ONE for number in needed]
        if holds(self._formula(index), (), self.formulas.scalar):
            return []
        return needed if holds(self._formula(index), facts, self.formulas.scalar) else None

    def _formula(self, index: Polynomial) -> Polynomial:
        """With what loops carry looked through."""
        total = ZERO
        for monomial, factor in index.terms.items():
            term = Polynomial.constant(factor)
            for value in monomial:
                term *= self.formulas.scalar(value)
            total += term
        return total

    def _check_numbers(self, tensor: Tensor) -> None:
        rank = tensor.block.rank
        if rank > self.limits.most_dims:
            raise NotRegular(f"the tensor has {rank} dimensions, more than {self.limits.most_dims}")
        if not _is_parameter(tensor.base):
            raise NotRegular("the base is not a parameter of the kernel", "Pass the array itself.")
        for what, numbers in (("size", tensor.sizes), ("stride", tensor.strides)):
            if any(not _is_parameter(value) for number in numbers for value in number.values):
                raise NotRegular(
                    f"a {what} is not computed of the kernel's parameters by sums and products", f"Pass the {what}."
                )
        width = byte_width(tensor.block.element)
        for stride in tensor.strides[:-1]:
            number = stride.number
            if number is not None and (number <= 0 or number * width % self.limits.alignment):
                found = f"a stride is {number * width} bytes, no multiple of {self.limits.alignment}"
                raise NotRegular(found, "Pad the rows.")

    def _check_alignment(self, access: TensorAccess) -> None:
        """The engine begins at a multiple of what bases and strides are."""
        width = byte_width(access.tensor.block.element)
        for monomial, factor in access.indices[-1].terms.items():
            divisor = prod((factor * width, *(self.axes.of(value).divisibility[0] for value in monomial)))
            if divisor % self.limits.alignment:
                found = f"columns may begin at no multiple of {self.limits.alignment} bytes"
                raise NotRegular(found, "Compute the index of multiples, such as pid * BLOCK.")

    def _check_row_end(self, tensor: Tensor) -> None:
        """The engine stores whole multiples of the alignment; of sizes that are not known the launch makes sure."""
        columns, width = tensor.sizes[-1].number, byte_width(tensor.block.element)
        if columns is not None and columns * width % self.limits.alignment:
            found = f"rows end at {columns * width} bytes, no multiple of {self.limits.alignment}"
            raise NotRegular(found, "Pad the rows.")

    def _check_size(self, op: Access, block: TensorType) -> None:
        """Blocks that go into no dot must be large enough, and not too many; all that are loaded must fit."""
        size, loads = block.bytes, isinstance(op, tt.Load | tt.DescriptorLoad)
        if not loads or not is_multiplied(op.result, turned=True):
            if self.limits.beside_products and not self._multiplies:
                raise NotRegular("the program multiplies no matrices, and lanes access as much at a time")
            ahead = isinstance(op, tt.DescriptorLoad) and goes_along(op)
            least = self.limits.least_ahead if ahead else self.limits.least_bytes
            if size < least:
                raise NotRegular(f"the block has {size} bytes, fewer than {least}")
            size = 0 if ahead else size
            if self.staged_bytes + size > self.limits.most_bytes:
                raise NotRegular(f"blocks that are copied so have more than {self.limits.most_bytes} bytes in all")
            self.staged_bytes += size
        if loads:
            self._check_room(op, size)

    def _check_room(self, op: Operation, size: int) -> None:
        """What one loop loads takes the place of what another one did that stands beside it."""
        loops = [None, *_loops_around(op)]
        loaded = dict.fromkeys(loops, 0) | self.loaded_bytes
        loaded[loops[-1]] += size
        if _at_once(None, loaded) > self.limits.all_bytes:
            raise NotRegular(f"what is loaded so has more than {self.limits.all_bytes} bytes in all")
        self.loaded_bytes = loaded


def _loops_around(op: Operation) -> list[Operation]:
    """The loops around an operation, the outermost first."""
    found: list[Operation] = []
    while (parent := op.parent_op) is not None:
        found += [parent] if isinstance(parent, scf.For | scf.While) else []
        op = parent
    return found[::-1]


def _at_once(loop: Operation | None, loaded: dict[Operation | None, int]) -> int:
    """The bytes that a loop loads, and the most that one in it does."""
    inner = [other for other in loaded if other is not None and (_loops_around(other) or [None])[-1] is loop]
    return loaded[loop] + max((_at_once(other, loaded) for other in inner), default=0)


def _described(op: tt.DescriptorLoad | tt.DescriptorStore) -> TensorAccess:
    """An access through a descriptor."""
    maker = op.desc.defining_op
    if not isinstance(maker, tt.MakeTensorDesc):
        raise NotRegular("the descriptor is not made once, in front of the access", "Make it outside of branches.")
    if isinstance(op, tt.DescriptorLoad) and maker.padding == "pad_nan":
        raise NotRegular("elements outside of the tensor are NaN")
    block = cast(TensorType, op.value.type if isinstance(op, tt.DescriptorStore) else op.result.type)
    sizes, strides = tuple(map(Polynomial.of, maker.shape)), tuple(map(Polynomial.of, maker.strides))
    if block.rank != len(sizes):
        raise NotRegular("the block has fewer dimensions than the tensor")
    indices = tuple(map(Polynomial.of, op.indices))
    return TensorAccess(Tensor(*_based(maker.base), sizes, strides, block), indices, turned=False)


def _based(pointer: Value) -> tuple[Value, Polynomial]:
    """The first pointer that additions start from, and their sum."""
    shift = ZERO
    while isinstance(op := pointer.defining_op, tt.AddPtr):
        pointer, shift = op.ptr, shift + Polynomial.of(op.offset)
    return pointer, shift


def _is_parameter(value: Value) -> bool:
    """Whether a value is an integer of 32 or 64 bits, or a pointer, that the launch passes."""
    kind = value.type
    fits = isinstance(kind, PointerType) or (isinstance(kind, IntegerType) and kind.width in (32, 64))
    return fits and isinstance(value, BlockArgument) and isinstance(value.block.parent_op, tt.Func)


def _divisors(values: Iterable[Value]) -> Iterator[Value]:
    """The parameters by which any of the values was divided on its way."""

    def before(value: Value) -> Sequence[Value]:
        op = value.defining_op
        return () if op is None or op.regions or not op.pure else op.operands

    for value in reached(values, before):
        op = value.defining_op
        if isinstance(op, arith.DivSI | arith.RemSI):
            yield from (number for number in Polynomial.of(op.rhs).values if _is_parameter(number))


def _is_narrow(value: Value) -> bool:
    """Whether an integer is one that 32 bits hold."""
    op = value.defining_op
    if isinstance(value.type, IntegerType) and value.type.width <= 32:
        return True
    if isinstance(op, arith.DivSI | arith.RemSI):
        return _is_narrow(op.lhs)
    return isinstance(op, arith.ExtSI | arith.ExtUI) and _is_narrow(op.source)


def accesses_of(function: tt.Func) -> Sequence[Access]:
    """The accesses of blocks through block pointers and descriptors."""
    return [
        op
        for op in function.walk()
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore)
        or (isinstance(op, tt.Load | tt.Store) and is_block_pointer(op.ptr.type))
    ]
