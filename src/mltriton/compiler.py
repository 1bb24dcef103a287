"""The compiler as one function: a kernel, what is known of its arguments and a target; down through the levels.

Level: tt to binary. `compile` is the ahead-of-time interface, `runtime/jit.py` calls `compile_entries` for a launch.
Guarantees: a program that was compiled before is loaded from the on-disk cache without importing a compiler module; the
text of any level is made when it is asked for.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from mltriton.errors import (
    BackendError,
    ConstexprError,
    OptionError,
    SignatureError,
    TargetError,
    TritonError,
    raised_by_signal,
)
from mltriton.frontend.dependencies import Dependencies, dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.snapshot import Call, Snapshot
from mltriton.language.constants import unwrap
from mltriton.language.types import dtype
from mltriton.runtime import config
from mltriton.runtime.cache import default_cache, digest
from mltriton.runtime.fingerprint import compiler_fingerprint
from mltriton.targets.target import find_target
from mltriton.tools.signature import Argument, Constant, Entry, parse_signature, with_parts

if TYPE_CHECKING:
    from mltriton.dialects.builtin import Module
    from mltriton.targets.target import Binary, LoadedKernel, Lowered, Target

IR_LEVELS = ("tt", "ttg", "warp", "intrinsic")
UPSTREAM_LEVELS: Mapping[str, str] = {"ttir": "tt", "ttgir": "ttg", "llir": "llvm"}  # what upstream calls them
# Upstream's names of how many registers a warp gets; None: what it is expected to need, more where that spills.
GRF_MODES: Mapping[str, int | None] = {
    "default": None,
    "auto": None,
    "128": 128,
    "small": 128,
    "256": 256,
    "large": 256,
}
ASSEMBLY = "asm"  # names a target's assembly, whatever the target calls it


_CHECKED_ACCESSES = "inline,rewrite-tensor-pointers,check-accesses"


@dataclass(frozen=True)
class Options:
    """How a kernel is compiled, besides its arguments.

    `sanitize`: every access is checked against the memory of the arrays passed (`passes/tt/check_accesses.py`).
    `debug`: assertions are checked, and with `sanitize_overflow` whether integers overflow. `warp_level` (the kernel's
    own mark when None): every tensor belongs to one warp. `address_payloads` (targets that have them,
    `TargetSpec.address_payloads`): loops keep the address of each 2D block access. `codegen` (targets that have
    several, `TargetSpec.codegens`; None for the first): what the machine code is one program of. `grf_mode`, a key of
    `GRF_MODES` (of meaning where `TargetSpec.register_modes` has them): how many registers a warp gets.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    debug: bool = False
    sanitize: bool = False
    sanitize_overflow: bool = True
    warp_level: bool | None = None
    address_payloads: bool = False
    codegen: str | None = None
    grf_mode: str = "default"

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_stages", "num_ctas"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (0 if name == "num_stages" else 1):
                raise OptionError(f"{name} must be a positive integer", found=repr(value))
        if self.num_warps & (self.num_warps - 1):
            less = 1 << self.num_warps.bit_length() - 1
            expected = f"{less} or {2 * less}"
            raise OptionError("num_warps must be a power of two", expected=expected, found=str(self.num_warps))
        if self.warp_level is not None and type(self.warp_level) is not bool:
            raise OptionError("warp_level must be a bool", found=repr(self.warp_level))
        if type(self.address_payloads) is not bool:
            raise OptionError("address_payloads must be a bool", found=repr(self.address_payloads))
        if str(self.grf_mode) not in GRF_MODES:
            known = ", ".join(GRF_MODES)
            raise OptionError("there is no such grf_mode", expected=f"one of {known}", found=repr(self.grf_mode))
        if self.num_ctas != 1:
            raise OptionError("num_ctas must be 1: no target has clusters of programs", found=str(self.num_ctas))


@dataclass
class Metadata:
    """What is known of a compiled kernel. `timings` are milliseconds by stage, empty when it came from the cache.

    `scratch_bytes` is memory that each thread needs, `shared` memory that a program's warps share; `written` are the
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
    scratch_bytes: int = 0
    written: tuple[str, ...] = ()
    hash: str = ""
    timings: dict[str, float] = field(default_factory=dict[str, float])
    from_cache: bool = False
    host_calls: list[Call] | None = field(default_factory=list[Call])


class CompiledKernel:
    """A kernel compiled for one set of entries.

    `asm[level]` is the program as text; `image(name)` a file for other tools; `binary` is what the target loads (None
    where it makes none).
    """

    def __init__(
        self, job: Job, metadata: Metadata, binary: Binary | None = None, lowered: Lowered | None = None
    ) -> None:
        self.job = job
        self.metadata = metadata
        self.binary = binary
        self.asm = Levels(job, lowered)

        # What of the kernel belongs to this process, by upstream's names: other programs set it to None to pickle it.
        self.module: LoadedKernel | None = None
        self.function: object = None
        self.run: Callable[..., None] | None = None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.metadata.name

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
            self.module = self._load(self.binary)
        return self.module

    def _load(self, binary: Binary) -> LoadedKernel:
        """The binary in this process; made again where what the cache held of it is damaged."""
        try:
            loaded = self.job.target.load(binary, self.metadata.name)
            if self.job.options.sanitize:
                from mltriton.runtime.sanitizer import SanitizedKernel

                return SanitizedKernel(loaded)
            return loaded
        except (BackendError, KeyError, TypeError):
            if not self.metadata.from_cache:
                raise
        default_cache().discard(self.metadata.hash)
        fresh = compile_job(self.job)
        self.metadata, self.binary, self.asm = fresh.metadata, fresh.binary, fresh.asm
        return fresh.loaded

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
        from mltriton.runtime.ahead_of_time import launch_compiled

        launch_compiled(self, grid, arguments)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """`compiled[grid](*arguments)` is `compiled.launch(grid, *arguments)`."""
        return partial(self.launch, grid)

    def __repr__(self) -> str:
        entries = ", ".join(f"{name}: {entry}" for name, entry in self.job.entries.items())
        return f"<compiled {self.name}({entries}) for {self.metadata.target}>"


class Levels(Mapping[str, str]):
    """The text of a kernel at every level, made when it is asked for."""

    def __init__(self, job: Job, lowered: Lowered | None = None) -> None:
        self._job = job
        self._texts: dict[str, str] = {}
        self._lowered = lowered

    def __getitem__(self, level: str) -> str:
        level = UPSTREAM_LEVELS.get(level, level)
        if level not in self:
            raise KeyError(level)
        if level not in self._texts:
            from mltriton.runtime.compile_thread import unlimited

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
        if self._lowered is None:
            self._lowered = self._job.lowered(self._job.module("intrinsic"))
        return self._lowered

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


@dataclass(frozen=True)
class Job:
    """One compilation: what, for which arguments, for whom."""

    fn: LanguageFunction
    entries: Mapping[str, Entry]
    target: Target
    options: Options
    snapshot: Snapshot = field(default_factory=Snapshot, kw_only=True, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.fn.__name__

    @property
    def signature(self) -> dict[str, str]:
        """The type of every parameter by its name, as upstream writes it: `constexpr` for a constant."""
        from mltriton.tools.signature import of_parameters

        types = of_parameters({name: entry for name, entry in self.entries.items() if isinstance(entry, Argument)})
        return {name: types.get(name, "constexpr").partition(":")[0] for name in self.fn.signature.parameters}

    @property
    def constants(self) -> dict[str, Any]:
        """The values of the constants by their names."""
        return {name: entry.value for name, entry in self.entries.items() if isinstance(entry, Constant)}

    def __getstate__(self) -> dict[str, Any]:
        """The target is known by its name; what the kernel names is looked up again."""
        return self.__dict__ | {"target": self.target.name, "snapshot": Snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the target again."""
        self.__dict__.update(state | {"target": find_target(state["target"])})

    @property
    def warp_level(self) -> bool:
        """Whether every tensor belongs to one warp."""
        return self.fn.warp_level if self.options.warp_level is None else self.options.warp_level

    @property
    def debug(self) -> bool:
        """Whether assertions are checked: as the options ask, or the kernel itself."""
        return self.options.debug or self.fn.debug

    def module(self, level: str) -> Module:
        """The program at an IR level, compiled anew."""
        from mltriton.runtime.compile_thread import unlimited

        return unlimited(lambda: next(module for name, module in self.modules() if name == level))

    def modules(self, timings: dict[str, float] | None = None) -> Iterator[tuple[str, Module]]:
        """The program at one IR level after the other.

        Each is valid until the next one is asked for: passes change programs in place.
        """
        from mltriton.ir.passes import PassManager
        from mltriton.ir.pipeline import parse_pipeline

        timings = {} if timings is None else timings
        with _timed(timings, "front end"):
            module = self.source_module()
        restart, verify_each = self.source_module, config.VERIFY_PASSES.get()
        for level, pipeline in zip(IR_LEVELS, self.target.spec.pipeline, strict=True):
            if level == "tt" and self.options.sanitize:
                pipeline = f"{_CHECKED_ACCESSES},{pipeline}"
            with _timed(timings, level):
                module = PassManager(parse_pipeline(pipeline), verify_each, restart=restart).run(module)
            yield level, module
            restart = partial(self.module, level)

    def source_module(self) -> Module:
        """The program as the front end makes it, marked with what passes must know."""
        from mltriton.frontend.code_generator import generate

        warps = self.options.num_warps if self.warp_level else None
        family, debug = self.target.name.partition(":")[0], self.debug
        with self.snapshot.seen():
            module = generate(
                self.fn,
                self.entries,
                family=family,
                warps=warps,
                debug=debug,
                sanitize_overflow=self.options.sanitize_overflow,
            )
        self._annotate(module)
        return module

    def _annotate(self, module: Module) -> None:
        from mltriton.ir.attributes import IntegerAttr, StringAttr
        from mltriton.ir.types import I1, I32

        module.attributes["ttg.num-warps"] = IntegerAttr(self.options.num_warps, I32)
        if self.warp_level:
            module.attributes["mltriton.warp_level"] = IntegerAttr(1, I1)
        module.attributes["ttg.num-stages"] = IntegerAttr(self.options.num_stages, I32)
        module.attributes["ttg.target"] = StringAttr(self.target.name)
        if self.options.address_payloads:
            if not self.target.spec.address_payloads:
                raise OptionError(
                    f"the target {self.target.name} has no address_payloads", hint="Leave the option out."
                )
            module.attributes["ttig.address_payloads"] = IntegerAttr(1, I1)
        if self.options.codegen is not None:
            module.attributes["ttig.codegen"] = StringAttr(self._codegen)
        registers = GRF_MODES[str(self.options.grf_mode)]
        if registers is not None and self.target.spec.register_modes:
            module.attributes["ttig.grf_mode"] = IntegerAttr(registers, I32)

    @property
    def _codegen(self) -> str:
        """The form of machine code that is asked for. Raises `OptionError` where the target has none of that name."""
        wanted, known = self.options.codegen, self.target.spec.codegens
        if wanted not in known:
            expected = f"one of {', '.join(known)}" if known else "nothing: it has one form of code"
            message = f"the target {self.target.name} has no codegen {wanted!r}"
            raise OptionError(message, expected=expected, found=repr(wanted))
        return wanted

    def key(self, depends: Dependencies) -> str:
        """The cache key: equal for two jobs only if they give the same binary."""
        entries = [(name, entry_key(entry)) for name, entry in self.entries.items()]
        asked = self.options
        options = [asked.num_warps, asked.num_stages, asked.num_ctas, self.debug, asked.sanitize, self.warp_level]
        options += [asked.sanitize_overflow, asked.address_payloads, asked.codegen, str(asked.grf_mode)]
        return digest(
            compiler_fingerprint(), self.target.name, self.target.fingerprint, depends.parts, entries, options
        )

    def build(self, key: str) -> CompiledKernel:
        """Compile, without looking into the cache."""
        from mltriton.analysis.written_arguments import written_arguments

        timings: dict[str, float] = {}
        written: tuple[str, ...] = ()
        module = None
        for level, module in self.modules(timings):
            if level == "tt":
                written = self._names_of(written_arguments(module))
            _dump(self, level, lambda module=module: str(module))
        assert module is not None
        options = self.options
        metadata = Metadata(
            name=self.fn.__name__,
            target=self.target.name,
            num_warps=options.num_warps,
            num_stages=options.num_stages,
            num_ctas=options.num_ctas,
            warp_level=self.warp_level,
            written=written,
            hash=key,
            host_calls=self.snapshot.calls,
        )
        metadata.timings = timings
        if not self.target.can_run:
            return CompiledKernel(self, metadata)
        with _timed(timings, "llvm"):
            lowered = self.lowered(module)
        _dump(self, "llvm", lambda: lowered.text)
        for name, text_of in self.target.texts.items():
            _dump(self, name, partial(text_of, lowered))
        with _timed(timings, "binary"):
            binary = self.target.assemble(lowered, module)
        metadata.shared = binary.metadata.get("shared", 0)
        metadata.scratch_bytes = binary.metadata.get("scratch_bytes", 0)
        return CompiledKernel(self, metadata, binary, lowered)

    def lowered(self, module: Module) -> Lowered:
        """LLVM IR. A failure of the target's is a `BackendError` with the program saved."""
        try:
            return self.target.lower(module)
        except (TritonError, RecursionError):
            raise
        except Exception as failure:
            if raised_by_signal(failure):
                raise
            from mltriton.ir.printer import print_op
            from mltriton.ir.reproducer import save_text

            message = f"lowering {self.fn.__name__} for {self.target.name} failed: {type(failure).__name__}: {failure}"
            error = BackendError(message).at(self.fn.source.place(self.fn.source.tree))
            saved = save_text(print_op(module, locations=True), f"lower-{self.fn.__name__}")
            raise (error if saved is None else error.saved_to(saved)) from failure

    def _names_of(self, positions: frozenset[int]) -> tuple[str, ...]:
        names = [name for name, entry in self.entries.items() if isinstance(entry, Argument)]
        return tuple(name for position, name in enumerate(names) if position in positions)


def compile(
    fn: LanguageFunction,
    signature: str | Mapping[str, str],
    constexprs: Mapping[str, Any] | None = None,
    target: str = "cpu",
    num_warps: int = 4,
    num_stages: int = 3,
    **options: Any,
) -> CompiledKernel:
    """Compile a kernel ahead of time.

    `signature` is a string with an entry for each parameter (`"*fp32:16, i32, 1024"`) or a dict from names to entries;
    `constexprs` gives further parameters their values. Raises `SignatureError`, `OptionError`, `TargetError`, or the
    error of the kernel's own mistake.
    """
    kernel = _kernel_of(fn)
    entries = _entries(kernel, signature, constexprs or {})
    return compile_job(
        Job(kernel, entries, find_target(target), options_of(num_warps=num_warps, num_stages=num_stages, **options))
    )


def _kernel_of(fn: Any) -> LanguageFunction:
    """The kernel inside what `autotune` and `heuristics` may have made of it; `SignatureError` for anything else."""
    inner = fn
    while not isinstance(inner, LanguageFunction):
        if not hasattr(inner, "fn"):
            raise SignatureError(f"{getattr(fn, '__name__', fn)!r} is no kernel", hint="Decorate it with @triton.jit.")
        inner = inner.fn
    return inner


def options_of(**given: Any) -> Options:
    """The options of keyword arguments; `OptionError` for unknown ones."""
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            raise OptionError(f"there is no option {name!r}", expected=f"one of {', '.join(known)}")
    return Options(**{name: unwrap(value) for name, value in given.items()})


def _entries(
    fn: LanguageFunction, signature: str | Mapping[str, str], constexprs: Mapping[str, Any]
) -> dict[str, Entry]:
    """What is known of every parameter.

    A parameter without a value takes its default; `SignatureError` if it has none.
    """
    parameters = fn.signature.parameters
    for name in constexprs:
        if name not in parameters:
            raise SignatureError(f"{fn.__name__} has no parameter {name!r}", expected=fn.signature_text)
    found = _parsed(fn, signature, constexprs)
    entries: dict[str, Entry] = {}
    for name, parameter in parameters.items():
        if name in constexprs:
            entries[name] = Constant(unwrap(constexprs[name]))
        elif name in found:
            entries[name] = _fitting(fn, name, found[name])
        elif parameter.default is not parameter.empty:
            entries[name] = Constant(unwrap(parameter.default))
        else:
            raise SignatureError(f"the signature says nothing of the parameter {name} of {fn.__name__}")
    return with_parts(entries)


def _parsed(
    fn: LanguageFunction, signature: str | Mapping[str, str], constexprs: Mapping[str, Any]
) -> dict[str, Entry]:
    """A signature's entries; a string lists all parameters, or those that `constexprs` leaves."""
    parameters = list(fn.signature.parameters)
    left = [name for name in parameters if name not in constexprs]
    if isinstance(signature, str) and constexprs:
        try:
            return parse_signature(signature, left)
        except SignatureError:
            pass
    return parse_signature(signature, parameters)


def _fitting(fn: LanguageFunction, name: str, entry: Entry) -> Entry:
    if name in fn.constexpr_names and isinstance(entry, Argument):
        raise ConstexprError(
            f"the parameter {name} of {fn.__name__} is a tl.constexpr and needs a value", found=f"the type {entry}"
        )
    return entry


def compile_job(job: Job, depends: Dependencies | None = None) -> CompiledKernel:
    """The compiled kernel: from the on-disk cache if it is there, compiled and stored otherwise."""
    depends = (depends or dependencies(job.fn)).with_functions(_functions_in(job.constants.values()))
    key, job = job.key(depends), replace(job, snapshot=replace(depends.snapshot))
    if not job.target.can_run:
        return _built(job, key)
    cache = default_cache()
    if not config.ALWAYS_COMPILE.get() and not config.DUMP.get():
        files = cache.get(key)
        known = None if files is None else _from_files(job, files)
        if known is not None and job.snapshot.still_holds(known.metadata.host_calls or ()):
            return known
    with _collector_paused():
        kernel = _built(job, key)
    if kernel.metadata.host_calls is not None:
        cache.put(key, _to_files(kernel))
    return kernel


def _functions_in(constants: Iterable[Any]) -> list[LanguageFunction]:
    """The functions among constants, also inside tuples."""
    flat = (
        _functions_in(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else [value] for value in constants
    )
    return [item for items in flat for item in items if isinstance(item, LanguageFunction)]


def _built(job: Job, key: str) -> CompiledKernel:
    """The kernel compiled, whatever its depth, within the time limit."""
    from mltriton.runtime.compile_thread import TimeIsUp, limited, unlimited

    limit = config.COMPILE_TIMEOUT.get()
    build = partial(unlimited, partial(job.build, key))
    if limit is None:
        return build()
    try:
        return limited(build, limit)
    except TimeIsUp:
        message, hint = f"compiling {job.fn.__name__} took longer than {limit:g} seconds", config.COMPILE_TIMEOUT.name
        raise BackendError(message, hint=f"{hint} is the limit.") from None


def _to_files(kernel: CompiledKernel) -> dict[str, bytes]:
    assert kernel.binary is not None
    known: dict[str, dict[str, Any]] = {"kernel": asdict(kernel.metadata), "binary": kernel.binary.metadata}
    known["kernel"]["timings"] = {}
    return {
        "metadata": json.dumps(known).encode(),
        "object": kernel.binary.object,
        "llvm": kernel.asm["llvm"].encode(),
    }


def _from_files(job: Job, files: Mapping[str, bytes]) -> CompiledKernel | None:
    """The kernel of an entry of the cache; None where the entry is not what `_to_files` makes."""
    from mltriton.targets.target import Binary

    try:
        known = json.loads(files["metadata"])
        metadata = Metadata(**known["kernel"] | {"written": tuple(known["kernel"]["written"]), "from_cache": True})
        binary = Binary(files["object"], known["binary"])
        lowered = job.target.restored(files["llvm"].decode(), binary)
    except (KeyError, TypeError, ValueError):
        return None
    return CompiledKernel(job, metadata, binary, lowered)


def entry_key(entry: Entry) -> object:
    """What identifies an entry in every process, as `runtime.cache.digest` takes it."""
    return str(entry) if isinstance(entry, Argument) else ("constant", constant_key(entry.value))


def constant_key(value: Any) -> object:
    """What identifies a constant in every process.

    An object that nothing identifies gets a key that no other process has.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return (type(value).__name__, value)
    if isinstance(value, tuple):
        return tuple(constant_key(item) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, dtype):
        return ("dtype", value.name)
    if isinstance(value, LanguageFunction):
        return ("function", dependencies(value).parts)
    if isinstance(value, Enum):
        return ("enum", type(value).__qualname__, value.name)
    return ("object", os.urandom(16))


@contextmanager
def _collector_paused() -> Generator[None]:
    """Compiling makes many objects and little garbage: looking for cycles among them would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Generator[None]:
    started = time.perf_counter()
    yield
    timings[stage] = (time.perf_counter() - started) * 1e3


def _dump(job: Job, level: str, text: Callable[[], str]) -> None:
    """Print a level, or write it to a file, where `MLTRITON_DUMP` asks for it."""
    wanted = config.DUMP.get()
    names = {word[1:] for word in wanted if word[0] == "@"}
    if (level not in wanted and "all" not in wanted) or (names and job.fn.__name__ not in names):
        return
    directory = config.DUMP_DIR.get()
    if directory is None:
        print(f"// {job.fn.__name__}: {level}\n{text()}", file=sys.stderr)
        return
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{job.fn.__name__}.{level}").write_text(text() + "\n", encoding="utf-8")
