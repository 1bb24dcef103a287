"""LLVM in a process of its own: `python -m mltriton.targets.llvm.worker`.

Level: `llvm` -> `binary`. A request on standard input is a line of JSON (the number of bytes of the IR text, then the
fields of `Machine`) and the text; an answer on standard output is a line of JSON (whether LLVM accepts the text, a
number of bytes) and so many bytes: the object file, or LLVM's message. The process ends with its input.
"""

from __future__ import annotations

import json
import sys

from mltriton.errors import BackendError
from mltriton.targets.llvm.toolchain import Machine, compile_here


def main() -> int:
    """Serve requests."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.readline():
        size, *machine = json.loads(header)
        accepted, answer = serve(requests.read(size).decode(), Machine(*machine))
        answers.write(f"{json.dumps([accepted, len(answer)])}\n".encode() + answer)
        answers.flush()
    return 0


def serve(text: str, machine: Machine) -> tuple[bool, bytes]:
    """Whether LLVM accepts the text; object code or its message."""
    try:
        return True, compile_here(text, machine)
    except BackendError as error:
        return False, (error.found or str(error)).encode()


if __name__ == "__main__":
    sys.exit(main())
