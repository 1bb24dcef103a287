"""Where Intel's offline compiler and SPIR-V's validator are: a setting, the PATH, or a private prefix.

Level: all. `scripts/install-ocloc.sh` fills a prefix. `MLTRITON_XE_PREFIX` names it; otherwise it is one of this Python
environment (`make setup-xe`) or of the user.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from mltriton.runtime import config


def prefixes() -> list[Path]:
    """The folders into which `scripts/install-ocloc.sh` may have installed, in the order in which they are searched."""
    chosen = config.XE_PREFIX.get()
    if chosen is not None:
        return [Path(chosen)]
    base = os.environ.get("XDG_DATA_HOME")
    of_user = (Path(base) if base else Path("~", ".local", "share").expanduser()) / "mltriton" / "xe"
    return [Path(sys.prefix) / "xe", of_user]


def find_tool(name: str, chosen: str | None) -> Path | None:
    """The program `name`: the one that a setting names, else the first on the PATH, else one in a prefix."""
    if chosen is not None:
        return Path(chosen) if os.access(chosen, os.X_OK) else None
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    installed = (prefix / name for prefix in prefixes())
    return next((path for path in installed if os.access(path, os.X_OK)), None)
