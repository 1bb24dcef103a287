"""LLVM in a process of its own, which `isolation.py` starts.

Level: `llvm` -> `binary`. A request on standard input is a line of JSON (the number of bytes of the IR text, then the
fields of `Machine`) and the text; an answer on standard output is a line of JSON (whether LLVM accepts the text or null
where it crashed, a number of bytes) and so many bytes: the object file, or LLVM's message. The process ends with its
input. Guarantees: each request is served by a fork of a process in which LLVM has compiled nothing yet: its SPIR-V back
end keeps references to what an earlier module was made of, and writes wrong modules when it is used a second time.
"""

from __future__ import annotations

import json
import os
import sys

from mltriton.errors import BackendError
from mltriton.targets.llvm.toolchain import Machine, compile_here, prepare


def main() -> int:
    """Serve requests."""
    requests = sys.stdin.buffer
    while header := requests.readline():
        size, *fields = json.loads(header)
        text, machine = requests.read(size).decode(), Machine(*fields)
        prepare(machine)
        child = os.fork()
        if child == 0:
            answer(*compiled(text, machine))
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            answer(None, b"")
    return 0


def compiled(text: str, machine: Machine) -> tuple[bool, bytes]:
    """Whether LLVM accepts the text; object code or its message."""
    try:
        return True, compile_here(text, machine)
    except BackendError as error:
        return False, (error.found or str(error)).encode()


def answer(accepted: bool | None, content: bytes) -> None:
    """Write an answer."""
    sys.stdout.buffer.write(f"{json.dumps([accepted, len(content)])}\n".encode() + content)
    sys.stdout.buffer.flush()
