"""LLVM in processes of their own, which serve one request after the other.

Level: `llvm` -> `binary`. A worker (`worker.py`) is started when none is idle and kept for the next request, since
starting one takes longer than most kernels. Guarantees: LLVM crashing or taking too long ends no process but its own,
and raises `BackendError`.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import time
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryFile

from mltriton.errors import BackendError
from mltriton.runtime import config
from mltriton.targets.llvm.toolchain import Machine, save


def compile_isolated(text: str, machine: Machine, seconds: float) -> bytes:
    """What `compile_here` gives, made by a worker.

    Raises `BackendError` when LLVM takes longer than `seconds`, crashes or rejects the text.
    """
    worker = _idle.pop() if _idle else Worker()
    try:
        accepted, answer = worker.request(text, machine, seconds)
    except TimeoutError:
        message = f"LLVM took longer than {seconds:.3g} seconds"
        hint = f"{config.COMPILE_TIMEOUT.name} is the limit."
        raise BackendError(message, hint=hint).saved_to(save(text)) from None
    _idle.append(worker)
    if not accepted:
        what = "LLVM crashed" if accepted is None else "LLVM rejects the generated IR"
        raise BackendError(what, found=answer.decode(errors="replace").strip()).saved_to(save(text))
    return answer


class Worker:
    """A process that runs `worker.py`, and its forks."""

    def __init__(self) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        command = [sys.executable, "-c", _PROGRAM.format(_module_folders())]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, process_group=0)

    def request(self, text: str, machine: Machine, seconds: float) -> tuple[bool | None, bytes]:
        """Whether LLVM accepts the text (None: it crashed); object code or its message.

        Raises `TimeoutError`, and `BackendError` where the worker itself ended. After any exception, also one that
        interrupts the wait, the worker has been ended.
        """
        try:
            accepted, answer = self._exchange(text.encode(), machine, time.monotonic() + seconds)
        except (EOFError, BrokenPipeError):
            complaint = self._complaint().decode(errors="replace")
            self.close()
            raise BackendError("the process that runs LLVM ended", found=complaint) from None
        except BaseException:
            self._kill()
            raise
        return accepted, answer if accepted is not None else self._complaint()

    def close(self) -> None:
        """End the process: it sees the end of its input, or has ended already."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        self._process.wait()
        self._errors.close()

    def _kill(self) -> None:
        """End the process and its forks at once. It is not waited for before, so its number is no other group's."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.close()

    def _exchange(self, text: bytes, machine: Machine, deadline: float) -> tuple[bool | None, bytes]:
        to = self._process.stdin
        assert to is not None
        to.write(f"{dumps([len(text), *machine])}\n".encode() + text)
        to.flush()
        received = bytearray()
        while b"\n" not in received:
            received += self._read(deadline)
        header, _, answer = received.partition(b"\n")
        accepted, size = loads(header)
        while len(answer) < size:
            answer += self._read(deadline)
        return accepted, bytes(answer)

    def _read(self, deadline: float) -> bytes:
        """What has been answered. Raises `TimeoutError` and `EOFError`.

        The wait is in slices: outside the main thread an exception from another thread arrives only between two.
        """
        from_ = self._process.stdout
        assert from_ is not None
        ready = select.poll()
        ready.register(from_, select.POLLIN)
        while not ready.poll(SLICE):
            if time.monotonic() > deadline:
                raise TimeoutError
        found = os.read(from_.fileno(), 2**16)
        if not found:
            raise EOFError
        return found

    def _complaint(self) -> bytes:
        """The end of what was written to standard error since the last time."""
        self._errors.seek(0)
        text = self._errors.read()
        self._errors.seek(0)
        self._errors.truncate()
        return text[-2000:]


_PROGRAM = "import sys; sys.path[:] = {}; from mltriton.targets.llvm.worker import main; sys.exit(main())"


def _module_folders() -> list[str]:
    """Where this process finds modules, and found this package, whose folder may have been named from another one."""
    named = [str(Path(folder).absolute()) for folder in sys.path]
    return [*named, str(Path(__file__).parents[3])]


SLICE = 50  # milliseconds

_idle: list[Worker] = []


@atexit.register
def _close_workers() -> None:
    while _idle:
        _idle.pop().close()


def _forget_workers() -> None:
    """A forked process leaves the workers to its parent: two must not talk to one."""
    _foreign.extend(_idle)
    _idle.clear()


_foreign: list[Worker] = []  # kept, so that nobody waits for them
os.register_at_fork(after_in_child=_forget_workers)
