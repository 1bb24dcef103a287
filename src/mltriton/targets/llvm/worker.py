"""LLVM in a process of its own: `python -m mltriton.targets.llvm.worker`.

Level: `llvm` -> `binary`. Standard input is a line of JSON (the fields of `Machine`) and IR text; standard output is
the object file. Exit status `REJECTED` and a message on standard error say that LLVM does not accept the text.
"""

from __future__ import annotations

import json
import sys

from mltriton.errors import BackendError
from mltriton.targets.llvm.toolchain import REJECTED, Machine, compile_here


def main() -> int:
    """Serve one request."""
    header, _, text = sys.stdin.buffer.read().partition(b"\n")
    try:
        image = compile_here(text.decode(), Machine(**json.loads(header)))
    except BackendError as error:
        sys.stderr.write(error.found or str(error))
        return REJECTED
    sys.stdout.buffer.write(image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
