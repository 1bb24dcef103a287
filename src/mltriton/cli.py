"""Entry point of the command line.

Guarantees: without the `cli` extra `mltriton run` works, and the others say in one line what to install; an error of
ours prints as its rendering (place, source line, caret, hint) and not as a Python traceback, and so does a file that
cannot be read or written. Exit status: 0 done, 1 the answer is no or a named error, 2 wrong usage.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from importlib.util import find_spec

from mltriton.errors import TritonError

# These import the file that they are given; as in `mltriton run`, triton is mltriton there.
_IMPORTING = {"aot", "compile", "layout", "verify"}
_MISSING = "mltriton: the command line needs {names}: pip install 'mltriton[cli]'"


def main() -> None:
    """Run the command line on `sys.argv` and exit."""
    if sys.argv[1:2] == ["run"] and "--help" not in sys.argv[2:3]:
        del sys.argv[1]
        runpy.run_module("mltriton.as_triton", run_name="__main__")
        return
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(_MISSING.format(names=" and ".join(missing)))
    from mltriton.commands import app  # What is missing is named first.

    try:
        if not _IMPORTING.isdisjoint(sys.argv[1:2]):
            import_module("mltriton.as_triton")
        app(prog_name="mltriton")
    except TritonError as error:
        sys.exit(error.render())
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"mltriton: {error.filename}: {error.strerror}")
