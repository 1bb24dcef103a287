"""A compiled kernel: its text at every level, its binary, and launching it.

Level: user.
What only compiling needs is imported by the functions that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mltriton.compiler.levels import ASSEMBLY, Levels
from mltriton.errors import BackendError, TargetError
from mltriton.frontend.snapshot import Call
from mltriton.records import record
from mltriton.runtime.cache import default_cache
from mltriton.targets.target import ConditionalKernel

if TYPE_CHECKING:
    from mltriton.compiler.job import Job
    from mltriton.runtime.ahead_of_time import Constants
    from mltriton.targets.target import Binary, LoadedKernel, Lowered


# What is called before ("start") and after ("end") a kernel is loaded: chains, once there may be hooks
# (`runtime/hooks.py`).
LOAD_HOOKS: dict[str, Callable[..., None]] = {}


@record()
class Metadata:
    """What is known of a compiled kernel. `timings` are milliseconds by stage, empty when it came from the cache.

    `scratch_bytes` is memory that each thread needs, `shared` memory that a program's warps share, `fewer_stages`
    how many stages its loops have less than asked for, to leave room in that; `written` are the
    parameters whose memory the kernel may write; `host_calls` what Python functions answered while it was compiled
    (`Snapshot.calls`).
    """

    name: str
    target: str
    num_warps: int
    num_stages: int
    num_ctas: int = 1
    warp_level: bool = False
    shared: int = 0
    fewer_stages: int = 0
    scratch_bytes: int = 0
    written: tuple[str, ...] = ()
    hash: str = ""
    timings: dict[str, float] = field(default_factory=dict[str, float])
    from_cache: bool = False
    host_calls: list[Call] | None = field(default_factory=list[Call])


def options_in_metadata(job: Job) -> dict[str, Any]:
    """What the metadata of a kernel says of how it was asked for."""
    return {name: getattr(job.options, name) for name in ("num_warps", "num_stages", "num_ctas")}


class CompiledKernel:
    """A kernel compiled for one set of entries.

    `asm[level]` is the program as text; `image(name)` a file for other tools; `binary` is what the target loads (None
    where it makes none).
    """

    def __init__(
        self,
        job: Job,
        metadata: Metadata,
        binary: Binary | None = None,
        lowered: Lowered | None = None,
        again: Callable[[Job], CompiledKernel] | None = None,
    ) -> None:
        self.job = job
        self.metadata = metadata
        self.binary = binary
        self.asm = Levels(job, lowered)
        self._again = again  # compiles the job anew: what comes from the cache may be damaged

        # What of the kernel belongs to this process, by upstream's names: other programs set it to None to pickle it.
        self.module: LoadedKernel | None = None
        self.function: object = None
        self.run: Callable[..., None] | None = None
        self._constants: Constants | None = None  # Of what `launch` is given, since its first time.
        self._was_launched = False

    def asked_for_by(self, job: Job) -> CompiledKernel:
        """The same program for a job that asks for it by other options."""
        if job.options == self.job.options:
            return self
        made = CompiledKernel(
            replace(self.job, options=job.options),
            replace(self.metadata, **options_in_metadata(job)),
            self.binary,
            self.asm.known_lowered,
            self._again,
        )
        made.module = self.module
        return made

    @property
    def name(self) -> str:
        """The kernel's name; with `jit(repr=...)` what that makes of it and its arguments, as profilers show it."""
        return self.job.shown_name

    @property
    def loaded(self) -> LoadedKernel:
        """The kernel in this process; its `launcher(specs)` gives functions that launch it.

        Raises `TargetError` where the target has no machine code.
        """
        if self.module is None:
            if self.binary is None:
                raise TargetError(
                    f"the target {self.metadata.target} has no machine code, so {self.name} cannot be launched"
                )
            self._tell("start")
            self.module = self._load(self.binary)
            self._tell("end")
        return self.module

    def _tell(self, when: str) -> None:
        """Call the hooks of loading, as upstream does; there are no files of the kernel alone (`metadata_group`)."""
        if when in LOAD_HOOKS:
            LOAD_HOOKS[when](self.module, self.module, self.name, {}, self.hash)

    def _load(self, binary: Binary) -> LoadedKernel:
        """The binary in this process; made again where what the cache held of it is damaged."""
        try:
            loaded = self.job.target.load(binary, self.metadata.name)
            if isinstance(loaded, ConditionalKernel):
                loaded.otherwise = partial(self._compiled_as, self.job.unconditional)
                loaded.in_one_round = partial(self._compiled_as, self.job.in_one_round)
            if self.job.options.sanitize:
                from mltriton.frontend.signature import Argument
                from mltriton.runtime.sanitizer import SanitizedKernel

                entries = self.job.entries.items()
                return SanitizedKernel(
                    loaded, [name for name, entry in entries if isinstance(entry, Argument) and entry.is_pointer]
                )
            return loaded
        except (BackendError, KeyError, TypeError):
            if self._again is None:
                raise
        default_cache().discard(self.metadata.hash)
        fresh = self._again(self.job)
        self.metadata, self.binary, self.asm = fresh.metadata, fresh.binary, fresh.asm
        return fresh.loaded

    def _compiled_as(self, job: Callable[[], Job]) -> LoadedKernel:
        """The kernel compiled for launches that it is not made for."""
        from mltriton.compiler.compilation import compile_job

        return compile_job(job()).loaded

    def _init_handles(self) -> None:
        """Load the kernel, and make `run`, upstream's way to launch it."""
        from mltriton.runtime.ahead_of_time import runner

        if self.run is None:
            self.function = self.loaded
            self.run = runner(self)

    @property
    def hash(self) -> str:
        """The key in the cache."""
        return self.metadata.hash

    @property
    def src(self) -> Job:
        """What was compiled: `fn`, `signature`, `constants`."""
        return self.job

    @property
    def packed_metadata(self) -> tuple[int, ...]:
        """What upstream's launchers take: warps, programs that work together, bytes of shared memory."""
        return (self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared)

    def launch_metadata(self, grid: Any, stream: int, *arguments: Any) -> Any:
        """What launch hooks get of a launch; None where there are none."""
        from mltriton.runtime.hooks import metadata_of

        return metadata_of(self, grid, arguments)

    @cached_property
    def n_regs(self) -> int:
        """How many registers a lane of the kernel uses: on the CPU vector registers."""
        return self.job.target.registers(self.asm[ASSEMBLY])[0]

    @cached_property
    def n_spills(self) -> int:
        """How many 4-byte words of memory besides a lane of the kernel uses: on the CPU the stack."""
        return self.job.target.registers(self.asm[ASSEMBLY])[1]

    def image(self, name: str) -> bytes:
        """A file that the target makes for other tools (`target.images`). Raises `TargetError` for an unknown one."""
        images = self.job.target.images
        if name not in images:
            known = ", ".join(images) or None
            raise TargetError(f"the target {self.metadata.target} makes no {name}", expected=known, found=name)
        return images[name](self.asm.lowered)

    def launch(self, grid: Any, *arguments: Any) -> None:
        """Launch over `grid` with every argument, or with those that are not constants; nothing is compiled.

        Raises `ArgumentError` for arguments that the kernel was not compiled for.
        """
        from mltriton.runtime.ahead_of_time import constants_of, launch_compiled, relaunch

        if self.run is not None and self._was_launched:
            relaunch(self, self.run, self._constants, grid, arguments)
            return
        launch_compiled(self, grid, arguments)
        self._constants, self._was_launched = constants_of(self), True
        self._init_handles()

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """`compiled[grid](*arguments)` is `compiled.launch(grid, *arguments)`."""
        return partial(self.launch, grid)

    def __repr__(self) -> str:
        entries = ", ".join(f"{name}: {entry}" for name, entry in self.job.entries.items())
        return f"<compiled {self.name}({entries}) for {self.metadata.target}>"
