"""The levels that a kernel goes down through, and its text at each, made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mltriton.compiler.job import Job
    from mltriton.targets.target import Lowered

IR_LEVELS = ("tt", "ttg", "warp", "intrinsic")
UPSTREAM_LEVELS: Mapping[str, str] = {"ttir": "tt", "ttgir": "ttg", "llir": "llvm"}  # what upstream calls them
ASSEMBLY = "asm"  # names a target's assembly, whatever the target calls it


class Levels(Mapping[str, str]):
    """The text of a kernel at every level, made when it is asked for."""

    def __init__(self, job: Job, lowered: Lowered | None = None) -> None:
        self._job = job
        self._texts: dict[str, str] = {}
        self.known_lowered = lowered

    def __getitem__(self, level: str) -> str:
        level = UPSTREAM_LEVELS.get(level, level)
        if level not in self:
            raise KeyError(level)
        if level not in self._texts:
            from mltriton.runtime.compile_thread import unlimited  # A launch from the cache needs none of it.

            self._texts[level] = unlimited(partial(self._make, level))
        return self._texts[level]

    def __iter__(self) -> Iterator[str]:
        return iter((*IR_LEVELS, "llvm", *self._below) if self._job.target.can_run else IR_LEVELS)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, level: object) -> bool:
        level = UPSTREAM_LEVELS.get(level, level) if isinstance(level, str) else level
        return level in tuple(self) or (level == ASSEMBLY and self._job.target.can_run)

    @property
    def lowered(self) -> Lowered:
        """The kernel as LLVM IR, with what the target knows of it."""
        if self.known_lowered is None:
            self.known_lowered = self._job.lowered(self._job.module("intrinsic"))
        return self.known_lowered

    @property
    def _below(self) -> Mapping[str, Callable[[Lowered], str]]:
        return self._job.target.texts

    def _make(self, level: str) -> str:
        if level in self._below:
            return self._below[level](self.lowered)
        if level == ASSEMBLY:
            return self[tuple(self._below)[-1]]
        if level == "llvm":
            return self.lowered.text
        return str(self._job.module(level)) + "\n"
