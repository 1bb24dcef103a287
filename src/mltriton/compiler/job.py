"""One compilation: a kernel, what is known of its arguments, a target and options; its program at each level.

Level: tt to llvm. Guarantees: passes see a program that says its options; a failure of the target's lowering is a
`BackendError` with the program saved.
What only compiling needs is imported by the functions that use it.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mltriton.compiler.keys import entry_key, functions_in
from mltriton.compiler.levels import IR_LEVELS
from mltriton.compiler.options import Options
from mltriton.errors import BackendError, TritonError
from mltriton.frontend.dependencies import Dependencies, dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Constant, Entry, of_parameters
from mltriton.frontend.snapshot import Snapshot
from mltriton.records import record
from mltriton.runtime import config
from mltriton.runtime.cache import digest
from mltriton.runtime.fingerprint import compiler_fingerprint
from mltriton.targets.options import TargetOptions, options_for
from mltriton.targets.target import FOREIGN_SOURCES, find_target

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.ir.passes import Pass
    from mltriton.targets.target import Lowered, Target

_USUAL = Options()
_CHECKED_ACCESSES = "inline,rewrite-tensor-pointers,check-accesses"


@record(frozen=True)
class Job:
    """One compilation: what, for which arguments, for whom. `fewer_stages`: so many less than the options and
    loops ask for, where shared memory does not hold them beside what crosses warps.
    """

    fn: LanguageFunction
    entries: Mapping[str, Entry]
    target: Target
    options: Options
    fewer_stages: int = field(default=0, kw_only=True)
    snapshot: Snapshot = field(default_factory=Snapshot, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        _ = self.own_options

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.fn.__name__

    @property
    def shown_name(self) -> str:
        """The name that `jit(repr=...)` makes of the kernel and its arguments, or its own."""
        shown = getattr(self.fn, "repr", None)
        return self.name if shown is None else shown(self)

    @property
    def signature(self) -> dict[str, str]:
        """The type of every parameter by its name, as upstream writes it: `constexpr` for a constant."""
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

    @cached_property
    def own_options(self) -> TargetOptions:
        """The target's own options. Raises `OptionError` where it has no such option."""
        return options_for(self.target.name, dict(self.options.of_targets))

    def unconditional(self) -> Job:
        """The same for arrays of any addresses, sizes and strides."""
        return self._with(self.own_options.unconditional())

    def in_one_round(self) -> Job:
        """The same for a grid of which all programs run at a time if several share a multiprocessor."""
        return self._with(self.own_options.in_one_round())

    def _with(self, own: TargetOptions) -> Job:
        return replace(self, options=replace(self.options, of_targets=tuple(sorted(vars(own).items()))))

    @property
    def warp_level(self) -> bool:
        """Whether every tensor belongs to one warp."""
        return self.fn.warp_level if self.options.warp_level is None else self.options.warp_level

    @property
    def debug(self) -> bool:
        """Whether assertions are checked: as the options ask, or the kernel itself."""
        return self.options.debug or self.fn.debug

    @cached_property
    def used_options(self) -> Options:
        """The options, those without a meaning here at their defaults: equal for jobs that give the same program."""
        unused = {"num_ctas", *self.target.unused_options} - ({"num_warps"} if self.warp_level else set[str]())
        if "num_stages" not in unused and not self._may_loop:
            unused.add("num_stages")
        own = tuple(sorted(vars(self.own_options).items()))
        return replace(self.options, **{name: getattr(_USUAL, name) for name in unused}, of_targets=own)

    @property
    def _may_loop(self) -> bool:
        """Whether there may be an iteration that stages could be ahead of."""
        known: Dependencies | None = getattr(self.fn, "dependencies", None)
        return bool(functions_in(self.constants.values())) or (known or dependencies(self.fn)).may_loop

    def module(self, level: str) -> Module:
        """The program at an IR level, compiled anew."""
        from mltriton.runtime.compile_thread import unlimited

        return unlimited(lambda: next(module for name, module in self.modules() if name == level))

    def module_before(self, which: type[Pass]) -> Module | None:
        """The program as a pass of the target's pipeline finds it; None where the target does without."""
        from mltriton.passes.manager import PassManager
        from mltriton.passes.pipeline import parse_pipeline

        steps = [step for pipeline in self.target.spec.pipeline for step in parse_pipeline(pipeline)]
        number = next((number for number, step in enumerate(steps) if isinstance(step, which)), None)
        return None if number is None else PassManager(steps[:number]).run(self.source_module())

    def modules(self, timings: dict[str, float] | None = None) -> Iterator[tuple[str, Module]]:
        """The program at one IR level after the other.

        Each is valid until the next one is asked for: passes change programs in place.
        """
        from mltriton.passes.manager import PassManager
        from mltriton.passes.pipeline import parse_pipeline
        from mltriton.passes.registry import concerned

        timings = {} if timings is None else timings
        with timed(timings, "front end"):
            module = self.source_module()
        restart, verify_each, is_verified = self.source_module, config.VERIFY_PASSES.get(), False
        for level, pipeline in zip(IR_LEVELS, self.target.spec.pipeline, strict=True):
            if level == "tt" and self.options.sanitize:
                pipeline = f"{_CHECKED_ACCESSES},{pipeline}"
            with timed(timings, level):
                passes = parse_pipeline(pipeline, wanted=concerned(module))
                module = PassManager(passes, verify_each, restart=restart, is_verified=is_verified).run(module)
            yield level, module
            is_verified |= bool(passes)
            restart = partial(self.module, level)

    def source_module(self) -> Module:
        """The program as the front end makes it, marked with what passes must know."""
        from mltriton.frontend.code_generator import generate

        self.fn.check()
        warps = self.options.num_warps if self.warp_level else None
        with self.snapshot.seen():
            module = generate(
                self.fn,
                self.entries,
                target=self.target.name,
                warps=warps,
                debug=self.debug,
                sanitize_overflow=self.options.sanitize_overflow,
                threads=self._threads,
            )
        self._annotate(module)
        return module

    @property
    def _threads(self) -> int:
        """How many threads run a program: one where the number of warps has no meaning."""
        if "num_warps" in self.target.unused_options:
            return 1
        return self.options.num_warps * self.target.spec.warp_size

    def _annotate(self, module: Module) -> None:
        from mltriton.ir.attributes import IntegerAttr, StringAttr
        from mltriton.ir.types import I1, I32

        module.attributes["ttg.num-warps"] = IntegerAttr(self.options.num_warps, I32)
        if self.warp_level:
            module.attributes["mltriton.warp_level"] = IntegerAttr(1, I1)
        module.attributes["ttg.num-stages"] = IntegerAttr(self.options.num_stages, I32)
        if self.fewer_stages:
            module.attributes["ttg.fewer-stages"] = IntegerAttr(self.fewer_stages, I32)
        module.attributes["ttg.target"] = StringAttr(self.target.name)
        for name, value in self.own_options.attributes().items():
            number = partial(IntegerAttr, type=I1 if isinstance(value, bool) else I32)
            module.attributes[name] = StringAttr(value) if isinstance(value, str) else number(int(value))

    def key(self, depends: Dependencies) -> str:
        """The cache key: equal for two jobs only if they give the same binary."""
        entries = [(name, entry_key(entry)) for name, entry in self.entries.items()]
        return digest(*self._how, depends.parts, entries)

    @property
    def _how(self) -> tuple[object, ...]:
        """What of the key does not depend on the program."""
        asked = self.used_options
        options = [asked.num_warps, asked.num_stages, asked.num_ctas, self.debug, asked.sanitize, self.warp_level]
        own = [(name, str(value)) for name, value in asked.of_targets]
        foreign = FOREIGN_SOURCES.get(self.target.name.partition(":")[0], frozenset[str]())
        return (
            *(compiler_fingerprint(foreign), self.target.name, self.target.fingerprint),
            *([*options, asked.sanitize_overflow, config.F32_DEFAULT.get()], own),
        )

    def lowered(self, module: Module) -> Lowered:
        """LLVM IR. A failure of the target's is a `BackendError` with the program saved."""
        try:
            return self.target.lower(module)
        except (TritonError, RecursionError):
            raise
        except Exception as failure:
            from mltriton.tracebacks import raised_by_signal  # Only a failure needs it.

            if raised_by_signal(failure):
                raise
            from mltriton.ir.printer import print_op
            from mltriton.runtime.private_files import save_text

            message = f"lowering {self.fn.__name__} for {self.target.name} failed: {type(failure).__name__}: {failure}"
            error = BackendError(message).at(self.fn.source.in_source(self.fn.source.tree))
            saved = save_text(print_op(module, locations=True), f"lower-{self.fn.__name__}")
            raise (error if saved is None else error.saved_to(saved)) from failure


@contextmanager
def timed(timings: dict[str, float], stage: str) -> Generator[None]:
    """Note how long a stage takes, in milliseconds."""
    started = time.perf_counter()
    yield
    timings[stage] = (time.perf_counter() - started) * 1e3
