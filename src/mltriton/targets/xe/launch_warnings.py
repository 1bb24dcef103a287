"""What a launch says whose arrays keep a kernel from 2D block accesses: a `PerformanceWarning` for each matrix.

Level: runtime, where a launch takes a slower version of a kernel for the first time. Guarantees: a warning belongs to
the line of the launch, outside of this package, so that filters of Python's `warnings` find it; an empty matrix, of
which nothing is accessed, is no reason for one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence

from mltriton.analysis.bounds import Known, evaluate, exactly
from mltriton.errors import PerformanceWarning, calling_level
from mltriton.targets.xe.block_limits import Guard, Relation, advice, in_words
from mltriton.targets.xe.launch_guards import Surface, Use, holds


def warn(kernel: str, failing: Sequence[tuple[Surface, Use]], arguments: Mapping[int, int]) -> None:
    """Say of each matrix what keeps it from block accesses for these arguments."""
    by_matrix: dict[str, list[tuple[Surface, Use]]] = {}
    for surface, use in failing:
        by_matrix.setdefault(use.matrix, []).append((surface, use))
    for matrix, found in by_matrix.items():
        broken = dict.fromkeys(limit for surface, use in found for limit in _broken(surface, use, arguments))
        if broken:
            text = _text(kernel, matrix, [use for _, use in found], list(broken))
            warnings.warn(text, PerformanceWarning, stacklevel=calling_level())


def _broken(surface: Surface, use: Use, arguments: Mapping[int, int]) -> Iterator[tuple[Guard, str]]:
    """The limits that do not hold for a surface, with what was found in their place; none for an empty matrix."""

    def known(number: int) -> Known:
        return exactly(arguments[number])

    fields = {field: evaluate(number, known) for (_, number, _), field in zip(surface, use.fields, strict=True)}
    if any(field in fields and fields[field].most == 0 for field in ("width", "height")):
        return
    for (relation, number, bound), field in zip(surface, use.fields, strict=True):
        if not holds(relation, evaluate(number, known), evaluate(bound, known)):
            limit = Guard(field, Relation(relation), bound if isinstance(bound, int) else "width")
            yield limit, _found(limit, fields[field])


def _found(limit: Guard, number: Known) -> str:
    """A number as far as it is known; of an address only what divides it."""
    if number.number is not None and limit.field != "base":
        return str(number.number)
    bounds = (("at least", number.least), ("at most", number.most))
    known = [f"{words} {bound}" for words, bound in bounds if bound is not None and limit.field != "base"]
    return (
        " and ".join(known) if limit.relation is not Relation.MULTIPLE and known else f"a multiple of {number.divisor}"
    )


def _text(kernel: str, matrix: str, uses: Sequence[Use], broken: Sequence[tuple[Guard, str]]) -> str:
    places = ", ".join(dict.fromkeys(place for use in uses for place in use.places))
    limits = [f"expected {in_words([limit])[0]}, found {found}" for limit, found in broken]
    change = "; ".join(advice([limit for limit, _ in broken], max(use.element_bytes for use in uses)))
    how = f"accesses its argument {matrix} element by element in this launch, not by 2D blocks: it is slower"
    return "\n".join([f"kernel {kernel} {how} ({places})", *limits, f"{change[:1].upper()}{change[1:]}."])
