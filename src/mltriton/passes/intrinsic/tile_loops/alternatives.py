"""What is known of values, and which of it outlives a region of control flow.

Level: warp to intrinsic. A region may not run: what was computed or brought to a tile inside it is not there behind it,
and what was overwritten inside it is not there either. Every region starts from what was known before all of them.
Guarantees: afterwards only that is known on which all regions agree, the one that does nothing included where there is
such a one; a tile that the others of an `scf.if` overwrote holds for each region what it held before.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from mltriton.ir.operation import Value
from mltriton.passes.intrinsic.tile_loops.tiles import Tile
from mltriton.records import record

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.accesses import BlockPointer
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator

KnownT = TypeVar("KnownT")


@record(frozen=True)
class _Tables:
    """Copies of an evaluator's tables at one time, and which value each tile held then."""

    tiles: dict[Value, Tile]
    owners: dict[Tile, Value | None]
    scalars: dict[Value, Value]
    pointers: dict[Value, BlockPointer]

    @classmethod
    def of(cls, e: Evaluator) -> _Tables:
        """What is known now."""
        owners = {tile: tile.owner for tile in e.tiles.values()}
        return cls(dict(e.tiles), owners, dict(e.scalars), dict(e.pointers))

    def restore(self, e: Evaluator) -> None:
        """Know this, and nothing else."""
        e.tiles, e.scalars, e.pointers = dict(self.tiles), dict(self.scalars), dict(self.pointers)
        for tile, owner in self.owners.items():
            tile.owner = owner

    def shared_with(self, other: _Tables) -> _Tables:
        """What both know; which value a tile holds that they disagree on is forgotten."""
        return _Tables(
            _shared(self.tiles, other.tiles),
            {tile: owner if other.owners.get(tile, owner) is owner else None for tile, owner in self.owners.items()},
            _shared(self.scalars, other.scalars),
            _shared(self.pointers, other.pointers),
        )


def _shared(ours: dict[Value, KnownT], theirs: dict[Value, KnownT]) -> dict[Value, KnownT]:
    return {value: known for value, known in ours.items() if theirs.get(value) is known}


class Alternatives:
    """Regions of which one runs; with `optional`, or none. Each is lowered in a `side()`, then `join` is called."""

    def __init__(self, e: Evaluator, *, optional: bool = False) -> None:
        self._e = e
        self._before = _Tables.of(e)
        self._ends = [self._before] if optional else []

    @contextmanager
    def side(self) -> Generator[None]:
        """One region."""
        self._before.restore(self._e)
        yield
        self._ends.append(_Tables.of(self._e))

    def join(self) -> None:
        """What follows runs behind any of the regions."""
        known, *others = self._ends
        for other in others:
            known = known.shared_with(other)
        known.restore(self._e)


@contextmanager
def optional_region(e: Evaluator) -> Generator[None]:
    """A region that may not run: the body of a loop."""
    sides = Alternatives(e, optional=True)
    with sides.side():
        yield
    sides.join()
