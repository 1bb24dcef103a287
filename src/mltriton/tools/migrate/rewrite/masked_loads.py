"""Rule 9: masked loads of plain pointers in kernels that also use block pointers.

Level: source text. A load whose mask bounds every dimension becomes the load of a descriptor whose shape is the bounds;
what else the mask asks for becomes a `tl.where` on the block. Guarantees: the descriptor is legal, covers exactly the
elements that the bounds let through, and pads as the load did. Everything else stays, with a note that says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import SMALL, unaligned
from mltriton.tools.migrate.classify.decomposition import (
    LINE,
    Affine,
    AffineForms,
    IndexRange,
    Term,
    cancelled,
    negated,
    spread,
    written,
)
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.classify.rows import Rows
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, factor, names_in, one_line, walk
from mltriton.tools.migrate.result import Options


class NotExpressibleError(Exception):
    """Why a masked load is not the load of a descriptor; becomes the text of its note."""


@dataclass(frozen=True)
class Dimension:
    """One dimension of a descriptor, as text."""

    extent: str
    stride: str
    offset: str
    size: str


@dataclass(frozen=True)
class Plan:
    """A masked load as a descriptor's. `dims` in memory order; `where`: the rest of the mask; `before`: a loop."""

    call: cst.Call
    statement: cst.CSTNode
    base: str
    dims: tuple[Dimension, ...]
    permutation: tuple[int, ...]
    padding: str
    where: str
    dropped: tuple[str, ...]
    insertion: cst.CSTNode

    @property
    def is_transposed(self) -> bool:
        """Whether the block must be transposed back."""
        return list(self.permutation) != sorted(self.permutation)


@dataclass(frozen=True)
class _Bound:
    """A part of a mask: range + ... < extent, in a dimension."""

    dim: int
    size: str
    range: tuple[Term, ...]
    extent: tuple[Term, ...]


# A part of a mask that is no bound: its text where the load stands, the condition, and the statement that computes it.
_Rest = tuple[str, "cst.BaseExpression", "cst.CSTNode"]


class MaskedLoads:
    """Plans for one function."""

    def __init__(self, source: Source, pointers: Pointers, bounds: Bounds, rows: Rows, options: Options) -> None:
        self.source = source
        self.flow = pointers.flow
        self.bounds = bounds
        self.options = options
        self.rows = rows
        self.forms = AffineForms(source, bounds)

    def plan(self, call: cst.Call, at: cst.CSTNode) -> Plan:
        """How to load a block through a descriptor; NotExpressibleError where that is not the same."""
        arguments = self.source.arguments(call) or {}
        padding = self._padding(arguments)
        form = self.forms.of(arguments["pointer"].value, at)
        if form is None or not form.ranges:
            raise NotExpressibleError("its pointers are not a base plus ranges times strides")
        rank = 1 if form.ranges[0][0] == LINE else 2
        if rank != len(form.ranges):
            raise NotExpressibleError("its pointers do not vary along every dimension")
        found, rest = self._split(arguments["mask"].value, at, None)
        form, checks = self._aligned(form, found, rank)
        dims = [self._dimension(indices, check) for (_, indices), check in zip(form.ranges, checks, strict=True)]
        if rest and any(check is None for check in checks):
            raise NotExpressibleError("a dimension is bounded only by the part that depends on data")
        permutation = _memory_order(dims)
        self._check_gain(dims, permutation, padding)
        kept = [*form.terms, *(term for _, indices in form.ranges for term in indices.stride)]
        for (_, indices), check in zip(form.ranges, checks, strict=True):
            kept += indices.offset if check is None else check.extent
        offsets = [term for _, indices in form.ranges for term in indices.offset]
        parts = [part for term in (*kept, *offsets) for part in term.parts]
        for node, statement in (*parts, *((node, statement) for _, node, statement in rest)):
            if not self._holds(node, statement, at):
                raise NotExpressibleError(f"{code_of(node)} may have changed between its pointers and the load")
        return Plan(
            call,
            at,
            written(form.terms),
            tuple(dims[dim] for dim in permutation),
            permutation,
            padding,
            " & ".join(text for text, _, _ in rest),
            tuple(name for name in ("cache_modifier", "eviction_policy") if name in arguments),
            self._insertion(kept, [dim.size for dim in dims], at),
        )

    def _holds(self, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        return self.bounds.is_pure(node) and (first is second or self.bounds.is_stable(node, first, second))

    def _padding(self, arguments: Mapping[str, cst.Arg]) -> str:
        if "volatile" in arguments and code_of(arguments["volatile"].value) != "False":
            raise NotExpressibleError("a volatile load has no descriptor form")
        other = arguments.get("other")
        text = code_of(other.value).replace("'", '"') if other is not None else "0"
        if text in ("None", "0", "0.0", "0."):
            return ""
        if text == 'float("nan")':
            return "nan"
        raise NotExpressibleError(f"it is padded with {text}, and a descriptor pads with zero or nan")

    # The mask.

    def _split(self, node: cst.BaseExpression, at: cst.CSTNode, dim: int | None) -> tuple[list[_Bound], list[_Rest]]:
        """The bounds in a mask, and all other parts."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
            left, right = (self._split(each, at, dim) for each in (node.left, node.right))
            return [*left[0], *right[0]], [*left[1], *right[1]]
        if isinstance(node, cst.Subscript) and dim is None and spread(node) is not None:
            return self._split(node.value, at, spread(node))
        if isinstance(node, cst.Name):
            reaching = self.flow.reaching(node.value, at)
            if len(reaching) == 1 and reaching[0].value is not None and reaching[0].statement in self.flow.before:
                bounds, rest = self._split(reaching[0].value, reaching[0].statement, dim)
                if bounds:
                    return bounds, rest
        elif isinstance(node, cst.Comparison):
            bound = self._bound(node, at, dim)
            if bound is not None:
                return [bound], []
        if self.forms.is_scalar(node, at):
            raise NotExpressibleError(f"{code_of(node)} says whether there is anything to load at all")
        return [], [(f"{factor(node)}{_INDEX[dim]}", node, at)]

    def _bound(self, node: cst.Comparison, at: cst.CSTNode, dim: int | None) -> _Bound | None:
        if len(node.comparisons) != 1:
            return None
        operator = node.comparisons[0].operator
        smaller, larger = node.left, node.comparisons[0].comparator
        if isinstance(operator, cst.GreaterThan | cst.GreaterThanEqual):
            smaller, larger = larger, smaller
        elif not isinstance(operator, cst.LessThan | cst.LessThanEqual):
            return None
        indices, extent = self.forms.of(smaller, at), self.forms.of(larger, at)
        if indices is None or extent is None or extent.ranges or len(indices.ranges) != 1:
            return None
        ((own, one),) = indices.ranges
        if one.stride or (dim is not None and own != LINE):
            return None
        closed = isinstance(operator, cst.LessThanEqual | cst.GreaterThanEqual)
        more = (Term(1, ("1",), "1"),) if closed else ()
        return _Bound(own if dim is None else dim, one.size, (*one.offset, *indices.terms), (*extent.terms, *more))

    # Dimensions.

    def _aligned(self, form: Affine, bounds: list[_Bound], rank: int) -> tuple[Affine, list[_Bound | None]]:
        """The pointers and the bound of each dimension, with what the mask counts from moved out of the base."""
        last = LINE if rank == 1 else 1
        checks: list[_Bound | None] = []
        ranges: list[tuple[int, IndexRange]] = []
        terms = list(form.terms)
        used = 0
        for dim, indices in form.ranges:
            mine = [each for each in bounds if each.dim == dim or (each.dim == LINE and dim == last)]
            used += len(mine)
            if len(mine) > 1 or any(each.size != indices.size for each in mine):
                raise NotExpressibleError("it has several bounds in one dimension")
            check = mine[0] if mine else None
            if check is not None:
                wanted = cancelled([*check.range, *negated(check.extent), *negated(indices.offset)])
                moved = [pair for each in wanted if (pair := _counterpart(each, indices, terms)) is not None]
                for old, new in moved:
                    terms.remove(old)
                    indices = replace(indices, offset=(*indices.offset, new))
                extent = cancelled([*check.extent, *negated(check.range), *indices.offset])
                counted = {term.key for term in (*check.range, *indices.offset)}
                if any(term.key in counted and term not in check.extent for term in extent):
                    raise NotExpressibleError("its mask and its pointers count from different places")
                check = replace(check, extent=extent)
            checks.append(check)
            ranges.append((dim, indices))
        if used != len(bounds):
            raise NotExpressibleError("its mask has other dimensions than its pointers")
        return Affine(tuple(terms), tuple(ranges)), checks

    def _dimension(self, indices: IndexRange, check: _Bound | None) -> Dimension:
        for term in indices.offset:
            natural = all(self.bounds.is_natural(node, self.flow.before[at]) for node, at in term.parts)
            if term.sign < 0 or not natural:
                raise NotExpressibleError(f"whether {written(indices.offset)} can be negative is not known")
        offset = written(cancelled(indices.offset))
        stride = written(indices.stride) if indices.stride else "1"
        if check is None:
            extent = indices.size if offset == "0" else f"{offset} + {indices.size}"
        else:
            extent = written(check.extent)
        return Dimension(extent, stride, offset, indices.size)

    def _check_gain(self, dims: list[Dimension], permutation: tuple[int, ...], padding: str) -> None:
        row = cst.parse_expression(dims[permutation[-1]].size)
        size = constant_int(row)
        if size in SMALL:
            raise NotExpressibleError(f"a row of {size} elements has {SMALL[size]} bytes: a descriptor needs 16")
        if not self.rows.is_wide(row):
            raise NotExpressibleError(f"a row of {code_of(row)} elements may have fewer than 16 bytes")
        if self.options.target != "xe":
            strides = [cst.parse_expression(dims[dim].stride) for dim in permutation[:-1]]
            for reason in unaligned(strides, self.options.target):
                raise NotExpressibleError(reason)
        if self.options.to == "auto" and len(dims) == 1:
            raise NotExpressibleError("a 1D descriptor is not on the 2D block path (--to descriptor writes it)")
        if self.options.to == "auto" and padding:
            raise NotExpressibleError("a descriptor that pads with nan is not on the 2D block path")

    def _insertion(self, terms: list[Term], sizes: list[str], at: cst.CSTNode) -> cst.CSTNode:
        """The outermost of the loops around a statement that change nothing of the descriptor, or the statement."""
        parts = [part for term in terms for part in term.parts]
        parts += [(cst.parse_expression(size), at) for size in sizes]
        statement = at
        for loop in reversed(self.flow.parents[at]):
            fixed = all(self._is_outside(node, first, at, loop) for node, first in parts)
            if not isinstance(loop, cst.For | cst.While) or not fixed:
                break
            statement = loop
        return statement

    def _is_outside(self, node: cst.BaseExpression, first: cst.CSTNode, at: cst.CSTNode, loop: cst.CSTNode) -> bool:
        where = first if loop in self.flow.parents[first] else at
        return self.forms.is_invariant(node, where, loop)


_INDEX: Mapping[int | None, str] = {None: "", 0: "[:, None]", 1: "[None, :]"}


def _counterpart(wanted: Term, indices: IndexRange, terms: list[Term]) -> tuple[Term, Term] | None:
    """The term of the base that is `wanted` times the stride, and what it adds to the offset."""
    stride = [each for term in indices.stride for each in term.factors]
    for term in terms:
        key = Term(1, (*wanted.factors, *stride), "").key
        if wanted.sign == term.sign and term.key == key:
            return term, wanted
    return None


def _memory_order(dims: list[Dimension]) -> tuple[int, ...]:
    units = [dim for dim, each in enumerate(dims) if each.stride == "1"]
    if not units:
        strides = ", ".join(each.stride for each in dims)
        raise NotExpressibleError(f"no stride of ({strides}) is known to be 1, as a descriptor's last one must be")
    return (*(dim for dim in range(len(dims)) if dim != units[-1]), units[-1])


def masked_loads(source: Source, pointers: Pointers) -> Iterator[tuple[cst.Call, cst.CSTNode]]:
    """Loads with a mask, and their statements."""
    for statement in pointers.flow.before:
        if isinstance(statement, cst.If | cst.For | cst.While | cst.With | cst.FunctionDef | cst.ClassDef):
            continue
        for node in walk(statement):
            if source.callee(node) == "load":
                assert isinstance(node, cst.Call)
                mask = (source.arguments(node) or {}).get("mask")
                if mask is not None and code_of(mask.value) != "None":
                    yield node, statement


def stem(plan: Plan) -> str:
    """What a plan's descriptor is called after: the first name in its base."""
    node = cst.parse_expression(plan.base)
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    return min(names_in(node), default="x") if not isinstance(node, cst.Name) else one_line(node)
