"""Cache hints of loads and stores: what each of Triton's words asks of Xe's two caches, and how an access says so.

Level: data. A hint never changes a result. The combinations of what the two caches do are those that Xe has for loads
and for stores. A word that is not for this kind of access (`wt` of a load) leaves the caches to the device.
"""

from __future__ import annotations

from enum import IntEnum

from mltriton.records import NamedTuple

LOADED, STORED = 6442, 6443  # the decorations of SPV_INTEL_cache_controls


class Load(IntEnum):
    """What a load does in one cache."""

    UNCACHED = 0
    CACHED = 1
    STREAMING = 2


class Store(IntEnum):
    """What a store does in one cache."""

    UNCACHED = 0
    WRITE_THROUGH = 1
    WRITE_BACK = 2
    STREAMING = 3


class Controls(NamedTuple):
    """The decoration, and what happens in the first and in the third level."""

    decoration: int
    first: Load | Store
    third: Load | Store

    def __str__(self) -> str:
        first, third = (level.name.lower().replace("_", " ") for level in self[1:])
        return f"{first} in L1, {third} in L3"

    @property
    def payload_code(self) -> int:
        """The number by which address payloads name what a load does."""
        return 1 + 2 * _ORDER.index(self.first) + int(self.third is Load.CACHED)


_ORDER = (Load.UNCACHED, Load.CACHED, Load.STREAMING)
_HELD = Controls(LOADED, Load.CACHED, Load.CACHED)
_PASSING = Controls(LOADED, Load.STREAMING, Load.CACHED)
LOADS = {
    "ca": _HELD,
    "cg": Controls(LOADED, Load.UNCACHED, Load.CACHED),
    "cs": _PASSING,
    "cv": Controls(LOADED, Load.UNCACHED, Load.UNCACHED),
    "evict_first": _PASSING,
    "evict_last": _HELD,
}
_KEPT = Controls(STORED, Store.WRITE_BACK, Store.WRITE_BACK)
_GOING = Controls(STORED, Store.STREAMING, Store.WRITE_BACK)
STORES = {
    "wb": _KEPT,
    "cg": Controls(STORED, Store.UNCACHED, Store.WRITE_BACK),
    "cs": _GOING,
    "wt": Controls(STORED, Store.WRITE_THROUGH, Store.UNCACHED),
    "evict_first": _GOING,
    "evict_last": _KEPT,
}


def controls(stores: bool, cache: str, evict: str) -> Controls | None:
    """What the hints of an access ask for; the cache modifier counts more. None: nothing, or nothing known."""
    known = STORES if stores else LOADS
    return known.get(cache) if cache != "none" else known.get(evict)
