"""How statements leave the list they stand in.

Level: Python syntax tree -> `tt`.
"""

from __future__ import annotations

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


# A variable of loops that contain `break`: whether the loop goes on. No Python name, so no user variable meets it.
RUNNING = "<running>"
