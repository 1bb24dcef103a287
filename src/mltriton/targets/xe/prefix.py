"""Where Intel's offline compiler and SPIR-V's validator are: a setting, the PATH, or the private prefix.

Level: all. `scripts/install-ocloc.sh` fills the prefix, `MLTRITON_XE_PREFIX` names it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mltriton.runtime import config


def prefix() -> Path:
    """The folder into which `scripts/install-ocloc.sh` installs: `MLTRITON_XE_PREFIX`, or one of the user's."""
    chosen = config.XE_PREFIX.get()
    if chosen is not None:
        return chosen
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "mltriton" / "xe"


def find_tool(name: str, chosen: Path | None) -> Path | None:
    """The program `name`: the one that a setting names, else the first on the PATH, else the prefix's."""
    if chosen is not None:
        return chosen if os.access(chosen, os.X_OK) else None
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    installed = prefix() / name
    return installed if os.access(installed, os.X_OK) else None
