"""A SPIR-V module as text to read: spirv-dis's, or without it one line for each instruction.

Level: binary -> text. `spirv-dis` is part of Debian's `spirv-tools`, which `scripts/install-ocloc.sh` installs.
Guarantees: without it nothing is left out; instructions and their operands are numbers then, and names are read.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from mltriton.errors import BackendError
from mltriton.targets.xe.prefix import find_tool
from mltriton.targets.xe.spirv.words import Instruction, Op, SpirvModule, read, text_of

TIME_LIMIT = 60  # seconds
TOOL = "spirv-dis"

# Opcodes whose operands have a text in them, from this place on.
_TEXTS: dict[int, int] = {Op.EXTENSION: 0, Op.EXT_INST_IMPORT: 1, Op.ENTRY_POINT: 2, Op.NAME: 1}
_NAMES: dict[int, str] = {op.value: f"Op{op.name.title().replace('_', '')}" for op in Op}


def listing(image: bytes) -> str:
    """The text of a module."""
    tool = find_tool(TOOL, None)
    if tool is None:
        return "\n".join((*_lines(read(image)), ""))
    command = [str(tool), "--no-color", "-"]
    done = subprocess.run(command, input=image, capture_output=True, timeout=TIME_LIMIT, check=False)
    if done.returncode:
        raise BackendError(f"{TOOL} cannot read the module", found=done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")


def _lines(module: SpirvModule) -> Iterator[str]:
    major, minor = module.version
    yield f"; SPIR-V {major}.{minor}: opcodes and words, since {TOOL} is not installed"
    yield f"; kernels: {', '.join(module.kernels)}"
    yield f"; extensions: {', '.join(module.extensions)}"
    yield from map(_line, module.instructions)


def _line(item: Instruction) -> str:
    start = _TEXTS.get(item.opcode)
    words = item.operands if start is None else item.operands[:start]
    texts = [] if start is None else [f'"{text_of(item.operands[start:])}"']
    return " ".join((_NAMES.get(item.opcode, f"Op{item.opcode}"), *map(str, words), *texts))
