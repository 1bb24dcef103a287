"""Which blocks of pointers point to the elements of a rectangle of a matrix, with what the matrix is, or why not.

Level: tt to ttg. Takes a function; changes nothing. A load or store of a matrix through a block of pointers is regular
where rows and columns are a fixed distance apart, one of them 1, and where the mask says of indices only that they are
below or not below bounds. Indices outside of a load's provisos (`% M`) must not matter (`observed_indices.py`), then
they are outside of the matrix. Guarantees: a `Rectangle` describes the same elements, the ones that the mask leaves
out (or that do not matter) being outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from mltriton.analysis.affine.formula import Bound, Formula, Iteration, Mask
from mltriton.analysis.affine.formulas import Formulas
from mltriton.analysis.affine.inequalities import holds
from mltriton.analysis.affine.polynomials import ZERO, Monomial, Polynomial
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.observed_indices import EVERYWHERE, Observed, ObservedIndices, within
from mltriton.analysis.rectangles import NotRegular, Reason, Rectangle, Shares
from mltriton.dialects import tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.operation import Value
from mltriton.ir.reaching import operands_behind, reached
from mltriton.ir.types import I1, FloatType, IntegerType, TensorType, block_of, byte_width, pointee
from mltriton.targets.base import BlockIO

Access = tt.Load | tt.Store


class RegularPointers:
    """The accesses of a function through blocks of pointers, each as a rectangle or with a reason."""

    def __init__(self, function: tt.Func, limits: BlockIO) -> None:
        self.function = function
        self.limits = limits
        self.axes = AxisInfoAnalysis(function)
        self.multiplies = any(isinstance(op, tt.Dot) for op in function.walk())
        self._judged: dict[Access, Rectangle | Reason] = {}
        self._natural: dict[tuple[Polynomial, frozenset[Polynomial]], bool] = {}

    @cached_property
    def formulas(self) -> Formulas:
        """The formulas of the function's values."""
        return Formulas(self.function)

    @cached_property
    def observed(self) -> ObservedIndices:
        """Where blocks of the function matter."""
        return ObservedIndices(self.function, self.formulas)

    def of(self, op: Access) -> Rectangle | Reason:
        """The judgement of one access through a block of pointers."""
        if op not in self._judged:
            try:
                self._judged[op] = self._rectangle(op)
            except NotRegular as found:
                self._judged[op] = found.reason
        return self._judged[op]

    def _rectangle(self, op: Access) -> Rectangle:
        block = self._block(op)
        formula = self.formulas.of(op.ptr)
        mask = self.formulas.mask(op.mask) if op.mask is not None else Mask()
        if formula is None or formula.base is None:
            raise NotRegular(
                "rows and columns are not a fixed distance apart",
                "Compute pointers as base + rows[:, None] * stride + columns[None, :].",
            )
        if any(map(_is_loaded, mask.rest)):
            raise NotRegular("the mask compares data", "Load all within the bounds, and choose with tl.where.")
        if mask.rest:
            raise NotRegular(
                "the mask is more than bounds of rows and columns", "Compare tl.arange + start with a scalar bound."
            )
        contiguous = self._contiguous(op, formula)
        seen = self._seen(op, mask)
        bounds = (*dict.fromkeys((*mask.bounds, *self._provisos(block, formula, seen))),)
        judge = Shares(self, block, formula, bounds, contiguous, seen.facts, within(mask.bounds).facts)
        return Rectangle(block, formula.base, *judge.parts(), contiguous, mask.scalars)

    def _block(self, op: Access) -> TensorType:
        """The block that is accessed, of a form that block accesses have."""
        pointers = block_of(op.ptr.type)
        if pointers is None or is_block_pointer(op.ptr.type):
            raise NotRegular("it is no block of pointers")
        element = pointee(pointers)
        if pointers.rank != 2:
            raise NotRegular(f"the block has rank {pointers.rank}, and block accesses move matrices")
        if not isinstance(element, FloatType | IntegerType) or element is I1 or byte_width(element) > 8:
            raise NotRegular(f"elements of type {element} are not moved by block accesses")
        if not self.multiplies:
            raise NotRegular("the program multiplies no matrices, and lanes access neighbours together")
        if op.volatile:
            raise NotRegular("the access is volatile")
        return pointers.with_element(element)

    def _contiguous(self, op: Access, formula: Formula) -> int:
        ones = [dim for dim in (1, 0) if formula.steps[dim].number == 1]
        if not ones:
            raise NotRegular("no stride is known to be 1", "Pass a stride of 1 as it is, or as a tl.constexpr.")
        pitch = formula.steps[1 - ones[0]].number
        if pitch is not None:
            element = pointee(op.ptr.type)
            apart = pitch * byte_width(element)
            if apart < self.limits.least_pitch or apart % self.limits.pitch_multiple:
                found = f"rows are {apart} bytes apart, no multiple of {self.limits.pitch_multiple} from "
                raise NotRegular(f"{found}{self.limits.least_pitch} on", "Pad the rows.")
        return ones[0]

    def _seen(self, op: Access, mask: Mask) -> Observed:
        """Where elements matter: within the mask, and where results are looked at."""
        inside = within(mask.bounds)
        used = self.observed.of(op.result) if isinstance(op, tt.Load) else None
        used = used or EVERYWHERE
        return Observed(used.bounds | inside.bounds, used.facts | inside.facts)

    def _provisos(self, block: TensorType, formula: Formula, seen: Observed) -> Iterable[Bound]:
        """What is promised of indices that matter; what is not is no reason to load another element."""
        for bound in formula.provisos:
            size = Polynomial.constant(block.shape[bound.dim])
            if bound.is_upper and self.is_natural(bound.limit - size, seen.facts):
                continue
            if bound in seen.bounds:
                yield bound
            elif bound.is_upper or not self.is_natural(ZERO - bound.limit, seen.facts):
                if bound.is_upper:
                    raise NotRegular(
                        "pointers wrap around or are clamped, and indices beyond the bound are used",
                        "Let the mask of the load or of the final store leave those indices out.",
                    )
                raise NotRegular(
                    "pointers wrap around or are clamped, and the first index is not known to be positive",
                    "Compute it from tl.program_id, or let the mask leave out what is below 0.",
                )

    def is_natural(self, value: Polynomial, facts: Iterable[Polynomial]) -> bool:
        """Whether a number is not negative where an element matters."""
        known = value, frozenset(facts)
        if known not in self._natural:
            self._natural[known] = holds(value, known[1], self.formulas.scalar)
        return self._natural[known]

    def is_aligned(self, elements: Polynomial, size: int) -> bool:
        """Whether so many elements of `size` bytes keep a base aligned."""
        return all(
            self._divisor(monomial, factor * size) % self.limits.base_alignment == 0
            for monomial, factor in elements.terms.items()
        )

    def _divisor(self, monomial: Monomial, factor: int) -> int:
        for value in monomial:
            factor *= 1 if isinstance(value, Iteration) else self.axes.of(value).divisibility[0]
        return factor


def _is_loaded(value: Value) -> bool:
    """Whether blocks that are read from memory have a part in a value, as far as its own block of operations shows."""
    return any(
        isinstance(found.defining_op, tt.Load | tt.DescriptorLoad) and isinstance(found.type, TensorType)
        for found in reached([value], operands_behind)
    )
