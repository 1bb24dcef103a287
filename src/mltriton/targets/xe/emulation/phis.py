"""Kernels without phi instructions: what a block is given is stored by those before it and loaded at its start.

Level: `llvm` text. Intel's runtime for CPUs gives all lanes the value of the last one where a phi takes another phi
from the other side of a function of the warp, which variables in memory never suffer. Guarantees: a phi becomes a
variable of its own, so that those of one block change together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KERNEL = re.compile(r"^(define spir_kernel .*\nentry:\n)(.*?)(?=^}$)", re.MULTILINE | re.DOTALL)
_PHI = re.compile(r"  (%\w+) = phi (.*?) (\[ .*)$")
_INCOMING = re.compile(r"\[ (.*?), %([\w.]+) \]")
_LABEL = re.compile(r"([\w.]+):$")


def rewrite(text: str) -> str:
    """The kernel in `text` with variables for phis."""
    return _KERNEL.sub(lambda kernel: kernel[1] + "".join(f"{line}\n" for line in _lowered(kernel[2])), text)


def _lowered(body: str) -> Iterator[str]:
    lines = body.splitlines()
    phis = [found for line in lines if (found := _PHI.match(line)) is not None]
    yield from (f"  {name}.held = alloca {type_}, align 64" for name, type_, _ in (phi.groups() for phi in phis))
    given: dict[str, list[str]] = {}
    for name, type_, incoming in (phi.groups() for phi in phis):
        for value, block in _INCOMING.findall(incoming):
            given.setdefault(block, []).append(f"  store {type_} {value}, ptr {name}.held, align 64")
    block = "entry"
    for line in lines:
        if (label := _LABEL.match(line)) is not None:
            block = label[1]
        elif line.startswith("  br "):
            yield from given.get(block, ())
        elif (phi := _PHI.match(line)) is not None:
            line = f"  {phi[1]} = load {phi[2]}, ptr {phi[1]}.held, align 64"
        yield line
