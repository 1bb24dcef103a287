"""Compiling ahead in an executor: `AsyncCompileMode`, by upstream's names.

Level: runtime. Within `with AsyncCompileMode(executor):` a kernel's `warmup` submits the compilation to the executor
(any with `submit`: threads, processes of `concurrent.futures`, ...) and gives a `FutureKernel`. Guarantees: leaving the
block waits for all of them, and raises the first error unless `ignore_errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("mltriton_async_compile_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled."""

    def __init__(self, future: Future[Any]) -> None:
        self.future = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel, once it is there; with `ignore_errors` None where it cannot be compiled."""
        if ignore_errors and self.future.exception() is not None:
            return None
        return self.future.result()


class AsyncCompileMode:
    """Within the `with` statement kernels are compiled by `executor`."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.kernels: dict[Any, FutureKernel] = {}

    def submit(self, compile: Callable[[], Any], key: Any) -> FutureKernel:
        """Let the executor call `compile`, once for each `key`."""
        if key not in self.kernels:
            self.kernels[key] = FutureKernel(self.executor.submit(compile))
        return self.kernels[key]

    def __enter__(self) -> AsyncCompileMode:
        self._token: Token[AsyncCompileMode | None] = active_mode.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        active_mode.reset(self._token)
        for kernel in self.kernels.values():
            kernel.result(self.ignore_errors or error is not None)
