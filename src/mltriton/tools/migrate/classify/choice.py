"""Which form a group of block pointers gets, and why.

Level: source text. A descriptor where the rules of descriptors hold and the result is the same; otherwise masked
pointers, which can do all that block pointers can; nothing where the group is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mltriton.tools.migrate.classify.bounds import Bounds, is_zero, unchecked
from mltriton.tools.migrate.classify.group import Access, Construct, Group
from mltriton.tools.migrate.classify.rows import Rows
from mltriton.tools.migrate.read.syntax import code_of, constant_int, cst, factor, names_in
from mltriton.tools.migrate.result import Options

MAX_RANK = 5  # of a descriptor
_STRIDE = re.compile(r"stride|^s(tr)?_|_s(tr)?$", re.IGNORECASE)
SMALL = {1: "2 to 8", 2: "4 to 16", 4: "4 to 32", 8: "8 to 64"}  # bytes of a row of so many elements of 1 to 8 bytes


@dataclass(frozen=True)
class Choice:
    """The form of a group. `permutation`: the dimensions in memory order, for a descriptor, after `folded` ones."""

    form: str  # "descriptor", "pointer" or "unresolved"
    reasons: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    permutation: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    padding: str = ""
    asserted: tuple[str, ...] = ()  # conditions on constants, for tl.static_assert

    @property
    def is_transposed(self) -> bool:
        """Whether the loaded block must be transposed back."""
        return list(self.permutation) != sorted(self.permutation)


def choose(group: Group, bounds: Bounds, rows: Rows, options: Options) -> Choice:
    """The form for a group under the options."""
    if group.problems:
        return Choice("unresolved", tuple(dict.fromkeys(text for _, text in group.problems)))
    if not group.constructs:
        return Choice("unresolved", ("where this block pointer is made is not known",))
    if len({construct.rank for construct in group.constructs}) > 1:
        return Choice("unresolved", ("block pointers of different ranks meet here",))
    if any(len(advance.deltas) != group.constructs[0].rank for advance in group.advances):
        return Choice("unresolved", ("the offsets of advance are not written as one for each dimension",))
    if any(
        access.has("volatile") and code_of(access.arguments["volatile"].value) != "False" for access in group.accesses
    ):
        return Choice("pointer", ("a volatile load has no descriptor form",))
    if options.to == "pointer":
        return Choice("pointer", ("asked for with --to pointer",))
    layout = _layout(group, bounds)
    if isinstance(layout, str):
        return Choice("pointer", (layout,))
    folded, permutation, conditions = layout
    hard = [*_illegal(group, bounds, folded, permutation)]
    narrow = _narrow(group, rows, permutation)
    soft = [*_slow(group, bounds, options, permutation)] if options.to == "auto" else []
    if options.to == "auto":
        soft += _partly_checked(group, bounds, folded)
        small = narrow if rows.is_launched else ()
        soft += [f"rows of {code_of(size)} elements may have fewer than 16 bytes" for size in small]
    if hard or soft:
        return Choice("pointer", tuple(dict.fromkeys((*hard, *soft))))
    conditions = (*conditions, *_conditions(group, bounds, folded))
    conditions += tuple(f"rows of {code_of(size)} elements must have 16 bytes: asserted" for size in narrow)
    asserted = tuple(narrow.values())
    return Choice("descriptor", (), tuple(dict.fromkeys(conditions)), permutation, folded, _padding(group), asserted)


# The layout: which dimension is contiguous.


def _layout(group: Group, bounds: Bounds) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]] | str:
    """Folded dimensions, the order of the others in memory, and what must hold; or why there is no descriptor."""
    found: set[tuple[int, ...]] = set()
    conditions: list[str] = []
    for construct in group.constructs:
        fast = _fastest(construct, bounds)
        if fast is None:
            strides = ", ".join(map(code_of, construct.strides))
            hint = "" if construct.order else " (`order` is not a tuple written out here, and so does not say which is)"
            return f"no stride of ({strides}) is known to be 1, as a descriptor's last one must be{hint}"
        dim, condition = fast
        conditions += [condition] if condition else []
        folded = _folded(construct, dim)
        rest = [each for each in range(construct.rank) if each not in folded and each != dim]
        found.add((len(folded), *folded, *rest, dim))
    if len(found) > 1:
        return "block pointers with different contiguous dimensions meet here"
    count, *dims = found.pop()
    return tuple(dims[:count]), tuple(dims[count:]), tuple(conditions)


def _fastest(construct: Construct, bounds: Bounds) -> tuple[int, str] | None:
    """The contiguous dimension and what must hold for it at launch."""
    units = [dim for dim, stride in enumerate(construct.strides) if constant_int(stride) == 1]
    if units:
        return units[-1], ""
    first = constant_int(construct.order[0]) if construct.order else None
    if construct.rank < 2 or first is None or not 0 <= first < construct.rank:
        return None
    stride = construct.strides[first]
    name = code_of(stride)
    parameter = bounds.parameters.get(name)
    if parameter is None or not _STRIDE.search(name):
        return None
    annotation = code_of(parameter.annotation.annotation) if parameter.annotation is not None else ""
    if annotation and not annotation.strip("\"'").endswith("constexpr"):
        return None  # an annotated integer is never specialised to the constant 1
    text = f"{name} must be 1 at launch, as `order` says: with another stride the descriptor does not compile"
    return first, text


def _folded(construct: Construct, fast: int) -> tuple[int, ...]:
    """Leading dimensions in which the block has one element: they go into the base."""
    if construct.rank <= 2:
        return ()
    ones = [dim for dim in range(construct.rank) if dim != fast and constant_int(construct.block_shape[dim]) == 1]
    return tuple(ones[: construct.rank - 2])


# Rules of descriptors.


def _illegal(group: Group, bounds: Bounds, folded: tuple[int, ...], permutation: tuple[int, ...]) -> Iterator[str]:
    """Why a descriptor breaks a rule or would not do the same."""
    if len(permutation) > MAX_RANK:
        yield "a descriptor has at most 5 dimensions"
    for construct in group.constructs:
        size = constant_int(construct.block_shape[permutation[-1]])
        if size is not None and size in SMALL:
            yield f"a row of {size} elements has {SMALL[size]} bytes: a descriptor needs 16, in every dtype"
        for dim in folded:
            if any(dim in access.checked for access in group.accesses) and not bounds.is_inside(construct, dim):
                yield f"dimension {dim} has one element a block, but is checked against its bound"
    if any(not is_zero(advance.deltas[dim]) for advance in group.advances for dim in folded):
        yield "the block moves along a dimension that would be folded into the base"
    if len(_paddings(group)) > 1:
        yield "loads through it are padded with zero and with nan, a descriptor pads in one way"


def _narrow(group: Group, rows: Rows, permutation: tuple[int, ...]) -> dict[cst.BaseExpression, str]:
    """The sizes of rows that may have fewer than 16 bytes, each with the condition on it."""
    found: dict[cst.BaseExpression, str] = {}
    for construct in group.constructs:
        size = construct.block_shape[permutation[-1]]
        if rows.is_wide(size) or constant_int(size) in SMALL:
            continue
        node = construct.base
        while isinstance(node, cst.BinaryOperation):
            node = node.left
        bits = f"{node.value}.dtype.element_ty.primitive_bitwidth" if isinstance(node, cst.Name) else "8"
        found[size] = f"{factor(size)} * {bits} >= 128"
    return found


def leaving(group: Group, bounds: Bounds, access: Access, folded: tuple[int, ...]) -> list[int]:
    """The dimensions in which an access may leave the shape unchecked, which a descriptor would change."""
    return [
        dim
        for construct in group.constructs
        for dim in unchecked(construct, access)
        if dim not in folded and (_moves(group, dim) or not bounds.is_inside(construct, dim))
    ]


def _moves(group: Group, dim: int) -> bool:
    return any(not is_zero(advance.deltas[dim]) for advance in group.advances)


def _paddings(group: Group) -> set[str]:
    loads = [access for access in group.accesses if access.kind == "load" and access.checked]
    return {"nan" if access.padding == "nan" else "zero" for access in loads}


def _padding(group: Group) -> str:
    return "nan" if _paddings(group) == {"nan"} else ""


def _slow(group: Group, bounds: Bounds, options: Options, permutation: tuple[int, ...]) -> Iterator[str]:
    """Why a legal descriptor would be no gain."""
    if group.choices and not all(
        bounds.is_constant(choice.test, bounds.flow.before[group.constructs[0].statement]) for choice in group.choices
    ):
        yield "which of two block pointers it is is decided when the kernel runs"
    elif _merges(group, bounds):
        yield "several block pointers meet here under a condition that is known only when the kernel runs"
    if options.target != "xe":
        strides = [construct.strides[dim] for construct in group.constructs for dim in permutation[:-1]]
        yield from unaligned(strides, options.target)


def _merges(group: Group, bounds: Bounds) -> bool:
    """Whether a variable holds one of several descriptors, depending on what happens when the kernel runs."""
    flow = bounds.flow
    for definition in group.definitions:
        copied = isinstance(definition.value, cst.Name)
        if copied and any(_is_dynamic(parent, bounds) for parent in flow.parents[definition.statement]):
            return True
    suites = [{suite for suite, _ in flow.blocks[construct.statement]} for construct in group.constructs]
    for construct in group.constructs:
        for parent in flow.parents[construct.statement]:
            inside = [bool({parent, getattr(parent, "body", parent)} & own) for own in suites]
            if len(set(inside)) > 1 and _is_dynamic(parent, bounds):
                return True
    return False


def _is_dynamic(parent: cst.CSTNode, bounds: Bounds) -> bool:
    """Whether what an enclosing statement does is known only when the kernel runs."""
    if isinstance(parent, cst.If):
        return not bounds.is_constant(parent.test, bounds.flow.before[parent])
    return isinstance(parent, cst.For | cst.While)


def unaligned(strides: Sequence[cst.BaseExpression], target: str) -> Iterator[str]:
    """Strides that are not known to be multiples of 16 bytes, where the target's descriptors insist on it."""
    for stride in strides:
        value = constant_int(stride)
        if value is None or value % 16:
            name = code_of(stride)
            yield f"the stride {name} is not known to be a multiple of 16 bytes, as descriptors on {target} need"


def _partly_checked(group: Group, bounds: Bounds, folded: tuple[int, ...]) -> Iterator[str]:
    """Accesses that check some dimensions and leave others to themselves."""
    for access in group.accesses:
        for dim in leaving(group, bounds, access, folded) if access.checked else ():
            if _is_checked_beside(group, bounds, access, dim):
                continue  # the other side of a branch checks it: this side is for blocks that lie inside
            yield f"dimension {dim} is not checked and may leave its shape: a descriptor checks every dimension"


def _is_checked_beside(group: Group, bounds: Bounds, access: Access, dim: int) -> bool:
    """Whether the other side of a branch around an access makes the same access with a check of a dimension."""
    flow = bounds.flow
    for other in group.accesses:
        common = {*flow.parents[access.statement]} & {*flow.parents[other.statement]}
        suites = [{suite for suite, _ in flow.blocks[each.statement]} for each in (access, other)]
        branches = [each.body for each in common if isinstance(each, cst.If)]
        apart = any((body in suites[0]) != (body in suites[1]) for body in branches)
        if apart and other.kind == access.kind and {dim, *access.checked} <= other.checked:
            return True
    return False


def _conditions(group: Group, bounds: Bounds, folded: tuple[int, ...]) -> Iterator[str]:
    """What must hold at launch for the new kernel to do the same as the old."""
    for access in group.accesses:
        if leaving(group, bounds, access, folded):
            yield (
                f"the {access.kind} does not check every dimension and so had to stay inside the shape; the descriptor "
                "checks all: outside it reads the padding and writes nothing"
            )


def annotated_strides(group: Group, bounds: Bounds) -> Iterator[tuple[str, cst.Param]]:
    """Parameters that are the contiguous stride and are annotated as integers: never the constant 1."""
    for construct in group.constructs:
        first = constant_int(construct.order[0]) if construct.order else None
        if first is None or not 0 <= first < len(construct.strides):
            continue
        for name in names_in(construct.strides[first]):
            parameter = bounds.parameters.get(name)
            if parameter is None or parameter.annotation is None:
                continue
            annotation = code_of(parameter.annotation.annotation).strip("\"'")
            if re.search(r"\bu?int(8|16|32|64)?$", annotation):
                yield annotation, parameter
