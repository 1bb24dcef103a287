"""SPIR-V's own validator, where it is installed.

Level: binary. `spirv-val` is part of Debian's package `spirv-tools`; the extensions of Xe need one of 2025 or newer,
which `scripts/install-ocloc.sh` puts beside ocloc. Guarantees: a module that breaks a rule raises `BackendError` with
the validator's words.
"""

from __future__ import annotations

import subprocess

from mltriton.errors import BackendError
from mltriton.runtime import config
from mltriton.targets.xe.prefix import find_tool

TIME_LIMIT = 60  # seconds


def validate(image: bytes) -> bool:
    """Check a module. False where there is no validator."""
    tool = find_tool("spirv-val", config.SPIRV_VAL.get())
    if tool is None:
        return False
    command = [str(tool), "--target-env", "spv1.4", "-"]
    done = subprocess.run(command, input=image, capture_output=True, timeout=TIME_LIMIT, check=False)
    if done.returncode:
        message = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise BackendError("spirv-val rejects the generated module", found=message)
    return True
