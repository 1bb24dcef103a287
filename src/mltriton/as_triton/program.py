"""Running a program with mltriton in triton's place: what `mltriton run` and `python -m mltriton.as_triton` do.

Level: user. Takes a script or the name of a module, and its arguments; guarantees that the program sees what it would
see of Python (`sys.argv`, `__main__`, its own folder first in `sys.path`).
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from mltriton.as_triton import stand_in
from mltriton.as_triton.environment import UPSTREAM_VARIABLES
from mltriton.as_triton.names import VERSION
from mltriton.errors import ArgumentError


class UsageError(ArgumentError):
    """There is no program to run."""


def run_program(arguments: Sequence[str], *, as_cuda: bool = False, explain: bool = False) -> None:
    """Run `SCRIPT ARGUMENT...` or `-m MODULE ARGUMENT...`.

    With `as_cuda` the CPU stands for a CUDA device (`as_cuda.py`); with `explain` says first, on standard error, what
    is put in whose place. Raises `UsageError` where there is no such script.
    """
    given = list(arguments)
    as_module = given[:1] == ["-m"]
    if as_module:
        given.pop(0)
    if not given:
        raise UsageError("there is no program to run", expected="SCRIPT, or -m MODULE, and its arguments")
    name = given[0]
    if not as_module and not Path(name).exists():
        raise UsageError(f"there is no script {name}", expected="the path of a Python file, or -m MODULE")
    stand_in()
    if as_cuda:
        from mltriton.as_triton.as_cuda import show_cpu_as_cuda  # Few programs need it.

        show_cpu_as_cuda()
    if explain:
        print(explanation(as_cuda=as_cuda), file=sys.stderr)
    sys.argv = given
    sys.path.insert(0, str(Path.cwd()) if as_module else str(Path(name).resolve().parent))
    if as_module and not _is_module(name):
        raise UsageError(f"there is no module {name}", expected="a name that Python can import from here")
    if as_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as error:  # of a package that holds it
        if error.name is not None and name.startswith(error.name):
            return False
        raise


def explanation(*, as_cuda: bool) -> str:
    """What is put in whose place."""
    lines = [
        f"mltriton stands in for triton {VERSION}: import triton gives mltriton, here and in processes started later",
        f"kernels run on this machine's CPU; PYTHONPATH begins with {os.environ['PYTHONPATH'].split(os.pathsep)[0]}",
    ]
    read = [f"{name}={os.environ[name]}" for name in UPSTREAM_VARIABLES if os.environ.get(name)]
    lines.append(f"environment: {', '.join(read) or 'no variable of upstream is set'}")
    if as_cuda:
        from mltriton.as_triton.as_cuda import SHOWN  # Few programs need it.

        lines += [f"as CUDA: {what} {how}" for what, how in SHOWN.items()]
    return "\n".join(lines)
