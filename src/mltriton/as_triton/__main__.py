"""`python -m mltriton.as_triton [--as-cuda] [--explain] SCRIPT|-m MODULE ...`: run a program that imports triton."""

from __future__ import annotations

import sys

from mltriton.as_triton.program import UsageError, run_program

_SWITCHES = ("--as-cuda", "--explain")
_USAGE = f"usage: python -m mltriton.as_triton [{'] ['.join(_SWITCHES)}] SCRIPT|-m MODULE [ARGUMENT]..."


def main(arguments: list[str]) -> None:
    """Read our switches, which come first, and run the program."""
    given: set[str] = set()
    while arguments and arguments[0] in _SWITCHES:
        given.add(arguments.pop(0))
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(_USAGE)
    try:
        run_program(arguments, as_cuda="--as-cuda" in given, explain="--explain" in given)
    except UsageError as error:
        sys.exit(f"{error.render()}\n{_USAGE}")


main(sys.argv[1:])
