"""Standing in for triton: after `import mltriton.as_triton` every `import triton` gives mltriton by upstream's names.

Level: user. The doors are this import, `python -m mltriton.as_triton SCRIPT` (or `mltriton run`), and the wheel
`mltriton-as-triton`, whose module `triton` imports this one. Guarantees: processes that the program starts do the same
(a folder with such a module `triton` is put in front of `sys.path` and `PYTHONPATH`); environment variables by
upstream's names are read (`environment.py`, when a setting is asked for); where the real triton is imported already it
is an `ImportOrderError`.
"""

from __future__ import annotations

import os
import sys

from mltriton.as_triton.modules import FOLDER, ModuleType, Names, install


def stand_in() -> None:
    """Let `import triton` give mltriton, here and in processes started from now on."""
    there = sys.modules.get("triton")
    if there is not None and not isinstance(there, Names) and not hasattr(there, "__mltriton__"):
        from mltriton.errors import ImportOrderError

        raise ImportOrderError(
            "the real triton is imported already, so that mltriton cannot stand in for it",
            found=f"triton {getattr(there, '__version__', '')} from {getattr(there, '__file__', None)}",
            hint="Import mltriton.as_triton before anything that imports triton (torch may), or run the program with "
            "python -m mltriton.as_triton.",
        )
    install()
    _warn_where_torch_looked()
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    paths = os.environ.get("PYTHONPATH", "")
    if FOLDER not in paths.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{FOLDER}{os.pathsep}{paths}" if paths else FOLDER


def _warn_where_torch_looked() -> None:
    """torch's compiler keeps what it found when it looked for triton."""
    looked = sys.modules.get("torch._inductor.runtime.triton_compat")
    if looked is not None and not isinstance(getattr(looked, "triton", None), ModuleType):
        import warnings

        message = (
            "torch's compiler has looked for triton already: import mltriton.as_triton first to torch.compile with it"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=3)


stand_in()
