"""How statements leave the list they stand in.

Level: Python syntax tree -> `tt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto


class Flow(Enum):
    """How a list of statements ended."""

    NEXT = auto()  # at its end
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


class Body(Enum):
    """What kind of statement list is being compiled: it says where return, break and continue lead."""

    FUNCTION = "a function"
    LOOP = "a loop that runs in the kernel"
    UNROLLED = "a loop that is unrolled when compiling"


def running(bodies: Sequence[Body]) -> str:
    """The variable of a loop that contains `break`, which stands in `bodies`: whether it goes on.

    No Python name, so no user variable meets it; another one for each depth, so that no loop meets one inside it.
    """
    return f"<running {bodies.count(Body.LOOP)}>"
