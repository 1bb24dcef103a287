"""SPIR-V's own validator, where it is installed.

`spirv-val` is part of Debian's package `spirv-tools`; the extensions of Xe need one of 2025 or newer, which
`scripts/install-ocloc.sh` puts beside ocloc. `MLTRITON_SPIRV_VAL` names another one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from mltriton.targets.xe.prefix import find_tool

TIME_LIMIT = 60  # seconds


class RejectedModuleError(Exception):
    """A module that breaks a rule, with the validator's words."""


def validator() -> Path | None:
    """The program; None where there is none."""
    chosen = os.environ.get("MLTRITON_SPIRV_VAL")
    return find_tool("spirv-val", Path(chosen) if chosen else None)


def validate(image: bytes) -> bool:
    """Check a module. False where there is no validator."""
    tool = validator()
    if tool is None:
        return False
    command = [str(tool), "--target-env", "spv1.4", "-"]
    done = subprocess.run(command, input=image, capture_output=True, timeout=TIME_LIMIT, check=False)
    if done.returncode:
        raise RejectedModuleError((done.stderr or done.stdout).decode(errors="replace").strip())
    return True
