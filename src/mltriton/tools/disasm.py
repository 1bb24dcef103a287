"""`triton.tools.disasm`: the machine code of a compiled kernel as text.

Takes what a launch or a compile gives, or a path to an object file (with objdump); guarantees assembly that an
assembler of the machine reads.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from mltriton.errors import OptionError


def get_sass(kernel: Any, fun: str | None = None) -> str:
    """The assembly of a kernel, or of an object file. Raises `OptionError` where there is no objdump to read one."""
    if hasattr(kernel, "asm"):
        return str(kernel.asm["asm"])
    file = Path(kernel)
    if shutil.which("objdump") is None:
        raise OptionError("an object file is read by objdump, which is not installed", found=str(file))
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", *([f"--disassemble={fun}"] if fun else []), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise OptionError(f"objdump cannot read {file}", found=done.stderr.strip())
    return done.stdout


extract = get_sass
