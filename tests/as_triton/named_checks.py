"""The loop of commands that check what their arguments name, or all there is."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable


def check_each(names: Iterable[str], check: Callable[[str], str]) -> int:
    """Print a line for each name: what `check` says, or how it fails. Gives the number of failures."""
    failures = 0
    for name in names:
        try:
            print(f"{name}: {check(name)}", flush=True)
        except Exception as error:  # the others are still of interest
            failures += 1
            traceback.print_exc()
            print(f"{name}: FAILED {type(error).__name__}: {error}", flush=True)
    return failures
