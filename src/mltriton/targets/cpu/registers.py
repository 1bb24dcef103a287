"""What machine code takes of a CPU: vector registers, and memory on the stack.

Level: assembly text. For whoever asks how many programs of a kernel fit (`CompiledKernel.n_regs`, `n_spills`).
"""

from __future__ import annotations

import re

_VECTORS = {True: re.compile(r"%[xyz]mm(\d+)"), False: re.compile(r"\b[vqds](\d+)\b")}
_STACK = {True: re.compile(r"subq\s+\$(\d+), %rsp"), False: re.compile(r"sub\s+sp, sp, #(\d+)")}
_WORD = 4  # bytes


def used(assembly: str, *, is_x86: bool) -> tuple[int, int]:
    """How many vector registers (1 at least) and 4-byte words of the stack the functions of a kernel use."""
    registers = set(_VECTORS[is_x86].findall(assembly))
    stack = sum(map(int, _STACK[is_x86].findall(assembly)))
    return max(1, len(registers)), stack // _WORD
